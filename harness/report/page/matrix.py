"""The summary matrix: every arm by every headline figure, with intervals; best only where the intervals say
so."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from harness.outcomes.metrics import METRICS
from harness.outcomes.summary import CaseSummary, pairs
from harness.report.figures import ratios
from harness.report.figures.estimates import Estimate, best, order, quantile, share
from harness.report.page import decodes
from harness.report.page.inputs import Inputs, Measured, Subject
from harness.report.page.lines import Line
from harness.report.tables.instances import number
from harness.rows.again import more, spec_of
from harness.text import duration

NOT_MEASURED = "not measured"
NOT_JUDGED = "not judged"

Group = Sequence[NDArray[np.int64]]


@dataclass(frozen=True)
class Column:
    """One figure of the matrix. Its key is what the address of a sorted view names."""

    key: str
    title: str
    about: str
    lower: bool


@dataclass(frozen=True)
class Cell:
    """One figure of one arm."""

    text: str
    details: tuple[str, ...] = ()
    """The count behind a share, and the interval."""
    value: float | None = None
    """What the table is sorted by."""
    is_best: bool = False


@dataclass(frozen=True)
class Preset:
    """A way to look at the matrix: sorted by one column, and the order that it gives."""

    title: str
    column: Column
    why: str
    order: tuple[tuple[str, str], ...]
    """Labels, the first the best, each with how it stands to the one before it: `›`, `=`, `≥`
    (`estimates.order`); empty for the first."""
    unranked: tuple[tuple[str, str], ...]
    """Labels of those whose figure has no interval, and why it has none."""
    unknown: tuple[str, ...]
    """Labels of those without such a figure."""
    solve_nothing: tuple[str, ...]
    """Labels of those that solve no case: quick at nothing."""

    @property
    def link(self) -> str:
        return f"#/summary?sort={quote(self.column.key)}"


@dataclass(frozen=True)
class Matrix:
    """The whole table."""

    groups: tuple[tuple[str, int], ...]
    """Titles over so many columns."""
    columns: tuple[Column, ...]
    rows: tuple[tuple[Subject, tuple[Cell, ...]], ...]
    presets: tuple[Preset, ...]
    common: int | None
    """Over how many cases, solved by all, the times are; None: each over its own."""
    missing: tuple[tuple[str, str], ...]
    """What was not measured, and the command that would."""
    found: dict[str, list[Estimate | None]]
    """The figure of each row with its interval, by column."""


def matrix(inputs: Inputs, common: set[tuple[str, str]]) -> Matrix:
    """`common`: the cases that every arm solves; empty if there are none, or a single arm."""
    known: list[
        tuple[str, list[tuple[Column, list[Estimate | None], Callable[[Subject, Estimate], Cell]]]]
    ] = []
    subjects = inputs.subjects
    lines = [each.line for each in subjects]
    known.append(("Right", _right(lines)))
    known.append(("Compile, cold", [_times(each, subjects, common) for each in COLD]))
    missing = []
    if any(each.measured for each in subjects):
        by = ratios.ranked(inputs)
        known.append(("Warm mask", [_warm(subjects, key, level, by) for key, level in WARM.items()]))
        known.append(("Measured, over the reference", [_ratio(subjects, key, by) for key in RATIOS]))
    else:
        missing.append(("Warm mask times", commands(inputs)["measure"]))
    sizes = decodes.chosen(decodes.batches(inputs))
    if sizes:
        known.append(("TPOT over no grammar", [_overhead(subjects, size) for size in sizes]))
        known.append(("Jump-forward", [_gain(subjects)]))
    else:
        missing.append(("TPOT, overhead and jump-forward", commands(inputs)["decode"]))
    known.append(("Memory", [_memory(lines)]))
    if not inputs.lines:
        missing.append(("Conformance", commands(inputs)["run"]))
    columns = [each[0] for _, group in known for each in group]
    cells = [_cells(subjects, *each) for _, group in known for each in group]
    found = {column.key: values for (column, values, _) in (each for _, group in known for each in group)}
    rows = tuple(
        (subject, tuple(column[place] for column in cells)) for place, subject in enumerate(subjects)
    )
    groups = tuple((title, len(group)) for title, group in known)
    presets = tuple(_presets(subjects, columns, found))
    return Matrix(groups, tuple(columns), rows, presets, len(common) or None, tuple(missing), found)


def commands(inputs: Inputs) -> dict[str, str]:
    """The commands that would measure what is missing, by what they measure."""
    runs = [(run.folder, run.info) for run in (*inputs.runs, *inputs.scouting)]
    released = (
        {each.backend for _, info in runs for each in info.arms if each.distribution}
        if runs
        else {each.backend for each in inputs.subjects}
    )
    specs = list(
        dict.fromkeys(
            spec_of(each.backend, each.version, each.options, each.backend in released)
            for each in inputs.subjects
        )
    )
    verbs = {verb: more(verb, runs, specs) for verb in ("run", "measure", "decode", "kernels")}
    return verbs | {"jumps": more("decode", runs, specs, "--strategies", "stepwise,jump_forward")}


def _cells(
    subjects: Sequence[Subject],
    column: Column,
    found: Sequence[Estimate | None],
    show: Callable[[Subject, Estimate], Cell],
) -> list[Cell]:
    # An arm that gets nothing right is quick at nothing.
    hopeful = [
        each if subject.line is None or subject.line.arm.solves_any else None
        for each, subject in zip(found, subjects, strict=True)
    ]
    marks = best(hopeful, column.lower)
    cells = []
    for subject, each, mark in zip(subjects, found, marks, strict=True):
        nothing = NOT_JUDGED if column.key == "conformance" and subject.line is not None else NOT_MEASURED
        cell = Cell(nothing) if each is None else show(subject, each)
        cells.append(Cell(cell.text, cell.details, cell.value, mark))
    return cells


# --------------------------------------------------------------------------------------------------- outcomes

RIGHT = {
    "walks_under_constrained": ("under", "▲ accepts invalid"),
    "walks_over_constrained": ("over", "▼ rejects valid"),
    "walks_declined": ("declined", "⊘ declined"),
    "walks_broken": ("broken", "✖ broken"),
}

Made = tuple[Column, "list[Estimate | None]", Callable[[Subject, Estimate], Cell]]


def _right(lines: Sequence[Line | None]) -> list[Made]:
    def conformance(line: Line | None) -> Estimate | None:
        return None if line is None else share(line.arm.counts().passed, line.arm.counts().judged)

    def show(subject: Subject, each: Estimate) -> Cell:
        assert subject.line is not None
        counts = subject.line.arm.counts()
        rest = counts.cases - counts.judged
        details = (
            f"{counts.passed:,} of {counts.judged:,} judged",
            f"{rest:,} not judged" if rest else "",
            _shares(each),
        )
        return Cell(number(each.value, "share"), details, each.value)

    column = Column("conformance", "conformance", METRICS["conformance"].definition, False)
    made: list[Made] = [(column, [conformance(each) for each in lines], show)]
    for name, (key, title) in RIGHT.items():
        made.append(_walks(lines, name, Column(key, title, METRICS[name].definition, True)))
    return made


def _walks(lines: Sequence[Line | None], name: str, column: Column) -> Made:
    def show(subject: Subject, each: Estimate) -> Cell:
        assert subject.line is not None
        return Cell(
            f"{METRICS[name].value(subject.line.arm):,}",
            (f"{number(each.value, 'share')} of walks", _shares(each)),
            each.value,
        )

    def of(line: Line | None) -> Estimate | None:
        if line is None:
            return None
        # The walks of one case hang together: as many are independent as there are cases.
        return share(
            float(METRICS[name].value(line.arm) or 0), _judged(line), min(len(line.arm.cases), _judged(line))
        )

    return column, [of(each) for each in lines], show


def _judged(line: Line) -> int:
    return sum(count for kind, count in line.arm.outcomes.items() if kind not in ("harness_error", "skipped"))


def _shares(each: Estimate) -> str:
    bounds = each.bounds
    return "" if bounds is None else f"{bounds[0] * 100:.1f}–{bounds[1] * 100:.1f} %"


# ------------------------------------------------------------------------------------------------------ times


@dataclass(frozen=True)
class _Cold:
    column: Column
    level: float
    values: Callable[[Line, Iterable[CaseSummary]], Group]


def _compiles(line: Line, cases: Iterable[CaseSummary]) -> Group:
    return [
        np.array([each.compile_ns], np.int64)
        for each in cases
        if each.declared and each.compile_ns is not None
    ]


def _first(line: Line, cases: Iterable[CaseSummary]) -> Group:
    return [
        np.array([each.first_fill_ns], np.int64)
        for each in cases
        if each.declared and each.first_fill_ns is not None
    ]


def _fills(line: Line, cases: Iterable[CaseSummary]) -> Group:
    return [
        np.concatenate([walk[:, 0] for walk in pairs(line.arm, [each])])
        for each in cases
        if each.declared and each.slices
    ]


COLD = (
    _Cold(Column("compile_p50", "compile p50", "Compile time, one compile per case.", True), 0.5, _compiles),
    _Cold(Column("compile_p99", "compile p99", "Compile time, one compile per case.", True), 0.99, _compiles),
    _Cold(Column("first_p50", "first mask p50", "The first fill after a fresh compile, one per case.", True),
    0.5, _first),
    _Cold(Column("walked_p99", "mask p99, walked once", "Fills of one walk, each made once, noise included.",
    True), 0.99, _fills),
)  # fmt: skip


def _times(cold: _Cold, subjects: Sequence[Subject], common: set[tuple[str, str]]) -> Made:
    def of(line: Line | None) -> Estimate | None:
        if line is None:
            return None
        cases = [case for key, case in line.arm.cases.items() if not common or key in common]
        found = quantile(cold.values(line, cases), cold.level)
        if found is None or common or len(subjects) == 1:
            return found
        return replace(found, low=None, high=None, why="no case that all solve")

    return cold.column, [of(each.line) for each in subjects], _show_time


def _show_time(subject: Subject, each: Estimate) -> Cell:
    bounds = each.bounds
    detail = (
        "few values"
        if each.few
        else each.why
        if bounds is None
        else (f"{duration(bounds[0])} – {duration(bounds[1])}")
    )
    return Cell(duration(each.value) + ("~" if each.few else ""), (detail,), each.value)


WARM = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}


def _warm(subjects: Sequence[Subject], name: str, level: float, by: Measured | None) -> Made:
    def of(subject: Subject) -> Estimate | None:
        if subject.measured is None:
            return None
        one, arm = subject.measured
        shared = ratios.shared_cases(one.figures)
        times = one.figures.structural(arm, shared or one.figures.own_set(arm))
        found = quantile([case[:, 0] for case in times], level)  # type: ignore[misc]
        if found is None or (shared and one is by):
            return found
        return replace(
            found,
            low=None,
            high=None,
            why="no case that all solve" if one is by else "of another measurement",
        )

    about = (
        "Fills of tokens, each the minimum over warm repetitions in all forks (the structural tail; "
        "`grammarbench measure`)."
    )
    return (
        Column(f"warm_{name.replace('.', '')}", f"warm mask {name}", about, True),
        [of(each) for each in subjects],
        _show_time,
    )


RATIOS = {
    "measured_compile": ("compile", "compile ×", "A fresh compile"),
    "measured_fill": ("fill", "warm mask ×", "Warm fills of a text"),
}
"""For each column: the metric of a measurement, the column's title, and what was timed."""


