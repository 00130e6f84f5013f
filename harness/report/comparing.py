"""Arms against each other: forest plots of ratios with interval and margin, verdicts in words, and how the figure went over time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from harness import history
from harness.compare import compare_runs
from harness.differences import Changed
from harness.errors import BadInput
from harness.history import Entry, Series
from harness.measure.estimate import Comparison
from harness.report.forest import plot
from harness.report.inputs import Inputs, Measured

EFFECTS = 40
"""Of a plot, at most."""
SPARKS = 30
"""Runs of a sparkline: the last ones."""

SIGNS = {
    "regressed": "▼ slower",
    "improved": "▲ faster",
    "equivalent": "● equivalent",
    "inconclusive": "◆ inconclusive",
    "unproven": "✕ unproven",
}


@dataclass(frozen=True)
class Against:
    """One arm against another, of one measurement."""

    base: str
    head: str
    note: str
    svg: Markup
    rows: tuple[tuple[Comparison, Markup], ...]
    """With the sparkline of the figure, empty without a history."""


@dataclass(frozen=True)
class Told:
    """Two runs held against each other: what came out differently; of times only what their ratios to a reference say."""

    title: str
    compared: int
    differing: tuple[tuple[str, str, str], ...]
    """The case's id, its suite and name, and what became of it."""
    left_off: int
    lines: tuple[str, ...]


def against(inputs: Inputs, trend: Path | None = None) -> list[Against]:
    """Every pair that was measured, versions of one backend first, the control last. Raises BadInput for a history that is none."""
    found: list[tuple[int, Against]] = []
    for number, one in enumerate(inputs.measured):
        sparks = _sparks(one, trend)
        arms = {each.name: each for each in one.figures.measurement.arms}
        for place, (base, head) in enumerate(dict.fromkeys((each.base, each.head) for each in one.comparisons)):
            mine = [each for each in one.comparisons if (each.base, each.head) == (base, head)]
            rank = 2 if arms[head].role == "a/a" else 0 if arms[base].backend == arms[head].backend else 1
            note = (
                "Two versions or settings of one backend: a verdict is a change.",
                "Two backends: a ratio is a difference, not a change.",
                "The same code twice (A/A): whatever is not 1 is this machine's noise.",
            )[rank]
            largest = sorted(mine, key=lambda each: -abs(math.log(each.found.ratio)) if each.found.ratio > 0 else 0)[:EFFECTS]
            svg = Markup(plot(f"against{number}x{place}", largest))
            rows = tuple(
                (each, sparks.get((head, each.metric, each.family), Markup())) for each in sorted(mine, key=lambda each: -each.found.ratio)
            )
            found.append((rank, Against(_named(one, base), _named(one, head), note, svg, rows)))
    return [each for _, each in sorted(found, key=lambda one: one[0])]


def _named(one: Measured, name: str) -> str:
    version = next(each.version for each in one.figures.measurement.arms if each.name == name)
    return name if not version or version in name else f"{name} {version}"


def told(inputs: Inputs, cases: int = 60) -> list[Told]:
    """The later runs against the first one."""
    if len(inputs.runs) < 2 or inputs.incomplete:
        return []
    first, found = inputs.runs[0], []
    for run in inputs.runs[1:]:
        try:
            pairs = compare_runs(first.folder, run.folder)
        except BadInput as error:
            found.append(Told(f"{first.info.run} → {run.info.run}", 0, (), 0, (str(error),)))
            continue
        for pair in pairs:
            differing = [(each.key[2], f"{each.key[1]}: {each.name}", _became(each.parts)) for each in pair.outcomes.cases]
            title = f"{pair.base.name} {pair.base.arm.version} → {pair.head.name} {pair.head.arm.version}"
            found.append(Told(title, pair.outcomes.compared, tuple(differing[:cases]), max(0, len(differing) - cases), pair.told))
    return found


def _became(parts: Iterable[Changed]) -> str:
    said = []
    for part in parts:
        before, after = ", ".join(sorted(part.before)) or "right", ", ".join(sorted(part.after)) or "right"
        said.append(f"{part.part}: {before} → {after}")
    return "; ".join(said)[:300]


# ----------------------------------------------------------------------------------------------------------- sparklines


def _sparks(one: Measured, trend: Path | None) -> dict[tuple[str, str, str], Markup]:
    """By arm, metric and family: the ratios to the reference in the history's runs of the same hardware and workload."""
    if trend is None:
        return {}
    measurement = one.figures.measurement
    key = history.safe_name(measurement.hardware), history.safe_name(measurement.workload)
    series = history.series(history.read(trend).get(key, []))
    found = {}
    for arm in measurement.arms:
        for each in series:
            if (each.backend, each.options, each.beside) == (arm.backend, arm.options, "") and arm.role != "a/a":
                found[arm.name, each.metric, each.family] = spark(each)
    return found


def spark(series: Series) -> Markup:
    """An inline `<svg>`: one point per run, the last SPARKS; a triangle where the alert rule fired. Empty of fewer than two."""
    offset = max(0, len(series.entries) - SPARKS)
    entries = [(number, each) for number, each in enumerate(series.entries[offset:]) if _drawable(each)]
    if len(entries) < 2:
        return Markup()
    low, high = min(each.ratio for _, each in entries), max(each.ratio for _, each in entries)
    room = max(high - low, 0.04 * high)
    width, height = 96, 22

    def at(number: int, ratio: float) -> str:
        y = height - 4 - (height - 8) * (ratio - (low + high - room) / 2) / room
        return f"{3 + (width - 6) * number / max(1, len(series.entries) - offset - 1):.1f},{y:.1f}"

    points = " ".join(at(number, each.ratio) for number, each in entries)
    last = at(*(entries[-1][0], entries[-1][1].ratio)).split(",")
    said = f"{len(entries)} runs, {entries[0][1].ratio:.3f} to {entries[-1][1].ratio:.3f}; {series.state}"
    marks = Markup("")
    for event in series.events:
        if event.at >= offset and _drawable(series.entries[event.at]):
            x, y = at(event.at - offset, series.entries[event.at].ratio).split(",")
            marks += Markup(f'<path class="{"slower" if event.kind == "alert" else "faster"}" d="M{x} {y}l-3.5 -6h7z"/>')
    return Markup('<svg class="spark" viewBox="0 0 {} {}" role="img" aria-label="{}"><polyline points="{}"/>').format(
        width, height, said, points
    ) + Markup('{}<circle cx="{}" cy="{}" r="2"/></svg>').format(marks, *last)


def _drawable(entry: Entry) -> bool:
    return 0 < entry.ratio < math.inf
