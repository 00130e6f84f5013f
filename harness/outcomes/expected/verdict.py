"""A run against expected outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from harness.outcomes.expected.arm_faults import (
    OF_A_VERDICT,
    TIMEOUT,
    ArmFaults,
    Faults,
    RecordedArm,
    RunFaults,
    faults_of_run,
)
from harness.outcomes.expected.record import Recorded, read_record, recorded_faults
from harness.outcomes.gate import EXIT_CODES
from harness.rows.row import RunInfo, note
from harness.rows.sample import sample_of
from harness.rows.store import read_info


@dataclass(frozen=True)
class Change:
    """One case that is not as recorded."""

    arm: RecordedArm
    case: str
    """Suite and id, as `suite/id`."""
    name: str
    new: Faults
    gone: Faults


@dataclass(frozen=True)
class Verdict:
    """A run against the record."""

    changes: tuple[Change, ...]
    slow: int
    """Cases that differ by a timeout."""
    compared: int
    unrecorded: int
    """Cases of which the record knows nothing."""
    against: Mapping[RecordedArm, RecordedArm] = field(default_factory=dict)
    """Arms whose version is not recorded, and the version that stood in for it."""
    not_walked: int = 0
    """Recorded cases of the run's arms and suites of which the run has no row, because it walked a sample."""
    notes: tuple[str, ...] = ()
    """What a reader must know first: of what sample run and record are, and what therefore was
    not compared."""

    @property
    def word(self) -> Literal["ok", "failed", "unproven"]:
        """`unproven` where nothing is recorded, or where the run left out a part of what is."""
        if self.changes:
            return "failed"
        return "ok" if self.compared and not self.not_walked else "unproven"

    @property
    def holds(self) -> bool:
        """Is the run as recorded, as far as it was compared?"""
        return self.word == "ok"

    @property
    def exit_code(self) -> int:
        """Returns 0 for as recorded, 1 for not as recorded, 4 for unproven."""
        return EXIT_CODES[self.word]


def compare_with_record(folder: Path, path: Path) -> Verdict:
    """Compares a run with the record in a file. Raises BadInput."""
    recorded = read_record(path)
    info = read_info(folder)
    now = faults_of_run(folder)
    different = recorded.different(info.effort, info.decode)
    then = recorded.arms
    if different:
        then, now = _verdicts(then), replace(now, arms=_verdicts(now.arms))
    verdict = compare_faults(then, now)
    missing = _not_walked(then, now, info) if sample_of(info) and not info.shard else 0
    return replace(verdict, not_walked=missing, notes=tuple(_notes(info, recorded, different, missing)))


def compare_faults(recorded: ArmFaults, now: RunFaults) -> Verdict:
    """Compares case by case; an arm whose version is not recorded is compared with the newest that is."""
    changes: list[Change] = []
    against: dict[RecordedArm, RecordedArm] = {}
    slow = compared = unrecorded = 0
    for arm, cases in now.arms.items():
        known, other = recorded_faults(arm, recorded)
        if other is not None and other != arm:
            against[arm] = other
        for case, faults in cases.items():
            if (arm, case) in now.unmeasured:
                continue
            if known is None or case not in known:
                unrecorded += 1
                continue
            compared += 1
            then = known[case]
            if faults == then:
                continue
            if TIMEOUT in faults | then:
                slow += 1
            else:
                changes.append(Change(arm, case, now.names[case], faults - then, then - faults))
    return Verdict(tuple(changes), slow, compared, unrecorded, against)


def _verdicts(arms: ArmFaults) -> ArmFaults:
    """Returns the faults without what checks found."""
    return {
        arm: {case: faults & OF_A_VERDICT for case, faults in cases.items()} for arm, cases in arms.items()
    }


def _not_walked(recorded: ArmFaults, now: RunFaults, info: RunInfo) -> int:
    """Counts the recorded cases of the run's suites that are not among its own, each for every arm."""
    missing = 0
    for arm, cases in now.arms.items():
        known = recorded_faults(arm, recorded)[0] or {}
        missing += sum(case not in cases and case.rpartition("/")[0] in info.suites for case in known)
    return missing


def _notes(info: RunInfo, recorded: Recorded, different: str, missing: int) -> Iterator[str]:
    """Yields what a reader must know before the verdict, a line each."""
    walked, of_record = sample_of(info), recorded.sample
    if walked:
        yield walked
    if info.shard:
        yield note(info)
    if of_record and of_record != walked:
        yield f"the record is of {of_record}"
    if missing:
        yield (
            f"{missing} recorded case(s) were not walked: nothing is proven; `run --expect` walks what "
            "the record holds"
        )
    if different:
        yield (
            f"{different}: only verdicts are compared; `run --expect` without --effort and --decode walks "
            "as recorded"
        )
