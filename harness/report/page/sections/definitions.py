"""Definitions: what the figures of the page are called and mean."""

from __future__ import annotations

from harness.measure.figures import METRICS
from harness.outcomes import metrics
from harness.report.page.content import Content
from harness.report.page.inputs import Inputs
from harness.report.page.section import Section, Values
from harness.serve.requests.titles import FIGURES


def values(page: Content) -> Values:
    """Returns the definitions of whatever the page's folders hold."""
    return {"definitions": definitions(page.inputs)}


SECTION = Section("definitions", "Definitions", 160, values, "method")


def definitions(inputs: Inputs) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Returns title, name and definition of each figure that the page may show, by the kind of its record."""
    rows = [
        (distribution.title, distribution.name, distribution.definition)
        for distribution in metrics.DISTRIBUTIONS.values()
    ]
    rows += [(metric.title, metric.name, metric.definition) for metric in metrics.METRICS.values()]
    groups = [("Of rows (grammarbench run)", rows)]
    if inputs.measured:
        groups.append(
            (
                "Of a measurement (grammarbench measure)",
                [(name.replace("_", " "), name, meaning) for name, meaning in METRICS.items()],
            )
        )
    if inputs.decoded:
        groups.append(
            (
                "Of decoding (grammarbench decode)",
                [(figure.title, name, figure.definition) for name, figure in FIGURES.items()],
            )
        )
    return groups
