"""Empirical distributions of times as figures of the page: a chart with a step line per arm, and a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from harness.report.figures import charts, curves
from harness.report.values import percent
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
    part_of: str = "",
) -> Figure:
    """Returns the curves, one per label, as a figure; `text` is its title and its caption.

    `part_of`: the title of the whole of which this is a small chart for one suite or family.
    """
    title, caption = text
    whole = f"{part_of}, {title[0].lower()}{title[1:]}" if part_of else title
    table = [(f"{level * 100:.0f} %", [_time(curve.at(level)) for curve in drawn]) for level in LEVELS]
    table.append(("ends at", [percent(curve.plateau) for curve in drawn]))
    thin = [curves.thin(curve, POINTS) if part_of else curves.thin(curve) for curve in drawn]
    svg = charts.ecdf(
        name,
        f"{whole}: one step line per arm",
        thin,
        replace(frame, size=SMALL if part_of else WIDE, labels=labels),
    )
    return Figure(name, title, caption, Markup(svg), table, list(labels))


def _time(ns: int | None) -> str:
    return "never" if ns is None else duration(ns)
