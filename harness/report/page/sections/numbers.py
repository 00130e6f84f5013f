"""All numbers: every metric of every arm, in the layout of MaskBench."""

from __future__ import annotations

from harness.outcomes.metrics import metrics_by_unit, values_of
from harness.report.page.content import Content
from harness.report.page.section import Section, Values

UNITS = {
    "cases": "Counted in cases",
    "share": "Shares of cases",
    "walks": "Counted in walks",
    "us": "Times (µs)",
    "bytes": "Memory",
}
"""The title over the metrics of each unit, in the order of the page."""


def values(page: Content) -> Values:
    """Returns the metrics of every arm."""
    lines = page.inputs.lines
    # A unit without a title stands under its own name.
    groups = [(UNITS.get(unit, unit), group) for unit, group in metrics_by_unit(UNITS).items()]
    return {"lines": lines, "summaries": [values_of(line.arm) for line in lines], "groups": groups}


SECTION = Section("numbers", "All numbers", 140, values, "method")
