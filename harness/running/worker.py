"""What runs in a worker: it loads one vocabulary and one backend once, and its children serve cases, one at a
time.

A worker is a process of `harness.backend.process`, whose request is a case's place in `cases.jsonl` and whose
answers stream back, one for the compile, for each walk and for each check. The coordinator watches it without
waiting (`harness.running.worker_process`).
"""

from __future__ import annotations

import gc
import os
from array import array
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

from harness.backend.grammar import Adapter
from harness.backend.loading import at_work
from harness.backend.process.child import Answering, Streaming
from harness.backend.process.fork import peak_rss, reset_peak_rss
from harness.backend.process.state import ProcessState, stop_alarms
from harness.backend.process.system import rss_bytes
from harness.backend.registry import make, parse_specs
from harness.backend.vocabulary import load_vocabulary
from harness.cases.case import Case, Instance
from harness.cases.case_line import case_from_line
from harness.checks import BACKEND_ERROR, SLOW, OurFailure, Subject, is_ours, prepare, run_check
from harness.errors import error_text
from harness.rows.row import BROKEN, OUT_OF_TIME, Status
from harness.running.limits import Limits
from harness.walk.replay import Compiled, Observation, compile_grammar, first_mask, walk
from harness.walk.watched import IS_OURS, LOADS, OURS_BYTES, PHASES, Progress, note_collections

QUICK, QUICK_TOKEN = 0.01, 0.001
"""A walk is quick whose calls take no more than these shares of a deadline, one for the walk and one for each
of its tokens. However many quick walks a case has, they are all made, and none is held against the
backend."""


def open_worker(
    page: Progress, spec: str, vocabulary: str, cases: str, limits: dict[str, Any]
) -> tuple[Streaming, dict[str, Any]]:
    """Returns what serves the cases of that file with one backend and one vocabulary.

    Vocabulary and checks are ours: whatever goes wrong with them is not the backend's, and the cell LOADS
    says while it is; the cell OURS_BYTES, how much memory they take.
    """
    wanted = Limits(**{**limits, "only": tuple(limits["only"])})
    loaded = load_vocabulary(vocabulary)
    page[OURS_BYTES] = rss_bytes(os.getpid())
    (backend,) = parse_specs(spec)
    with at_work(page, LOADS):
        adapter = make(backend, loaded)
    page[IS_OURS] = adapter.is_ours
    if wanted.made:
        before = rss_bytes(os.getpid())
        prepare(adapter.vocabulary, decode=wanted.decode)
        page[OURS_BYTES] += max(0, rss_bytes(os.getpid()) - before)
    return Streaming(partial(_begin, adapter, Path(cases), wanted, page)), {}


def _begin(
    adapter: Adapter, cases: Path, limits: Limits, progress: Progress, descriptors: tuple[int, ...]
) -> Callable[[dict[str, Any], Answering], None]:
    """Returns what serves one case after another in this child."""
    note_collections(progress)
    file = open(cases, "rb")  # noqa: SIM115 - it is open as long as the child lives
    was = ProcessState((*descriptors, file.fileno()))

    def serve(wanted: dict[str, Any], send: Answering) -> None:
        def answer(event: str, blob: bytes = b"", **fields: Any) -> None:
            send({"event": event, "peak_rss_bytes": peak_rss(), **fields}, blob)

        failed: dict[str, Any] = {}
        try:
            file.seek(wanted["offset"])
            _, _, case = case_from_line(file.readline())
            reset_peak_rss()
            serve_case(adapter, case, answer, progress, limits)
        except BaseException as error:
            # A handler of a signal, which the backend has set, may raise anything anywhere.
            stop_alarms()
            whose = "harness_error" if adapter.is_ours or is_ours(error) else "backend_error"
            failed = {"failed": whose, "text": error_text(error)}
        # What the backend does when its objects are given up, it does in the case that made them.
        gc.collect()
        answer("done", changed=was.changes(), **failed)

    return serve


def serve_case(
    adapter: Adapter, case: Case, answer: Callable[..., None], progress: Progress, limits: Limits
) -> None:
    """Compile the case, walk each instance, then make the checks. Each of these is answered at once, so that
    what was seen is kept if the next one is fatal."""
    gc.disable()
    compiled = _in_time(compile_grammar(adapter, case.grammar, progress), adapter, limits)
    gc.enable()
    answer(
        "compiled",
        status=_status_with_blame(compiled.status, adapter),
        text=compiled.text,
        compile_ns=compiled.compile_ns,
    )
    if compiled.grammar is None:
        return
    left_ns = SLOW * limits.timeout_s * 1e9
    is_out_of_time = False
    for number in range(max(1, len(case.instances))):
        progress[1] = number
        gc.disable()
        if left_ns <= 0:
            # One instance says whose time it was; a case with skipped instances alone would not.
            observation = _without_time(is_out_of_time, SLOW * limits.timeout_s)
        elif case.instances:
            observation = _walk_instance(
                compiled.grammar, adapter, case.instances[number], progress, left_ns, limits.timeout_s
            )
        else:
            observation = first_mask(compiled.grammar, adapter.vocabulary, adapter.mask_format, progress)
        gc.enable()
        if (spent_ns := _called_ns(observation)) > _quick_ns(observation.tokens, limits.timeout_s):
            left_ns -= spent_ns
        is_out_of_time |= observation.status == "timeout"
        findings = [
            vars(replace(finding, documented=adapter.documents(finding.cause)))
            for finding in observation.findings
        ]
        observed = {
            **vars(observation),
            "status": _status_with_blame(observation.status, adapter),
            "findings": findings,
            "samples": None,
        }
        answer("walked", observation.samples, observation=observed)
    if limits.made:
        _check(adapter, case, compiled, answer, progress, limits)


