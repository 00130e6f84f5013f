"""What the runs of the page do not hold, with the reader's own command that measures it."""

from __future__ import annotations

from harness.report.page.content import Content
from harness.report.page.section import Section, Values


def values(page: Content) -> Values | None:
    """Returns what is missing, each with its command; None where everything was measured."""
    missing = page.matrix.missing
    return {"missing": missing} if missing else None


SECTION = Section("missing", "Not measured", 125, values, "method")
