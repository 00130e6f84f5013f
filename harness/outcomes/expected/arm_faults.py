"""The faults of every case of a run, by arm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.backend.arm import full_name
from harness.checks import BACKEND_ERROR
from harness.errors import Incomplete
from harness.outcomes import outcome
from harness.outcomes.case_state import OVER, UNDER, CaseState, state_of_fault
from harness.outcomes.new_checks import MadeChecks, with_row
from harness.rows.again import how_to_complete
from harness.rows.row import BROKEN, CHECKS_MODE, OURS, OUT_OF_TIME, VERDICTS, Finding, Row
from harness.rows.store import read_end, read_info, read_rows

TIMEOUT = "timeout"

LOSSES = frozenset({*BROKEN, *(f"{status}{outcome.IN_A_CHECK}" for status in BROKEN)})
"""The faults after which the rest of a case is not walked."""

WRONG_VERDICTS = frozenset((OVER, UNDER))
"""The faults that only an instance of which it is known whether it is valid can have."""

DIRECTIONS = ("over", "under")
"""The fields of a finding that count tokens, which are the last word of its name."""

OF_A_WALK = frozenset({*VERDICTS, *LOSSES})
"""The faults that are no check's finding."""

Faults = frozenset[str]
"""What is wrong with one case; empty if nothing is."""


@dataclass(frozen=True, order=True)
class RecordedArm:
    """A backend at a version with its options, on one vocabulary."""

    backend: str
    options: str
    version: str
    vocabulary: str

    def __str__(self) -> str:
        """`backend:options version vocabulary`, `-` where there is no version."""
        return full_name(self)


def changed_faults(then: Faults, now: Faults) -> tuple[Faults, Faults]:
    """Returns the faults that are new and those that are gone, as far as no deadline hides them.

    After a missed deadline the rest was not seen. Where one was missed then, what is there now may have been
    there before; where one is missed now, what was there may be there still. What was found in spite of it
    was found.

    What a backend raises is told of the first check that meets it alone, and which one that is may differ: a
    limit that a backend has for all its work is reached where the most was done. So such errors are neither
    new nor gone as long as there are not more or fewer of them.
    """
    new = frozenset[str]() if TIMEOUT in then else now - then - {TIMEOUT}
    gone = frozenset[str]() if TIMEOUT in now else then - now - {TIMEOUT}
    came, went = _raised(new), _raised(gone)
    return new - came if len(came) <= len(went) else new, gone - went if len(went) <= len(came) else gone


def _raised(faults: Faults) -> Faults:
    """Returns those that are errors of the backend in a check."""
    return frozenset(fault for fault in faults if fault.endswith(f":{BACKEND_ERROR}"))


ArmFaults = Mapping[RecordedArm, Mapping[str, Faults]]
"""The faults by arm and case (`suite/id`)."""


@dataclass(frozen=True)
class RunFaults:
    """The faults of one run, and the names of its cases."""

    arms: ArmFaults
    names: Mapping[str, str]
    """The name of each case, by `suite/id`."""
    unmeasured: frozenset[tuple[RecordedArm, str]]
    """Arm and case where something is missing through our fault: what was found was found, and nothing is
    gone."""
    unjudged: frozenset[tuple[RecordedArm, str]] = frozenset()
    """Arm and case with an instance of which nobody knows whether it is valid: no verdict is gone there."""
    late: frozenset[tuple[RecordedArm, str]] = frozenset()
    """Arm and case where every row that we measured missed a deadline."""
    cut_off: frozenset[tuple[RecordedArm, str]] = frozenset()
    """Arm and case whose checks ended with a missed deadline, so that the further ones were not made."""
    made: MadeChecks = field(default_factory=MadeChecks)
    """The checks that were made."""
    lost_in: Mapping[tuple[RecordedArm, str], str] = field(default_factory=dict)
    """Arm and case whose checks ended with the loss of the backend, and the check at which it was lost, where
    the rows tell."""


def faults_of_row(row: Row) -> set[str]:
    """Returns what is wrong with one row, in words that do not depend on the machine, but for `timeout`."""
    return _names(row, outcome.faults(row))


def is_cut_off(row: Row) -> bool:
    """Did the checks end with a call that missed its deadline?"""
    return row.mode == CHECKS_MODE and row.status == TIMEOUT


def undocumented_faults_of_row(row: Row) -> set[str]:
    """Returns the same without what the backend documents, and without what is its choice: policy fails
    nothing."""
    return _names(row, (fault for fault in outcome.faults(row) if not fault.documented))


