"""Failing cases: why each arm fails, and the cases themselves, readable without the page's script."""

from __future__ import annotations

from harness.outcomes import delayed
from harness.report.page.content import Content
from harness.report.page.section import Section, Values


def values(page: Content) -> Values:
    """Returns the failing cases, and before them the calls that were only delayed."""
    later = [case for noticed, _ in page.inputs.noticed for case in noticed.delayed.cases]
    return {
        "failing": page.failing,
        "delayed": later,
        "delayed_lines": delayed.lines(later),
        "most_delayed": delayed.MOST_TOLD,
    }


SECTION = Section("failing", "Failing cases", 120, values, "cases")
