"""A run against expected outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from harness.backend.arm import arm_names, version_key
from harness.errors import BadInput
from harness.outcomes.expected.arm_faults import (
    OF_A_WALK,
    TIMEOUT,
    WRONG_VERDICTS,
    ArmFaults,
    Faults,
    RecordedArm,
    RunFaults,
    changed_faults,
    faults_of_run,
)
from harness.outcomes.expected.record import Recorded, read_record, recorded_faults, refuse_some_checks
from harness.outcomes.gate import EXIT_CODES
from harness.outcomes.outcome import Outcome
from harness.outcomes.repro_command import repro_words
from harness.outcomes.settings import digests, other_inputs, other_vocabularies
from harness.rows.row import RunInfo, note
from harness.rows.sample import cases_left_out
from harness.rows.store import read_info
from harness.text import counted, our_command


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
    """Cases that differ, but in nothing that a timeout does not hide."""
    compared: int
    unrecorded: int
    """Cases of which the record knows nothing."""
    unmeasured: int = 0
    """Cases of which something is missing through our fault, where nothing new was found."""
    against: Mapping[RecordedArm, RecordedArm] = field(default_factory=dict)
    """Arms whose version is not recorded, and the version that stood in for it."""
    uncompared: tuple[RecordedArm, ...] = ()
    """Arms of the run of which nothing could be compared, because it is missing through our fault."""
    unknown: tuple[RecordedArm, ...] = ()
    """Arms of the run of which nothing is recorded."""
    late: tuple[RecordedArm, ...] = ()
    """Arms of the run that missed a deadline in every case that was compared: in all of it, or in its
    checks."""
    not_walked: int = 0
    """Recorded cases of the run's arms and suites of which the run has no row, because it walked a sample."""
    notes: tuple[str, ...] = ()
    """What a reader must know first: of what sample run and record are, and what therefore was
    not compared."""
    to_see_it: tuple[str, ...] = ()
    """The words of the command that shows the worst new failure; none if there is none."""

    @property
    def word(self) -> Literal["ok", "failed", "unproven"]:
        """`unproven` where nothing is recorded, where the run left out a part of what is, or where nothing
        of an arm could be compared, or nothing in time."""
        if self.changes:
            return "failed"
        missing = self.uncompared or self.unknown or self.late or self.not_walked
        return "ok" if self.compared and not missing else "unproven"

    @property
    def holds(self) -> bool:
        """Is the run as recorded, as far as it was compared?"""
        return self.word == "ok"

    @property
    def exit_code(self) -> int:
        """Returns 0 for as recorded, 1 for not as recorded, 4 for unproven."""
        return EXIT_CODES[self.word]


def compare_with_record(folder: Path, path: Path) -> Verdict:
    """Compares a run with the record in a file. Raises BadInput, for one with other settings too."""
    recorded = read_record(path)
    info = read_info(folder)
    refuse_some_checks(folder, info)
    if different := recorded.different(info.effort, info.decode, info.seed, info.vocabularies):
        raise BadInput(
            f"{folder} cannot be compared with {path}: {different}; "
            f"{our_command('run', '--expect', str(path))} walks as recorded"
        )
    if others := other_vocabularies(str(path), str(folder), recorded.digests, digests(info.vocabularies)):
        raise BadInput(f"{folder} cannot be compared with {path}: {'; '.join(others)}")
    now = recorded.as_named_of(faults_of_run(folder))
    verdict = compare_faults(recorded.arms, now)
    lost = 0 if info.shard else _not_walked(recorded.arms, now, info)
    missing = lost if cases_left_out(info) else 0
    inputs = other_inputs(
        "the record", "this run", (recorded.suites, info.suites), (recorded.memory_bytes, info.memory_bytes)
    )
    notes = (
        *_notes(info, recorded, missing, lost - missing),
        *inputs,
        *_left_out(recorded, now, info, verdict),
    )
    return replace(
        verdict, not_walked=missing, notes=notes, to_see_it=_command(verdict.changes, folder, info)
    )


def _command(changes: Sequence[Change], folder: Path, info: RunInfo) -> tuple[str, ...]:
    """Returns the command that shows the worst new failure; nothing if none is new."""
    new = [change for change in changes if change.new]
    if not new:
        return ()
    change = min(new, key=lambda change: min(map(_gravity, change.new)))
    arm, (suite, _, case_id) = change.arm, change.case.rpartition("/")
    checks = sorted(fault.partition(":")[0] for fault in change.new if fault not in OF_A_WALK)
    check = checks[0] if checks and not change.new & OF_A_WALK else ""
    return repro_words(folder, suite, case_id, arm_names(info.arms)[version_key(arm)], arm.vocabulary, check)


