"""One series over time as a small SVG: the ratio with its interval, the versions, and where the alert rule
fired."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup, escape

from harness.outcomes.history.alert_rule import Event
from harness.outcomes.history.measurements import Entry, Series, can_be_drawn
from harness.report.values import short
from harness.text import counted

RUNS = 120
"""The most runs that a chart shows: the last ones."""

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 420, 150, 46, 8, 26, 22


def day(time: str) -> str:
    """Returns the date of a time as it was recorded."""
    return short(time[:10], 10)


def event_text(event: Event) -> str:
    """Returns the event's figures in words."""
    held = "at most" if event.kind == "alert" else "at least"
    return f"{event.now:.3f}, before that {held} {event.before:.3f} ({by_how_much(event)})"


def by_how_much(event: Event) -> str:
    """Returns how much more or less it takes, in per cent."""
    return f"{100 * (event.now / event.before - 1):+.1f} %".replace("-", "−")


@dataclass(frozen=True)
class Scale:
    """Turns the place of an entry, and a ratio, into coordinates of the drawing."""

    count: int
    low: float
    high: float

    def x(self, number: float) -> float:
        """Returns the horizontal coordinate of the entry at this place."""
        return LEFT + (WIDTH - LEFT - RIGHT) * (number + 0.5) / self.count

    def y(self, ratio: float) -> float:
        """Returns the vertical coordinate of the ratio; one beyond the scale is drawn at its edge."""
        inside = min(max(ratio, self.low), self.high)
        return TOP + (HEIGHT - TOP - BOTTOM) * (self.high - inside) / (self.high - self.low)


def chart(series: Series) -> Markup:
    """Returns the `<svg>`, whose colours are CSS variables; empty if no ratio can be drawn."""
    offset = max(0, len(series.entries) - RUNS)
    entries = series.entries[offset:]
    finite = [entry.ratio for entry in entries if can_be_drawn(entry)]
    if not finite:
        return Markup()
    room = max(0.12 * (max(finite) - min(finite)), 0.03 * max(finite))
    scale = Scale(len(entries), min(finite) - room, max(finite) + room)
    counts = f"{counted(len(entries), 'run')}, {counted(len(series.events), 'event')}"
    name = f"{series.metric} of {series.backend}, {counts}"
    parts = [
        Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">').format(
            WIDTH, HEIGHT, short(name, 200)
        ),
        *_grid(scale),
        *_versions(entries, scale),
        *(_band(run, scale) for run in _runs(entries)),
        *(_dot(number, entry, scale) for number, entry in enumerate(entries) if can_be_drawn(entry)),
    ]
    for count, event in enumerate(series.events, 1):
        if event.at >= offset:
            parts.append(_marker(count, event, entries[event.at - offset].ratio, scale, offset))
    first, last = day(entries[0].time), day(entries[-1].time)
    parts.append(Markup('<text x="{}" y="{}">{}</text>').format(LEFT, HEIGHT - 6, first))
    if len(entries) > 1:
        parts.append(
            Markup('<text x="{}" y="{}" text-anchor="end">{}</text>').format(WIDTH - RIGHT, HEIGHT - 6, last)
        )
    return Markup("").join(parts) + Markup("</svg>")


def _grid(scale: Scale) -> Iterator[Markup]:
    """Yields three horizontal lines with their ratios."""
    for share in (0.1, 0.5, 0.9):
        value = scale.low + share * (scale.high - scale.low)
        at = f"{scale.y(value):.1f}"
        yield Markup(
            f'<path class="grid" d="M{LEFT} {at}H{WIDTH - RIGHT}"/><text x="{LEFT - 5}" y="{at}" '
            'dy=".35em" text-anchor="end">'
        )
        yield Markup(f"{value:.3g}</text>")


def _band(run: list[tuple[int, Entry]], scale: Scale) -> Markup:
    """Returns the line of a stretch without a hole, within the band of its intervals."""
    edges = [(number, entry.low, entry.ratio) for number, entry in run]
    edges += [(number, entry.high, entry.ratio) for number, entry in reversed(run)]
    path = " ".join(
        f"{scale.x(number):.1f},{scale.y(bound if math.isfinite(bound) else ratio):.1f}"
        for number, bound, ratio in edges
    )
    line = " ".join(f"{scale.x(number):.1f},{scale.y(entry.ratio):.1f}" for number, entry in run)
    return Markup(f'<polygon class="band" points="{path}"/><polyline class="line" points="{line}"/>')


def _dot(number: int, entry: Entry, scale: Scale) -> Markup:
    """Returns the mark of one entry, with its figures as a title."""
    kind = "dot" if entry.proven else "dot unproven"
    figures = f"{entry.ratio:.3f} [{entry.low:.3f}, {entry.high:.3f}]"
    title = escape(short(f"{day(entry.time)} {entry.version}: {figures}", 120))
    return Markup(
        f'<circle class="{kind}" cx="{scale.x(number):.1f}" cy="{scale.y(entry.ratio):.1f}" '
        f'r="2"><title>{title}</title></circle>'
    )


def _runs(entries: tuple[Entry, ...]) -> list[list[tuple[int, Entry]]]:
    """Returns the stretches without a hole, each entry with its index."""
    runs: list[list[tuple[int, Entry]]] = [[]]
    for number, entry in enumerate(entries):
        if can_be_drawn(entry):
            runs[-1].append((number, entry))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _versions(entries: tuple[Entry, ...], scale: Scale) -> list[Markup]:
    """Returns a line where another version begins, and its name where there is room for it."""
    changes = [0, *(number for number, (a, b) in enumerate(pairwise(entries), 1) if a.version != b.version)]
    parts, free = [], 0.0
    for number in changes:
        at = scale.x(number - 0.5)
        if number:
            parts.append(Markup(f'<path class="release" d="M{at:.1f} {TOP - 6}V{HEIGHT - BOTTOM}"/>'))
        name = short(entries[number].version, 12)
        if at >= free and at + 6.2 * len(name) <= WIDTH:
            parts.append(Markup('<text x="{}" y="12">{}</text>').format(f"{at:.1f}", name))
            free = at + 6.2 * len(name) + 6
    return parts


def _marker(count: int, event: Event, ratio: float, scale: Scale, offset: int) -> Markup:
    """Returns the numbered mark of an event at the entry that has this ratio, and the level before it."""
    at, height = scale.x(event.at - offset), scale.y(ratio)
    worse = event.kind == "alert"
    up = height > TOP + 16
    near, far = (height - 5, height - 14) if up else (height + 5, height + 14)
    tip, base = (max(near, far), min(near, far)) if worse else (min(near, far), max(near, far))
    since = scale.x(max(0, event.at - offset - 10))
    level = f'<path class="held" d="M{since:.1f} {scale.y(event.before):.1f}H{at:.1f}"/>'
    shape = (
        f'<path class="{"slower" if worse else "faster"}" d="M{at:.1f} {tip:.1f}L{at - 5:.1f} '
        f'{base:.1f}h10z"/>'
    )
    number = (
        f'<text class="count" x="{at - 8:.1f}" y="{(tip + base) / 2:.1f}" dy=".35em" '
        f'text-anchor="end">{count}</text>'
    )
    return Markup(level + shape + number)
