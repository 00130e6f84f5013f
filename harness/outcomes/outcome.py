"""What rows mean: the faults of a row, the outcome of a row, and the outcome of a case.

Nothing else in the program decides this.

A case *works* if it was judged, every instance was judged rightly, and no check has a finding that the
backend does not document. A case of which nothing could be judged is *not judged*, and never works. A case
and the walks of it have words of their own: a case works, fails, or is refused; a walk of it passes, is over-
or under-constrained, or is declined. Four questions are answered here once:

- **Who judges?** An instance whose verdict is known, and a check whose module says that it judges (`JUDGES`):
  the comparison of whole masks with a reference automaton. The silence of a check that looks at documents
  which the backend wrote itself judges nothing: that they are valid does not tell that the backend accepts
  the others. Its findings are faults all the same.
- **What does a loss inside a check cost?** A crash, a missed deadline and running out of memory fail the case
  wherever they happen, for a call of the backend did not come back. While code of ours was at work the row is
  a `harness_error`, and the backend's fault is none.
- **What does a check cost that said nothing?** Nothing: it was skipped because there was nothing to check, or
  no time.
- **What does a refused spelling cost?** Nothing: every value can still be written in another spelling, and
  which spellings a backend writes is its choice. A check says that its findings are of this kind by `POLICY`;
  they stay visible, and are counted apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from enum import StrEnum

from harness.checks import is_policy, judged_dialects, judging_dialects
from harness.outcomes.case_state import FAILED, CaseState, shows_output, state_of_fault
from harness.rows.row import BROKEN, CHECKS_MODE, DECLINED, OURS, VERDICT, Finding, Row, verdict

NOT_COMPILED = ("load", "dialect", "compile")
"""The phases of a row that did not get as far as a compiled grammar."""

MORE = "more"
"""The cause of a finding that only says how many more there are."""


class Outcome(StrEnum):
    """What one row comes to, the worst first, in the order of the states in which it puts its case.

    First stands what breaks, then what is wrong without a word, then what is refused or late. What follows is
    no failure of the backend: what it documents or declines, what is ours, and what is right or unknown.
    """

    CRASH = "crash"
    OOM = "oom"
    BACKEND_ERROR = "backend_error"
    UNDER_CONSTRAINED = "under_constrained"
    OVER_CONSTRAINED = "over_constrained"
    TIMEOUT = "timeout"
    FINDING = "finding"
    DECLINED = "declined"
    HARNESS_ERROR = "harness_error"
    SKIPPED = "skipped"
    DOCUMENTED = "documented"
    PASS = "pass"
    UNJUDGED = "unjudged"

    @property
    def gravity(self) -> int:
        """Returns the place in the order of gravity; 0 is the worst."""
        return GRAVITY[self]

    @property
    def fails(self) -> bool:
        """Does it cost the backend the case?"""
        return GRAVITY[self] < GRAVITY[Outcome.DECLINED]


GRAVITY = {kind: place for place, kind in enumerate(Outcome)}

FAILURES = tuple(kind for kind in Outcome if kind.fails)


class CaseOutcome(StrEnum):
    """What a case comes to on one arm: its state (`CaseState`), with the states of a failed case as one."""

    WORKS = "works"
    FAILED = "failed"
    REFUSED = "refused"
    """The backend says that it cannot: it does not work, and does not fail either."""
    NOT_JUDGED = "not_judged"
    NOT_MEASURED = "not_measured"
    """Something of it is missing through our fault, and nothing is wrong with the rest."""


STATE_OF = {each: CaseState(each.value) for each in CaseOutcome if each != CaseOutcome.FAILED}
"""The state that an outcome is; the cases that failed are in several."""


IN_A_CHECK = "_in_a_check"
"""So ends the name of a fault by which a backend was lost in a check."""


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a row."""

    kind: Outcome
    name: str
    """`over_constrained`, `crash_in_a_check`, `check:cause`, ...: it does not depend on the machine, but for
    `timeout`."""
    documented: bool = False
    """The backend says so of itself, or the check is one of policy: the fault stays visible and costs
    nothing."""
    finding: Finding | None = None
    """The finding that it is; None for how the walk ended."""
    instance: int | None = None
    """The index of the instance whose walk shows it; None where a check does."""

    @property
    def fails(self) -> bool:
        """Does it cost the backend the case?"""
        return self.kind.fails and not self.documented

    @property
    def state(self) -> CaseState:
        """Returns the state in which it puts its case, where it fails or is a refusal."""
        return state_of_fault(self.kind, self.finding)

    @property
    def wrote(self) -> bytes:
        """Returns the output that a check let the backend write and that the case forbids, which is the
        finding's first example; empty where there is none."""
        if self.finding is None or not shows_output(self.finding) or not self.finding.examples:
            return b""
        try:
            return bytes.fromhex(self.finding.examples[0])
        except ValueError:
            return b""

    @property
    def order(self) -> Order:
        """Returns a key that puts first what puts a case in the gravest state, and of that what an output
        shows."""
        return order_of(self.state, self.kind, self.instance, bool(self.wrote))


