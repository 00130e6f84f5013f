"""Which arms of a run enforce nothing, and which of them are controls: our own, a floor of the times.

An adapter of somebody else's that lets everything through is a backend like any other, and is told so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.outcomes.summary import ArmKey, ArmSummary, arm_key, common_solved
from harness.rows.row import CHECKS_MODE, DECLINED, Row, RunInfo

CONTROLS = frozenset({"unconstrained"})
"""The backends of ours that are made to enforce nothing."""


@dataclass
class Enforcing:
    """Takes in rows; keeps which arms let invalid instances through, and which ever refused anything."""

    lenient: set[ArmKey] = field(default_factory=set)
    strict: set[ArmKey] = field(default_factory=set)
    lost: set[ArmKey] = field(default_factory=set)
    """The arms with an output that was not walked to its end, whosever fault it was."""

    def add(self, row: Row) -> None:
        """Takes in one row."""
        if row.mode != CHECKS_MODE and (row.status in DECLINED or row.accepted is False):
            self.strict.add(arm_key(row))
        elif row.valid is False and row.accepted:
            self.lenient.add(arm_key(row))
        elif row.mode != CHECKS_MODE and row.status != "ok":
            self.lost.add(arm_key(row))

    def accepted(self, key: ArmKey) -> str:
        """Returns which outputs the arm accepted, where it let every invalid one through, refused nothing and
        declined nothing; otherwise nothing."""
        if key not in self.lenient - self.strict:
            return ""
        walked = "every output that was walked to its end" if key in self.lost else "every output"
        return f"{walked} was accepted, invalid ones too"

    def enforcing_nothing(self, info: RunInfo) -> set[ArmKey]:
        """Returns the arms without a library of their own that enforce nothing, as their rows show; our own
        do so whatever their rows show."""
        libraries = {arm.backend for arm in info.arms if arm.distribution}
        shown = {key for key in self.lenient - self.strict if key[0] not in libraries}
        return shown | _made_to_enforce_nothing(info)


def controls(info: RunInfo) -> set[ArmKey]:
    """Returns the arms of a run that are controls; none where the run has nothing else to look at."""
    found = _made_to_enforce_nothing(info)
    return found if len(found) < len(info.arms) * len(info.vocabularies) else set()


def solved_by_all(arms: Sequence[tuple[ArmSummary, bool]]) -> set[tuple[str, str]]:
    """Returns the cases that all arms solve, each given with whether it is a control. Controls are left out
    where there are others, for they solve only what has no invalid instance; none where there are no two arms
    to compare."""
    tried = [arm for arm, is_control in arms if not is_control] or [arm for arm, _ in arms]
    return common_solved(tried) if len(arms) > 1 else set()


def _made_to_enforce_nothing(info: RunInfo) -> set[ArmKey]:
    return {
        (arm.backend, arm.version, arm.options, vocabulary)
        for arm in info.arms
        if not arm.distribution and arm.backend in CONTROLS
        for vocabulary in info.vocabularies
    }
