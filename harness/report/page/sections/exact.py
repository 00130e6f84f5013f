"""Exact masks: how many are right, place by place, where a reference knows which tokens may come next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.backend.arm import arm_names
from harness.report.page.content import Content
from harness.report.page.lines import Line, RunSeen
from harness.report.page.section import Section, Values
from harness.report.tables.masks import ExactMasks


@dataclass(frozen=True)
class ExactLine:
    """The masks of one arm in one dialect."""

    line: Line
    dialect: str
    cases: int
    exact: int
    sound: int
    places: int
    complete: int
    layout_places: int


def values(page: Content) -> Values | None:
    """Returns the counts of places; None where no whole mask was compared."""
    shown = [
        line
        for run, masks in zip(page.inputs.runs, page.inputs.masks, strict=True)
        if run.info.effort
        for line in exact_lines(run, masks, page.inputs.tried)
    ]
    return {"exact": shown} if shown else None


SECTION = Section("exact-masks", "Exact masks", 55, values, "right")


def exact_lines(run: RunSeen, masks: ExactMasks, lines: Sequence[Line]) -> list[ExactLine]:
    """Returns one line for each arm and dialect of which the run compared whole masks."""
    names = arm_names(run.info.arms)
    by_name = {(line.arm.vocabulary, names[line.arm.key[:3]]): line for line in lines if line.run is run}
    made = []
    for record in masks.frame().to_dict("records"):
        line = by_name.get((record.pop("vocabulary"), record.pop("arm")))
        if line is not None:
            made.append(ExactLine(line, **{str(name): value for name, value in record.items()}))
    return made