def _gravity(fault: str) -> int:
    """Returns the place of a fault in the order of gravity; what is no outcome of a walk is a finding."""
    word = fault.removesuffix("_in_a_check")
    return (Outcome(word) if word in list(Outcome) else Outcome.FINDING).gravity


def compare_faults(recorded: ArmFaults, now: RunFaults) -> Verdict:
    """Compares case by case; an arm whose version is not recorded is compared with the newest that is."""
    changes: list[Change] = []
    against: dict[RecordedArm, RecordedArm] = {}
    uncompared: list[RecordedArm] = []
    unknown: list[RecordedArm] = []
    late: list[RecordedArm] = []
    slow = compared = unrecorded = unmeasured = 0
    for arm, cases in now.arms.items():
        before, in_time = compared, False
        known, other = recorded_faults(arm, recorded)
        if other is not None and other != arm:
            against[arm] = other
        for case, faults in cases.items():
            is_unmeasured = (arm, case) in now.unmeasured
            if known is None or case not in known:
                unrecorded += not is_unmeasured
                unmeasured += is_unmeasured
                continue
            new, gone = changed_faults(known[case], faults)
            if is_unmeasured and not new:
                unmeasured += 1
                continue
            compared += 1
            is_cut_off = (arm, case) in now.cut_off and TIMEOUT not in known[case]
            in_time |= (arm, case) not in now.late and not is_cut_off
            if is_unmeasured:
                gone = frozenset()
            elif (arm, case) in now.unjudged:
                gone -= WRONG_VERDICTS
            if new or gone:
                changes.append(Change(arm, case, now.names[case], new, gone))
            elif faults != known[case] and TIMEOUT in faults | known[case]:
                slow += 1
        if compared == before:
            is_ours = any((arm, case) in now.unmeasured for case in cases)
            (uncompared if is_ours else unknown).append(arm)
        elif not in_time:
            late.append(arm)
    arms = tuple(uncompared), tuple(unknown), tuple(late)
    return Verdict(tuple(changes), slow, compared, unrecorded, unmeasured, against, *arms)


def _not_walked(recorded: ArmFaults, now: RunFaults, info: RunInfo) -> int:
    """Counts the recorded cases of the run's suites that an arm of it lacks, each once."""
    missing: set[str] = set()
    for arm, cases in now.arms.items():
        known = recorded_faults(arm, recorded)[0] or {}
        missing |= {case for case in known if case not in cases and case.rpartition("/")[0] in info.suites}
    return len(missing)


def _notes(info: RunInfo, recorded: Recorded, missing: int, gone: int) -> Iterator[str]:
    """Yields what a reader must know before the verdict, a line each."""
    walked, of_record = cases_left_out(info), recorded.sample
    if walked:
        yield walked
    if info.shard:
        yield note(info)
    if of_record and of_record != walked:
        yield f"the record is of {of_record}"
    if missing:
        yield (
            f"{counted(missing, 'recorded case')} {'was' if missing == 1 else 'were'} not walked: nothing is "
            "proven; `run --expect` walks what the record holds"
        )
    if gone:
        yield f"{counted(gone, 'recorded case')} {'is' if gone == 1 else 'are'} no longer in the suites"


def _left_out(recorded: Recorded, now: RunFaults, info: RunInfo, verdict: Verdict) -> Iterator[str]:
    """Yields what was not compared though it is walked or recorded, a line each. Who names backends or
    suites leaves others out, so what is only recorded is told and fails nothing."""
    for arm in verdict.uncompared:
        yield f"nothing of {arm} could be compared, through a failure of ours"
    if verdict.compared:
        yield from (f"nothing is recorded of {arm}: nothing is proven of it" for arm in verdict.unknown)
    for arm in verdict.late:
        yield (
            f"in every compared case of {arm} the walks or the checks missed a deadline, so nothing is "
            "proven of it"
        )
    if verdict.slow:
        yield (
            f"{counted(verdict.slow, 'case')} {'differs' if verdict.slow == 1 else 'differ'} by a missed "
            "deadline, which depends on the machine and fails nothing"
        )
    walked = {(arm.backend, arm.options, arm.vocabulary) for arm in now.arms}
    arms = [arm for arm in recorded.arms if (arm.backend, arm.options, arm.vocabulary) not in walked]
    suites = [name for name in recorded.suites if name not in info.suites]
    for what, names in (("arm", arms), ("suite", suites)):
        if names:
            yield f"recorded, and not in this run: {what} {', '.join(map(str, names))}"
