"""The columns of the summary matrix that are times: of walks, of a measurement and of decoding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.outcomes.summary import CaseSummary, fills_of
from harness.report.figures import ratios
from harness.report.figures.estimates import Estimate, quantile
from harness.report.page import decodes
from harness.report.page.inputs import Measured, Subject
from harness.report.page.lines import Line
from harness.report.page.matrix_cells import ColumnFigures, MatrixCell, MatrixColumn
from harness.text import duration

Group = Sequence[NDArray[np.int64]]


@dataclass(frozen=True)
class Cold:
    """A quantile of times of single calls."""

    column: MatrixColumn
    level: float
    values: Callable[[Line, Iterable[CaseSummary]], Group]


def _once(time: Literal["compile_ns", "first_fill_ns"]) -> Callable[[Line, Iterable[CaseSummary]], Group]:
    """Returns what gathers this time, of which a case has one."""

    def gathered(_: Line, cases: Iterable[CaseSummary]) -> Group:
        times = (getattr(case, time) for case in cases if case.declared)
        return [np.array([ns], np.int64) for ns in times if ns is not None]

    return gathered


_compiles, _first = _once("compile_ns"), _once("first_fill_ns")


def _fills(line: Line, cases: Iterable[CaseSummary]) -> Group:
    if not line.arm.timed.is_enough:
        return []
    return [fills_of(line.arm, case) for case in cases if case.declared and case.slices]


_COMPILE = "Compile time, one compile per case."

COLD = (
    Cold(MatrixColumn("compile_p50", "compile p50", _COMPILE, True), 0.5, _compiles),
    Cold(MatrixColumn("compile_p99", "compile p99", _COMPILE, True), 0.99, _compiles),
    Cold(
        MatrixColumn(
            "first_p50", "first fill p50", "The first fill after a fresh compile, one per case.", True
        ),
        0.5,
        _first,
    ),
    Cold(
        MatrixColumn(
            "walked_p99",
            "mask p99, walked once",
            "Fills of one walk, each made once, noise included; none where most cases have no samples.",
            True,
        ),
        0.99,
        _fills,
    ),
)


def cold(what: Cold, subjects: Sequence[Subject], common: set[tuple[str, str]]) -> ColumnFigures:
    """Returns a quantile of times that were taken while walking, of each subject."""

    def of(line: Line | None) -> Estimate | None:
        if line is None:
            return None
        cases = [case for key, case in line.arm.cases.items() if not common or key in common]
        estimate = quantile(what.values(line, cases), what.level)
        if estimate is None or common or len(subjects) == 1:
            return estimate
        return estimate.unranked("no case that all solve")

    return ColumnFigures(what.column, [of(subject.line) for subject in subjects], _show_time)


def _show_time(subject: Subject, estimate: Estimate) -> MatrixCell:
    bounds = estimate.bounds
    detail = (
        "few values"
        if estimate.few
        else estimate.why
        if bounds is None
        else (f"{duration(bounds[0])} – {duration(bounds[1])}")
    )
    return MatrixCell(duration(estimate.value) + ("~" if estimate.few else ""), (detail,), estimate.value)


WARM = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}


def warm(subjects: Sequence[Subject], name: str, level: float, by: Measured | None) -> ColumnFigures:
    """Returns a quantile of warm fills of a measurement, of each subject; without an interval of an arm that
    lacks a case that all solve, because it was lost in it."""

    def of(subject: Subject) -> Estimate | None:
        if subject.measured is None:
            return None
        one, arm = subject.measured
        shared = one.figures.common_set
        times = one.figures.structural(arm, shared or one.figures.own_set(arm))
        estimate = quantile([case[:, 0] for case in times], level)  # type: ignore[misc]
        if one is not by:
            why = "of another measurement"
        elif not shared:
            why = "no case that all solve"
        else:
            has = {trace.case_id for trace in one.figures.own_set(arm)}
            why = ratios.not_judged(len({*ratios.solved_by_all(one.figures)} - has))
        return estimate.unranked(why) if estimate and why else estimate

    about = (
        "Fills of tokens, each the minimum over warm repetitions in the profile's forks (the structural "
        "tail; `grammarbench measure`)."
    )
    column = MatrixColumn(f"warm_{name.replace('.', '')}", f"warm mask {name}", about, True)
    return ColumnFigures(column, [of(subject) for subject in subjects], _show_time)


RATIOS = {
    "measured_compile": ("compile", "compile ×", "A fresh compile"),
    "measured_fill": ("fill", "warm mask ×", "Warm fills of a text"),
}
"""For each column: the metric of a measurement, the column's title, and what was timed."""


def ratio(subjects: Sequence[Subject], name: str, by: Measured | None) -> ColumnFigures:
    """Returns a measured time over the reference's, of each subject."""

    metric, title, about = RATIOS[name]
    estimates = {} if by is None else ratios.over_reference(by.figures, metric)

    def of(subject: Subject) -> Estimate | None:
        return (
            estimates.get(subject.measured[1])
            if subject.measured is not None and subject.measured[0] is by
            else None
        )

    def show(subject: Subject, estimate: Estimate) -> MatrixCell:
        bounds = estimate.bounds
        detail = (
            estimate.why
            if bounds is None
            else "the reference"
            if bounds[0] == bounds[1] == 1
            else f"{bounds[0]:.3g} – {bounds[1]:.3g}"
        )
        return MatrixCell(f"{estimate.value:.3g}×", (detail,), estimate.value)

    about += (
        " over that of the measurement's reference, case by case; intervals over forks, which are taken as "
        "wider by what identical code may differ where arms are ranked."
    )
    column = MatrixColumn(name, title, about, True)
    return ColumnFigures(column, [of(subject) for subject in subjects], show)


def overhead(subjects: Sequence[Subject], batch: int) -> ColumnFigures:
    """Returns what decoding under the grammar adds to TPOT at a batch size, of each subject."""
    about = (
        "TPOT over that of the same request without a grammar, in the same round, less one; over the loads "
        "that every arm of the decoding has."
    )
    column = MatrixColumn(f"tpot_{batch}", f"ΔTPOT, batch {batch}", about, True)
    return _decoded(column, subjects, decodes.overhead(subjects, batch), "{:+.1%}", "{:+.1%}")


def jump_gain(subjects: Sequence[Subject]) -> ColumnFigures:
    """Returns the speed-up by jump-forward, of each subject."""
    about = (
        "Stepwise over jump-forward of the time in the batch, of equal texts; over the loads that every arm "
        "of the decoding has."
    )
    column = MatrixColumn("jump", "speed-up", about, False)
    return _decoded(column, subjects, decodes.speed_up(subjects), "{:.2f}×", "{:.2f}")


def _decoded(
    column: MatrixColumn,
    subjects: Sequence[Subject],
    told: Sequence[tuple[Estimate, str] | None],
    value: str,
    bound: str,
) -> ColumnFigures:
    """Returns a column of ratios of decode records, each with its note; a value and a bound are written
    so."""
    notes = {
        subject.position: found[1] for subject, found in zip(subjects, told, strict=True) if found is not None
    }

    def show(subject: Subject, estimate: Estimate) -> MatrixCell:
        bounds = estimate.bounds
        detail = (
            " – ".join(bound.format(each) for each in bounds)
            if bounds
            else (estimate.why or "one fork: no interval")
        )
        details = tuple(filter(None, (detail, notes[subject.position])))
        return MatrixCell(value.format(estimate.value), details, estimate.value)

    return ColumnFigures(column, [None if found is None else found[0] for found in told], show)