def _ratio(subjects: Sequence[Subject], name: str, by: Measured | None) -> Made:
    metric, title, about = RATIOS[name]
    found = {} if by is None else ratios.over_reference(by.figures, metric)

    def of(subject: Subject) -> Estimate | None:
        return (
            found.get(subject.measured[1])
            if subject.measured is not None and subject.measured[0] is by
            else None
        )

    def show(subject: Subject, each: Estimate) -> Cell:
        bounds = each.bounds
        return Cell(
            f"{each.value:.3g}×", (f"{bounds[0]:.3g} – {bounds[1]:.3g}" if bounds else each.why,), each.value
        )

    about += (
        " over that of the measurement's reference, case by case; intervals over forks, wider by what "
        "identical code may differ."
    )
    return Column(name, title, about, True), [of(each) for each in subjects], show


# ---------------------------------------------------------------------------------------- decoding and memory


def _overhead(subjects: Sequence[Subject], batch: int) -> Made:
    def show(subject: Subject, each: Estimate) -> Cell:
        bounds = each.bounds
        return Cell(
            f"{each.value:+.1%}",
            (f"{bounds[0]:+.1%} – {bounds[1]:+.1%}" if bounds else "one fork: no interval",),
            each.value,
        )

    about = "TPOT over that of the same request without a grammar, in the same round, less one."
    return (
        Column(f"tpot_{batch}", f"ΔTPOT, batch {batch}", about, True),
        [decodes.overhead(each, batch) for each in subjects],
        show,
    )


