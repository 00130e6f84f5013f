"""The charts: on the page SVG whose colours are CSS variables, the same bytes for the same curves; under
`printing` the same as files for a paper."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import matplotlib
from markupsafe import escape
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from harness.report.figures.curves import Curve
from harness.report.figures.printing import press
from harness.text import duration, shorten, visible

COLOURS = 8
"""The number of colours in the palette of style.css: `--s1` to `--s8`."""

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
"""The legend's shape, in a box of 24 x 12, for each of matplotlib's markers by name."""

# The light colours of style.css, which a paper has too. None stands elsewhere in the SVG; on a page each
# becomes a CSS variable.
SERIES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#3d4349", "#b3a400"]
TEXT, GRID = "#59636e", "#d9dee3"


def style(position: int) -> tuple[int, tuple[float, ...], str]:
    """Returns colour (1 to COLOURS), dash and marker of the arm at this position: the same in every chart and
    legend."""
    return (
        position % COLOURS + 1,
        DASHES[(position + position // COLOURS) % len(DASHES)],
        list(MARKERS)[position % len(MARKERS)],
    )


MOST_READ = 4096
"""Characters of a text from outside of which a label is made."""


class Styled:
    """What has a position among the arms of a page, and by it a colour, dash and marker for legends."""

    position: int

    @property
    def colour(self) -> int:
        return style(self.position)[0]

    @property
    def dash(self) -> str:
        return " ".join(map(str, style(self.position)[1]))

    @property
    def marker(self) -> str:
        return MARKERS[style(self.position)[2]]


@dataclass(frozen=True)
class Guide:
    """A dotted vertical line at a time."""

    ns: float
    label: str


@dataclass(frozen=True)
class Frame:
    """What a chart of curves shows besides the curves, and its size in inches."""

    guides: Sequence[Guide] = ()
    deadline_ns: float | None = None
    late: Sequence[int] = ()
    """The number of cases that timed out, for each curve; it stands at the right edge."""
    places: Sequence[int] = ()
    """The position of each curve's arm; by default that of the curve."""
    labels: Sequence[str] = ()
    """The name of each curve, for the legend of a printed chart; the page has one legend for all."""
    size: tuple[float, float] = (6.2, 3.9)


def ecdf(name: str, title: str, curves: Sequence[Curve], frame: Frame) -> str:
    """Returns an `<svg>` with one step line per curve over a logarithmic time axis; empty if no curve has a
    point.

    `name` prefixes every id.
    """
    drawn = [curve for curve in curves if len(curve.ns)]
    if not drawn:
        return ""
    low = max(min(float(curve.ns[0]) for curve in drawn), 1.0) / 1.3
    high = max(float(curve.ns[-1]) for curve in drawn) * 1.3
    deadline_ns = frame.deadline_ns
    if deadline_ns and deadline_ns > low:
        high = max(high, deadline_ns * 1.3)
    for guide in frame.guides:
        # One that is far from everything drawn would only squeeze it.
        high = max(high, guide.ns * 1.3) if guide.ns < 3 * high else high
    with canvas(name, frame.size) as (figure, axes):
        _axes(axes, low, high)
        marks = [Guide(deadline_ns, f"deadline {duration(deadline_ns)}")] if deadline_ns else []
        _draw_guides(axes, [*marks, *frame.guides], low, high, frame.size[0])
        for number, curve in enumerate(curves):
            position = frame.places[number] if frame.places else number
            if len(curve.ns):
                label = frame.labels[number] if frame.labels else ""
                _line(axes, position, curve, high, label)
        late = [number for number, count in enumerate(frame.late[: len(curves)]) if count]
        wanted = [_beside_plateau(number, curves[number].plateau) for number in late]
        for number, y in zip(late, spread(wanted, LATE_APART / (72 * 0.8 * frame.size[1])), strict=True):
            position = frame.places[number] if frame.places else number
            _draw_late(axes, position, frame.late[number], high / 1.04, y)
        return finish(figure, name, title)


LATE_APART = 12.0
"""Points between the labels of cases that timed out; the axes take about 0.8 of a chart's height."""


def _beside_plateau(number: int, plateau: float) -> float:
    """Returns where the label of a curve would stand, were it alone."""
    offset = 0.035 * (number + 1)
    return plateau - offset if plateau > 0.3 else plateau + offset


