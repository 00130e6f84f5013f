"""More charts in the style of `harness.report.figures.charts`: lines over batch sizes, and bars
beside ratios."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter, NullLocator

from harness.report.figures.charts import (
    GRID,
    SERIES,
    TEXT,
    Styled,
    bare,
    canvas,
    draw_ends,
    draw_mark,
    finish,
    plain,
    style,
)
from harness.text import duration


@dataclass(frozen=True)
class Ribbon:
    """One line over batch sizes, with the ribbon in which it may lie; one that would leave the chart is not
    drawn."""

    position: int | None
    """The arm's position, which decides its colour; None for the baseline."""
    label: str
    points: tuple[tuple[int, float, float, float], ...]
    """Batch, value, low, high."""
    is_baseline: bool = False
    """Whether it is the baseline of the arm at this position: it has the arm's colour and open marks."""


def over_batches(
    name: str, title: str, y_label: str, runs: Sequence[Ribbon], *, times: bool, what: str = "arm"
) -> str:
    """Returns an `<svg>` over batch sizes (powers of two apart); `times`: nanoseconds on a logarithmic axis,
    else shares in percent.

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
        for run in runs:
            _run(axes, run, low, high, what)
        bare(axes)
        return finish(figure, name, title)


def _run(axes: Axes, run: Ribbon, low: float, high: float, what: str) -> None:
    x = [point[0] for point in run.points]
    y = [point[1] for point in run.points]
    if run.position is None or run.is_baseline:
        (line,) = axes.plot(
            x,
            y,
            color=TEXT if run.position is None else SERIES[style(run.position)[0] - 1],
            linewidth=1.4,
            linestyle=(0, (4, 2)),
            marker="o",
            markersize=5,
            markerfacecolor="none",
            label=plain(run.label),
        )
        if run.position is not None:  # it is dimmed with its arm, by an id of its own
            line.set_gid(f"none-{what}-{run.position}")
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
        label=plain(run.label),
    )
    line.set_gid(f"{what}-{run.position}")


@dataclass(frozen=True)
class Curve(Styled):
    """One line over the sizes of vocabularies."""

    position: int
    label: str
    points: tuple[tuple[int, float], ...]
    """Ids of the vocabulary, value."""


def over_sizes(
    name: str,
    title: str,
    y_label: str,
    curves: Sequence[Curve],
    say: Callable[[float], str],
    *,
    logarithmic: bool,
) -> str:
    """Returns an `<svg>` over the sizes of vocabularies (powers of two apart); `say` writes a value."""
    curves = [curve for curve in curves if curve.points]
    sizes = sorted({size for curve in curves for size, _ in curve.points})
    if len(sizes) < 2:
        return ""
    values = [value for curve in curves for _, value in curve.points]
    with canvas(name, (4.4, 3.3)) as (figure, axes):
        axes.set_xscale("log", base=2)
        labels = [f"{size:,}" if size < 10_000 else f"{size / 1000:.0f}k" for size in sizes]
        axes.set_xticks(sizes, labels, rotation=45)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlim(sizes[0] / 1.15, sizes[-1] * 1.15)
        axes.set_xlabel("ids of the vocabulary")
        if logarithmic:
            low, high = min(values) / 1.6, max(values) * 1.6
            axes.set_yscale("log")
            axes.set_ylim(low, high)
            axes.yaxis.set_minor_formatter(
                FuncFormatter(lambda value, _: say(value)) if high / low < 8 else NullFormatter()
            )
        else:
            axes.set_ylim(0, max(1.0, max(values) * 1.15))
            axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: say(value)))
        axes.set_ylabel(y_label)
        axes.grid(color=GRID, linewidth=0.6)
        axes.set_axisbelow(True)
        for curve in curves:
            points = tuple((size, value, value, value) for size, value in curve.points)
            _run(axes, Ribbon(curve.position, curve.label, points), 0.0, math.inf, "backend")
        bare(axes)
        return finish(figure, name, title)


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


def gains(name: str, bars: Sequence[Bar]) -> str:
    """Returns an `<svg>`: bars of what was saved, and beside them the speed-up with its interval and its
    ceiling."""
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
        for row, bar in enumerate(bars):
            colour, _, marker = style(bar.position)
            series = SERIES[colour - 1]
            left.barh([row], [bar.saved], height=0.55, color=series, alpha=0.75)
            left.annotate(f" {bar.saved:.0%}", (bar.saved, row), va="center", fontsize=8, color=TEXT)
            if bar.ceiling:
                right.plot(
                    [bar.ceiling], [row], linestyle="none", marker="D", markersize=6, markerfacecolor="none",
                    color=TEXT,
                )  # fmt: skip
            if bar.ratio:
                right.plot(
                    [max(bar.low, low), min(bar.high, high)],
                    [row, row],
                    color=series,
                    linewidth=1.4,
                    solid_capstyle="butt",
                    alpha=0.6,
                )
                draw_ends(
                    right, row, (bar.low, bar.high), (low, high), color=series, markersize=5, clip_on=False
                )
                draw_mark(right, bar.ratio, row, marker, series)
        return finish(figure, name, "What each strategy saves and gains: bars and intervals")
