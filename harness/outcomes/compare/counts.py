"""Deterministic counts of two sides that differ: masks, forced bytes, sizes of grammars, passes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.checks import WRITES
from harness.measure.record import Recorded
from harness.outcomes.compare.sides import Side, SideKey, Told
from harness.outcomes.differences import case_key
from harness.outcomes.settings import moved_vocabularies
from harness.rows.store import read_info
from harness.text import counted, one_line

GROWTH = 0.05
"""A serialized grammar may grow by this share without being called worse."""

WORSE = {
    "masks": "masks that differ (only a run with checks can say which are right)",
    "forced_bytes": "fewer forced bytes",
    "serialized_bytes": "a larger serialized grammar",
    "passes": "more passes",
    "counts": "counts that could not be made",
}
"""What is worse about each count, in words."""


@dataclass(frozen=True)
class Counted:
    """A deterministic count of one case that differs."""

    case_id: str
    case: str
    count: str
    """One of the keys of `WORSE`."""
    before: Any
    after: Any
    worse: bool


def compared_counts(base: Side, head: Side) -> tuple[tuple[Counted, ...], str]:
    """Returns what was counted along the texts of both measurements and is not the same, and a line that says
    in how many cases nothing is compared, because their texts or options differ; empty if there is none."""
    old, new = base.recorded, head.recorded
    if old is None or new is None:
        return (), ""
    known = (read_info(side.folder).vocabularies for side in (base, head))
    name = new.measurement.vocabulary
    if old.measurement.vocabulary != moved_vocabularies(*known).get(name, name):
        return (), ""
    others, before = other_texts(old, new), counts_of(old, base.name)
    uncompared = others & before.keys() & _lines_of(new, head.name).keys()
    return tuple(_changed_counts(before, new, head.name, others)), _uncompared_text(len(uncompared))


def _changed_counts(
    before: Mapping[str, dict[str, Any]], new: Recorded, arm: str, others: Collection[str]
) -> Iterator[Counted]:
    """Yields what is not as before in the newer measurement, without the cases that are `others`."""
    after, raised = counts_of(new, arm), _uncounted(new, arm)
    for trace in new.measurement.traces:
        case_id = trace.case_id
        if case_id not in before or case_id in others:
            continue
        if case_id in after:
            yield from _changed_counts_of_case(case_id, trace.case, before[case_id], after[case_id])
        elif case_id in raised:
            yield Counted(case_id, trace.case, "counts", "made", one_line(raised[case_id], 200), True)


def _uncompared_text(cases: int) -> str:
    """Says that so many cases are not compared; empty for none."""
    if not cases:
        return ""
    them = "its" if cases == 1 else "their"
    of = counted(cases, "case")
    return f"masks and other counts of {of} are not compared: {them} text or options differ"


def _changed_counts_of_case(
    case_id: str, case: str, before: dict[str, Any], after: dict[str, Any]
) -> Iterator[Counted]:
    """Yields the counts of one case that differ."""
    if before["masks_sha256"] != after["masks_sha256"]:
        was, now = f"{before['allowed']} tokens allowed", f"{after['allowed']}"
        yield Counted(case_id, case, "masks", was, now, True)
    for count, is_worse in (("forced_bytes", _is_less), ("serialized_bytes", _has_grown)):
        was, now = before[count], after[count]
        if was != now:
            yield Counted(case_id, case, count, was, now, is_worse(was, now))


def _is_less(before: int | None, after: int | None) -> bool:
    return before is not None and (after is None or after < before)


def _has_grown(before: int | None, after: int | None) -> bool:
    return before is not None and after is not None and after > before * (1 + GROWTH)


def other_texts(old: Recorded, new: Recorded) -> frozenset[str]:
    """Returns the cases, by id, that both measured, but along another text or with other options."""
    before = {trace.case_id: trace.sha256 for trace in old.measurement.traces}
    return frozenset(
        trace.case_id
        for trace in new.measurement.traces
        if before.get(trace.case_id, trace.sha256) != trace.sha256
    )


def changed_passes(base: Side, head: Side, told: Mapping[SideKey, Told]) -> Iterator[Counted]:
    """Yields where a strategy writes the same texts of a case with more or fewer passes than before, in runs
    with `--decode`."""
    if not all(read_info(side.folder).decode for side in (base, head)):
        return
    before = {case_key(row): row.counted for row in told[base.key].counted}
    for row in told[head.key].counted:
        old = before.get(case_key(row), {})
        for check in (check for check in row.counted if check in old and check.endswith(WRITES)):
            was, now = old[check], row.counted[check]
            is_same_text = all(was.get(name) == now.get(name) for name in ("texts", "written", "ids"))
            passes = was.get("passes", 0), now.get("passes", 0)
            if is_same_text and passes[0] != passes[1]:
                case = f"{row.case}, {check.removesuffix(WRITES)}"
                yield Counted(row.case_id, case, "passes", *passes, passes[1] > passes[0])


def counts_of(recorded: Recorded, arm: str) -> dict[str, dict[str, Any]]:
    """Returns the counts of one arm by case, without the cases that could not be counted."""
    return {case_id: line for case_id, line in _lines_of(recorded, arm).items() if "error" not in line}


def _uncounted(recorded: Recorded, arm: str) -> dict[str, str]:
    """Returns why cases could not be counted, by case. One that the arm does not solve is not among them, nor
    one that met a deadline, which depends on the machine."""
    return {
        case_id: str(line["error"])
        for case_id, line in _lines_of(recorded, arm).items()
        if "error" in line and line.get("cause") != "timeout"
    }


def _lines_of(recorded: Recorded, arm: str) -> dict[str, dict[str, Any]]:
    return {
        line["case_id"]: line for line in recorded.others if line["kind"] == "counts" and line["arm"] == arm
    }