def spread(wanted: Sequence[float], apart: float) -> list[float]:
    """Returns the places moved until each is as far `apart` from the next as wanted, in the same order, and
    none above 1."""
    order = sorted(range(len(wanted)), key=lambda number: wanted[number])
    places = list(wanted)
    for below, above in pairwise(order):
        places[above] = max(places[above], places[below] + apart)
    limit = 1.0
    for number in reversed(order):
        places[number] = min(places[number], limit)
        limit = places[number] - apart
    return places


def _draw_guides(axes: Axes, guides: Sequence[Guide], low: float, high: float, width: float) -> None:
    """Draws the dotted lines within the axis, each with its label above the curves; a label that would run
    into the one before stands one line higher. `width` is the chart's, in inches."""
    end, level = 0.0, 0
    for guide in sorted(guides, key=lambda guide: guide.ns):
        if low < guide.ns < high:
            axes.axvline(guide.ns, color=TEXT, linewidth=0.8, linestyle=(0, (1, 2)))
            place = math.log(guide.ns / low) / math.log(high / low)
            half = 0.04 * len(guide.label) / width
            side = "right" if place > 0.85 else "left" if place < 0.1 else "center"
            begin = place - {"right": 2, "center": 1, "left": 0}[side] * half
            level = level + 1 if begin < end else 0
            end = begin + 2 * half
            axes.annotate(
                plain(guide.label),
                (guide.ns, 1.0),
                xytext=(0, 3 + 10 * level),
                xycoords=axes.get_xaxis_transform(),
                textcoords="offset points",
                ha=side,
                va="bottom",
                fontsize=8,
            )


