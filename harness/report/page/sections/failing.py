"""Failing cases: why each arm fails, and the cases themselves, readable without the page's script."""

from __future__ import annotations

from harness.outcomes import delayed
from harness.report.page.content import Content
from harness.report.page.section import Section, Values


def values(page: Content) -> Values:
    """Returns the failing cases, and before them what failed behind other cases only."""
    later = [case for noticed, _ in page.inputs.noticed for case in noticed.delayed.cases]
    return {
        "failing": page.failing,
        "nothing": nothing_fails(page),
        "delayed": later,
        "delayed_lines": delayed.lines(later),
        "most_delayed": delayed.MOST_TOLD,
    }


def nothing_fails(page: Content) -> str:
    """Returns what is said where there is no failing case: with it, whether anything was looked at."""
    if not any(line.arm.cases for line in page.inputs.tried):
        return "No case was walked."
    checked = any(check.looked for line in page.inputs.tried for check in line.arm.checks.values())
    saw = "no check saw anything" if checked else "no checks were made"
    return f"None: no case fails or is refused, and {saw}."


SECTION = Section("failing", "Failing cases", 120, values, "cases")
