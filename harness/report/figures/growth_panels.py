"""The chart of growth: a panel for each axis, a line for each arm, both scales logarithmic, so that a power
is a straight line and its exponent the slope."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from harness.measure.growth.conclude import Conclusion
from harness.report.figures.charts import GRID, SERIES, TEXT, bare, canvas, finish, plain, style

COLUMNS = 4

ENDS = {"killed": "x", "error": "x", "refused": "o"}
"""The marker behind the last point of an arm that did not get through, by how it ended."""


def growth_panels(
    name: str,
    title: str,
    found: Mapping[str, Sequence[Conclusion]],
    positions: Mapping[str, int],
    say: Callable[[float], str],
) -> str:
    """Returns an `<svg>` with a panel for each axis of `found`; `positions` gives each arm its colour and
    marker, and `say` writes a cost. The legend stands on the page."""
    drawn = {axis: lines for axis, lines in found.items() if any(_points(one) for one in lines)}
    if not drawn:
        return ""
    rows = -(-len(drawn) // COLUMNS)
    costs = [cost for lines in drawn.values() for one in lines for _, cost in _points(one)]
    with canvas(name, (2.5 * COLUMNS, 2.2 * rows)) as (figure, _):
        figure.clear()
        panels = figure.subplots(rows, COLUMNS, squeeze=False, sharey=True).ravel()
        for panel in panels[len(drawn) :]:
            panel.set_visible(False)
        named: set[str] = set()
        for panel, (axis, lines) in zip(panels, drawn.items(), strict=False):
            panel.set_title(plain(axis), fontsize=9, color=TEXT)
            for one in lines:
                _line(panel, one, positions[one.arm], in_legend=one.arm not in named)
                named |= {one.arm} if _points(one) else set()
            _scales(panel, min(costs) / 2, max(costs) * 2, say)
        return finish(figure, name, title)


def _points(one: Conclusion) -> list[tuple[int, float]]:
    """Returns what a logarithmic scale can show."""
    return [(size, cost) for size, cost in one.values if cost > 0]


def _line(panel: Axes, one: Conclusion, position: int, *, in_legend: bool) -> None:
    points = _points(one)
    if not points:
        return
    colour, dash, marker = style(position)
    series = SERIES[colour - 1]
    (line,) = panel.plot(
        [size for size, _ in points],
        [cost for _, cost in points],
        color=series,
        linewidth=1.4,
        dashes=dash or (None, None),
        marker=marker,
        markersize=3.5,
        markeredgewidth=0,
        label=plain(one.arm) if in_legend else "_",
    )
    line.set_gid(f"arm-{position}")
    if one.end is not None and one.end.status in ENDS:
        size, cost = points[-1]
        panel.plot(
            [size * 1.7],
            [cost],
            linestyle="none",
            marker=ENDS[one.end.status],
            markersize=6,
            markeredgewidth=1.6,
            markerfacecolor="none",
            color=series,
        )


def _scales(panel: Axes, low: float, high: float, say: Callable[[float], str]) -> None:
    panel.set_xscale("log", base=2)
    panel.xaxis.set_major_locator(LogLocator(base=2, numticks=6))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.set_yscale("log")
    panel.set_ylim(low, high)
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: say(value)))
    panel.yaxis.set_minor_formatter(NullFormatter())
    panel.grid(color=GRID, linewidth=0.6)
    panel.set_axisbelow(True)
    bare(panel)