Order = tuple[int, int, int]
"""A key by which faults are sorted, the worst first."""

LAST: Order = (len(CaseState), len(Outcome), 3)
"""The key of what is no fault: behind all of them."""


def order_of(state: CaseState, kind: Outcome, instance: int | None, is_written: bool) -> Order:
    """Returns the key of a fault: by the state in which it puts its case, by what it is, and by what shows
    it: an instance, then an output that the backend wrote, then neither."""
    return state.gravity, kind.gravity, 0 if instance is not None else 1 if is_written else 2


def walk_verdict(row: Row) -> str:
    """Returns the verdict of the row's walk alone, without its findings; for our own failures the status, so
    that they stand apart."""
    return row.status if row.status in OURS else verdict(row.status, row.valid, row.accepted)


def is_documented(row: Row) -> bool:
    """Is the row's wrong verdict one that the backend documents?

    Then the row has a documented finding named `verdict`.
    """
    return any(finding.check == VERDICT and finding.documented for finding in row.findings)


def faults(row: Row) -> Iterator[Fault]:
    """Yields everything that is wrong with the row: how it ended, and each finding.

    The refusal of a case is among them, as `declined`.
    """
    if row.status in BROKEN:
        in_a_check = row.mode == CHECKS_MODE and row.status != "timeout"
        name = f"{row.status}{IN_A_CHECK}" if in_a_check else row.status
        yield Fault(Outcome(row.status), name, instance=row.instance)
    elif row.mode != CHECKS_MODE or row.phase in NOT_COMPILED:
        judged = verdict(row.status, row.valid, row.accepted)
        if judged not in ("pass", "unjudged"):
            documented = judged != "declined" and is_documented(row)
            yield Fault(Outcome(judged), judged, documented, instance=row.instance)
    for finding in row.findings:
        if finding.cause != MORE and finding.check != VERDICT:
            yield fault_of(finding)


def fault_of(finding: Finding) -> Fault:
    """Returns the fault that a check's finding is."""
    name = f"{finding.check}:{finding.cause}" if finding.cause else finding.check
    return Fault(Outcome.FINDING, name, finding.documented or is_policy(finding.check), finding)


def telling(finding: Finding) -> tuple[int, Order]:
    """Returns a key that puts first the findings that fail the case, the worst of them first; then come what
    is undocumented, what is documented, and what only tells of others."""
    fault = fault_of(finding)
    rank = 3 if finding.cause == MORE else 2 if finding.documented else 1
    fails = rank == 1 and finding.check != VERDICT and fault.fails
    return (0 if fails else rank), fault.order


def outcome(row: Row) -> Outcome:
    """Returns what the row comes to: the worst of its faults, else what it says of its case."""
    all_faults = list(faults(row))
    kinds = [fault.kind for fault in all_faults if not fault.documented]
    if row.status in OURS:
        kinds.append(Outcome(row.status))
    if not kinds:
        kinds.append(Outcome.DOCUMENTED if all_faults else Outcome.PASS if judges(row) else Outcome.UNJUDGED)
    return min(kinds, key=GRAVITY.__getitem__)


def worst_fault(row: Row) -> Fault | None:
    """Returns the worst fault that costs the backend the case, the first of its kind; None if there is
    none."""
    return min((fault for fault in faults(row) if fault.fails), key=lambda fault: fault.order, default=None)


def judges(row: Row) -> bool:
    """Does the row tell whether the backend takes what it should take, and refuses the rest?"""
    if row.mode == CHECKS_MODE:
        results = (
            row.checks.get(name) for name, dialects in judging_dialects().items() if row.dialect in dialects
        )
        return any(result in ("passed", "failed") for result in results)
    return row.valid is not None and row.accepted is not None


