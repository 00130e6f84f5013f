"""A field of bubbles: how often each arm is right over how long it takes, with the Pareto frontier."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from harness.report.figures.charts import GRID, SERIES, TEXT, bare, canvas, finish, plain, style
from harness.text import duration


@dataclass(frozen=True)
class Bubble:
    """One arm of the Pareto chart."""

    position: int
    label: str
    ns: float
    share: float
    size_ns: float | None
    """What the bubble's area tells; None: unknown, a small one."""


def frontier(bubbles: Sequence[Bubble]) -> list[Bubble]:
    """Returns the Pareto-optimal points, than which no other is both faster and more often right, the fastest
    first."""
    front: list[Bubble] = []
    for bubble in sorted(bubbles, key=lambda one: (one.ns, -one.share)):
        if not front or bubble.share > front[-1].share:
            front.append(bubble)
    return front


def pareto(title: str, bubbles: Sequence[Bubble], x_label: str) -> str:
    """Returns an `<svg>`: time to the right on a logarithmic axis, share upwards; empty without bubbles."""
    if not bubbles:
        return ""
    least, most = min(bubble.ns for bubble in bubbles), max(bubble.ns for bubble in bubbles)
    shares = [bubble.share for bubble in bubbles]
    bottom = max(0.0, min(shares) - 0.12 * max(0.25, 1 - min(shares)))
    digits = 0 if bottom < 0.9 else 1
    with canvas("pareto", (6.2, 4.2)) as (figure, axes):
        axes.set_xscale("log")
        axes.set_xlim(least / 2.2, most * 3.2)
        axes.set_ylim(bottom, 1 + (1 - bottom) * 0.09)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: duration(value)))
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if most / least < 30 else (1,)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(
            FuncFormatter(lambda value, _: f"{value * 100:.{digits}f} %" if value <= 1.0001 else "")
        )
        axes.set_xlabel(x_label)
        axes.set_ylabel("cases right (conformance)")
        axes.grid(color=GRID, linewidth=0.6)
        axes.set_axisbelow(True)
        edge = frontier(bubbles)
        axes.step(
            [bubble.ns for bubble in edge],
            [bubble.share for bubble in edge],
            where="post",
            color=TEXT,
            linewidth=1,
            linestyle=(0, (4, 2)),
        )
        sizes = [bubble.size_ns for bubble in bubbles if bubble.size_ns]
        for bubble in bubbles:
            colour, _, marker = style(bubble.position)
            area = (
                60.0
                if not bubble.size_ns
                else 60 + 700 * math.log1p(bubble.size_ns / min(sizes)) / math.log1p(max(sizes) / min(sizes))
            )
            series = SERIES[colour - 1]
            axes.scatter(
                [bubble.ns],
                [bubble.share],
                s=area,
                color=series,
                alpha=0.25,
                linewidths=0,
                gid=f"arm-{bubble.position}-bubble",
            )
            axes.scatter(
                [bubble.ns],
                [bubble.share],
                s=28,
                marker=marker,
                color=series,
                linewidths=0,
                gid=f"arm-{bubble.position}",
            )
        bare(axes)
        _name(figure, axes, bubbles, edge)
        return finish(figure, "pareto", title)


def _name(figure: Figure, axes: Axes, bubbles: Sequence[Bubble], edge: Sequence[Bubble]) -> None:
    """Writes a label at each point, laid out once the axes are where they will be drawn."""
    labels = [
        axes.annotate(
            plain(bubble.label, 28),
            (bubble.ns, bubble.share),
            (0.0, 0.0),
            textcoords="offset points",
            fontsize=8.5,
            color=TEXT,
        )
        for bubble in bubbles
    ]
    for label in labels:
        label.set_in_layout(False)
    figure.draw_without_rendering()
    point = 72 / figure.dpi
    x, y, right, top = (extent * point for extent in axes.get_window_extent().extents)
    widths = [label.get_window_extent().width * point for label in labels]
    places, corners = (
        [tuple(axes.transData.transform((bubble.ns, bubble.share)) * point) for bubble in some]
        for some in (bubbles, edge)
    )
    steps = [
        box
        for a, b in itertools.pairwise(corners)
        for box in ((a[0], a[1] - 1, b[0], a[1] + 1), (b[0] - 1, a[1], b[0] + 1, b[1]))
    ]
    for label, bubble, (left, lift) in zip(
        labels, bubbles, beside(places, widths, (x, y, right, top), steps), strict=True
    ):
        label.xyann = (left, lift)
        if not -LABEL - 12 < lift < 12:
            # So far away that somebody could take it for another's.
            end = (max(left, 0.0), lift + (0.0 if lift > 0 else LABEL))
            line = {"arrowstyle": "-", "color": GRID, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 4}
            axes.annotate(
                "", (bubble.ns, bubble.share), xytext=end, textcoords="offset points", arrowprops=line
            ).set_in_layout(False)


LABEL = 10.0
"""The height of a label, in points."""


Area = tuple[float, float, float, float]
"""Left, bottom, right, top, in typographic points (1/72 inch)."""


def beside(
    points: Sequence[tuple[float, float]], widths: Sequence[float], room: Area, clear: Sequence[Area] = ()
) -> list[tuple[float, float]]:
    """Returns where the label of each point begins, as an offset from it: inside the room, and if it can be
    over no point and no other label.

    `clear`: what else is to be kept clear.
    """
    taken = [*((x - 6, y - 6, x + 6, y + 6) for x, y in points), *clear]
    placed: list[tuple[float, float]] = [(0.0, 0.0)] * len(points)
    # Those at the right edge have the least choice.
    for number in sorted(range(len(points)), key=lambda number: -points[number][0] - widths[number]):
        (x, y), width = points[number], widths[number]
        lifts = [-3.0, *(lift for step in range(9) for lift in (9.0 + 12 * step, -9.0 - LABEL - 12 * step))]
        offers = [
            (left, lift)
            for lift in lifts
            for left in ((9.0, -9.0 - width) if lift == -3 else (5.0, -5.0 - width, -width / 2))
        ]
        # Whatever else happens it does not leave the chart.
        offers.append(
            (
                min(max(5.0, room[0] - x), room[2] - x - width),
                min(max(9.0, room[1] - y + 2), room[3] - y - LABEL + 2),
            )
        )
        boxes = [(x + left, y + lift - 2, x + left + width, y + lift + LABEL - 2) for left, lift in offers]
        inside = [room[0] <= a[0] and room[1] <= a[1] and a[2] <= room[2] and a[3] <= room[3] for a in boxes]
        covered = [sum(_shared(a, box) for box in taken) for a in boxes]
        place = min(
            range(len(boxes)),
            key=lambda place: (not inside[place] and place != len(boxes) - 1, covered[place], place),
        )
        taken.append(boxes[place])
        placed[number] = offers[place]
    return placed


def _shared(a: Area, b: Area) -> float:
    """Returns the area of what both boxes cover."""
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
