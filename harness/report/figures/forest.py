"""A comparison as a page: what came out differently, and a forest plot of what takes another time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from harness.measure.estimate import Comparison
from harness.measure.figures import METRICS
from harness.outcomes.compare import Pair
from harness.report.figures import charts
from harness.report.templates import asset, template_environment
from harness.whole_files import write_files

STYLES = {
    "regressed": (6, ">"),
    "improved": (3, "<"),
    "equivalent": (1, "o"),
    "inconclusive": (8, "h"),
    "unproven": (7, "X"),
}
"""Colour and marker of a verdict; the table beside the plot says it in words."""

SIGNS = {
    "regressed": "▸ slower",
    "improved": "◂ faster",
    "equivalent": "● equivalent",
    "inconclusive": "○ inconclusive",
    "unproven": "× unproven",
}


def write_forest(pairs: Sequence[Pair], path: Path) -> Path:
    """Writes the page, and returns the path of its file. Raises BadInput."""
    environment = template_environment()
    html = environment.get_template("forest.html.j2").render(
        pairs=pairs,
        plots=[Markup(plot(f"forest{number}", pair.times)) for number, pair in enumerate(pairs)],
        definitions=METRICS,
        signs=SIGNS,
        stylesheet=Markup(asset("style.css").strip()),
    )
    write_files(path.parent, {path.name: html}, "--html")
    return path


def plot(name: str, comparisons: Sequence[Comparison]) -> str:
    """Draws the largest effects, the largest on top."""
    ordered = sorted(comparisons, key=lambda comparison: -comparison.found.ratio)
    effects = []
    for comparison in ordered:
        interval, label = comparison.found, f"{comparison.metric.replace('_', ' ')} {comparison.family}"[:44]
        effects.append(
            charts.Effect(
                label,
                interval.ratio,
                interval.low,
                interval.high,
                comparison.margin,
                *STYLES[comparison.verdict],
            )
        )
    return charts.forest(name, effects)
