"""More charts in the style of `harness.report.figures.charts`: a field of bubbles, lines over batch sizes,
and bars beside ratios."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

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
    found: list[Bubble] = []
    for bubble in sorted(bubbles, key=lambda one: (one.ns, -one.share)):
        if not found or bubble.share > found[-1].share:
            found.append(bubble)
    return found


def pareto(name: str, title: str, bubbles: Sequence[Bubble], x_label: str) -> str:
    """An `<svg>`: time to the right on a logarithmic axis, share upwards; empty without bubbles."""
    if not bubbles:
        return ""
    least, most = min(bubble.ns for bubble in bubbles), max(bubble.ns for bubble in bubbles)
    shares = [bubble.share for bubble in bubbles]
    bottom = max(0.0, min(shares) - 0.12 * max(0.25, 1 - min(shares)))
    with canvas(name, (6.2, 4.2)) as (figure, axes):
        axes.set_xscale("log")
        axes.set_xlim(least / 2.2, most * 3.2)
        axes.set_ylim(bottom, 1 + (1 - bottom) * 0.09)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: duration(value)))
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if most / least < 30 else (1,)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(
            FuncFormatter(lambda value, _: f"{value * 100:.0f} %" if value <= 1.0001 else "")
        )
        axes.set_xlabel(x_label)
        axes.set_ylabel("cases right (conformance)")
        axes.grid(color=GRID, linewidth=0.6)
        axes.set_axisbelow(True)
        edge = frontier(bubbles)
        axes.step(
            [each.ns for each in edge],
            [each.share for each in edge],
            where="post",
            color=TEXT,
            linewidth=1,
            linestyle=(0, (4, 2)),
        )
        sizes = [bubble.size_ns for bubble in bubbles if bubble.size_ns]
        for each in bubbles:
            colour, _, marker = style(each.position)
            area = (
                60.0
                if not each.size_ns
                else 60 + 700 * math.log1p(each.size_ns / min(sizes)) / math.log1p(max(sizes) / min(sizes))
            )
            series = SERIES[colour - 1]
            axes.scatter(
                [each.ns],
                [each.share],
                s=area,
                color=series,
                alpha=0.25,
                linewidths=0,
                gid=f"arm-{each.position}-bubble",
            )
            axes.scatter(
                [each.ns],
                [each.share],
                s=28,
                marker=marker,
                color=series,
                linewidths=0,
                gid=f"arm-{each.position}",
            )
        bare(axes)
        _name(figure, axes, bubbles, edge)
        return finish(figure, name, title)


def _name(figure: Figure, axes: Axes, bubbles: Sequence[Bubble], edge: Sequence[Bubble]) -> None:
    """A label at each point, laid out once the axes are where they will be drawn."""
    labels = [
        axes.annotate(
            plain(each.label, 28),
            (each.ns, each.share),
            (0.0, 0.0),
            textcoords="offset points",
            fontsize=8.5,
            color=TEXT,
        )
        for each in bubbles
    ]
    for label in labels:
        label.set_in_layout(False)
    figure.draw_without_rendering()
    point = 72 / figure.dpi
    x, y, right, top = (extent * point for extent in axes.get_window_extent().extents)
    widths = [label.get_window_extent().width * point for label in labels]
    places, corners = (
        [tuple(axes.transData.transform((each.ns, each.share)) * point) for each in some]
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
    found: list[tuple[float, float]] = [(0.0, 0.0)] * len(points)
    # Those at the right edge have the least choice.
    for number in sorted(range(len(points)), key=lambda each: -points[each][0] - widths[each]):
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
        covered = [sum(_shared(a, each) for each in taken) for a in boxes]
        place = min(
            range(len(boxes)),
            key=lambda each: (not inside[each] and each != len(boxes) - 1, covered[each], each),
        )
        taken.append(boxes[place])
        found[number] = offers[place]
    return found


def _shared(a: Area, b: Area) -> float:
    """The area of what both boxes cover."""
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


@dataclass(frozen=True)
class Ribbon:
    """One line over batch sizes, with the ribbon in which it may lie; one that would leave the chart is not
    drawn."""

    position: int | None
    """The arm's position, which decides its colour; None for the baseline."""
    label: str
    points: tuple[tuple[int, float, float, float], ...]
    """Batch, value, low, high."""


