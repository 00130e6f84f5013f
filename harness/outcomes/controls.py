"""Which arms of a run are controls: they enforce nothing, and stand in it as a floor of the times."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from harness.outcomes.summary import ArmKey, arm_key
from harness.rows.row import CHECKS_MODE, DECLINED, Row, RunInfo
from harness.rows.store import read_rows


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

    def controls(self, info: RunInfo) -> set[ArmKey]:
        """Returns the arms without a library of their own that let every invalid instance through, refused
        nothing and declined nothing."""
        libraries = {arm.backend for arm in info.arms if arm.distribution}
        return {key for key in self.lenient - self.strict if key[0] not in libraries}


def read_controls(run: Path, info: RunInfo) -> set[ArmKey]:
    """Returns the controls of a run. The rows are read only where an arm has no library, and only until all
    such arms are known to refuse something. Raises BadInput."""
    wanted = {
        (arm.backend, arm.version, arm.options, vocabulary)
        for arm in info.arms
        if not arm.distribution
        for vocabulary in info.vocabularies
    }
    if not wanted:
        return set()
    enforcing = Enforcing()
    for row in read_rows(run):
        enforcing.add(row)
        if wanted <= enforcing.strict:
            break
    return enforcing.controls(info)
