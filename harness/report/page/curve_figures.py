"""Empirical distributions of times as figures of the page: a chart with a step line per arm, and a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from harness.report.figures import charts, curves
from harness.report.tables.instances import percent
from harness.text import duration

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
"""Shares of the cases, which are the rows of the table."""

POINTS = 70
"""Most points of a curve in a small chart."""

WIDE, SMALL = (6.2, 3.9), (4.2, 2.9)
"""Inches of a chart, and of one that stands for a single suite or family."""


@dataclass(frozen=True)
class Figure:
    """A chart and the same as a table."""

    name: str
    title: str
    caption: str
    svg: Markup
    table: list[tuple[str, list[str]]]
    labels: list[str]


def figure(
    name: str,
    text: tuple[str, str],
    drawn: Sequence[curves.Curve],
    labels: Sequence[str],
    frame: charts.Frame,
    *,
    small: bool = False,
) -> Figure:
    """Returns the curves, one per label, as a figure; `text` is its title and its caption."""
    title, caption = text
    table = [(f"{level * 100:.0f} %", [_time(curve.at(level)) for curve in drawn]) for level in LEVELS]
    table.append(("ends at", [percent(curve.plateau) for curve in drawn]))
    thin = [curves.thin(curve, POINTS) if small else curves.thin(curve) for curve in drawn]
    svg = charts.ecdf(
        name,
        f"{title}: one step line per arm",
        thin,
        replace(frame, size=SMALL if small else WIDE, labels=labels),
    )
    return Figure(name, title, caption, Markup(svg), table, list(labels))


def _time(ns: int | None) -> str:
    return "never" if ns is None else duration(ns)