def _gain(subjects: Sequence[Subject]) -> Made:
    def show(subject: Subject, each: Estimate) -> Cell:
        bounds = each.bounds
        return Cell(
            f"{each.value:.2f}×",
            (f"{bounds[0]:.2f} – {bounds[1]:.2f}" if bounds else "one fork: no interval",),
            each.value,
        )

    column = Column(
        "jump", "speed-up", "Stepwise over jump-forward of the time in the batch, of equal texts.", False
    )
    return column, [decodes.speed_up(each) for each in subjects], show


def _memory(lines: Sequence[Line | None]) -> Made:
    def show(subject: Subject, each: Estimate) -> Cell:
        return Cell(number(each.value, "bytes"), (), each.value)

    peaks = [
        None if each is None or each.arm.peak_rss_bytes is None else float(each.arm.peak_rss_bytes)
        for each in lines
    ]
    column = Column("rss", "peak RSS", METRICS["peak_rss"].definition, True)
    # A maximum has no interval, so nobody is the best.
    return column, [None if each is None else Estimate(each, -math.inf, math.inf) for each in peaks], show


# ---------------------------------------------------------------------------------------------------- presets

PRESETS = (
    (
        "Serving latency",
        ("warm_p99", "measured_fill"),
        ("walked_p99", "first_p50"),
        "every token waits for its mask",
    ),
    ("Correctness first", (), ("conformance",), "a wrong mask costs more than a slow one"),
    (
        "Tool calling",
        ("measured_compile",),
        ("compile_p99", "compile_p50"),
        "each request brings a grammar of its own, so compiling is waited for",
    ),
)
"""Title; columns of a measurement, and of walks, which count only where nothing was measured; and why. Of the
columns that one decides which ranks the most arms, the first of them if they rank equally many.
"""


