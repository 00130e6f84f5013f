"""Writes the rows of each case that is done, and reports how far the run is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from harness.cases.case_line import case_from_line
from harness.errors import BadInput
from harness.rows.row import BROKEN, Row
from harness.running.case_rows import rows_of, with_first_failure
from harness.running.progress import RunProgress
from harness.running.work import Assignment, Ending, Task, Work

REPORT_SECONDS = 0.2
"""How often it is reported how far the run is."""


class Recorder:
    """Reads the cases of an assignment, and writes their rows."""

    def __init__(self, assignment: Assignment) -> None:
        self.assignment = assignment
        """May be replaced by another one of the same file of cases."""
        self._cases = open(assignment.cases, "rb")  # noqa: SIM115 - closed by close()
        self._total = sum(len(work.cases) for work in assignment.works)
        self._done = 0
        self._failures = 0
        self._last_report = 0.0

    def close(self) -> None:
        """Close the file of cases."""
        self._cases.close()

    def line_of(self, number: int) -> bytes:
        """Returns the line of the file of cases that holds the case with this number in the plan."""
        self._cases.seek(self.assignment.plan.offsets[number])
        return self._cases.readline()

    def task_of(self, work: Work, number: int) -> Task:
        """Returns the case that has this number in the plan, to be handed to a worker."""
        (place, task), work.ahead = work.ahead, (-1, None)
        if task is not None and place == self.assignment.plan.offsets[number]:
            return task
        return Task(number, *case_from_line(self.line_of(number)))

    def read_ahead(self, work: Work) -> None:
        """Read the next case of the work while its worker is busy with another one, so that the worker need
        not wait for it then."""
        if work.cases:
            with suppress(BadInput):  # it is told when it is the case's turn
                number = work.cases[0]
                work.ahead = self.assignment.plan.offsets[number], self.task_of(work, number)

    def finish_without_worker(self, work: Work) -> None:
        """Write the rows of the next cases as long as no worker is needed for them."""
        dialects = self.assignment.plan.dialects
        while work.cases and work.load_failure is not None:
            self.write_ending(work, self.task_of(work, work.cases.popleft()), work.load_failure)
        while work.cases and dialects[work.cases[0]] not in work.arm.dialects:
            text = f"no {dialects[work.cases[0]]} in this backend"
            task = self.task_of(work, work.cases.popleft())
            self.write_ending(work, task, Ending("unsupported", "dialect", text))

    def rows_of_task(self, work: Work, task: Task, ending: Ending) -> list[tuple[Row, bytes]]:
        """Returns the rows of a case that ended so, each with its samples."""
        return rows_of(work, task, ending, checks=self.assignment.limits.checks)

    def write_ending(self, work: Work, task: Task, ending: Ending) -> None:
        """Write the rows of a case that ended so."""
        self.write(work, task, self.rows_of_task(work, task, ending))

    def write(self, work: Work, task: Task, walks: Sequence[tuple[Row, bytes]]) -> None:
        """Write the rows of a case, which tell of the failure of a first walk if there was one."""
        if (first := work.again.pop(task.number, None)) is not None:
            walks = with_first_failure(walks, first)
            work.steady += bool(first.walks) and not any(row.behind for row, _ in walks)
        self.store(walks)

    def store(self, walks: Sequence[tuple[Row, bytes]]) -> None:
        """Write the rows of a case as they are, and report how far the run is."""
        self.assignment.writer.append(walks)
        self._failures += sum(row.status in BROKEN for row, _ in walks)
        self._done += 1
        self.report()

    def report(self, at_once: bool = False) -> None:
        """Report how far the run is, unless that was done a moment ago."""
        now = time.monotonic()
        if at_once or now - self._last_report > REPORT_SECONDS:
            self._last_report = now
            self.assignment.report(RunProgress(self._done, self._total, self._failures))
