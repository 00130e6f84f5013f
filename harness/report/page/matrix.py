"""The summary matrix: every arm by every headline figure, with intervals; best only where the intervals say
so."""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness.report.figures import ratios
from harness.report.figures.estimates import Estimate
from harness.report.page import decodes
from harness.report.page.alike import why_not_timed_alike, why_not_tried_alike
from harness.report.page.commands import commands
from harness.report.page.inputs import Inputs, Subject
from harness.report.page.matrix_cells import ColumnFigures, MatrixCell, MatrixColumn, cells_of
from harness.report.page.matrix_outcomes import memory, outcomes
from harness.report.page.matrix_presets import Preset, presets_of
from harness.report.page.matrix_times import COLD, RATIOS, WARM, cold, jump_gain, overhead, ratio, warm


@dataclass(frozen=True)
class Matrix:
    """The whole table."""

    groups: tuple[tuple[str, int], ...]
    """Titles over so many columns."""
    columns: tuple[MatrixColumn, ...]
    rows: tuple[tuple[Subject, tuple[MatrixCell, ...]], ...]
    presets: tuple[Preset, ...]
    common: int | None
    """The number of cases, solved by all arms but controls, over which the times are; None if each is over
    its own."""
    missing: tuple[tuple[str, str], ...]
    """What was not measured, and the command that would."""
    estimates: dict[str, list[Estimate | None]]
    """The figure of each row with its interval, by column."""

    @property
    def has_ratios(self) -> bool:
        """Are there ratios to the reference of a measurement?"""
        return any(column.key in RATIOS for column in self.columns)


def matrix(inputs: Inputs, common: set[tuple[str, str]]) -> Matrix:
    """Returns the matrix of all that was read.

    `common` are the cases that every arm solves (`solved_by_all`); empty if there are none, or a single arm.
    """
    known: list[tuple[str, list[ColumnFigures]]] = []
    subjects = inputs.subjects
    lines = [subject.line for subject in subjects]
    tried, timed = why_not_tried_alike(subjects), why_not_timed_alike(subjects)
    known.append(("Right", [replace(figure, whys=tried) for figure in outcomes(lines)]))
    cold_times = [cold(quantity, subjects, common) for quantity in COLD]
    known.append(("Compile, cold", [replace(figure, whys=timed) for figure in cold_times]))
    missing = []
    if any(subject.measured for subject in subjects):
        by = ratios.ranked(inputs)
        known.append(("Warm mask", [warm(subjects, key, level, by) for key, level in WARM.items()]))
        known.append(("Measured, over the reference", [ratio(subjects, key, by) for key in RATIOS]))
    else:
        missing.append(("Warm mask times", "measure"))
    sizes = decodes.chosen(decodes.batches(inputs))
    if sizes:
        known.append(("TPOT over no grammar", [overhead(subjects, size) for size in sizes]))
        known.append(("Jump-forward", [jump_gain(subjects)]))
    else:
        missing.append(("TPOT, overhead over batch sizes and jump-forward", "decode"))
    if not inputs.kernels:
        missing.append(("Mask kernels over batch sizes", "kernels"))
    known.append(("Memory", [memory(lines)]))
    if not inputs.lines:
        missing.append(("Conformance", "run"))
    figures = [figure for _, group in known for figure in group]
    columns = [figure.column for figure in figures]
    cells = [cells_of(subjects, figure) for figure in figures]
    estimates = {figure.column.key: figure.ranked for figure in figures}
    rows = tuple(
        (subject, tuple(column[place] for column in cells)) for place, subject in enumerate(subjects)
    )
    groups = tuple((title, len(group)) for title, group in known)
    presets = tuple(presets_of(subjects, columns, estimates))
    known_commands = commands(inputs)
    by_command = tuple((what, known_commands[verb]) for what, verb in missing if verb in known_commands)
    return Matrix(groups, tuple(columns), rows, presets, len(common) or None, by_command, estimates)
