"""Outputs that never end: which backends let white space, digits or a string go on until a request's tokens
are used up."""

from __future__ import annotations

from harness.checks.endless import MOST_TOKENS
from harness.report.page.content import Content
from harness.report.page.section import Section, Values


def values(page: Content) -> Values | None:
    """Returns a sentence for each backend; None where no run has looked."""
    lines = [
        line
        for run, endless in zip(page.inputs.runs, page.inputs.endless, strict=True)
        if run.info.effort
        for line in endless.sentences()
    ]
    return {"lines": lines, "most": MOST_TOKENS} if lines else None


SECTION = Section("endless", "Outputs that never end", 56, values, "right")
