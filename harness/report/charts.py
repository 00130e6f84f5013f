"""The page's charts: SVG whose colours are CSS variables, the same bytes for the same curves."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from harness.report.curves import Curve

COLOURS = 8
"""Of the palette in style.css: `--s1` to `--s8`."""

DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (1.5, 1.5), (7, 2, 1.5, 2))
MARKERS = {
    "o": "M9 6a3 3 0 1 0 6 0a3 3 0 1 0-6 0z",
    "s": "M9 3h6v6h-6z",
    "^": "M12 2l4 7h-8z",
    "D": "M12 2l4 4-4 4-4-4z",
    "v": "M12 10l-4-7h8z",
    "P": "M11 2h2v3h3v2h-3v3h-2v-3h-3v-2h3z",
    "X": "M9 4l1-1 2 2 2-2 1 1-2 2 2 2-1 1-2-2-2 2-1-1 2-2z",
    "*": "M12 1l1.4 3.4 3.6.2-2.8 2.3.9 3.6-3.1-2-3.1 2 .9-3.6-2.8-2.3 3.6-.2z",
}
"""By matplotlib's name: the same shape in the legend's 24 x 12 box."""

# Colours that stand nowhere else in the SVG; each becomes a CSS variable.
_SERIES = [f"#0a0b{number:02x}" for number in range(1, COLOURS + 1)]
_TEXT, _GRID = "#0c0d01", "#0c0d02"


def style(position: int) -> tuple[int, tuple[float, ...], str]:
    """Colour (1 to COLOURS), dash and marker of the arm at this position: the same in every chart and legend."""
    return position % COLOURS + 1, DASHES[(position + position // COLOURS) % len(DASHES)], list(MARKERS)[position % len(MARKERS)]


def duration(ns: float) -> str:
    """Nanoseconds for people, in three digits."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size * 0.9995:
            value = ns / size
            return f"{value:,.0f} {unit}" if value >= 99.95 else f"{value:.3g} {unit}"
    return f"{ns:.0f} ns"


def ecdf(name: str, title: str, curves: Sequence[Curve], deadline_ns: float | None = None) -> str:
    """An `<svg>` with one step line per curve over a logarithmic time axis; empty if no curve has a point. `name` prefixes every id."""
    drawn = [curve for curve in curves if len(curve.ns)]
    if not drawn:
        return ""
    low = max(min(float(curve.ns[0]) for curve in drawn), 1.0) / 1.3
    high = max(float(curve.ns[-1]) for curve in drawn) * 1.3
    if deadline_ns and deadline_ns > low:
        high = max(high, deadline_ns * 1.3)
    with matplotlib.rc_context(_settings(name)):
        figure = Figure(figsize=(6.2, 3.9), layout="constrained")
        figure.patch.set_visible(False)
        axes = figure.add_subplot()
        _axes(axes, low, high)
        if deadline_ns and low < deadline_ns < high:
            axes.axvline(deadline_ns, color=_TEXT, linewidth=0.8, linestyle=(0, (1, 2)))
            axes.annotate(f"deadline {duration(deadline_ns)} ", (deadline_ns, 0.02), ha="right", va="bottom", fontsize=8)
        for position, curve in enumerate(curves):
            if len(curve.ns):
                _line(axes, name, position, curve, high)
        return _themed(_svg(figure), name, title)


@dataclass(frozen=True)
class Effect:
    """One line of a forest plot: a ratio with its interval and the margin inside which nothing has changed."""

    label: str
    ratio: float
    low: float
    high: float
    margin: float
    colour: int
    """Of the palette, from 1."""
    marker: str