def _draw_late(axes: Axes, position: int, count: int, x: float, y: float) -> None:
    """Draws how many cases of an arm timed out, with a marker in the arm's colour."""
    colour, _, _ = style(position)
    axes.plot(
        [x],
        [y],
        marker=">",
        markersize=5,
        markeredgewidth=0,
        color=SERIES[colour - 1],
        gid=f"arm-{position}-late",
    )
    axes.annotate(
        f"{count} timed out",
        (x, y),
        xytext=(-5, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        fontsize=8,
        color=TEXT,
    )


@dataclass(frozen=True)
class Effect:
    """One line of a forest plot: a ratio with its interval and the margin inside which nothing
    has changed.
    """

    label: str
    ratio: float
    low: float
    high: float
    margin: float
    colour: int
    """The colour's number in the palette, from 1."""
    marker: str


def forest(name: str, effects: Sequence[Effect]) -> str:
    """Returns an `<svg>` of ratios on a logarithmic axis, the first effect on top; intervals that leave the
    axis end in an arrow."""
    if not effects:
        return ""
    finite = [effect.ratio for effect in effects] + [
        edge for effect in effects for edge in (effect.low, effect.high) if 0 < edge < 1e6
    ]
    low, high = min(0.8, *finite) / 1.05, max(1.25, *finite) * 1.05
    with canvas(name, (6.2, 0.7 + 0.26 * len(effects))) as (figure, axes):
        axes.set_xscale("log")
        axes.set_xlim(low, high)
        axes.set_ylim(len(effects) - 0.4, -0.6)
        axes.set_yticks(range(len(effects)), [plain(effect.label) for effect in effects])
        wide, middling = (0.001, 0.01, 0.1, 1, 10, 100, 1000), (0.1, 0.2, 0.5, 1, 2, 5, 10)
        narrow = (0.7, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.25, 1.5)
        span = high / low
        ticks = [
            tick for tick in (narrow if span < 2.5 else middling if span < 100 else wide) if low < tick < high
        ]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.axvline(1, color=TEXT, linewidth=0.9)
        for row, effect in enumerate(effects):
            colour = SERIES[effect.colour - 1]
            left, right = max(effect.low, low), min(effect.high, high)
            axes.fill_betweenx(
                [row - 0.45, row + 0.45],
                1 - effect.margin,
                1 + effect.margin,
                color=GRID,
                linewidth=0,
                alpha=0.6,
            )
            axes.plot([left, right], [row, row], color=colour, linewidth=1.7, solid_capstyle="butt")
            draw_ends(axes, row, (effect.low, effect.high), (low, high), color=colour, markersize=6)
            draw_mark(axes, effect.ratio, row, effect.marker, colour)
        bare(axes)
        return finish(figure, name, "Ratios of head over base with their intervals")


def draw_ends(
    axes: Axes, row: int, interval: tuple[float, float], limits: tuple[float, float], **look: Any
) -> None:
    """Draws the ends of an interval in a row: a bar, or an arrow at the limit beyond which it goes on."""
    (low, high), (left, right) = interval, limits
    for edge, inside, sign in ((max(low, left), low >= left, "<"), (min(high, right), high <= right, ">")):
        axes.plot([edge], [row], linestyle="none", marker="|" if inside else sign, **look)


def draw_mark(axes: Axes, x: float, row: int, marker: str, colour: str) -> None:
    """Draws an estimate in a row."""
    axes.plot([x], [row], linestyle="none", marker=marker, markersize=6, markeredgewidth=0, color=colour)


@contextmanager
def canvas(name: str, size: tuple[float, float], columns: int = 1) -> Iterator[tuple[Figure, Any]]:
    """Yields a figure of so many inches and its axes (one, or a list of so many side by side), in our
    style."""
    with matplotlib.rc_context(_settings(name)), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure = Figure(figsize=size, layout="constrained")
        figure.patch.set_visible(False)
        yield (
            figure,
            figure.add_subplot() if columns == 1 else list(figure.subplots(1, columns, squeeze=False)[0]),
        )


def finish(figure: Figure, name: str, title: str) -> str:
    """Returns the figure as an `<svg>` whose colours are CSS variables; what is printed goes to the press
    instead, and nothing is returned."""
    if printed := press():
        printed.take(figure, name, title)
        return ""
    return _themed(_svg(figure), name, title)


def bare(axes: Axes) -> None:
    """Takes the box and the ticks away."""
    axes.patch.set_visible(False)
    axes.tick_params(which="both", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def plain(text: str, length: int = 60) -> str:
    """Returns text from outside as a label: one line, nothing invisible, no formula; where it is too long its
    middle goes, for arms often differ in the tokenizer at their end alone."""
    return shorten(" ".join(text[:MOST_READ].split()), length).replace("$", r"\$")


def _settings(name: str) -> Any:
    return dict(matplotlib.rcParamsDefault) | {
        "svg.fonttype": "none", "svg.hashsalt": name, "font.size": 9,
        "font.family": "DejaVu Sans", "text.color": TEXT,
        "axes.edgecolor": GRID, "axes.labelcolor": TEXT, "xtick.color": TEXT, "ytick.color": TEXT,
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
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * 100:.0f} %"))
    axes.set_ylabel("share of all cases")
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    bare(axes)


def _line(axes: Axes, position: int, curve: Curve, high: float, label: str) -> None:
    colour, dash, marker = style(position)
    # It rises from 0 at its first value and stays at its last share for ever.
    x = [float(curve.ns[0]), *map(float, curve.ns), high]
    y = [0.0, *map(float, curve.share), curve.plateau]
    (line,) = axes.plot(
        x, y, drawstyle="steps-post", color=SERIES[colour - 1], linewidth=1.7, dashes=dash or (None, None)
    )
    line.set_gid(f"arm-{position}")
    line.set_label(plain(label))
    line.set_solid_joinstyle("round")
    axes.plot(
        x, y, linestyle="none", marker=marker, markersize=5, markeredgewidth=0, color=SERIES[colour - 1],
        clip_on=False,
        markevery=(0.03 + 0.025 * (position % 8), 0.21), gid=f"arm-{position}-marks",
    )  # fmt: skip


def _themed(svg: str, name: str, title: str) -> str:
    svg = svg[svg.index("<svg") :]
    # A style element in an inline SVG would hold for the whole page.
    svg = re.sub(r"<metadata>.*?</metadata>\s*|<style[^>]*>.*?</style>\s*", "", svg, flags=re.DOTALL)
    # Two charts on one page: ids must differ.
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    (box,) = re.findall(r'<svg [^>]*?viewBox="([^"]*)"', svg)
    ids = f"{name}-title", f"{name}-desc"
    head = f'<svg viewBox="{box}" role="img" aria-labelledby="{" ".join(ids)}">'
    head += f'<title id="{ids[0]}">{escape(visible(title))}</title>'
    head += f'<desc id="{ids[1]}">The numbers are in the table below the chart.</desc>'
    svg = head + svg[svg.index(">") + 1 :]
    svg = svg.replace("font-family: 'DejaVu Sans'; ", "")
    for number, sentinel in enumerate(SERIES, 1):
        svg = svg.replace(sentinel, f"var(--s{number})")
    return svg.replace(TEXT, "var(--muted)").replace(GRID, "var(--line)").strip()
