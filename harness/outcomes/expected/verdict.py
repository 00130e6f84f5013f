"""A run against expected outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from harness.backend.arm import arm_names, version_key
from harness.errors import BadInput
from harness.outcomes.case_state import CaseState
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
    gravity_of,
    state_of_name,
)
from harness.outcomes.expected.record import Recorded, read_record, recorded_faults, refuse_some_checks
from harness.outcomes.gate import EXIT_CODES
from harness.outcomes.new_checks import MOST_NAMED, are_new, check_of, in_words
from harness.outcomes.outcome import IN_A_CHECK
from harness.outcomes.repro_command import repro_words
from harness.outcomes.settings import digests, other_inputs, other_vocabularies
from harness.rows.row import RunInfo, note
from harness.rows.sample import cases_left_out
from harness.rows.store import read_info
from harness.text import counted, our_command, some


@dataclass(frozen=True)
class Change:
    """One case that is not as recorded."""

    arm: RecordedArm
    case: str
    """Suite and id, as `suite/id`."""
    name: str
    new: Faults
    gone: Faults

    @property
    def gravity(self) -> tuple[int, int]:
        """Returns a key that puts first the change whose worst new fault, or without one whose worst fault
        that is gone, is gravest."""
        return min(map(gravity_of, self.new or self.gone))

    @property
    def state(self) -> CaseState:
        """Returns the gravest state in which its new faults, or those that are gone, put the case."""
        return min(map(state_of_name, self.new or self.gone), key=lambda state: state.gravity)


@dataclass(frozen=True)
class NewChecks:
    """What a run found by checks of which the record knows nothing, and which are therefore not compared."""

    failed: Mapping[str, int] = field(default_factory=dict)
    """For each of these checks the number of compared cases that fail it."""
    cases: int = 0
    """Compared cases that fail one of them at least."""
    gone: tuple[str, ...] = ()
    """Checks of the record that the run did not make."""


@dataclass(frozen=True)
class Verdict:
    """A run against the record."""

    changes: tuple[Change, ...]
    """The cases that are not as recorded, the gravest first."""
    slow: int
    """Cases that differ, but in nothing that a timeout of the run does not hide."""
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
    late_in_record: int = 0
    """Compared cases that missed a deadline when they were recorded: what is new in them fails nothing."""
    new_checks: NewChecks = NewChecks()

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
    now = faults_of_run(folder)
    verdict = compare_faults(recorded.arms, now, recorded.checks)
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
    """Returns the command that shows the worst new failure, the first change; nothing if none is new."""
    new = [change for change in changes if change.new]
    if not new:
        return ()
    change = new[0]
    arm, (suite, _, case_id) = change.arm, change.case.rpartition("/")
    checks = sorted(fault.partition(":")[0] for fault in change.new if fault not in OF_A_WALK)
    check = checks[0] if checks and not change.new & OF_A_WALK else ""
    return repro_words(folder, suite, case_id, arm_names(info.arms)[version_key(arm)], arm.vocabulary, check)


class _Looked:
    """Which checks only one of the two sides made, and what the run's own ones found."""

    def __init__(self, now: RunFaults, of_record: frozenset[str] | None) -> None:
        """`of_record`: the checks of the record; None where it does not say, so that all are compared."""
        made = now.made
        self.lost_in = now.lost_in
        self.failed = Counter(dict.fromkeys(() if of_record is None else made.ever - of_record, 0))
        self.gone = frozenset() if of_record is None or made.always is None else of_record - made.always
        self.cases = 0

    def compared(self, arm: RecordedArm, case: str, new: Faults, gone: Faults) -> tuple[Faults, Faults]:
        """Returns the new faults and those that are gone without what one side did not look for. Where the
        backend was lost in a new check, what the further ones would have shown is not gone."""
        lost_in = self.lost_in.get((arm, case), "")
        is_lost = lost_in in self.failed
        own = {fault: check_of(fault) for fault in new if check_of(fault) in self.failed}
        if is_lost:
            own |= {fault: lost_in for fault in new if fault.endswith(IN_A_CHECK)}
        self.failed.update(set(own.values()))
        self.cases += bool(own)
        seen = frozenset() if is_lost else frozenset(each for each in gone if check_of(each) not in self.gone)
        return new - own.keys(), seen

    def told(self) -> NewChecks:
        """Returns what came of it."""
        return NewChecks(dict(self.failed), self.cases, tuple(sorted(self.gone)))


