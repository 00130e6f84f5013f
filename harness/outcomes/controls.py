"""Which arms of a run enforce nothing, and which of them are controls: our own, a floor of the times.

An adapter of somebody else's that lets everything through is a backend like any other, and is told so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from harness.outcomes.summary import ArmKey, arm_key
from harness.rows.row import CHECKS_MODE, DECLINED, Row, RunInfo
from harness.rows.store import read_rows

CONTROLS = frozenset({"unconstrained"})
"""The backends of ours that are made to enforce nothing."""


@dataclass
class Enforcing:
    """Takes in rows; keeps which arms let invalid instances through, and which ever refused anything."""

    lenient: set[ArmKey] = field(default_factory=set)
    strict: set[ArmKey] = field(default_factory=set)

    def add(self, row: Row) -> None:
        """Take in one row."""
        if row.mode != CHECKS_MODE and (row.status in DECLINED or row.accepted is False):
            self.strict.add(arm_key(row))
        elif row.valid is False and row.accepted:
            self.lenient.add(arm_key(row))

    def enforcing_nothing(self, info: RunInfo) -> set[ArmKey]:
        """Returns the arms without a library of their own that let every invalid instance through, refused
        nothing and declined nothing."""
        libraries = {arm.backend for arm in info.arms if arm.distribution}
        return {key for key in self.lenient - self.strict if key[0] not in libraries}

    def controls(self, info: RunInfo) -> set[ArmKey]:
        """Returns those of them that are controls; none where the run has nothing else to look at."""
        found = {key for key in self.enforcing_nothing(info) if key[0] in CONTROLS}
        return found if len(found) < len(info.arms) * len(info.vocabularies) else set()


def read_controls(run: Path, info: RunInfo) -> set[ArmKey]:
    """Returns the controls of a run. The rows are read only where an arm may be one, and only until all such
    arms are known to refuse something. Raises BadInput."""
    wanted = {
        (arm.backend, arm.version, arm.options, vocabulary)
        for arm in info.arms
        if not arm.distribution and arm.backend in CONTROLS
        for vocabulary in info.vocabularies
    }
    if not wanted:
        return set()
    enforcing = Enforcing()
    for row in read_rows(run, whole=False):  # whoever reads all of them says where some are missing
        enforcing.add(row)
        if wanted <= enforcing.strict:
            break
    return enforcing.controls(info)
