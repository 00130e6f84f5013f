"""Arms against each other: forest plots of ratios with interval and margin, verdicts in words, and how the figure went over time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from markupsafe import Markup

from harness import differences, history
from harness.compare import Counted, Pair, alone, compare_arms, compare_runs, with_version
from harness.differences import Changed
from harness.errors import BadInput
from harness.history import Entry, Series
from harness.measure.estimate import Comparison
from harness.report.forest import plot
from harness.report.inputs import Inputs, Measured
from harness.report.trend import short
from harness.row import RunInfo

EFFECTS = 40
"""Of a plot, at most."""
CASES, COUNTS = 60, 60
"""That came out, or were counted, differently, at most."""
PARTS = 8
"""Of a case that came out differently, at most."""
SPARKS = 30
"""Runs of a sparkline: the last ones."""

KINDS = {"worse": "▼ worse", "other": "● other faults", "better": "▲ better"}
"""Of a case that came out differently, in the order in which they stand."""


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
    """Two runs, or two versions in a run, held against each other: what came out and was counted differently."""

    title: str
    where: str
    compared: int
    counts: str
    """How many cases came out worse, better and otherwise; empty where none did."""
    differing: tuple[tuple[str, str, str, tuple[str, ...]], ...]
    """The kind of difference, the case's id, its suite and name, and lines of what became of it; new faults first."""
    left_off: int
    counted: tuple[Counted, ...]
    lines: tuple[str, ...]
    """Of times between runs, what their ratios to a reference say; and what cannot be compared."""


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
    return with_version(name, next(each.version for each in one.figures.measurement.arms if each.name == name))


def told(inputs: Inputs) -> list[Told]:
    """The later runs against the first one, and versions of one backend within a run."""
    if inputs.incomplete:
        return []
    found: list[Told] = []
    for run in inputs.runs[1:]:
        first = inputs.runs[0]
        try:
            pairs = compare_runs(first.folder, run.folder)
        except BadInput as error:
            found.append(Told(f"{first.info.run} → {run.info.run}", "between the runs", 0, "", (), 0, (), (str(error),)))
            continue
        found += [_told(pair, f"between run {first.info.run} and run {run.info.run}") for pair in pairs]
        if left_out := alone(first.folder, run.folder):
            found[-1] = replace(found[-1], lines=(*found[-1].lines, left_out))
    for run in (*inputs.runs, *inputs.scouting):
        if has_versions(run.info):
            found += [_told(pair, f"in run {run.info.run}") for pair in compare_arms(run.folder) if pair.is_of_one_backend]
    return found


def has_versions(info: RunInfo) -> bool:
    """Has the run a backend more than once?"""
    return len({each.backend for each in info.arms}) < len(info.arms)


def _told(pair: Pair, where: str) -> Told:
    every = sorted(pair.outcomes.cases, key=lambda each: list(KINDS).index(each.kind))
    kinds = Counter(each.kind for each in every)
    counts = ", ".join(f"{kinds[kind]:,} with {said}" for kind, said in differences.TITLES.items() if kinds[kind])
    shown = tuple((KINDS[each.kind], each.key[2], f"{each.key[1]}: {each.name}", _became(each.parts)) for each in every[:CASES])
    title = f"{pair.base.title} → {pair.head.title}"
    return Told(title, where, pair.outcomes.compared, counts, shown, len(every) - len(shown), pair.counted, pair.told)


def _became(parts: Sequence[Changed]) -> tuple[str, ...]:
    """A line per part, PARTS at most."""
    lines = []
    for part in parts[:PARTS]:
        if part.before and part.after:
            became = differences.in_words([part])
        else:
            became = " → ".join(", ".join(sorted(faults)) or "right" for faults in (part.before, part.after))
        lines.append(short(f"{part.part}: {became}", 300))
    return (*lines, f"and {len(parts) - PARTS} more") if len(parts) > PARTS else tuple(lines)


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