def _names(row: Row, faults: Iterable[outcome.Fault]) -> set[str]:
    names = {name for fault in faults for name in _fault_names(fault)}
    return names | {TIMEOUT} if OUT_OF_TIME in row.checks.values() else names


def fault_name(fault: outcome.Fault) -> str:
    """Returns the name of a fault as one word, because a record joins the names with spaces."""
    return "_".join(fault.name.split()) or "_"


def _fault_names(fault: outcome.Fault) -> set[str]:
    """Returns the names by which a gate knows a fault: its name, or one for each direction of a finding about
    tokens.

    That is `check:cause:over` where some are forbidden that are right, and `check:cause:under` where some are
    allowed that are wrong, for the one is not as bad as the other.
    """
    name, finding = fault_name(fault), fault.finding
    directions = [] if finding is None else [way for way in DIRECTIONS if getattr(finding, way)]
    return {f"{name}:{way}" for way in directions} or {name}


def gravity_of(fault: str) -> tuple[int, int]:
    """Returns a key that puts first the fault of this name that is gravest: by the state in which it puts its
    case, then by its kind."""
    kind = outcome.Outcome(_kind_of(fault))
    return state_of_name(fault).gravity, kind.gravity


def state_of_name(fault: str) -> CaseState:
    """Returns the state in which the fault of this name puts its case, as far as the name tells: one that was
    recorded without directions is an other fault where tokens alone show it."""
    kind = _kind_of(fault)
    if kind != outcome.Outcome.FINDING:
        return state_of_fault(kind, None)
    check, *rest = fault.split(":")
    way = rest.pop() if rest and rest[-1] in DIRECTIONS else ""
    finding = Finding(check, cause=":".join(rest), over=int(way == "over"), under=int(way == "under"))
    return state_of_fault(kind, finding)


def _kind_of(fault: str) -> str:
    """Returns what a fault of this name is; what is no outcome of a walk is a finding."""
    word = fault.removesuffix(outcome.IN_A_CHECK)
    return word if word in list(outcome.Outcome) else outcome.Outcome.FINDING.value


def arm_of_row(row: Row) -> RecordedArm:
    """Returns the arm, on its vocabulary, that the row is of."""
    return RecordedArm(row.backend, row.options, row.backend_version, row.vocabulary)


def faults_of_rows(rows: Iterable[Row]) -> RunFaults:
    """Returns the faults of every case that the rows are of, without documented ones."""
    arms: dict[RecordedArm, dict[str, set[str]]] = {}
    names: dict[str, str] = {}
    unmeasured: set[tuple[RecordedArm, str]] = set()
    left_out: set[tuple[RecordedArm, str]] = set()
    unjudged: set[tuple[RecordedArm, str]] = set()
    late: set[tuple[RecordedArm, str]] = set()
    in_time: set[tuple[RecordedArm, str]] = set()
    cut_off: set[tuple[RecordedArm, str]] = set()
    made = MadeChecks()
    lost_in: dict[tuple[RecordedArm, str], str] = {}
    for row in rows:
        arm = arm_of_row(row)
        case = f"{row.suite}/{row.case_id}"
        names[case] = row.case
        faults = arms.setdefault(arm, {}).setdefault(case, set())
        if row.status in OURS:
            (unmeasured if row.status == "harness_error" else left_out).add((arm, case))
        elif row.mode != CHECKS_MODE and row.valid is None:
            unjudged.add((arm, case))
        of_row = undocumented_faults_of_row(row)
        if row.status not in OURS:
            (late if TIMEOUT in of_row else in_time).add((arm, case))
        if is_cut_off(row):
            cut_off.add((arm, case))
        made = with_row(made, row)
        if row.checking and of_row & LOSSES:
            lost_in[arm, case] = row.checking
        faults |= of_row
    # What was left out because the backend was lost before is the backend's: a crash must not hide from a
    # gate.
    unmeasured |= {(arm, case) for arm, case in left_out if not arms[arm][case] & LOSSES}
    frozen = {arm: {case: frozenset(faults) for case, faults in cases.items()} for arm, cases in arms.items()}
    return RunFaults(
        frozen,
        names,
        frozenset(unmeasured),
        frozenset(unjudged),
        frozenset(late - in_time),
        frozenset(cut_off),
        made,
        lost_in,
    )


def faults_of_run(folder: Path) -> RunFaults:
    """Returns the faults of every case of a run. Raises BadInput, and Incomplete for a run without end."""
    if read_end(folder) is None:
        how = how_to_complete(folder, read_info(folder))
        raise Incomplete(f"{folder}: the run is incomplete, and never gates; {how}")
    return faults_of_rows(read_rows(folder))
