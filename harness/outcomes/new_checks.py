"""Checks that only one of two sides made, because GrammarBench has got new ones between them: what they find
is no change of the backend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.rows.row import Row, checks_named, names_every_check
from harness.text import counted, some

MOST_NAMED = 12
"""Most checks that a line names."""


@dataclass(frozen=True)
class MadeChecks:
    """The names of the checks that the rows of a run tell of."""

    ever: frozenset[str] = frozenset()
    """The checks that were begun in any case."""
    always: frozenset[str] | None = None
    """The checks that were made in every case whose checks came to their end; None where no case's did, so
    that it is not known which were meant to be made. A run that took cases over from an older one has fewer
    of these than of `ever`."""


@dataclass
class ChecksOfCase:
    """The checks that were begun in one case."""

    names: frozenset[str] = frozenset()
    is_whole: bool = False
    """Did its checks come to their end, so that every check that was to be made is among them?"""
    lost_in: str = ""
    """The check at which the backend was lost, where the rows tell."""

    def add(self, row: Row) -> None:
        """Takes in the row of the case's checks."""
        self.names |= checks_named(row)
        self.is_whole |= names_every_check(row)
        self.lost_in = row.checking

    def alone(self, others: ChecksOfCase) -> frozenset[str]:
        """Returns those of them that were not to be made in the same case on the other side."""
        return self.names - others.names if others.is_whole else frozenset()


def with_row(made: MadeChecks, row: Row) -> MadeChecks:
    """Returns the same checks with those of one more row."""
    names, always = checks_named(row), made.always
    if names_every_check(row):
        always = names if always is None else always & names
    if names <= made.ever and always == made.always:
        return made
    return MadeChecks(made.ever | names, always)


def check_of(fault: str) -> str:
    """Returns the check whose finding the fault is; of a fault that is none the fault itself."""
    return fault.partition(":")[0]


def in_words(failed: Mapping[str, int]) -> str:
    """Returns the checks by name, with the number of cases that fail each; those that most fail come
    first."""
    ordered = sorted(failed, key=lambda name: (-failed[name], name))
    told = [f"{name} in {counted(failed[name], 'case')}" if failed[name] else name for name in ordered]
    return some(told, MOST_NAMED)


def are_new(failed: Mapping[str, int], cases: int, which: str, then: str) -> str:
    """Returns one line about checks of one side alone: how many they are, how many cases fail one of them,
    what therefore is (`then`), and their names; empty where there are none.

    `failed`: how many cases fail each; `which`: what they are, behind their number.
    """
    if not failed:
        return ""
    fail = f"{counted(cases, 'case')} {'fails' if cases == 1 else 'fail'} {_them(failed)}, " if cases else ""
    told = f"{counted(len(failed), 'check')} {'is' if len(failed) == 1 else 'are'} {which}"
    return f"{told}: {fail}{then} ({in_words(failed)})"


def _them(failed: Mapping[str, int]) -> str:
    return "it" if len(failed) == 1 else "them"
