"""Runs, and versions of one backend, against each other: what came out and was counted differently, forest
plots of ratios with interval and margin, verdicts in words, and how the figure went over time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from markupsafe import Markup

from harness.backend.arm import are_versions, with_version
from harness.errors import BadInput
from harness.measure.estimate import Comparison
from harness.measure.protocol import MeasuredArm
from harness.outcomes import differences
from harness.outcomes.compare import Counted, Pair, not_compared
from harness.outcomes.differences import Changed
from harness.outcomes.history import measurements
from harness.outcomes.history.measurements import Series, can_be_drawn
from harness.report.figures.forest import SIGNS, plot
from harness.report.page.content import Content
from harness.report.page.inputs import Inputs, Measured
from harness.report.page.section import Section, Values
from harness.report.values import short

EFFECTS = 40
"""Most effects in one forest plot."""
CASES, COUNTS = 60, 60
"""Most changed cases, and most changed counts, that are listed."""
PARTS = 8
"""Most changes listed for one case."""
SPARKS = 30
"""Most runs in a sparkline, which are the last ones."""

KINDS = {
    "worse": "↘ worse",
    "other": "↔ other faults",
    "better": "↗ better",
    "policy": "documented behaviour",
}
"""What a case that came out differently is called, in the order in which the page lists such cases."""


NOTES = {
    "versions": "Two versions of one backend with the same options: a verdict is a change.",
    "settings": "Two settings of one backend: a ratio is a difference, not a change.",
    "backends": "Two backends: a ratio is a difference, not a change.",
    "control": "The same code twice (A/A): whatever is not 1 is this machine's noise.",
}
"""The sentence about a pair of arms, by what they are to each other, in the order in which the page
has them."""


@dataclass(frozen=True)
class Against:
    """One arm against another, of one measurement."""

    base: str
    head: str
    note: str
    svg: Markup
    rows: tuple[tuple[Comparison, Markup], ...]
    """Each comparison with the sparkline of its figure, which is empty without a history."""


@dataclass(frozen=True)
class RunPair:
    """Two runs, or two versions in a run, held against each other: what came out and was
    counted differently.
    """

    title: str
    where: str
    compared: int
    counts: str
    """How many cases came out worse, better and otherwise; empty where none did."""
    differing: tuple[tuple[str, str, str, str, tuple[str, ...]], ...]
    """The kind of difference, the case's suite, id, title, and lines of what became of it; new faults
    first."""
    left_off: int
    counted: tuple[Counted, ...]
    lines: tuple[str, ...]
    """What the times of the two runs, each over its own reference, say of each other; and what cannot be
    compared."""
    has_times: bool = False
    """Are there lines about times among them?"""


def values(page: Content) -> Values | None:
    """Returns the measured versions and what came out differently; None where nothing is held against
    anything. Raises BadInput."""
    measured = against(page.inputs, {"versions"}, page.trend)
    pairs = run_pairs(page.inputs)
    if not measured and not pairs:
        return None
    return {
        "against": measured,
        "run_pairs": pairs,
        "most_counts": COUNTS,
        "signs": SIGNS,
        "trend": page.trend is not None,
    }


SECTION = Section("comparison", "Changes", 100, values, "changes")


def against(inputs: Inputs, notes: Collection[str], trend: Path | None = None) -> list[Against]:
    """Returns the pairs that were measured and are one of these to each other, in the order of NOTES. Raises
    BadInput for a history that is none."""
    charts: list[tuple[int, Against]] = []
    for number, one in enumerate(inputs.measured):
        sparks = _sparks(one, trend)
        arms = {arm.name: arm for arm in one.figures.measurement.arms}
        for place, (base, head) in enumerate(
            dict.fromkeys((comparison.base, comparison.head) for comparison in one.comparisons)
        ):
            note = _note(arms[base], arms[head])
            if note not in notes:
                continue
            mine = [
                comparison
                for comparison in one.comparisons
                if (comparison.base, comparison.head) == (base, head)
            ]
            rank = list(NOTES).index(note)
            largest = sorted(
                mine,
                key=lambda comparison: (
                    -abs(math.log(comparison.found.ratio)) if comparison.found.ratio > 0 else 0
                ),
            )[:EFFECTS]
            svg = Markup(plot(f"against{number}x{place}", largest))
            rows = tuple(
                (comparison, sparks.get((head, comparison.metric, comparison.family), Markup()))
                for comparison in sorted(mine, key=lambda comparison: -comparison.found.ratio)
            )
            charts.append((rank, Against(_named(one, base), _named(one, head), NOTES[note], svg, rows)))
    return [chart for _, chart in sorted(charts, key=lambda one: one[0])]


def _note(base: MeasuredArm, head: MeasuredArm) -> str:
    if head.role == "a/a":
        return "control"
    return (
        "versions" if are_versions(base, head) else "settings" if base.backend == head.backend else "backends"
    )


def _named(one: Measured, name: str) -> str:
    return with_version(name, next(arm.version for arm in one.figures.measurement.arms if arm.name == name))


def run_pairs(inputs: Inputs) -> list[RunPair]:
    """Returns the later runs against the first one, and versions of one backend with the same options within
    a run.
    """
    if inputs.incomplete:
        return []
    pairs_shown: list[RunPair] = []
    for run in inputs.runs[1:]:
        first, pairs = inputs.runs[0], inputs.with_first[run.folder]
        if isinstance(pairs, BadInput):
            title = f"{first.info.run} → {run.info.run}"
            pairs_shown.append(RunPair(title, "between the runs", 0, "", (), 0, (), (str(pairs),)))
            continue
        pairs_shown += [
            _run_pair(pair, f"between run {first.info.run} and run {run.info.run}") for pair in pairs
        ]
        if left_out := not_compared(first.folder, run.folder):
            pairs_shown[-1] = replace(pairs_shown[-1], lines=(*pairs_shown[-1].lines, left_out))
    for run in (*inputs.runs, *inputs.scouting):
        versions = inputs.versions.get(run.folder, [])
        pairs_shown += [_run_pair(pair, f"in run {run.info.run}") for pair in versions]
    return pairs_shown


def _run_pair(pair: Pair, where: str) -> RunPair:
    every = sorted(pair.outcomes.cases, key=lambda case: list(KINDS).index(case.kind))
    kinds = Counter(case.kind for case in every)
    counts = ", ".join(
        f"{kinds[kind]:,} with {title}" for kind, title in differences.TITLES.items() if kinds[kind]
    )
    shown = tuple(
        (KINDS[case.kind], *case.key[1:], f"{case.key[1]}: {case.name}", _became(case.parts))
        for case in every[:CASES]
    )
    title = f"{pair.base.title} → {pair.head.title}"
    return RunPair(
        title,
        where,
        pair.outcomes.compared,
        counts,
        shown,
        len(every) - len(shown),
        pair.counted,
        pair.notes,
        bool(pair.time_notes),
    )


def _became(parts: Sequence[Changed]) -> tuple[str, ...]:
    """Returns one line per changed part of a case, and at most PARTS of them."""
    lines = []
    for part in parts[:PARTS]:
        if part.before and part.after:
            became = differences.in_words([part])
        else:
            became = " → ".join(", ".join(sorted(faults)) or "right" for faults in (part.before, part.after))
        lines.append(short(f"{part.part}: {became}", 300))
    return (*lines, f"and {len(parts) - PARTS} more") if len(parts) > PARTS else tuple(lines)


# ------------------------------------------------------------------------------------------------- sparklines


def _sparks(one: Measured, trend: Path | None) -> dict[tuple[str, str, str], Markup]:
    """Returns the ratios to the reference in the history's runs of the same hardware and workload, by arm,
    metric and family."""
    if trend is None:
        return {}
    measurement = one.figures.measurement
    key = measurements.safe_name(measurement.hardware), measurements.safe_name(measurement.workload)
    series = measurements.series(measurements.read_entries(trend).get(key, []))
    sparks = {}
    for arm in measurement.arms:
        for line in series:
            if (line.backend, line.options, line.beside) == (
                arm.backend,
                arm.options,
                "",
            ) and arm.role != "a/a":
                sparks[arm.name, line.metric, line.family] = spark(line)
    return sparks


def spark(series: Series) -> Markup:
    """Returns an inline `<svg>` with a point for each of the last SPARKS runs, and a triangle where the alert
    rule fired; empty for fewer than two points."""
    offset = max(0, len(series.entries) - SPARKS)
    entries = [(number, entry) for number, entry in enumerate(series.entries[offset:]) if can_be_drawn(entry)]
    if len(entries) < 2:
        return Markup()
    low, high = min(entry.ratio for _, entry in entries), max(entry.ratio for _, entry in entries)
    room = max(high - low, 0.04 * high)
    width, height = 96, 22

    def at(number: int, ratio: float) -> str:
        y = height - 4 - (height - 8) * (ratio - (low + high - room) / 2) / room
        return f"{3 + (width - 6) * number / max(1, len(series.entries) - offset - 1):.1f},{y:.1f}"

    points = " ".join(at(number, entry.ratio) for number, entry in entries)
    last = at(*(entries[-1][0], entries[-1][1].ratio)).split(",")
    title = f"{len(entries)} runs, {entries[0][1].ratio:.3f} to {entries[-1][1].ratio:.3f}; {series.state}"
    marks = Markup("")
    for event in series.events:
        if event.at >= offset and can_be_drawn(series.entries[event.at]):
            x, y = at(event.at - offset, series.entries[event.at].ratio).split(",")
            marks += Markup(
                f'<path class="{"slower" if event.kind == "alert" else "faster"}" d="M{x} {y}l-3.5 -6h7z"/>'
            )
    return Markup(
        '<svg class="spark" viewBox="0 0 {} {}" role="img" aria-label="{}"><polyline points="{}"/>'
    ).format(width, height, title, points) + Markup('{}<circle cx="{}" cy="{}" r="2"/></svg>').format(
        marks, *last
    )