def over_batches(
    name: str, title: str, y_label: str, runs: Sequence[Ribbon], *, times: bool, what: str = "arm"
) -> str:
    """An `<svg>` over batch sizes (powers of two apart); `times`: nanoseconds on a logarithmic axis, else
    shares in percent.

    `what` the lines are of: the page's key isolates arms.
    """
    runs = [run for run in runs if run.points]
    if not runs:
        return ""
    batches = sorted({point[0] for run in runs for point in run.points})
    values = [point[1] for run in runs for point in run.points]
    span = max(values) - min(values)
    low, high = (
        (min(values) / 1.6, max(values) * 1.6)
        if times
        else (min(0.0, min(values) - span / 2), max(values) + max(span / 2, 0.05))
    )
    with canvas(name, (4.4, 3.3)) as (figure, axes):
        axes.set_xscale("log", base=2)
        axes.set_xticks(batches, [str(batch) for batch in batches])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlim(batches[0] / 1.35, batches[-1] * 1.35)
        axes.set_xlabel("batch")
        if times:
            axes.set_yscale("log")
        axes.set_ylim(low, high)
        axes.yaxis.set_major_formatter(
            FuncFormatter(lambda value, _: duration(value) if times else f"{value * 100:.0f} %")
        )
        axes.yaxis.set_minor_formatter(
            FuncFormatter(lambda value, _: duration(value)) if times and high / low < 8 else NullFormatter()
        )
        axes.set_ylabel(y_label)
        axes.grid(color=GRID, linewidth=0.6)
        axes.set_axisbelow(True)
        for each in runs:
            _run(axes, each, low, high, what)
        bare(axes)
        return finish(figure, name, title)


def _run(axes: Axes, run: Ribbon, low: float, high: float, what: str) -> None:
    x = [point[0] for point in run.points]
    y = [point[1] for point in run.points]
    if run.position is None:
        axes.plot(
            x,
            y,
            color=TEXT,
            linewidth=1.4,
            linestyle=(0, (4, 2)),
            marker="o",
            markersize=5,
            markerfacecolor="none",
        )
        return
    colour, dash, marker = style(run.position)
    series = SERIES[colour - 1]
    if all(low <= point[2] and point[3] <= high for point in run.points):
        axes.fill_between(
            x,
            [point[2] for point in run.points],
            [point[3] for point in run.points],
            color=series,
            alpha=0.14,
            linewidth=0,
        )
    (line,) = axes.plot(
        x,
        y,
        color=series,
        linewidth=1.7,
        dashes=dash or (None, None),
        marker=marker,
        markersize=5.5,
        markeredgewidth=0,
    )
    line.set_gid(f"{what}-{run.position}")


@dataclass(frozen=True)
class Bar:
    """One line of the chart of a strategy's gain."""

    position: int
    label: str
    saved: float
    """Share of the ids without a pass of their own."""
    ratio: float | None
    low: float
    high: float
    ceiling: float | None


def gains(name: str, title: str, bars: Sequence[Bar]) -> str:
    """An `<svg>`: bars of what was saved, and beside them the speed-up with its interval and its ceiling."""
    if not bars:
        return ""
    ratios = [value for bar in bars for value in (bar.ratio, bar.ceiling) if value]
    with canvas(name, (7.6, 1.0 + 0.3 * len(bars)), columns=2) as (figure, (left, right)):
        left.set_yticks(range(len(bars)), [plain(bar.label, 44) for bar in bars])
        right.set_yticks([])
        for axes in (left, right):
            axes.set_ylim(len(bars) - 0.4, -0.6)
            bare(axes)
        left.set_xlim(0, max(0.05, *(bar.saved for bar in bars)) * 1.25)
        left.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * 100:.0f} %"))
        left.set_xlabel("tokens without a pass")
        low, high = min([1.0, *ratios]) / 1.15, max([1.1, *ratios]) * 1.15
        right.set_xlim(low, high)
        right.set_xlabel("speed-up ×   (◇ ceiling)")
        right.axvline(1, color=TEXT, linewidth=0.9)
        for row, each in enumerate(bars):
            colour, _, marker = style(each.position)
            series = SERIES[colour - 1]
            left.barh([row], [each.saved], height=0.55, color=series, alpha=0.75)
            left.annotate(f" {each.saved:.0%}", (each.saved, row), va="center", fontsize=8, color=TEXT)
            if each.ceiling:
                right.plot(
                    [each.ceiling],
                    [row],
                    linestyle="none",
                    marker="D",
                    markersize=6,
                    markerfacecolor="none",
                    color=TEXT,
                )
            if each.ratio:
                right.plot(
                    [max(each.low, low), min(each.high, high)],
                    [row, row],
                    color=series,
                    linewidth=1.4,
                    solid_capstyle="butt",
                    alpha=0.6,
                )
                for edge, inside, sign in (
                    (max(each.low, low), each.low >= low, "<"),
                    (min(each.high, high), each.high <= high, ">"),
                ):
                    right.plot(
                        [edge],
                        [row],
                        linestyle="none",
                        marker="|" if inside else sign,
                        markersize=5,
                        color=series,
                        clip_on=False,
                    )
                right.plot(
                    [each.ratio],
                    [row],
                    linestyle="none",
                    marker=marker,
                    markersize=6,
                    markeredgewidth=0,
                    color=series,
                )
        return finish(figure, name, title)