def compare_faults(recorded: ArmFaults, now: RunFaults, checks: frozenset[str] | None = None) -> Verdict:
    """Compares case by case; an arm whose version is not recorded is compared with the newest that is.
    `checks`: those that were made when it was recorded; None where that is not known."""
    looked = _Looked(now, checks)
    changes: list[Change] = []
    against: dict[RecordedArm, RecordedArm] = {}
    uncompared: list[RecordedArm] = []
    unknown: list[RecordedArm] = []
    late: list[RecordedArm] = []
    slow = compared = unrecorded = unmeasured = late_in_record = 0
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
            late_in_record += TIMEOUT in known[case]
            is_cut_off = (arm, case) in now.cut_off and TIMEOUT not in known[case]
            in_time |= (arm, case) not in now.late and not is_cut_off
            if is_unmeasured:
                gone = frozenset()
            elif (arm, case) in now.unjudged:
                gone -= WRONG_VERDICTS
            new, gone = looked.compared(arm, case, new, gone)
            if new or gone:
                changes.append(Change(arm, case, now.names[case], new, gone))
            elif TIMEOUT in faults - known[case]:
                slow += 1
        if compared == before:
            is_ours = any((arm, case) in now.unmeasured for case in cases)
            (uncompared if is_ours else unknown).append(arm)
        elif not in_time:
            late.append(arm)
    arms = tuple(uncompared), tuple(unknown), tuple(late)
    verdict = Verdict((), slow, compared, unrecorded, unmeasured, against, *arms)
    return replace(
        verdict,
        changes=tuple(sorted(changes, key=lambda change: (not change.new, change.gravity))),
        late_in_record=late_in_record,
        new_checks=looked.told(),
    )


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
    if verdict.late_in_record:
        them = "it" if verdict.late_in_record == 1 else "them"
        yield (
            f"{counted(verdict.late_in_record, 'case')} missed a deadline when recorded, so what is new in "
            f"{them} fails nothing; record on a quiet machine, or with a longer --timeout"
        )
    yield from _of_checks(recorded, verdict)
    walked = {(arm.backend, arm.options, arm.vocabulary) for arm in now.arms}
    arms = [arm for arm in recorded.arms if (arm.backend, arm.options, arm.vocabulary) not in walked]
    suites = [name for name in recorded.suites if name not in info.suites]
    for what, names in (("arm", arms), ("suite", suites)):
        if names:
            yield f"recorded, and not in this run: {what} {', '.join(map(str, names))}"


def _of_checks(recorded: Recorded, verdict: Verdict) -> Iterator[str]:
    """Yields which checks were not compared, because only the run or only the record has them, a line each;
    of a record that does not say which it has, which of the new findings may be of such checks."""
    checks = verdict.new_checks
    which = "new in this GrammarBench since the record was made"
    if told := are_new(checks.failed, checks.cases, which, "not gated until you record anew"):
        yield told
    if checks.gone:
        count, are = counted(len(checks.gone), "check"), "is" if len(checks.gone) == 1 else "are"
        names = some(checks.gone, MOST_NAMED)
        yield f"{count} of the record {are} not made any more, and not compared: {names}"
    if recorded.checks is None and (unknown := _unknown(recorded, verdict.changes)):
        yield (
            "the record does not say which checks were made for it, and names no finding of these, which may "
            f"be new in this GrammarBench: {in_words(unknown)}; record anew to tell them apart"
        )


def _unknown(recorded: Recorded, changes: Iterable[Change]) -> Counter[str]:
    """Returns the checks with new findings of which the record has no finding in any case, with the number of
    cases in which they are new."""
    faults = frozenset[str]().union(
        *(faults for cases in recorded.arms.values() for faults in cases.values())
    )
    known = OF_A_WALK | {check_of(fault) for fault in faults}
    return Counter(name for change in changes for name in {check_of(fault) for fault in change.new} - known)
