"""Compile times: the curves of all arms, and the slowest compiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.outcomes.slow_compiles import Compile, Compiles, Tail
from harness.report.figures import curves
from harness.report.figures.charts import Frame
from harness.report.page.content import Content
from harness.report.page.curve_figures import Figure, figure
from harness.report.page.inputs import Inputs
from harness.report.page.lines import Line, RunSeen
from harness.report.page.section import Section, Values
from harness.text import counted

CAPTION = (
    "For each time, a curve gives the share of all cases that were compiled by then. A case that was "
    "refused, raised, crashed or met the deadline never counts as compiled, so each curve ends at the share "
    "of cases compiled (declared coverage). ▶ at the right edge: cases that met the deadline."
)


def values(page: Content) -> Values | None:
    """Returns the figure of compile times, and of each run the tails and the slowest compiles; None where
    nothing was compiled."""
    inputs = page.inputs
    figure = compile_figure(inputs.tried)
    if not figure.svg:
        return None
    return {
        "figure": figure,
        "compiles": [
            _but_for_controls(inputs, run, compiles)
            for run, compiles in zip(inputs.runs, inputs.compiles, strict=True)
            if compiles.first_compiles
        ],
    }


SECTION = Section("compiling", "Compile", 40, values, "figures")


def _but_for_controls(inputs: Inputs, run: RunSeen, compiles: Compiles) -> tuple[list[Tail], list[Compile]]:
    """Returns the tails and the slowest compiles of the arms that enforce anything."""
    tried = {line.arm.key for line in inputs.tried if line.run is run}
    kept = {where: compiled for where, compiled in compiles.first_compiles.items() if compiled.key in tried}
    mine = replace(compiles, first_compiles=kept)
    return mine.tails(), mine.slowest()


def compile_figure(lines: Sequence[Line]) -> Figure:
    """Returns the compile time of every case, one curve per arm whose compiles were timed."""
    lines = [line for line in lines if curves.has_compile_times(line.arm)]
    deadlines = {line.run.info.timeout_s for line in lines}
    deadline_ns = deadlines.pop() * 1e9 if len(deadlines) == 1 else None
    late = [
        sum(case.compile_failed and "timeout" in case.failures for case in line.arm.walked())
        for line in lines
    ]
    drawn = [curves.compile_curve(line.arm) for line in lines]
    labels = [line.label for line in lines]
    made = figure(
        "compile",
        ("Compile time per case", CAPTION),
        drawn,
        labels,
        Frame(deadline_ns=deadline_ns, late=late, places=[line.position for line in lines]),
    )
    made.table.append(("at the deadline", [counted(count, "case") for count in late]))
    return made
