"""One series over time as a small SVG: the ratio with its interval, the versions, and where the alert rule
fired."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

from markupsafe import Markup, escape

from harness.outcomes.history.alert_rule import Event
from harness.outcomes.history.measurements import Entry, Series
from harness.text import visible

RUNS = 120
"""Of a chart, at most: the last ones."""

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 420, 150, 46, 8, 26, 22


def short(text: object, length: int = 80) -> str:
    """Any text from outside on one line of bounded length, invisible characters spelled out."""
    said = visible(str(text)[: length + 1].replace("\n", " ").replace("\t", " "))
    return said if len(said) <= length else said[: length - 1] + "…"


def day(time: str) -> str:
    """The date of a time as it was recorded."""
    return short(time[:10], 10)


def said(event: Event) -> str:
    """The event's figures in words."""
    held = "at most" if event.kind == "alert" else "at least"
    return f"{event.now:.3f}, before that {held} {event.before:.3f} ({percent(event)})"


def percent(event: Event) -> str:
    """How much more or less it takes."""
    return f"{100 * (event.now / event.before - 1):+.1f} %".replace("-", "−")


def chart(series: Series) -> Markup:
    """The `<svg>`; its colours are CSS variables. Empty if no ratio can be drawn."""
    offset = max(0, len(series.entries) - RUNS)
    entries = series.entries[offset:]
    finite = [each.ratio for each in entries if _drawable(each)]
    if not finite:
        return Markup()
    low, high = min(finite), max(finite)
    room = max(0.12 * (high - low), 0.03 * high)
    low, high = low - room, high + room

    def x(number: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (number + 0.5) / len(entries)

    def y(ratio: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - min(max(ratio, low), high)) / (high - low)

    name = f"{series.metric} of {series.backend}, {len(entries)} runs, {len(series.events)} events"
    parts = [
        Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">').format(WIDTH, HEIGHT, short(name, 200))
    ]
    for share in (0.1, 0.5, 0.9):
        value = low + share * (high - low)
        at = f"{y(value):.1f}"
        parts.append(
            Markup(
                f'<path class="grid" d="M{LEFT} {at}H{WIDTH - RIGHT}"/><text x="{LEFT - 5}" y="{at}" '
                'dy=".35em" text-anchor="end">'
            )
        )
        parts.append(Markup(f"{value:.3g}</text>"))
    parts += _versions(entries, x)
    for run in _runs(entries):
        edges = [(number, each.low) for number, each in run] + [
            (number, each.high) for number, each in reversed(run)
        ]
        path = " ".join(
            f"{x(number):.1f},{y(value if math.isfinite(value) else entries[number].ratio):.1f}"
            for number, value in edges
        )
        line = " ".join(f"{x(number):.1f},{y(each.ratio):.1f}" for number, each in run)
        parts.append(
            Markup(f'<polygon class="band" points="{path}"/><polyline class="line" points="{line}"/>')
        )
    for number, each in enumerate(entries):
        if _drawable(each):
            kind = "dot" if each.proven else "dot unproven"
            title = escape(
                short(
                    f"{day(each.time)} {each.version}: {each.ratio:.3f} [{each.low:.3f}, {each.high:.3f}]",
                    120,
                )
            )
            parts.append(
                Markup(
                    f'<circle class="{kind}" cx="{x(number):.1f}" cy="{y(each.ratio):.1f}" '
                    f'r="2"><title>{title}</title></circle>'
                )
            )
    for count, event in enumerate(series.events, 1):
        if event.at >= offset:
            parts.append(
                _marker(count, event, x(event.at - offset), y(entries[event.at - offset].ratio), x, y, offset)
            )
    first, last = day(entries[0].time), day(entries[-1].time)
    parts.append(Markup('<text x="{}" y="{}">{}</text>').format(LEFT, HEIGHT - 6, first))
    if len(entries) > 1:
        parts.append(
            Markup('<text x="{}" y="{}" text-anchor="end">{}</text>').format(WIDTH - RIGHT, HEIGHT - 6, last)
        )
    return Markup("").join(parts) + Markup("</svg>")


def _drawable(entry: Entry) -> bool:
    return 0 < entry.ratio < math.inf


def _runs(entries: tuple[Entry, ...]) -> list[list[tuple[int, Entry]]]:
    """The stretches without a hole, each entry with its index."""
    found: list[list[tuple[int, Entry]]] = [[]]
    for number, each in enumerate(entries):
        if _drawable(each):
            found[-1].append((number, each))
        elif found[-1]:
            found.append([])
    return [each for each in found if each]


def _versions(entries: tuple[Entry, ...], x: Callable[[float], float]) -> list[Markup]:
    """A line where another version begins, and its name where there is room for it."""
    changes = [0, *(number for number, (a, b) in enumerate(pairwise(entries), 1) if a.version != b.version)]
    parts, free = [], 0.0
    for number in changes:
        at = x(number - 0.5)
        if number:
            parts.append(Markup(f'<path class="release" d="M{at:.1f} {TOP - 6}V{HEIGHT - BOTTOM}"/>'))
        name = short(entries[number].version, 12)
        if at >= free and at + 6.2 * len(name) <= WIDTH:
            parts.append(Markup('<text x="{}" y="12">{}</text>').format(f"{at:.1f}", name))
            free = at + 6.2 * len(name) + 6
    return parts


def _marker(
    count: int,
    event: Event,
    at: float,
    height: float,
    x: Callable[[float], float],
    y: Callable[[float], float],
    offset: int,
) -> Markup:
    worse = event.kind == "alert"
    up = height > TOP + 16
    near, far = (height - 5, height - 14) if up else (height + 5, height + 14)
    tip, base = (max(near, far), min(near, far)) if worse else (min(near, far), max(near, far))
    level = (
        f'<path class="held" d="M{x(max(0, event.at - offset - 10)):.1f} {y(event.before):.1f}H{at:.1f}"/>'
    )
    shape = (
        f'<path class="{"slower" if worse else "faster"}" d="M{at:.1f} {tip:.1f}L{at - 5:.1f} '
        f'{base:.1f}h10z"/>'
    )
    number = (
        f'<text class="count" x="{at - 8:.1f}" y="{(tip + base) / 2:.1f}" dy=".35em" '
        f'text-anchor="end">{count}</text>'
    )
    return Markup(level + shape + number)
