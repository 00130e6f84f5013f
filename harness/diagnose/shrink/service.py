"""The process that holds the backend while a failure is shrunk: each candidate is tried in a child of its
own, which may be lost.

Started as `python -m harness.diagnose.shrink.service`. Of the backend, nothing but loading it happens in this
process itself.
"""

from __future__ import annotations

import gc
import json
import mmap
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from itertools import islice
from typing import Any

from harness.backend.grammar import Adapter, Grammar
from harness.backend.process.channel import BrokenChannel, Frames, send
from harness.backend.process.fork import PR_SET_CHILD_SUBREAPER, die_with, prctl
from harness.backend.process.guard import forbid_network
from harness.backend.process.system import descendants, kill_group, rss_bytes
from harness.backend.registry import installed_version, load, make, parse_specs
from harness.backend.vocabulary import Vocabulary, load_vocabulary
from harness.cases.case import Case, Instance, case_id
from harness.checks import OurFailure, Subject, checks, run_check, stamped
from harness.diagnose.shrink.fault import Outcome, outcome_of_finding
from harness.diagnose.shrink.stepping import small_vocabulary, spelled, stepped, tokens_of
from harness.errors import BadInput
from harness.rows.row import Finding
from harness.walk.replay import PHASES, Progress, compile_grammar, describe, first_mask, walk

TICK_SECONDS = 0.005


def main(arguments: list[str]) -> None:
    """`SPEC VOCABULARY REPLY_FD COORDINATOR_PID`; a question in JSON on each line of stdin."""
    spec, vocabulary, reply, coordinator = arguments[0], arguments[1], int(arguments[2]), int(arguments[3])
    die_with(coordinator)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    forbid_network()
    backend = Backend(spec, vocabulary)
    try:
        load(parse_specs(spec)[0].name)  # once, before the children
    except BadInput as error:
        send(reply, {"failed": str(error)})
        return
    send(reply, {"ready": True})
    for line in sys.stdin.buffer:
        question = json.loads(line)
        try:
            backend.load(question)
            gc.freeze()
        except BaseException as error:
            send(reply, {"failed": describe(error)})
            return
        send(reply, {**try_once(backend, question, reply), "nonce": question["nonce"]})


class Backend:
    """The backend, with the run's own vocabulary where that is wanted."""

    def __init__(self, spec: str, vocabulary: str) -> None:
        self.spec = spec
        self.name = vocabulary

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return load_vocabulary(self.name)

    @cached_property
    def adapter(self) -> Adapter:
        return make(parse_specs(self.spec)[0], self.vocabulary)

    def load(self, question: dict[str, Any]) -> None:
        """What this question needs of it, once, before a child is forked."""
        if question["words"] is None:
            _ = self.vocabulary if question["kind"] == "tokens" else self.adapter

    def adapter_for(self, words: list[str] | None) -> Adapter:
        """The adapter for the vocabulary of these words."""
        return self.adapter if words is None else make(parse_specs(self.spec)[0], self.vocabulary_of(words))

    def vocabulary_of(self, words: list[str] | None) -> Vocabulary:
        """Every byte, these tokens (as hex) and end-of-sequence; None: the run's own."""
        return self.vocabulary if words is None else small_vocabulary([bytes.fromhex(each) for each in words])


def try_once(backend: Backend, question: dict[str, Any], reply: int) -> dict[str, Any]:
    """What came of one candidate: its answer, or how its child was lost."""
    read, write = os.pipe()
    shared = mmap.mmap(-1, 4096)
    progress: Progress = memoryview(shared).cast("q")
    progress[0] = -1
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            die_with(parent)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # the questions are not the backend's to read
            os.close(reply)
            os.close(read)
            try:
                said = answer(backend, question, progress)
            except Exception as error:
                said = {"status": "harness_error", "text": describe(error)}
            send(write, {**said, "nonce": question["nonce"]})
        finally:
            os._exit(0)
    os.close(write)
    try:
        return _wait(child, read, progress, question)
    finally:
        os.close(read)
        _bury(child)


def _wait(child: int, read: int, progress: Progress, question: dict[str, Any]) -> dict[str, Any]:
    frames = Frames()
    ends = time.monotonic() + question["deadline"]

    def heard() -> dict[str, Any] | None:
        """The answer, if it is there whole."""
        while select.select([read], [], [], 0)[0] and (data := os.read(read, 1 << 20)):
            for message, _ in frames.feed(data):
                if message.get("nonce") == question["nonce"]:
                    return message
        return None

    ended = None
    try:
        while True:
            select.select([read], [], [], TICK_SECONDS)
            if (message := heard()) is not None:
                return message
            if ended is not None:
                return _lost(ended, progress)
            ended = os.waitid(
                os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT
            )  # not reaped: its group is still to be killed
            if ended is not None:
                pass  # one more look: it may have answered before
            elif time.monotonic() > ends:
                return {
                    "status": "timeout",
                    "phase": _phase(progress),
                    "text": f"no end within {question['deadline']:g} s",
                }
            elif rss_bytes(child) > question["memory_bytes"]:
                return {
                    "status": "oom",
                    "phase": _phase(progress),
                    "text": f"{question['memory_bytes'] / 1e9:g} GB of memory",
                }
    except BrokenChannel:
        return {
            "status": "backend_error",
            "phase": "answer",
            "text": "the backend wrote into the pipe on which its worker answers",
        }


