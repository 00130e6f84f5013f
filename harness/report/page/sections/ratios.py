"""Measured ratios between backends, between settings of one, and of the same code twice: no changes."""

from __future__ import annotations

from harness.report.figures.forest import SIGNS
from harness.report.page.content import Content
from harness.report.page.section import Section, Values
from harness.report.page.sections.comparing import NOTES, against


def values(page: Content) -> Values | None:
    """Returns the measured pairs that are not versions of one thing; None where there is none. Raises
    BadInput."""
    pairs = against(page.inputs, NOTES.keys() - {"versions"}, page.trend)
    return {"against": pairs, "signs": SIGNS, "trend": page.trend is not None} if pairs else None


SECTION = Section("ratios", "Ratios", 45, values, "figures")
