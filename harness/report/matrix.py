"""The summary matrix: every arm by every headline figure, with intervals; best only where the intervals say so."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from harness.metrics import METRICS
from harness.report import decodes
from harness.report.charts import duration
from harness.report.estimates import Estimate, best, quantile, share
from harness.report.inputs import Inputs, Subject
from harness.report.sections import Line
from harness.seen import CaseSeen, pairs
from harness.table import number

NOT_MEASURED = "not measured"

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
    order: tuple[tuple[str, bool], ...]
    """Labels, the first the best; True: its interval reaches the one before it."""
    unknown: tuple[str, ...]
    """Labels of those without such a figure."""
    hopeless: tuple[str, ...]
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


def matrix(inputs: Inputs, common: set[tuple[str, str]]) -> Matrix:
    """`common`: the cases that every arm solves; empty if there are none, or a single arm."""
    known: list[tuple[str, list[tuple[Column, list[Estimate | None], Callable[[Subject, Estimate], Cell]]]]] = []
    subjects = inputs.subjects
    lines = [each.line for each in subjects]
    known.append(("Right", _right(lines)))
    known.append(("Compile, cold", [_times(each, subjects, common) for each in COLD]))
    missing = []
    if any(each.measured for each in subjects):
        known.append(("Warm mask", [_warm(subjects, key, level) for key, level in WARM.items()]))
    else:
        missing.append(("Warm mask times", _command(inputs, "measure")))
    sizes = decodes.chosen(decodes.batches(inputs))
    if sizes:
        known.append(("TPOT over no grammar", [_overhead(subjects, size) for size in sizes]))
        known.append(("Jump-forward", [_gain(subjects)]))
    else:
        missing.append(("TPOT, overhead and jump-forward", _command(inputs, "decode")))
    known.append(("Memory", [_memory(lines)]))
    if not inputs.lines:
        missing.append(("Conformance", _command(inputs, "run")))
    columns = [each[0] for _, group in known for each in group]
    cells = [_cells(subjects, *each) for _, group in known for each in group]
    found = {column.key: values for (column, values, _) in (each for _, group in known for each in group)}
    rows = tuple((subject, tuple(column[place] for column in cells)) for place, subject in enumerate(subjects))
    groups = tuple((title, len(group)) for title, group in known)
    return Matrix(groups, tuple(columns), rows, tuple(_presets(subjects, columns, found)), len(common) or None, tuple(missing))


def _command(inputs: Inputs, verb: str) -> str:
    backends = ",".join(dict.fromkeys(each.backend for each in inputs.subjects)) or "A,B"
    return f"grammarbench {verb} --backends {backends} --out DIR"


def _cells(
    subjects: Sequence[Subject], column: Column, found: Sequence[Estimate | None], show: Callable[[Subject, Estimate], Cell]
) -> list[Cell]:
    # An arm that gets nothing right is quick at nothing.
    hopeful = [each if subject.line is None or subject.line.arm.solves_any else None for each, subject in zip(found, subjects, strict=True)]
    marks = best(hopeful, column.lower)
    cells = []
    for subject, each, mark in zip(subjects, found, marks, strict=True):
        cell = Cell(NOT_MEASURED) if each is None else show(subject, each)
        cells.append(Cell(cell.text, cell.details, cell.value, mark))
    return cells


# ------------------------------------------------------------------------------------------------------------- outcomes

RIGHT = {
    "walks_under_constrained": ("under", "▲ accepts invalid"),
    "walks_over_constrained": ("over", "▼ rejects valid"),
    "walks_declined": ("declined", "⊘ declined"),
    "walks_broken": ("broken", "✖ broken"),
}

Made = tuple[Column, "list[Estimate | None]", Callable[[Subject, Estimate], Cell]]


def _right(lines: Sequence[Line | None]) -> list[Made]:
    def conformance(line: Line | None) -> Estimate | None:
        return None if line is None or METRICS["instance_coverage"].value(line.arm) is None else share(*_solved(line))

    def show(subject: Subject, each: Estimate) -> Cell:
        assert subject.line is not None
        part, whole = _solved(subject.line)
        return Cell(number(each.value, "share"), (f"{part:,}/{whole:,}", _shares(each)), each.value)

    column = Column("conformance", "conformance", "Cases compiled and judged rightly on all their instances, of those measured.", False)
    made: list[Made] = [(column, [conformance(each) for each in lines], show)]
    for name, (key, title) in RIGHT.items():
        made.append(_walks(lines, name, Column(key, title, METRICS[name].definition, True)))
    return made


def _walks(lines: Sequence[Line | None], name: str, column: Column) -> Made:
    def show(subject: Subject, each: Estimate) -> Cell:
        assert subject.line is not None
        return Cell(f"{METRICS[name].value(subject.line.arm):,}", (f"{number(each.value, 'share')} of walks", _shares(each)), each.value)

    def of(line: Line | None) -> Estimate | None:
        if line is None:
            return None
        # The walks of one case hang together: as many are independent as there are cases.
        return share(float(METRICS[name].value(line.arm) or 0), _judged(line), min(len(line.arm.cases), _judged(line)))

    return column, [of(each) for each in lines], show


def _judged(line: Line) -> int:
    return sum(count for kind, count in line.arm.outcomes.items() if kind not in ("harness_error", "skipped"))


def _solved(line: Line) -> tuple[int, int]:
    cases = line.arm.measured()
    return sum(case.solved for case in cases), len(cases)


def _shares(each: Estimate) -> str:
    bounds = each.bounds
    return "" if bounds is None else f"{bounds[0] * 100:.1f}–{bounds[1] * 100:.1f} %"


# ---------------------------------------------------------------------------------------------------------------- times


@dataclass(frozen=True)
class _Cold:
    column: Column
    level: float
    values: Callable[[Line, Iterable[CaseSeen]], Group]


def _compiles(line: Line, cases: Iterable[CaseSeen]) -> Group:
    return [np.array([each.compile_ns], np.int64) for each in cases if each.declared and each.compile_ns is not None]


def _first(line: Line, cases: Iterable[CaseSeen]) -> Group:
    return [np.array([each.first_fill_ns], np.int64) for each in cases if each.declared and each.first_fill_ns is not None]


def _fills(line: Line, cases: Iterable[CaseSeen]) -> Group:
    return [np.concatenate([walk[:, 0] for walk in pairs(line.arm, [each])]) for each in cases if each.declared and each.slices]


COLD = (
    _Cold(Column("compile_p50", "compile p50", "Compile time, one compile per case.", True), 0.5, _compiles),
    _Cold(Column("compile_p99", "compile p99", "Compile time, one compile per case.", True), 0.99, _compiles),
    _Cold(Column("first_p50", "first mask p50", "The first fill after a fresh compile, one per case.", True), 0.5, _first),
    _Cold(Column("walked_p99", "mask p99, walked once", "Fills of one walk, each made once, noise included.", True), 0.99, _fills),
)  # fmt: skip


def _times(cold: _Cold, subjects: Sequence[Subject], common: set[tuple[str, str]]) -> Made:
    def of(line: Line | None) -> Estimate | None:
        if line is None:
            return None
        cases = [case for key, case in line.arm.cases.items() if not common or key in common]
        return quantile(cold.values(line, cases), cold.level)

    return cold.column, [of(each.line) for each in subjects], _show_time


def _show_time(subject: Subject, each: Estimate) -> Cell:
    bounds = each.bounds
    detail = "few values" if each.few else "" if bounds is None else f"{duration(bounds[0])} – {duration(bounds[1])}"
    return Cell(duration(each.value) + ("~" if each.few else ""), (detail,), each.value)


WARM = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}


def _warm(subjects: Sequence[Subject], name: str, level: float) -> Made:
    def of(subject: Subject) -> Estimate | None:
        if subject.measured is None:
            return None
        one, arm = subject.measured
        shared = one.figures.common_set or one.figures.own_set(arm)
        return quantile([each[:, 0] for each in one.figures.structural(arm, shared)], level)  # type: ignore[misc]

    about = "Fills of tokens, each the minimum over warm repetitions in all forks (the structural tail; `grammarbench measure`)."
    return Column(f"warm_{name.replace('.', '')}", f"warm mask {name}", about, True), [of(each) for each in subjects], _show_time


# ------------------------------------------------------------------------------------------------- decoding and memory


def _overhead(subjects: Sequence[Subject], batch: int) -> Made:
    def show(subject: Subject, each: Estimate) -> Cell:
        bounds = each.bounds
        return Cell(f"{each.value:+.1%}", (f"{bounds[0]:+.1%} – {bounds[1]:+.1%}" if bounds else "one fork: no interval",), each.value)

    about = "TPOT over that of the same request without a grammar, in the same round, less one."
    return Column(f"tpot_{batch}", f"ΔTPOT, batch {batch}", about, True), [decodes.overhead(each, batch) for each in subjects], show


def _gain(subjects: Sequence[Subject]) -> Made:
    def show(subject: Subject, each: Estimate) -> Cell:
        bounds = each.bounds
        return Cell(f"{each.value:.2f}×", (f"{bounds[0]:.2f} – {bounds[1]:.2f}" if bounds else "one fork: no interval",), each.value)

    column = Column("jump", "speed-up", "Stepwise over jump-forward of the time in the batch, of equal texts.", False)
    return column, [decodes.speed_up(each) for each in subjects], show


def _memory(lines: Sequence[Line | None]) -> Made:
    def show(subject: Subject, each: Estimate) -> Cell:
        return Cell(number(each.value, "bytes"), (), each.value)

    peaks = [None if each is None or each.arm.peak_rss_bytes is None else float(each.arm.peak_rss_bytes) for each in lines]
    column = Column("rss", "peak RSS", METRICS["peak_rss"].definition, True)
    # A maximum has no interval, so nobody is the best.
    return column, [None if each is None else Estimate(each, -math.inf, math.inf) for each in peaks], show


# -------------------------------------------------------------------------------------------------------------- presets

PRESETS = (
    ("Serving latency", ("warm_p99", "walked_p99", "warm_p50", "first_p50"), "every token waits for its mask"),
    ("Correctness first", ("conformance",), "a wrong mask costs more than a slow one"),
    ("Tool calling", ("compile_p99", "compile_p50"), "each request brings a grammar of its own, so compiling is waited for"),
)
"""Title, the columns of which the first that has values enough decides, and why."""


def _presets(subjects: Sequence[Subject], columns: Sequence[Column], found: dict[str, list[Estimate | None]]) -> list[Preset]:
    by_key = {each.key: each for each in columns}
    made = []
    for title, keys, why in PRESETS:
        there = [each for each in keys if any(found.get(each, ()))]
        key = next((each for each in there if not any(one.few for one in found[each] if one)), there[-1] if there else None)
        if key is None:
            continue
        column = by_key[key]
        hopeless = tuple(each.label for each in subjects if each.line and each.line.arm.cases and not each.line.arm.solves_any)
        known = [
            (each, subject.label)
            for each, subject in zip(found[key], subjects, strict=True)
            if each is not None and subject.label not in hopeless
        ]
        known.sort(key=lambda one: one[0].value if column.lower else -one[0].value)
        order = [(label, bool(place and _reach(known[place - 1][0], each))) for place, (each, label) in enumerate(known)]
        told = {*hopeless, *(label for _, label in known)}
        unknown = tuple(each.label for each in subjects if each.label not in told)
        made.append(Preset(title, column, why, tuple(order), unknown, hopeless))
    return made


def _reach(one: Estimate, other: Estimate) -> bool:
    ours, theirs = one.bounds or (-math.inf, math.inf), other.bounds or (-math.inf, math.inf)
    return ours[0] <= theirs[1] and theirs[0] <= ours[1]
