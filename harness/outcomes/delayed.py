"""The cases that failed behind others in one process and not alone: told on every surface. What did not come
to its end counts against nobody; what came to its end and is wrong counts against the backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from harness.outcomes.expected import arm_of_row
from harness.rows.row import Before, Row
from harness.text import counted, some

T = TypeVar("T")

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
    """What was seen the first time; empty where that counts, because the rows of the case tell it."""
    behind: tuple[Before, ...]
    """The last cases that the process had served by then: it may be the doing of one of them."""
    counts: bool = False
    """Is it a wrong outcome, which counts against the backend though the case is right alone?"""

    @property
    def opening(self) -> str:
        """Returns the words before the names of the cases behind which it failed, if there are such."""
        if self.counts:
            return "was wrong after "
        return "failed after " if self.behind else "failed once"

    @property
    def closing(self) -> str:
        """Returns the words after them, with what was seen."""
        if self.counts:
            return " and right when walked again in a process of its own: this counts against the backend"
        return f" and not when walked again in a process of its own: {self.text}"


def delayed_of(row: Row) -> Delayed | None:
    """Returns what the row tells of it, if anything."""
    if not row.delayed and not row.behind:
        return None
    arm = str(arm_of_row(row))
    return Delayed(arm, row.suite, row.case_id, row.case, row.delayed, row.behind, counts=not row.delayed)


def add_once(told: list[T], one: T) -> None:
    """Appends what a row tells, unless the row before it told the same: of a wrong case each wrong row
    does."""
    if one not in told[-1:]:
        told.append(one)


@dataclass
class DelayedCases:
    """Takes in rows, those of a case together; keeps the cases that failed in their first walk only."""

    cases: list[Delayed] = field(default_factory=list)

    def add(self, row: Row) -> None:
        """Takes in one row."""
        if (delayed := delayed_of(row)) is not None:
            add_once(self.cases, delayed)


def in_words(delayed: Delayed) -> str:
    """Returns one delayed case in one sentence."""
    before = ", ".join(earlier.case for earlier in delayed.behind)
    return f"{delayed.case} ({delayed.suite}) {delayed.opening}{before}{delayed.closing}"


def lines(cases: Sequence[Delayed]) -> list[str]:
    """Returns all of them in a line for each kind; none if there are none."""
    kinds = {
        "{} failed after other cases in the same process, and not when walked alone; "
        "this counts against no backend": [each for each in cases if each.behind and not each.counts],
        "{} failed once, and not when walked again; this counts against no backend": [
            each for each in cases if not each.behind
        ],
        "{} had a wrong outcome after other cases in the same process, and not when walked alone; "
        "this counts against the backend, in which one case changes another": [
            each for each in cases if each.counts
        ],
    }
    return [
        f"{how.format(counted(len(mine), 'case'))}: {_names(mine)}" for how, mine in kinds.items() if mine
    ]


def _names(cases: Sequence[Delayed]) -> str:
    return some([f"{delayed.case} ({delayed.suite}, {delayed.arm})" for delayed in cases], MOST, "; ")
