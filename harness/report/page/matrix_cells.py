"""What the summary matrix is made of: columns, their estimates by subject, and the cells that show them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from harness.report.figures.estimates import Estimate, best
from harness.report.page.inputs import Subject

JUDGED = ("conformance", "under_constrained", "over_constrained")
"""The columns that a line has once something judged its walks; the others it has once they were made."""

NOT_MEASURED = "not measured"
NOT_JUDGED = "not judged"


@dataclass(frozen=True)
class MatrixColumn:
    """One figure of the matrix. Its key is what the address of a sorted view names."""

    key: str
    title: str
    about: str
    lower: bool


@dataclass(frozen=True)
class MatrixCell:
    """One figure of one arm."""

    text: str
    details: tuple[str, ...] = ()
    """The count behind a share, and the interval."""
    value: float | None = None
    """What the table is sorted by."""
    is_best: bool = False


@dataclass(frozen=True)
class ColumnFigures:
    """A column with its figures."""

    column: MatrixColumn
    estimates: Sequence[Estimate | None]
    """The figure of each subject; None where it has none."""
    show: Callable[[Subject, Estimate], MatrixCell]
    """Makes the cell of a subject that has a figure."""
    whys: Sequence[str] = ()
    """Why each subject is not ranked, though its figure may have an interval; empty for one that may be, and
    nothing where all may be."""

    @property
    def ranked(self) -> list[Estimate | None]:
        """Returns the figures as they are ranked: without an interval where the subject is not."""
        if not self.whys:
            return list(self.estimates)
        return [
            estimate.unranked(why) if estimate and why else estimate
            for estimate, why in zip(self.estimates, self.whys, strict=True)
        ]


def is_candidate(subject: Subject) -> bool:
    """Is it an arm that could be chosen: neither one that solves nothing nor a control?"""
    return subject.line is None or (subject.line.arm.solves_any and not subject.line.is_control)


def cells_of(subjects: Sequence[Subject], figures: ColumnFigures) -> list[MatrixCell]:
    """Returns the cell of each subject, the best marked; an arm that solves no case is never the best, and
    neither is a control."""
    able = [
        estimate if is_candidate(subject) else None
        for estimate, subject in zip(figures.ranked, subjects, strict=True)
    ]
    marks = best(able, figures.column.lower)
    cells = []
    whys = figures.whys or [""] * len(subjects)
    for subject, estimate, mark, why in zip(subjects, figures.estimates, marks, whys, strict=True):
        is_unjudged = figures.column.key in JUDGED and subject.line is not None
        cell = MatrixCell(NOT_JUDGED if is_unjudged else NOT_MEASURED)
        if estimate is not None:
            cell = figures.show(subject, estimate)
            cell = replace(cell, details=(*cell.details, f"not ranked: {why}")) if why else cell
        cells.append(replace(cell, is_best=mark))
    return cells
