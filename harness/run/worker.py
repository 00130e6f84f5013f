"""A worker: loads one vocabulary and one backend once, then forks children that serve cases, one at a time.

Started by the coordinator as `python -m harness.run.worker`, with the interpreter of the environment that
holds the backend. It never decides anything: a child that hangs or grows is killed from outside. Where there
is no fork, it serves itself.
"""

from __future__ import annotations

import faulthandler
import gc
import mmap
import os
import resource
import sys
from collections.abc import Callable
from dataclasses import replace

# Bound before a backend is imported, which may put something else in their place.
from json import loads
from os import getpid, read
from pathlib import Path
from time import process_time
from typing import Any

from harness.backend.grammar import Adapter
from harness.backend.process.channel import send
from harness.backend.process.fork import (
    PR_SET_CHILD_SUBREAPER,
    die_with,
    drain,
    peak_rss,
    prctl,
    reset_peak_rss,
    wait_for,
)
from harness.backend.process.guard import forbid_network
from harness.backend.process.state import ProcessState
from harness.backend.registry import make, parse_specs
from harness.backend.vocabulary import load_vocabulary
from harness.cases.case import Case, case_from_line
from harness.checks import BACKEND_ERROR, SLOW, OurFailure, Subject, is_ours, made, prepare, run_check
from harness.errors import BadInput, describe
from harness.rows.row import BROKEN, OUT_OF_TIME, Status
from harness.run.limits import Checking
from harness.walk.replay import Compiled, Observation, compile_grammar, first_mask, walk
from harness.walk.watched import PHASES, Progress


def main(arguments: list[str]) -> None:
    """Serve cases as the only argument says, a JSON object that `start_worker` writes."""
    asked = loads(arguments[0])
    checking = Checking(**asked["checking"])
    request, reply, control = asked["request"], asked["reply"], asked["control"]
    die_with(asked["coordinator"])
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    forbid_network()
    progress: Progress = memoryview(mmap.mmap(asked["progress"], 4096)).cast("q")
    try:
        vocabulary = load_vocabulary(asked["vocabulary"])
        if made(checking.effort, checking.decode):
            prepare(vocabulary, decode=checking.decode)
    except BaseException as error:
        # Vocabulary and checks are ours: whatever goes wrong with them is not the backend's.
        send(
            control,
            {
                "event": "failed",
                "whose": "input" if isinstance(error, BadInput) else "harness",
                "text": describe(error),
            },
        )
        return
    send(control, {"event": "loading"})
    try:
        (backend,) = parse_specs(asked["spec"])
        adapter = make(backend, vocabulary)
    except BadInput as error:
        send(control, {"event": "failed", "whose": "input", "text": str(error)})
        return
    except BaseException as error:
        send(control, {"event": "failed", "whose": "backend", "text": describe(error)})
        return
    send(control, {"event": "ready"})
    progress[5] = adapter.is_ours
    gc.collect()
    gc.freeze()
    if not asked["fork"] or not hasattr(os, "fork"):
        send(control, {"event": "child", "pid": os.getpid()})
        serve(adapter, Path(asked["cases"]), checking, request, reply, progress)
        return
    while True:
        drain(request)
        parent = os.getpid()
        child = os.fork()
        if child == 0:
            try:
                os.setsid()
                die_with(parent)
                os.close(
                    control
                )  # what the worker says and is told is nothing that a backend could write or read
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                faulthandler.enable(all_threads=False)
                serve(adapter, Path(asked["cases"]), checking, request, reply, progress)
            finally:
                os._exit(0)
        send(control, {"event": "child", "pid": child})
        send(control, {"event": "exit", "pid": child, "status": wait_for(child)})
        if not sys.stdin.readline():
            return


def serve(
    adapter: Adapter, cases: Path, checking: Checking, request: int, reply: int, progress: Progress
) -> None:
    """Take requests (a case's place in `cases.jsonl`) until the pipe closes; answer each with frames."""
    with open(cases, "rb") as file:
        was = ProcessState((0, 1, 2, request, reply, file.fileno()))
        while line := read(request, 4096):
            wanted = loads(line)

            def answer(event: str, blob: bytes = b"", nonce: str = wanted["nonce"], **fields: Any) -> None:
                # The pid is asked for each time: a backend that forks makes a second process of us.
                send(
                    reply,
                    {"event": event, "nonce": nonce, "pid": getpid(), "peak_rss_bytes": peak_rss(), **fields},
                    blob,
                )

            failed: dict[str, Any] = {}
            try:
                file.seek(wanted["offset"])
                _, _, case = case_from_line(file.readline())
                reset_peak_rss()
                serve_case(adapter, case, answer, progress, checking)
            except (
                BaseException
            ) as error:  # a handler of a signal, which the backend has set, may raise anything anywhere
                whose = "harness_error" if adapter.is_ours or is_ours(error) else "backend_error"
                failed = {"failed": whose, "text": describe(error)}
            # what the backend does when its objects are given up, it does in the case that made them
            gc.collect()
            answer("done", changed=was.changes(), **failed)