def _in_time(compiled: Compiled, adapter: Adapter, limits: Limits) -> Compiled:
    """Returns what the compile came to, which is a missed deadline also where nobody came to kill it in time:
    on a busy machine, who watches is held up like who is watched."""
    most = limits.timeout_s
    if compiled.grammar is None or adapter.is_ours or compiled.compile_ns <= most * 1e9:
        return compiled
    text = f"it took {compiled.compile_ns / 1e9:.3g} s to compile, and {most:g} s are allowed"
    return replace(compiled, status="timeout", text=text, grammar=None)


def _quick_ns(tokens: int, timeout_s: float) -> float:
    """Returns how many nanoseconds the calls of a quick walk of so many tokens take at most."""
    return (QUICK + QUICK_TOKEN * tokens) * timeout_s * 1e9


def _called_ns(observation: Observation) -> int:
    """Returns how many nanoseconds the calls of a walk took; our own work between them is none of it."""
    return (observation.matcher_new_ns or 0) + sum(array("q", observation.samples))


def _without_time(was_told: bool, seconds: float) -> Observation:
    """What is said of an instance for which the walks before it left no time: once, that the backend took too
    long."""
    if was_told:
        return Observation("skipped", "walk", "not walked: the walks of this case had taken their time")
    text = f"not walked: the walks before it had taken all the {seconds:g} s that those of a case may take"
    return Observation("timeout", "walk", text)


def _check(
    adapter: Adapter,
    case: Case,
    compiled: Compiled,
    answer: Callable[..., None],
    progress: Progress,
    limits: Limits,
) -> None:
    """Make every check that is wanted, and answer each; those for which no time is left are skipped, whosever
    fault that is."""
    assert compiled.grammar is not None
    effort = limits.effort if limits.effort > 0 else None
    subject = Subject(
        adapter, case, compiled.grammar, effort, compiled.compile_ns, limits.check_seconds, progress
    )
    progress[0] = PHASES.index("oracle")
    raised: set[str] = set()
    began = process_time()
    for name, check in limits.made.items():
        if process_time() - began > limits.check_seconds:
            answer("checked", check=name, outcome=OUT_OF_TIME, text="", findings=[])
            continue
        answer("checking", check=name)
        try:
            outcome, findings = run_check(name, check, subject)
        except OurFailure as error:
            answer("checked", check=name, outcome="harness_error", text=str(error), findings=[])
        else:
            errors = {finding.text for finding in findings if finding.cause == BACKEND_ERROR}
            if errors and errors <= raised and len(errors) == len(findings):
                outcome, findings = "skipped: the backend raises what it raised in another check", []
            raised |= errors
            counted = subject.counted.pop(name, {})
            answer(
                "checked",
                check=name,
                outcome=outcome,
                text="",
                findings=[vars(finding) for finding in findings],
                counted=counted,
            )
    # All checks are made: what follows is what the backend does when its objects are given up.
    answer("checking", check="")
    progress[0] = PHASES.index("check")


def _status_with_blame(status: Status, adapter: Adapter) -> Status:
    """Returns the status, which is a failure of ours where the backend's code is."""
    return "harness_error" if adapter.is_ours and status in BROKEN else status


def _walk_instance(
    grammar: Any, adapter: Adapter, instance: Instance, progress: Progress, left_ns: float, timeout_s: float
) -> Observation:
    """Returns the observation of an instance, whose walk may take what is left to those of its case, or as
    long as a quick one."""
    progress[0] = PHASES.index("encode")
    try:
        tokens = instance.ids(adapter.vocabulary)
    except ValueError as error:  # the vocabulary has no token for a byte or a name: nothing to see here
        return Observation("skipped", "encode", str(error))
    except (
        BaseException
    ) as error:  # a tokenizer's own failure, a panic of its native code included, is not the backend's
        return Observation("harness_error", "encode", error_text(error))
    most_ns = max(left_ns, _quick_ns(len(tokens), timeout_s))
    observation = walk(grammar, adapter.vocabulary, tokens, adapter.mask_format, progress, most_ns)
    if observation.status == "timeout" and (before_s := SLOW * timeout_s - left_ns / 1e9) > 0:
        text = f"{observation.text}, and those of slow walks before it {before_s:.3g} s"
        return replace(observation, text=f"{text}; {SLOW * timeout_s:g} s are allowed for a case")
    return observation
