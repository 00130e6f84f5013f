"""Makes the rows of a case from what was seen of each instance, and from how the case ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harness.backend.arm import Arm
from harness.backend.grammar import are_documented
from harness.cases.case import Case
from harness.checks import BACKEND_ERROR, is_policy
from harness.oracle.readings import other_readings
from harness.rows.row import (
    BROKEN,
    CHECKS_MODE,
    VERDICT,
    Before,
    Finding,
    Row,
    finding_from_json,
    verdict,
)
from harness.running.endings import CHANGED, LEFT
from harness.running.work import Ending, Suspicion, Task, Work
from harness.walk.replay import TEXT_LIMIT

NAME_LIMIT = 120
"""Characters of a case's name that another case's row keeps."""


FAILING = (*BROKEN, "harness_error")
LOST = "lost_after_walk"
WRONG = ("over_constrained", "under_constrained")


def failure_of(walks: Sequence[tuple[Row, bytes]]) -> tuple[str, str]:
    """Returns, in a word and in a sentence, how a case has failed in a way that may be another one's doing;
    both are empty if it has not."""
    for row, _ in walks:
        if row.status in FAILING:
            return row.status, f"{row.status} in {row.phase}: {row.text}"
        for finding in row.findings:
            if finding.check in (LOST, LEFT):
                return finding.check, finding.text
            if finding.cause == BACKEND_ERROR:
                return finding.cause, f"check {finding.check}: {finding.text}"
    return "", ""


def wrong_of(walks: Sequence[tuple[Row, bytes]]) -> frozenset[str]:
    """Returns a name for each thing that the walks show to be wrong and that the backend does not document,
    but for what it does to its process, which its own case has done."""
    wrong = set[str]()
    for row, _ in walks:
        if judged := _wrong_verdict(row):
            wrong.add(f"{row.instance}:{judged}")
        wrong.update(
            f"{finding.check}:{finding.cause}"
            for finding in row.findings
            if finding.check not in (VERDICT, LEFT, CHANGED)
            and not finding.documented
            and not is_policy(finding.check)
        )
    return frozenset(wrong)


def _wrong_verdict(row: Row) -> str:
    """Returns the verdict of a row where it is wrong and the backend does not document that; else nothing."""
    judged = verdict(row.status, row.valid, row.accepted)
    is_documented = any(each.check == VERDICT and each.documented for each in row.findings)
    return judged if judged in WRONG and not is_documented else ""


def before(task: Task) -> Before:
    """Returns the case as the rows of the cases behind it name it."""
    return Before(task.suite, task.case.id, task.case.name[:NAME_LIMIT])


def with_first_failure(walks: Sequence[tuple[Row, bytes]], first: Suspicion) -> list[tuple[Row, bytes]]:
    """Returns the rows of the second walk, which tell of the first one's failure if it did not come again.

    Where the first walk only was wrong, its own rows stand, with what the second one shows besides; those
    that are wrong name the cases before it if nothing is wrong in the second one.
    """
    if first.walks:
        is_right_alone = not failure_of(walks)[0] and not wrong_of(walks)
        rows = [_of_both(one, again) for one, again in zip(first.walks, walks, strict=True)]
        return [
            (replace(row, behind=first.behind) if is_right_alone and wrong_of([(row, blob)]) else row, blob)
            for row, blob in rows
        ]
    if failure_of(walks)[0] == first.failure:
        return list(walks)
    (row, samples), *others = walks
    return [(replace(row, delayed=first.text[:TEXT_LIMIT], behind=first.behind), samples), *others]


def _of_both(first: tuple[Row, bytes], second: tuple[Row, bytes]) -> tuple[Row, bytes]:
    """Returns the row of a walk that only was wrong, if at all, or that of the second one where that is
    worse: broken, or with a wrong verdict that the first one has not. It has the findings of both.

    A failure of ours, and a refusal of the grammar, in the second walk only stand in the text.
    """
    (one, _), (again, _) = first, second
    is_worse = again.status in BROKEN or bool(_wrong_verdict(again) and not _wrong_verdict(one))
    (row, blob), other = (second, one) if is_worse else (first, again)
    text = row.text
    if is_worse and (judged := _wrong_verdict(one)):
        text = f"{text}; behind other cases: {judged}"
    elif not is_worse and again.status not in ("ok", "skipped"):
        text = f"walked once more: {again.status} in {again.phase}: {again.text}"
    known = {(finding.check, finding.cause) for finding in row.findings}
    more = tuple(
        finding
        for finding in other.findings
        if finding.check != VERDICT and (finding.check, finding.cause) not in known
    )
    if not more and text == row.text:
        return row, blob
    failed = {each.check: other.checks[each.check] for each in more if each.check in (other.checks or {})}
    checks = {**row.checks, **failed} if failed else row.checks
    return replace(row, text=text[:TEXT_LIMIT], findings=(*row.findings, *more), checks=checks), blob


def after_changes(walks: list[tuple[Row, bytes]], changed: Sequence[str]) -> list[tuple[Row, bytes]]:
    """Returns the rows, in which no failure is ours where the backend has changed the process that we
    need."""
    if not changed:
        return walks
    sentence = f"the backend has changed {', '.join(changed)}"
    return [
        (
            replace(row, status="backend_error", text=f"{sentence}; then: {row.text}"[:TEXT_LIMIT])
            if row.status == "harness_error"
            else row,
            blob,
        )
        for row, blob in walks
    ]


def rows_of(work: Work, task: Task, ending: Ending, checks: bool) -> list[tuple[Row, bytes]]:
    """Returns a row with its samples for every instance (one for a case without): as seen, as ended, or
    skipped because of the end before it.

    With `checks`, one more for what they found of the whole case.
    """
    reached = len(task.walked)
    compile_failed = task.compiled is None or task.compiled["status"] != "ok"
    walks = []
    for number in range(max(1, len(task.case.instances))):
        row, samples = _row_of_no_walk(work, task, number), b""
        if number < reached:
            message, samples = task.walked[number]
            row = _with_reading(_with_observation(row, message), work.arm, task.case)
        elif ending.status == "ok":
            row = _ended(row, Ending("harness_error", "worker", "the worker sent no answer for it"))
        elif compile_failed or number == reached:
            row = _ended(row, ending)
            row = replace(row, peak_rss_bytes=max(row.peak_rss_bytes or 0, task.peak_rss_bytes) or None)
            if not compile_failed and ending.phase in ("fill", "accept", "end"):
                row = replace(row, stopped_at=ending.token, tokens=ending.tokens)
        else:
            row = _ended(row, Ending("skipped", "walk", f"not walked: the case ended at instance {reached}"))
        walks.append((row, samples))
    findings = ending.findings
    if ending.status != "ok" and reached == len(walks) and not task.checking:
        # All was seen, and then the child was lost.
        findings = (*findings, Finding(LOST, None, ending.text[:TEXT_LIMIT]))
    if findings:
        row, samples = walks[-1]
        walks[-1] = replace(row, findings=(*row.findings, *findings)), samples
    return [*walks, (_checked(work, task, ending), b"")] if checks else walks


def _checked(work: Work, task: Task, ending: Ending) -> Row:
    """Returns the row of what the checks found, as far as they got."""
    row = replace(_row_of_no_walk(work, task, None), mode=CHECKS_MODE)
    if task.compiled is None or task.compiled["status"] != "ok":
        return _ended(row, ending)
    outcomes = {message["check"]: message["outcome"] for message in task.checked}
    findings = tuple(
        finding_from_json(finding) for message in task.checked for finding in message["findings"]
    )
    peak = max([task.peak_rss_bytes, *(message["peak_rss_bytes"] for message in task.checked)]) or None
    counted = {message["check"]: message["counted"] for message in task.checked if message.get("counted")}
    row = replace(row, checks=outcomes, findings=findings, counted=counted, peak_rss_bytes=peak)
    if ours := [message["text"] for message in task.checked if message["outcome"] == "harness_error"]:
        return _ended(row, Ending("harness_error", "check", ours[0]))
    if ending.status == "ok" or (task.checked and not task.checking):  # it was lost behind the last one
        return row
    if task.checking:
        return replace(_ended(row, ending), checking=task.checking)
    return _ended(row, Ending("skipped", "check", "not checked: a walk of the case was lost"))


def _ended(row: Row, ending: Ending) -> Row:
    """Returns the row of a walk, or of the checks, that ended so."""
    text = ending.text[:TEXT_LIMIT]
    return replace(row, status=ending.status, phase=ending.phase, text=text, signal=ending.signal)


def _row_of_no_walk(work: Work, task: Task, number: int | None) -> Row:
    """Returns the row before anything is known of its walk."""
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
        grammar_bytes=task.grammar_bytes,
        compile_ns=task.compiled["compile_ns"] if task.compiled else None,
        matcher_new_ns=None,
        first_fill_ns=None,
        wall_ns=None,
        peak_rss_bytes=task.compiled["peak_rss_bytes"] if task.compiled else task.peak_rss_bytes or None,
        samples=None,
        contested=instance.contested if instance else None,
    )


def _with_observation(row: Row, message: dict[str, Any]) -> Row:
    observed = {**message["observation"], "samples": None, "peak_rss_bytes": message["peak_rss_bytes"]}
    observed["findings"] = tuple(map(finding_from_json, observed["findings"]))
    return Row(**{**vars(row), **observed})  # `replace` would take three times as long, between two cases


def _with_reading(row: Row, arm: Arm, case: Case) -> Row:
    """Returns the row, and if its verdict is wrong but right by another reading of the grammar, a
    finding that says so.

    Rather a reading that the backend states as its own, which makes the finding a documented one; else any.
    """
    if row.instance is None or verdict(row.status, row.valid, row.accepted) not in WRONG:
        return row
    contrary = case.instances[row.instance].contrary
    readings = (
        [
            reading
            for reading in other_readings(case.grammar, [arm.unicode], arm.documented)
            if reading.name in contrary
        ]
        if contrary
        else []
    )
    if not readings:
        return row
    cause = readings[0].cause
    documented = are_documented(cause, arm.documented)
    sentence = (
        f"right by another reading of the grammar ({readings[0].name}), which the backend "
        f"{'' if documented else 'does not '}"
    )
    finding = Finding(
        VERDICT,
        row.stopped_at,
        f"{sentence}{'states' if documented else 'state'} as its own",
        cause,
        documented,
    )
    return replace(row, findings=(*row.findings, finding))
