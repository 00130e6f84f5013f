"""The arms and the runs of a page, each with the name and the marks that it has everywhere on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

from harness.backend.arm import are_versions, arm_names
from harness.cases.case_line import CASES_FILE
from harness.outcomes.controls import solved_by_all
from harness.outcomes.metrics import values_of
from harness.outcomes.summary import ArmSummary
from harness.report.figures import charts
from harness.report.labels import told_apart
from harness.rows.again import resume_command
from harness.rows.ends import one_end_lines
from harness.rows.folder import ROWS, SAMPLES
from harness.rows.row import End, RunInfo
from harness.rows.sample import sample_of
from harness.rows.store import PACKED, is_published, published_without, why_not_whole


@dataclass(frozen=True)
class RunSeen:
    """One of the runs on the page."""

    place: int
    folder: Path
    info: RunInfo
    end: End | None
    rows: int
    is_to_be_published: bool = False
    """Is the page to lie in the published folder of the run, with its packed rows and without its cases?"""

    @property
    def told_folder(self) -> Path:
        """Returns the run's folder as the page names it: its own, where that is the only one that a reader
        has."""
        return Path() if self.is_to_be_published else self.folder

    @property
    def is_packed(self) -> bool:
        """Are the rows packed in the folder that the page names?"""
        return self.is_to_be_published or is_published(self.folder)

    @property
    def rows_file(self) -> str:
        """Returns the name of the file of rows there."""
        return PACKED if self.is_packed else ROWS

    @property
    def can_repro(self) -> bool:
        """Does the folder that the page names hold the cases, so that a walk can be seen again?"""
        return not (self.is_to_be_published or self.without_cases)

    @property
    def has_samples(self) -> bool:
        """Does the folder that the page names hold the times of the walks?"""
        return not (self.is_to_be_published or self.without_samples)

    @property
    def why_not_whole(self) -> str:
        """Says why the run is not whole; empty for a whole one, and where rows were left out on purpose."""
        return why_not_whole(self.folder, self.end, self.rows)

    @property
    def resume_command(self) -> str:
        """Returns the command that completes the run; nothing where none does."""
        return resume_command(self.folder, self.info)

    @property
    def without_cases(self) -> bool:
        """Is it a published run, of which the page can show no grammar and no instance?"""
        return published_without(self.folder, CASES_FILE)

    @property
    def without_samples(self) -> bool:
        """Is it a published run, of which the page can show no mask times?"""
        return published_without(self.folder, SAMPLES)

    @property
    def has_versions(self) -> bool:
        """Has the run two versions of one backend with the same options?"""
        return any(are_versions(one, other) for one, other in combinations(self.info.arms, 2))

    @property
    def sample(self) -> str:
        """Returns the sample of its suites that the run walked; empty if it walked them whole."""
        return sample_of(self.info)

    @property
    def one_end_lines(self) -> tuple[str, ...]:
        """Returns a sentence for each backend that knows one of several ids of end-of-sequence."""
        return one_end_lines(self.info)


@dataclass(frozen=True)
class Line(charts.Styled):
    """One arm on the page: the same name, colour, dash and marker everywhere."""

    position: int
    label: str
    run: RunSeen
    arm: ArmSummary
    is_control: bool = False
    """Does it enforce nothing, and stand here as a floor of the times only?"""

    @property
    def solves_nothing(self) -> bool:
        """Has it cases, and solves none of them?"""
        return bool(self.arm.cases) and not self.arm.solves_any

    @cached_property
    def spec(self) -> str:
        """Returns the arm as the run's commands name it."""
        return arm_names(self.run.info.arms).get(self.arm.key[:3], self.arm.name)


def solving_nothing(lines: Sequence[Line]) -> list[Line]:
    """Returns the lines that solve nothing, so that what they fail alone says nothing of a case; none where
    no line solves any."""
    if not any(line.arm.solves_any for line in lines):
        return []
    return [line for line in lines if line.solves_nothing]


def labels(arms_of_runs: Sequence[tuple[RunSeen, ArmSummary]]) -> list[str]:
    """Returns a short name for each arm; version, vocabulary and run are added only where they tell two arms
    apart.
    """
    particulars = zip(
        *((arm.version, arm.vocabulary, run.info.run, str(run.folder)) for run, arm in arms_of_runs),
        strict=True,
    )
    return told_apart([arm.name for _, arm in arms_of_runs], particulars)


@dataclass(frozen=True)
class Common:
    """The arms on the cases that all of them solve."""

    cases: int
    left_out: list[Line]
    """Arms that solve nothing: with them there would be no such case."""
    summaries: list[dict[str, Any]]


def solved(lines: Sequence[Line]) -> set[tuple[str, str]]:
    """Returns the cases that all arms of the lines solve (`solved_by_all`)."""
    return solved_by_all([(line.arm, line.is_control) for line in lines])


def common(lines: Sequence[Line]) -> Common | None:
    """Times on the common solved set; None where there is nothing to compare."""
    keys = solved(lines)
    if not keys:
        return None
    return Common(
        len(keys),
        [line for line in lines if not (line.arm.solves_any or line.is_control)],
        [values_of(line.arm.only(keys)) for line in lines],
    )