def _lost(ended: os.waitid_result, progress: Progress) -> dict[str, Any]:
    number = 0 if ended.si_code == os.CLD_EXITED else ended.si_status
    name = (
        signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}" if number else ""
    )
    text = f"killed by {name}" if name else f"the backend ended the process with exit code {ended.si_status}"
    phase = _phase(progress)
    return {
        "status": "harness_error" if phase in ("encode", "oracle", "") else "crash",
        "phase": phase,
        "signal": name,
        "text": text,
    }


def _phase(progress: Progress) -> str:
    return PHASES[progress[0]] if 0 <= progress[0] < len(PHASES) else ""


def _bury(child: int) -> None:
    """Kill the child and whatever it left behind."""
    kill_group(child)
    for _ in range(100):
        remaining = list(descendants(os.getpid()))
        for pid in remaining:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not remaining:
            return
        time.sleep(0.001)


# --- in the child


def answer(backend: Backend, question: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """What the backend makes of the candidate, by the question's kind.

    `walk`: the instance replayed; `check`: what a check finds along it; `script`: the adapter's lines;
    `tokens`: those of the instance, or these; `steps`: what becomes of these tokens, one by one.
    """
    content = None if question["content"] is None else bytes.fromhex(question["content"])
    if question["kind"] == "tokens":
        vocabulary = backend.vocabulary_of(question["words"])
        tokens = question["tokens"] or [*vocabulary.encode(content or b""), vocabulary.eos_token]
        return {"status": "ok", "walk": spelled(vocabulary, tokens)}
    progress[0] = PHASES.index("start")
    adapter = backend.adapter_for(question["words"])
    grammar = Grammar(question["dialect"], question["grammar"])
    if question["kind"] == "script":
        library = f"{adapter.distribution} {installed_version(adapter.distribution)}"
        return {"status": "ok", "script": adapter.script(grammar), "library": library}
    if question["kind"] == "steps":
        steps = stepped(adapter, grammar, tokens_of(adapter.vocabulary, question["walk"]))
        return {"status": "ok", "steps": [[each.allowed, each.accepted] for each in steps]}
    progress[0] = PHASES.index("encode")
    tokens = adapter.vocabulary.encode(content or b"")
    shown = spelled(adapter.vocabulary, [*tokens, adapter.vocabulary.eos_token])
    compiled = compile_grammar(adapter, grammar, progress)
    if compiled.grammar is None:
        return {"status": compiled.status, "phase": "compile", "text": compiled.text, "walk": shown}
    if question["kind"] == "check":
        instances = () if content is None else (Instance("", content, question["valid"]),)
        case = Case(case_id(grammar), "shrunk", grammar, instances, options=question["options"])

        found = _findings(
            Subject(adapter, case, compiled.grammar, progress=progress),
            question["check"],
            Outcome(**question["outcome"]),
        )
        walks = [spelled(adapter.vocabulary, each.walk) if each.walk else shown for each in found]
        return {"status": "ok", "findings": [vars(each) for each in found], "walks": walks, "walk": shown}
    if content is None:
        seen = first_mask(compiled.grammar, adapter.vocabulary, adapter.mask_format, progress)
    else:
        seen = walk(compiled.grammar, adapter.vocabulary, tokens, adapter.mask_format, progress)
    kept = {
        name: value for name, value in vars(seen).items() if name in ("status", "phase", "text", "accepted")
    }
    return {**kept, "findings": [vars(each) for each in seen.findings], "walk": shown}


def _findings(subject: Subject, name: str, wanted: Outcome) -> list[Finding]:
    """The first finding of the check that is as wanted, if there is one."""

    def wanted_only(subject: Subject) -> Iterator[Finding]:
        """The check, ended early: what a run leaves out of many findings may be the one."""
        found = stamped(name, checks()[name], subject)
        yield from islice((finding for finding in found if outcome_of_finding(finding) == wanted), 1)

    try:
        return run_check(name, wanted_only, subject)[1]
    except OurFailure:  # then this candidate shows nothing
        return []


if __name__ == "__main__":
    main(sys.argv[1:])
