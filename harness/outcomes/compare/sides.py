"""One arm of a run, as a side of a comparison."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.backend.arm import Arm, arm_names, version_key, with_version
from harness.errors import Incomplete
from harness.measure.record import Recorded, has_measurement, read_measurement
from harness.outcomes.differences import CaseDifferences, Key, add_outcome
from harness.rows.again import is_live
from harness.rows.row import Row
from harness.rows.store import read_end, read_info, read_rows

SideKey = tuple[Path, tuple[str, str, str]]
"""The folder of a run, and backend, version and options of the arm."""


@dataclass(frozen=True)
class Side:
    """One arm of a run."""

    folder: Path
    arm: Arm
    name: str
    recorded: Recorded | None
    """The run's measurement, if it has one."""

    @property
    def key(self) -> SideKey:
        """Returns what tells the side from all others."""
        return self.folder, version_key(self.arm)

    @property
    def title(self) -> str:
        """Returns the name with the version."""
        return with_version(self.name, self.arm.version)


def sides_of(folder: Path) -> list[Side]:
    """Returns the arms of a complete run. Raises BadInput."""
    info = read_info(folder)
    if read_end(folder) is None:
        # A session with a server cannot be gone on with: its times would be of two sessions.
        way = "make it anew" if is_live(info) else "complete it with grammarbench run --resume"
        raise Incomplete(f"{folder} is incomplete (no end) and is compared with nothing; {way}")
    names = arm_names(info.arms)
    recorded = read_measurement(folder) if has_measurement(folder) else None
    if recorded and recorded.end is None:
        raise Incomplete(
            f"the measurement in {folder} is incomplete (no end) and is compared with nothing; measure anew"
        )
    return [Side(folder, arm, names[version_key(arm)], recorded) for arm in info.arms]


@dataclass(frozen=True)
class Told:
    """What the rows of one arm tell a comparison."""

    outcomes: dict[Key, CaseDifferences] = field(default_factory=dict)
    counted: list[Row] = field(default_factory=list)
    """The rows with counts of passes."""


def read_told(
    sides: Iterable[Side], moved: Mapping[Path, Mapping[str, str]] | None = None
) -> dict[SideKey, Told]:
    """Returns what the rows of these arms tell, by the keys of the sides; reads each run once. The
    vocabularies of a run that are `moved` have their names of the other run. Raises BadInput."""
    told = {side.key: Told() for side in sides}
    for folder in dict.fromkeys(folder for folder, _ in told):
        names = (moved or {}).get(folder, {})
        for row in read_rows(folder):
            of = told.get((folder, row.version_key))
            if of is None:
                continue
            if row.vocabulary in names:
                row = replace(row, vocabulary=names[row.vocabulary])
            add_outcome(of.outcomes, row)
            if row.counted:
                of.counted.append(row)
    return told
