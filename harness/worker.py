"""A worker: loads one vocabulary and one backend once, then forks children that serve cases, one at a time.

Started by the coordinator as `python -m harness.worker`, with the interpreter of the environment that holds the backend.
It never decides anything: a child that hangs or grows is killed from outside. Where there is no fork, it serves itself.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import json
import mmap
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from harness.case import Case, case_from_line
from harness.channel import send
from harness.checks import BACKEND_ERROR, OurFailure, Subject, made, prepare, run_check
from harness.errors import BadInput
from harness.grammar import Adapter
from harness.guard import forbid_network
from harness.registry import make, parse_specs
from harness.row import OUT_OF_TIME
from harness.vocabulary import load_vocabulary
from harness.walk import PHASES, Compiled, Observation, Progress, compile_grammar, describe, first_mask, walk

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


class Checking(NamedTuple):
    """How much is checked."""

    effort: int
    """Places of a case that each check looks at; 0: no checks, negative: all places."""
    decode: bool
    """Make those of decoding too."""
    seconds: float
    """Processor time after which no further check of a case is begun."""


def main(arguments: list[str]) -> None:
    """`SPEC VOCABULARY CASES EFFORT DECODE CHECK_SECONDS REQUEST_FD REPLY_FD CONTROL_FD PROGRESS_FD COORDINATOR_PID [no-fork]`."""
    spec, vocabulary_name, cases = arguments[:3]
    checking = Checking(int(arguments[3]), arguments[4] == "1", float(arguments[5]))
    request, reply, control, progress_fd, coordinator = map(int, arguments[6:11])
    die_with(coordinator)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    forbid_network()
    progress: Progress = memoryview(mmap.mmap(progress_fd, 4096)).cast("q")
    try:
        vocabulary = load_vocabulary(vocabulary_name)
        if made(checking.effort, checking.decode):
            prepare(vocabulary, decode=checking.decode)
    except BaseException as error:
        # Vocabulary and checks are ours: whatever goes wrong with them is not the backend's.
        send(control, {"event": "failed", "whose": "input" if isinstance(error, BadInput) else "harness", "text": describe(error)})
        return
    try:
        (backend,) = parse_specs(spec)
        adapter = make(backend, vocabulary)
    except BadInput as error:
        send(control, {"event": "failed", "whose": "input", "text": str(error)})
        return
    except BaseException as error:
        send(control, {"event": "failed", "whose": "backend", "text": describe(error)})
        return
    send(control, {"event": "ready"})
    gc.collect()
    gc.freeze()
    if "no-fork" in arguments[11:] or not hasattr(os, "fork"):
        send(control, {"event": "child", "pid": os.getpid()})
        serve(adapter, Path(cases), checking, request, reply, progress)
        return
    while True:
        drain(request)
        parent = os.getpid()
        child = os.fork()
        if child == 0:
            try:
                os.setsid()
                die_with(parent)
                faulthandler.enable(all_threads=False)
                serve(adapter, Path(cases), checking, request, reply, progress)
            finally:
                os._exit(0)
        send(control, {"event": "child", "pid": child})
        send(control, {"event": "exit", "pid": child, "status": wait_for(child)})
        if not sys.stdin.readline():
            return


def serve(adapter: Adapter, cases: Path, checking: Checking, request: int, reply: int, progress: Progress) -> None:
    """Take requests (a case's place in `cases.jsonl`) until the pipe closes; answer each with frames."""
    with open(cases, "rb") as file:
        while line := os.read(request, 4096):
            wanted = json.loads(line)

            def answer(event: str, blob: bytes = b"", nonce: str = wanted["nonce"], **fields: Any) -> None:
                # The pid is asked for each time: a backend that forks makes a second process of us.
                send(reply, {"event": event, "nonce": nonce, "pid": os.getpid(), "peak_rss_bytes": peak_rss(), **fields}, blob)

            try:
                file.seek(wanted["offset"])
                _, _, case = case_from_line(file.readline())
                reset_peak_rss()
                serve_case(adapter, case, answer, progress, checking)
            except Exception as error:
                answer("done", harness_error=describe(error))
            else:
                answer("done")


def serve_case(adapter: Adapter, case: Case, answer: Callable[..., None], progress: Progress, checking: Checking) -> None:
    """One compile, one walk per instance, then the checks; an answer for each, so that what was seen is kept if the next one is fatal."""
    gc.collect()
    gc.disable()
    compiled = compile_grammar(adapter, case.grammar, progress)
    gc.enable()
    answer("compiled", status=compiled.status, text=compiled.text, compile_ns=compiled.compile_ns)
    if compiled.grammar is None:
        return
    for number in range(max(1, len(case.instances))):
        progress[1] = number
        gc.disable()
        if case.instances:
            seen = _walk_instance(compiled.grammar, adapter, case.instances[number].content, progress)
        else:
            seen = first_mask(compiled.grammar, adapter.vocabulary, adapter.mask_format, progress)
        gc.enable()
        findings = [vars(replace(each, documented=each.cause in adapter.documented)) for each in seen.findings]
        answer("walked", seen.samples, seen={**vars(seen), "findings": findings, "samples": None})
    if made(checking.effort, checking.decode):
        _check(adapter, case, compiled, answer, progress, checking)


def _check(adapter: Adapter, case: Case, compiled: Compiled, answer: Callable[..., None], progress: Progress, checking: Checking) -> None:
    """Every check that is wanted, each with an answer; those for which no time is left are skipped, whosever fault that is."""

    def enter(phase: str) -> None:
        progress[0] = PHASES.index(phase)

    assert compiled.grammar is not None
    effort = checking.effort if checking.effort > 0 else None
    subject = Subject(adapter, case, compiled.grammar, effort, compiled.compile_ns, enter, lambda: answer("checking", check=name))
    raised: set[str] = set()
    began = time.process_time()
    for name, check in made(checking.effort, checking.decode).items():
        if time.process_time() - began > checking.seconds:
            answer("checked", check=name, outcome=OUT_OF_TIME, text="", findings=[])
            continue
        answer("checking", check=name)
        enter("check")
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
            answer("checked", check=name, outcome=outcome, text="", findings=[vars(each) for each in findings], counted=counted)


def _walk_instance(grammar: Any, adapter: Adapter, content: bytes, progress: Progress) -> Observation:
    progress[0] = PHASES.index("encode")
    try:
        tokens = adapter.vocabulary.encode(content)
    except ValueError as error:  # the vocabulary has no token for a byte: nothing to see here
        return Observation("skipped", "encode", str(error))
    except BaseException as error:  # a tokenizer's own failure, a panic of its native code included, is not the backend's
        return Observation("harness_error", "encode", describe(error))
    return walk(grammar, adapter.vocabulary, tokens, adapter.mask_format, progress)


def wait_for(child: int) -> int:
    """The child's wait status; whatever the backend left behind and the kernel handed to us is waited for too."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            return status


def drain(request: int) -> None:
    """Throw away what a lost child did not read; whoever sends requests sends none until it hears of the new child."""
    os.set_blocking(request, False)
    try:
        while os.read(request, 65536):
            pass
    except BlockingIOError:
        pass
    os.set_blocking(request, True)


def reset_peak_rss() -> None:
    """Start a new peak of the resident set, where the system can (Linux)."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass


def peak_rss() -> int:
    """The peak of this process's resident set, in bytes, since the last reset."""
    try:
        with open("/proc/self/status", "rb") as file:
            for line in file:
                if line.startswith(b"VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def prctl(option: int, value: int) -> None:
    """Linux's prctl; elsewhere nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def die_with(parent: int) -> None:
    """Be killed when the parent ends, however it ends (Linux); end at once if it already has."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
