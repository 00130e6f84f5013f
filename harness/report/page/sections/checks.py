"""What the checks found, as a table of checks by arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.checks import checks, is_policy
from harness.outcomes.summary import ArmSummary, CheckSummary
from harness.report.page.content import Content
from harness.report.page.section import Section, Values

CAUSES = 4
"""Most causes that a cell names."""


@dataclass(frozen=True)
class CheckCell:
    """One check on one arm."""

    summary: CheckSummary
    is_policy: bool
    """Is what it finds the backend's choice, and no fault?"""
    causes: list[tuple[str, int]]
    """The most frequent causes with their numbers of cases; `unknown` stands for findings without a class of
    causes."""

    @property
    def says_something(self) -> bool:
        """Did the check look at a case, or was something lost or saved in it?"""
        of = self.summary
        return bool(of.looked or of.lost or of.ours or of.saved)

    @property
    def shade(self) -> int:
        """Returns 0 to 4, from more than a third of the cases failing to none."""
        undocumented = 0 if self.is_policy else self.summary.failed - self.summary.documented
        if not self.summary.failed:
            return 4
        return (
            3
            if not undocumented
            else 2
            if undocumented * 20 <= self.summary.looked
            else 1
            if undocumented * 3 <= self.summary.looked
            else 0
        )


@dataclass(frozen=True)
class CheckLine:
    """One check on every arm."""

    name: str
    fact: str
    cells: list[CheckCell]


def values(page: Content) -> Values | None:
    """Returns the table; None for runs without checks."""
    lines, infos = page.inputs.tried, [run.info for run in page.inputs.runs]
    every = check_lines([line.arm for line in lines])
    checked = [check for check in every if any(cell.says_something for cell in check.cells)]
    return (
        {
            "checked": checked,
            "has_policy": any(
                cell.is_policy and cell.summary.failed for check in checked for cell in check.cells
            ),
            "nothing_asked": [check.name for check in every if check not in checked],
            "lines": lines,
            "efforts": {info.effort for info in infos},
            "decoded_any": any(info.decode for info in infos),
        }
        if every
        else None
    )


SECTION = Section("checks", "Checks", 60, values, "right")


def check_lines(arms: Sequence[ArmSummary]) -> list[CheckLine]:
    """Returns every check that some arm has something of, in the order in which they ran."""
    names = dict.fromkeys(name for arm in arms for name in arm.checks)
    known = checks()
    return [
        CheckLine(
            name[:80].replace("_", " "),
            _fact(known[name].__doc__) if name in known else "",
            [_cell(name, arm.checks.get(name)) for arm in arms],
        )
        for name in names
    ]


def _fact(doc: str | None) -> str:
    return " ".join((doc or "").split())[:400]


def _cell(name: str, summary: CheckSummary | None) -> CheckCell:
    summary = summary or CheckSummary()
    causes = [
        (cause.replace("_", " ")[:40] or "unknown", count)
        for cause, count in sorted(summary.causes.items(), key=lambda item: (-item[1], item[0]))
        if cause != "more"
    ]
    return CheckCell(summary, is_policy(name), causes[:CAUSES])
