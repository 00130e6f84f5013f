"""Differences between two sets of rows, as lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.outcomes.differences import TITLES, Changed, Difference, Differences
from harness.outcomes.expected import Faults
from harness.text import counted, one_line


@dataclass(frozen=True)
class Line:
    """One line of the differences for people."""

    text: str
    heads: str = ""
    """The kind of difference that the line is the heading of; empty for every other line."""


def difference_lines(run_differences: Differences, most: int | None = 40) -> Iterator[Line]:
    """Yields the differences for people: worse ones first, of each kind at most `most` cases."""
    for kind, title in TITLES.items():
        cases = [case for case in run_differences.cases if case.kind == kind]
        if cases:
            yield Line(f"{title}: {counted(len(cases), 'case')}", kind)
            shown = cases[:most]
            yield from (Line(line) for case in shown for line in case_lines(case))
            if len(cases) > len(shown):
                yield Line(f"  ... and {len(cases) - len(shown)} more")
    slow = sum(case.depends_on_the_machine for case in run_differences.cases)
    if slow:
        yield Line(f"{slow} of them differ by a missed deadline, which depends on the machine")
    if run_differences.unmeasured:
        yield Line(
            f"not measured in full, through our own failure: {counted(run_differences.unmeasured, 'case')}"
        )
    if alone := run_differences.only_before + run_differences.only_after:
        yield Line(f"found on one side only, so not compared: {counted(alone, 'case')}")
    if alone := run_differences.parts_alone:
        yield Line(
            f"found on one side only, so not compared: {counted(alone, 'part')} (instances, checks) of cases "
            "on both sides"
        )
    yield from map(Line, run_differences.checks_alone)
    if run_differences.half_judged:
        half_judged = counted(run_differences.half_judged, "instance")
        yield Line(f"with a verdict on one side only, so not compared: {half_judged}")
    compared = counted(run_differences.compared, "case")
    yield Line(f"{compared} compared, {len(run_differences.cases):,} came out differently")


def case_lines(difference: Difference) -> list[str]:
    """Returns the case, and a line for each of its parts."""
    vocabulary, suite, case_id = difference.key
    lines = [
        f"  {difference.name} ({suite}/{case_id}, {vocabulary})",
        *(f"    {part.part}: {change_text(part)}" for part in difference.parts),
    ]
    return [one_line(line, spelled=True) for line in lines]


def change_text(part: Changed) -> str:
    """Returns what became of the part; of each fault whether it is documented, so that it costs nothing."""

    def told(faults: Faults, sign: str = "") -> list[str]:
        return [
            f"{sign}{fault} (documented)" if fault in part.documented else f"{sign}{fault}"
            for fault in sorted(faults)
        ]

    if not part.before or not part.after:
        return f"{' '.join(told(part.before)) or 'right'} -> {' '.join(told(part.after)) or 'right'}"
    return " ".join([*told(part.new, "+"), *told(part.gone, "-")])
