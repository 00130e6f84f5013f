"""The cases that failed behind others in one process and not alone: told on every surface, and counted
against nobody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.outcomes.expected import arm_of_row
from harness.rows.row import Before, Row
from harness.text import counted, some

MOST, MOST_TOLD = 4, 40
"""Cases that the one line names, and that a page or a file tells of one by one, at most."""


@dataclass(frozen=True)
class Delayed:
    """A case that failed on a backend behind other cases in one process, and not alone."""

    arm: str
    """The backend with its options, its version and the vocabulary."""
    suite: str
    case_id: str
    case: str
    text: str
    """What was seen the first time."""
    behind: tuple[Before, ...]
    """The last cases that the process had served by then: it may be the doing of one of them."""

    @property
    def opening(self) -> str:
        """Returns the words before the names of the cases behind which it failed, if there are such."""
        return "failed after " if self.behind else "failed once"

    @property
    def closing(self) -> str:
        """Returns the words after them, with what was seen."""
        return f" and not when walked again in a process of its own: {self.text}"


def delayed_of(row: Row) -> Delayed | None:
    """Returns what the row tells of it, if anything."""
    return (
        Delayed(str(arm_of_row(row)), row.suite, row.case_id, row.case, row.delayed, row.behind)
        if row.delayed
        else None
    )


@dataclass
class DelayedCases:
    """Takes in rows; keeps the cases that failed in their first walk only."""

    cases: list[Delayed] = field(default_factory=list)

    def add(self, row: Row) -> None:
        """Takes in one row."""
        if (delayed := delayed_of(row)) is not None:
            self.cases.append(delayed)


def in_words(delayed: Delayed) -> str:
    """Returns one delayed case in one sentence."""
    before = ", ".join(earlier.case for earlier in delayed.behind)
    return f"{delayed.case} ({delayed.suite}) {delayed.opening}{before}{delayed.closing}"


def lines(cases: Sequence[Delayed]) -> list[str]:
    """Returns all of them in a line for each kind; none if there are none."""
    kinds = {
        "after other cases in the same process, and not when walked alone": [
            delayed for delayed in cases if delayed.behind
        ],
        "once, and not when walked again": [delayed for delayed in cases if not delayed.behind],
    }
    return [
        f"{counted(len(mine), 'case')} failed {how}; this counts against no backend: {_names(mine)}"
        for how, mine in kinds.items()
        if mine
    ]


def _names(cases: Sequence[Delayed]) -> str:
    return some([f"{delayed.case} ({delayed.suite}, {delayed.arm})" for delayed in cases], MOST, "; ")
