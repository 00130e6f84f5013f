"""The faults in which two versions differ, each of which is searched for by itself, and whether a version has
them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.checks import checks
from harness.outcomes.differences import CHECKS, CaseDifferences, Changed, Key, differences
from harness.outcomes.expected import TIMEOUT, Faults
from harness.outcomes.expected.arm_faults import LOSSES
from harness.rows.row import Row

Fault = tuple[Key, str, str]
"""A case, a part of it, and a fault."""


@dataclass(frozen=True)
class Sought:
    """What is searched for of one fault."""

    there: bool
    """Is it there in the last version and not in the first one, or the other way round?"""
    lost: Faults = frozenset()
    """How that part was lost in the version at an end that lacks the fault. Then it is not proven that the
    two differ, and another version that lost it in this way is compared by what was seen of it, as they
    were."""
    is_documented: bool = False
    """Does the version at the end that has the fault document it? Otherwise one that does is without it."""


Wanted = Mapping[Fault, Sought]


def difference_of(before: Sequence[Row], after: Sequence[Row]) -> Wanted:
    """Returns the faults in which the later rows differ from the earlier ones.

    What the backend documents or chooses, and what a missed deadline may have hidden, count only if nothing
    else differs: they are not what is asked for, and may have changed with another version. Then a part that
    misses a deadline on one side only differs in that alone, because what else is wrong with it was not seen
    there.
    """
    every: dict[Fault, Sought] = {}
    faults: dict[Fault, Sought] = {}
    for case in differences(before, after).cases:
        for part in case.parts:
            proven = _came_or_went(*part.proven)
            seen = _came_or_went(part.new, part.gone)
            if TIMEOUT in seen:
                seen = {TIMEOUT: seen[TIMEOUT]}
            for fault, there in seen.items():
                every[case.key, part.part, fault] = _sought(part, fault, there)
            for fault in proven.keys() - part.documented:
                faults[case.key, part.part, fault] = _sought(part, fault, proven[fault])
    return faults or every


def _sought(part: Changed, fault: str, there: bool) -> Sought:
    return Sought(there, (part.before if there else part.after) & LOSSES, fault in part.documented)


def _came_or_went(came: Iterable[str], went: Iterable[str]) -> dict[str, bool]:
    return dict.fromkeys(came, True) | dict.fromkeys(went, False)


def shown(wanted: Wanted, cases: Mapping[Key, CaseDifferences]) -> bool | None:
    """Do these cases show all of the wanted faults? None if a part of them was not measured, if a missed
    deadline, a crash or another loss may hide one, or if a check in question was not made."""
    answers = []
    for (key, part, fault), sought in wanted.items():
        case = cases[key]
        if part not in case.parts:
            return None
        documented = frozenset[str]() if sought.is_documented else case.documented[part]
        is_there = fault in case.parts[part] - documented
        if not is_there and _is_hidden(fault, part, case, case.parts[part] & LOSSES - sought.lost):
            return None
        answers.append(is_there == sought.there)
    return all(answers)


def _is_hidden(fault: str, part: str, case: CaseDifferences, losses: Faults) -> bool:
    """Could the fault, which was not seen, be there all the same, behind these losses?"""
    check = fault.partition(":")[0]
    if part == CHECKS and check in checks():
        return TIMEOUT in losses or check not in case.looked
    return TIMEOUT in losses or bool(losses and fault not in LOSSES)
