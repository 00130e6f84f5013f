"""All numbers: every metric of every arm, in the layout of MaskBench."""

from __future__ import annotations

from harness.outcomes.metrics import METRICS, Metric, values_of
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
    return {"lines": lines, "summaries": [values_of(line.arm) for line in lines], "groups": metrics_by_unit()}


def metrics_by_unit() -> list[tuple[str, list[Metric]]]:
    """Returns a title and its metrics for each unit that some metric has; a unit without a title stands last,
    under its own name."""
    units = dict.fromkeys([*UNITS, *(metric.unit for metric in METRICS.values())])
    groups = [
        (UNITS.get(unit, unit), [metric for metric in METRICS.values() if metric.unit == unit])
        for unit in units
    ]
    return [(title, group) for title, group in groups if group]


SECTION = Section("numbers", "All numbers", 140, values, "method")
