"""What the sections of one page are made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import jinja2

from harness.outcomes.answer import Answer
from harness.report.cases.data import Explored, explore
from harness.report.page import failing_cases
from harness.report.page.failing_cases import FailingCases
from harness.report.page.inputs import Inputs
from harness.report.page.lines import Common, common, solved
from harness.report.page.matrix import Matrix, matrix
from harness.report.page.verdict import PageVerdict, verdict


@dataclass(frozen=True)
class Content:
    """The folders of a page as they were read, and what more than one section needs of them, made once."""

    inputs: Inputs
    case_template: jinja2.Template
    """It shows one failing case, whose size must be known before the page is rendered."""
    trend: Path | None = None
    """A history whose last runs stand beside the comparisons."""
    is_alone: bool = False
    """Is the page one file, without report.json and summary.md beside it?"""

    @cached_property
    def explored(self) -> Explored:
        """Returns every case of the runs, in groups, as the explorer shows them."""
        return explore(self.inputs.cases, self.inputs.tried, is_alone=self.is_alone)

    @cached_property
    def failing(self) -> FailingCases:
        """Returns the failing cases that the page shows without its script. Raises BadInput."""
        return failing_cases.failing_cases(self.case_template, self.inputs.failures, self.inputs.tried)

    @cached_property
    def common(self) -> Common | None:
        """Returns the arms on the cases that all of them solve; None where there is nothing to compare."""
        return common(self.inputs.lines)

    @cached_property
    def matrix(self) -> Matrix:
        """Returns the summary of every arm."""
        return matrix(self.inputs, solved(self.inputs.lines))

    @cached_property
    def verdict(self) -> PageVerdict:
        """Returns what changed between the runs or the versions on the page, in one word."""
        return verdict(self.inputs)

    @cached_property
    def answer(self) -> Answer | None:
        """Returns what the runs answer; None where no run of rows is on the page."""
        return self.inputs.answer()