def forest(name: str, title: str, effects: Sequence[Effect]) -> str:
    """An `<svg>` of ratios on a logarithmic axis, the first effect on top; intervals that leave the axis end in an arrow."""
    if not effects:
        return ""
    finite = [each.ratio for each in effects] + [edge for each in effects for edge in (each.low, each.high) if 0 < edge < 1e6]
    low, high = min(0.8, *finite) / 1.05, max(1.25, *finite) * 1.05
    with matplotlib.rc_context(_settings(name)):
        figure = Figure(figsize=(6.2, 0.7 + 0.26 * len(effects)), layout="constrained")
        figure.patch.set_visible(False)
        axes = figure.add_subplot()
        axes.set_xscale("log")
        axes.set_xlim(low, high)
        axes.set_ylim(len(effects) - 0.4, -0.6)
        axes.set_yticks(range(len(effects)), [each.label for each in effects])
        wide, middling = (0.001, 0.01, 0.1, 1, 10, 100, 1000), (0.1, 0.2, 0.5, 1, 2, 5, 10)
        narrow = (0.7, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.25, 1.5)
        span = high / low
        ticks = [each for each in (narrow if span < 2.5 else middling if span < 100 else wide) if low < each < high]
        axes.set_xticks(ticks, [f"{each:g}" for each in ticks])
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.axvline(1, color=_TEXT, linewidth=0.9)
        for row, each in enumerate(effects):
            colour = _SERIES[each.colour - 1]
            left, right = max(each.low, low), min(each.high, high)
            axes.fill_betweenx([row - 0.45, row + 0.45], 1 - each.margin, 1 + each.margin, color=_GRID, linewidth=0, alpha=0.6)
            axes.plot([left, right], [row, row], color=colour, linewidth=1.7, solid_capstyle="butt")
            for edge, inside, sign in ((left, each.low >= low, "<"), (right, each.high <= high, ">")):
                axes.plot([edge], [row], linestyle="none", marker="|" if inside else sign, markersize=6, color=colour)
            axes.plot([each.ratio], [row], linestyle="none", marker=each.marker, markersize=6, markeredgewidth=0, color=colour)
        axes.patch.set_visible(False)
        axes.tick_params(which="both", length=0)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        return _themed(_svg(figure), name, title)


def _settings(name: str) -> Any:
    return dict(matplotlib.rcParamsDefault) | {
        "svg.fonttype": "none", "svg.hashsalt": name, "font.size": 9,
        "font.family": "DejaVu Sans", "text.color": _TEXT,
        "axes.edgecolor": _GRID, "axes.labelcolor": _TEXT, "xtick.color": _TEXT, "ytick.color": _TEXT,
        "lines.scale_dashes": False, "path.simplify": False,
    }  # fmt: skip


def _svg(figure: Figure) -> str:
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return file.getvalue()


def _axes(axes: Axes, low: float, high: float) -> None:
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(0, 1.02)
    axes.xaxis.set_major_locator(LogLocator(numticks=12))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: duration(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * 100:.0f} %"))
    axes.set_ylabel("share of all cases")
    axes.grid(color=_GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.patch.set_visible(False)
    axes.tick_params(which="both", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _line(axes: Axes, name: str, position: int, curve: Curve, high: float) -> None:
    colour, dash, marker = style(position)
    # It rises from 0 at its first value and stays at its last share for ever.
    x = [float(curve.ns[0]), *map(float, curve.ns), high]
    y = [0.0, *map(float, curve.share), curve.plateau]
    (line,) = axes.plot(x, y, drawstyle="steps-post", color=_SERIES[colour - 1], linewidth=1.7, dashes=dash or (None, None))
    line.set_gid(f"arm-{position}")
    line.set_solid_joinstyle("round")
    axes.plot(
        x, y, linestyle="none", marker=marker, markersize=5, markeredgewidth=0, color=_SERIES[colour - 1], clip_on=False,
        markevery=(0.03 + 0.025 * (position % 8), 0.21), gid=f"arm-{position}-marks",
    )  # fmt: skip


def _themed(svg: str, name: str, title: str) -> str:
    svg = svg[svg.index("<svg") :]
    # A style element in an inline SVG would hold for the whole page.
    svg = re.sub(r"<metadata>.*?</metadata>\s*|<style[^>]*>.*?</style>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', rf'<svg viewBox="\1" role="img" aria-label="{title}">', svg, count=1)
    # Two charts on one page: ids must differ.
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    svg = svg.replace("font-family: 'DejaVu Sans'; ", "")
    for number, sentinel in enumerate(_SERIES, 1):
        svg = svg.replace(sentinel, f"var(--s{number})")
    return svg.replace(_TEXT, "var(--muted)").replace(_GRID, "var(--line)").strip()