def _could_judge(row: Row) -> bool:
    """Would the row judge, had the backend not declined the case?"""
    return row.dialect in judged_dialects() if row.mode == CHECKS_MODE else row.valid is not None


@dataclass(slots=True)
class CaseRows:
    """The rows of one case from one arm, folded."""

    states: set[CaseState] = field(default_factory=set)
    """The states in which the faults that cost the case put it."""
    refused: bool = False
    ours: bool = False
    judged: bool = False
    could_judge: bool = False

    def add(self, row: Row) -> None:
        """Take in one more row of the case."""
        for fault in faults(row):
            if fault.fails:
                self.states.add(fault.state)
        self.refused |= row.status in DECLINED
        self.ours |= row.status in OURS
        self.judged |= judges(row)
        self.could_judge |= _could_judge(row)

    @property
    def outcome(self) -> CaseOutcome:
        """A fault outweighs all else; a refusal is certain whatever of ours is missing beside it."""
        if self.states:
            return CaseOutcome.FAILED
        if self.refused:
            return CaseOutcome.REFUSED
        if self.ours:
            return CaseOutcome.NOT_MEASURED
        return CaseOutcome.WORKS if self.judged else CaseOutcome.NOT_JUDGED

    @property
    def state(self) -> CaseState:
        """Returns the gravest state in which its faults put it, else the one that is its outcome."""
        its_outcome = self.outcome
        if its_outcome == CaseOutcome.FAILED:
            return min(self.states, key=lambda state: state.gravity)
        return STATE_OF[its_outcome]

    @property
    def is_judged(self) -> bool:
        """Is the case in the denominator of `conformance`?

        Cases that work or fail are, and refused ones that had something to be judged by.

        A refused case without anything to be judged by is not: another backend that takes it on is not
        judged on it either.
        """
        its_outcome = self.outcome
        return its_outcome in (CaseOutcome.WORKS, CaseOutcome.FAILED) or (
            its_outcome == CaseOutcome.REFUSED and self.could_judge
        )


@dataclass(frozen=True)
class Counts:
    """How many cases came to what; the outcomes are disjoint and sum up to `cases`.

    The failed ones are told apart by what goes wrong (`CaseState`): `breaks` to `other_fault` sum up to
    `failed`.
    """

    cases: int = 0
    works: int = 0
    failed: int = 0
    refused: int = 0
    not_judged: int = 0
    not_measured: int = 0
    breaks: int = 0
    silently_wrong: int = 0
    valid_refused: int = 0
    too_slow: int = 0
    other_fault: int = 0
    judged: int = 0
    """The denominator of `conformance`: the cases that work, fail, or are refused though there was something
    to judge them by."""

    @property
    def conformance(self) -> float | None:
        """Returns the share of judged cases that work; None where none was judged."""
        return self.works / self.judged if self.judged else None

    @property
    def refused_unjudged(self) -> int:
        """Returns how many refused cases had nothing that could have judged them."""
        return self.refused - (self.judged - self.works - self.failed)


def counts_of(cases: Iterable[CaseRows]) -> Counts:
    """Returns the cases by what they came to."""
    return counts_of_states((case.state, case.is_judged) for case in cases)


def counts_of_states(cases: Iterable[tuple[CaseState, bool]]) -> Counts:
    """Returns the same of cases of which only the state is at hand, and whether it is judged."""
    every = list(cases)
    states = Counter(state.value for state, _ in every)
    return Counts(
        cases=len(every),
        failed=sum(states[state.value] for state in FAILED),
        judged=sum(judged for _, judged in every),
        **{count.name: states[count.name] for count in fields(Counts) if count.name in set(CaseState)},
    )


def summed(counts: Iterable[Counts]) -> Counts:
    """Returns the counts of disjoint sets of cases together."""
    every = list(counts)
    return Counts(**{count.name: sum(getattr(one, count.name) for one in every) for count in fields(Counts)})


def in_words(counts: Counts) -> str:
    """Returns one line: how many of the cases were judged, and why the others were not."""
    if not counts.cases:
        return "no case was walked"
    line = f"{counts.judged:,} of {counts.cases:,} {'case' if counts.cases == 1 else 'cases'} judged"
    rest = [
        (counts.not_judged, "not judged (no instance with a known verdict)"),
        (counts.refused_unjudged, "refused, and nothing could have judged them"),
        (counts.not_measured, "not measured (our failure)"),
    ]
    return "; ".join([line, *(f"{number:,} {what}" for number, what in rest if number)])
