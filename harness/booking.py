"""From what was heard of a case to its rows: what was seen of each instance, and how it ended."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field, replace
from typing import Any

from harness.case import Case
from harness.row import CONFORMANCE, Arm, Finding, Row, Status, finding_from_json
from harness.walk import TEXT_LIMIT


@dataclass(eq=False)
class Work:
    """The cases that one arm still has to walk with one vocabulary."""

    arm: Arm
    vocabulary: str
    cases: deque[int]
    workers: int = 0
    attempts: Counter[int] = field(default_factory=Counter)
    """How often a case was in the hands of a worker that was lost."""
    losses: int = 0
    """How many workers were lost without a case in hand since the last case was done."""
    load_failure: Ending | None = None
    """Why no worker of this arm can be started, once that is known: then every case of it ends so."""


@dataclass(eq=False)
class Task:
    """The case that a worker has in hand, and what was heard of it."""

    number: int
    suite: str
    suite_version: str
    case: Case
    sent: float = 0.0
    """When it was sent, or when the last thing was heard of it: the deadline counts from here."""
    peak_rss_bytes: int = 0
    compiled: dict[str, Any] | None = None
    walked: list[tuple[dict[str, Any], bytes]] = field(default_factory=list)
    checking: str = ""
    """The check that was begun last."""
    checked: list[dict[str, Any]] = field(default_factory=list)
    killed: Status | None = None
    """Set when we killed the child: `timeout` or `oom`; or `backend_error` for a forged answer."""
    strangers: int = 0
    """Answers that came from another process than the child."""


@dataclass(frozen=True)
class Ending:
    """How a case ended: ok, or the status and circumstances of the walk (or compile) that ended it."""

    status: Status
    phase: str = ""
    text: str = ""
    signal: str = ""
    token: int = 0
    """The position of the token at which a child was lost, of `tokens`."""
    tokens: int = 0
    finding: Finding | None = None
    """What was found of the case as a whole; it goes into the last row."""


def rows_of(work: Work, task: Task, ending: Ending, checks: bool = False) -> list[tuple[Row, bytes]]:
    """A row with its samples for every instance (one for a case without): as seen, as ended, or skipped because of the end before it.

    With `checks`, one more for what they found of the whole case.
    """
    reached = len(task.walked)
    compile_failed = task.compiled is None or task.compiled["status"] != "ok"
    walks = []
    for number in range(max(1, len(task.case.instances))):
        row, samples = _unseen(work, task, number), b""
        if number < reached:
            message, samples = task.walked[number]
            row = _with_seen(row, message)
        elif ending.status == "ok":
            row = replace(row, status="harness_error", phase="worker", text="the worker sent no answer for it")
        elif compile_failed or number == reached:
            row = replace(row, status=ending.status, phase=ending.phase, text=ending.text[:TEXT_LIMIT], signal=ending.signal)
            row = replace(row, peak_rss_bytes=max(row.peak_rss_bytes or 0, task.peak_rss_bytes) or None)
            if not compile_failed and ending.phase in ("fill", "accept", "end"):
                row = replace(row, stopped_at=ending.token, tokens=ending.tokens)
        else:
            row = replace(row, status="skipped", phase="walk", text=f"not walked: the case ended at instance {reached}")
        walks.append((row, samples))
    finding = ending.finding
    if ending.status != "ok" and reached == len(walks) and not task.checking:
        finding = Finding("lost_after_walk", None, ending.text[:TEXT_LIMIT])  # all was seen, and then the child was lost
    if finding is not None:
        row, samples = walks[-1]
        walks[-1] = replace(row, findings=(*row.findings, finding)), samples
    return [*walks, (_checked(work, task, ending), b"")] if checks else walks


def _checked(work: Work, task: Task, ending: Ending) -> Row:
    """What the checks found, as far as they got."""
    row = replace(_unseen(work, task, None), mode=CONFORMANCE)
    if task.compiled is None or task.compiled["status"] != "ok":
        return replace(row, status=ending.status, phase=ending.phase, text=ending.text[:TEXT_LIMIT], signal=ending.signal)
    outcomes = {each["check"]: each["outcome"] for each in task.checked}
    findings = tuple(finding_from_json(each) for message in task.checked for each in message["findings"])
    peak = max([task.peak_rss_bytes, *(each["peak_rss_bytes"] for each in task.checked)]) or None
    counted = {each["check"]: each["counted"] for each in task.checked if each.get("counted")}
    row = replace(row, checks=outcomes, findings=findings, counted=counted, peak_rss_bytes=peak)
    if ours := [each["text"] for each in task.checked if each["outcome"] == "harness_error"]:
        return replace(row, status="harness_error", phase="check", text=ours[0][:TEXT_LIMIT])
    if ending.status == "ok":
        return row
    if task.checking:
        return replace(row, status=ending.status, phase=ending.phase, text=ending.text[:TEXT_LIMIT], signal=ending.signal)
    return replace(row, status="skipped", phase="check", text="not checked: a walk of the case was lost")


def _unseen(work: Work, task: Task, number: int | None) -> Row:
    """The row before anything is known of its walk."""
    case = task.case
    instance = case.instances[number] if case.instances and number is not None else None
    return Row(
        backend=work.arm.backend,
        backend_version=work.arm.version,
        options=work.arm.options,
        vocabulary=work.vocabulary,
        suite=task.suite,
        suite_version=task.suite_version,
        case=case.name,
        case_id=case.id,
        dialect=case.grammar.dialect,
        tags=case.tags,
        instance=number if instance else None,
        instance_name=instance.name if instance else "",
        mode="replay",
        jump_forward=False,
        repeat=0,
        status="ok",
        phase="",
        signal="",
        text="",
        valid=instance.valid if instance else None,
        accepted=None,
        stopped_at=None,
        tokens=0,
        bytes=len(instance.content) if instance else 0,
        grammar_bytes=len(case.grammar.text.encode("utf-8", "surrogatepass")),
        compile_ns=task.compiled["compile_ns"] if task.compiled else None,
        matcher_new_ns=None,
        first_fill_ns=None,
        wall_ns=None,
        peak_rss_bytes=task.compiled["peak_rss_bytes"] if task.compiled else task.peak_rss_bytes or None,
        samples=None,
    )


def _with_seen(row: Row, message: dict[str, Any]) -> Row:
    seen = {name: each for name, each in message["seen"].items() if name != "samples"}
    seen["findings"] = tuple(map(finding_from_json, seen["findings"]))
    return replace(row, **seen, peak_rss_bytes=message["peak_rss_bytes"])