def _presets(
    subjects: Sequence[Subject], columns: Sequence[Column], found: dict[str, list[Estimate | None]]
) -> list[Preset]:
    by_key = {each.key: each for each in columns}
    made = []
    for title, measured, walked, why in PRESETS:
        there = [each for each in measured if any(found.get(each, ()))] or [
            each for each in walked if any(found.get(each, ()))
        ]
        if not there:
            continue
        key = max(there, key=lambda each: sum(one is not None and one.can_rank for one in found[each]))
        column = by_key[key]
        solve_nothing = tuple(
            each.label
            for each in subjects
            if each.line and each.line.arm.cases and not each.line.arm.solves_any
        )
        known = [
            (each, subject.label)
            for each, subject in zip(found[key], subjects, strict=True)
            if each is not None and subject.label not in solve_nothing
        ]
        ranked = tuple(
            (known[place][1], sign) for place, sign in order([each for each, _ in known], column.lower)
        )
        if len(ranked) < 2 < len(known) + 1:
            ranked = ()
        told = {label for label, _ in ranked}
        unranked = tuple(
            (label, each.why_not or "the only one with an interval")
            for each, label in known
            if label not in told
        )
        told |= {*solve_nothing, *(label for _, label in known)}
        unknown = tuple(each.label for each in subjects if each.label not in told)
        made.append(Preset(title, column, why, ranked, unranked, unknown, solve_nothing))
    return made