def serve_case(
    adapter: Adapter, case: Case, answer: Callable[..., None], progress: Progress, checking: Checking
) -> None:
    """One compile, one walk per instance, then the checks; an answer for each, so that what was seen is kept
    if the next one is fatal."""
    gc.disable()
    compiled = compile_grammar(adapter, case.grammar, progress)
    gc.enable()
    answer(
        "compiled",
        status=_blamed(compiled.status, adapter),
        text=compiled.text,
        compile_ns=compiled.compile_ns,
    )
    if compiled.grammar is None:
        return
    left_ns = SLOW * checking.seconds * 1e9
    for number in range(max(1, len(case.instances))):
        progress[1] = number
        gc.disable()
        if left_ns <= 0:
            seen = Observation("skipped", "walk", "not walked: the walks of this case had taken their time")
        elif case.instances:
            seen = _walk_instance(
                compiled.grammar, adapter, case.instances[number].content, progress, left_ns
            )
        else:
            seen = first_mask(compiled.grammar, adapter.vocabulary, adapter.mask_format, progress)
        gc.enable()
        left_ns -= seen.wall_ns or 0
        findings = [vars(replace(each, documented=adapter.documents(each.cause))) for each in seen.findings]
        told = {**vars(seen), "status": _blamed(seen.status, adapter), "findings": findings, "samples": None}
        answer("walked", seen.samples, seen=told)
    if made(checking.effort, checking.decode):
        _check(adapter, case, compiled, answer, progress, checking)


def _check(
    adapter: Adapter,
    case: Case,
    compiled: Compiled,
    answer: Callable[..., None],
    progress: Progress,
    checking: Checking,
) -> None:
    """Every check that is wanted, each with an answer; those for which no time is left are skipped, whosever
    fault that is."""
    assert compiled.grammar is not None
    effort = checking.effort if checking.effort > 0 else None
    subject = Subject(
        adapter, case, compiled.grammar, effort, compiled.compile_ns, checking.seconds, progress
    )
    progress[0] = PHASES.index("oracle")
    raised: set[str] = set()
    began = process_time()
    for name, check in made(checking.effort, checking.decode).items():
        if process_time() - began > checking.seconds:
            answer("checked", check=name, outcome=OUT_OF_TIME, text="", findings=[])
            continue
        answer("checking", check=name)
        try:
            outcome, findings = run_check(name, check, subject)
        except OurFailure as error:
            answer("checked", check=name, outcome="harness_error", text=str(error), findings=[])
        else:
            errors = {each.text for each in findings if each.cause == BACKEND_ERROR}
            if errors and errors <= raised and len(errors) == len(findings):
                outcome, findings = "skipped: the backend raises what it raised in another check", []
            raised |= errors
            counted = subject.counted.pop(name, {})
            answer(
                "checked",
                check=name,
                outcome=outcome,
                text="",
                findings=[vars(each) for each in findings],
                counted=counted,
            )


def _blamed(status: Status, adapter: Adapter) -> Status:
    """The status, which is a failure of ours where the backend's code is."""
    return "harness_error" if adapter.is_ours and status in BROKEN else status


def _walk_instance(
    grammar: Any, adapter: Adapter, content: bytes, progress: Progress, most_ns: float
) -> Observation:
    progress[0] = PHASES.index("encode")
    try:
        tokens = adapter.vocabulary.encode(content)
    except ValueError as error:  # the vocabulary has no token for a byte: nothing to see here
        return Observation("skipped", "encode", str(error))
    except (
        BaseException
    ) as error:  # a tokenizer's own failure, a panic of its native code included, is not the backend's
        return Observation("harness_error", "encode", describe(error))
    return walk(grammar, adapter.vocabulary, tokens, adapter.mask_format, progress, most_ns)


if __name__ == "__main__":
    main(sys.argv[1:])
