"""What each backend of a run is like for its cases, in the figures that everybody asks for first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from harness.backend.arm import arm_names, version_key
from harness.oracle.readings import DIALECT
from harness.outcomes.answer.cases import CaseAnswer, CaseKey, Proofs, distinct
from harness.outcomes.case_state import CaseState
from harness.outcomes.controls import controls
from harness.outcomes.metrics import few, percentiles, tbm, ttfm
from harness.outcomes.outcome import Counts, counts_of_states
from harness.outcomes.slow_compiles import Compile, Compiles
from harness.outcomes.summary import ArmKey, ArmSummary, common_solved
from harness.rows.row import RunInfo

READERS = {
    f"{DIALECT}rust": "Rust's regex crate",
    f"{DIALECT}ecma": "JavaScript",
    f"{DIALECT}javascript": "JavaScript",
}
"""The language or library whose reading of regular expressions a backend states as its own, for each cause by
which it documents that."""


@dataclass(frozen=True)
class Checked:
    """How a run was told to look at its cases."""

    effort: int = 0
    decode: bool = False
    only: tuple[str, ...] = ()
    """The names of the only checks that were made; empty for all of the effort."""

    @classmethod
    def of(cls, info: RunInfo) -> Checked:
        """Returns how this run was told to look at its cases."""
        return cls(info.effort, info.decode, tuple(sorted(info.checks)))

    @property
    def is_nothing(self) -> bool:
        """Were outputs judged only, and no checks made?"""
        return self.effort == 0 and not self.decode


@dataclass(frozen=True)
class Costs:
    """The medians of a backend that stand beside those of others."""

    cases: int
    """How many cases they are over."""
    is_shared: bool
    """Are these the cases that all backends solve? Otherwise they are those that the backend compiles: it
    solves none, or nothing is solved by all, or there is no other backend."""
    first_mask_ns: float | None
    per_token_ns: float | None


@dataclass(frozen=True)
class BackendAnswer:
    """One backend at a version with its options, on one vocabulary."""

    key: ArmKey
    name: str
    """The backend with its options, as people call it; with a version where the run has several."""
    version: str
    vocabulary: str
    counts: Counts
    cases: tuple[CaseAnswer, ...]
    slowest: Compile | None
    """Its slowest compile; None where nothing was compiled."""
    per_token_ns: float | None
    """The median of filling a mask and accepting a token (TBM p50), over all tokens of its walks."""
    per_token_p99_ns: float | None
    per_token_few: bool
    """Are the tokens too few for the 99th percentile to be more than an anecdote?"""
    first_mask_ns: float | None
    """The median time to the first mask (TTFM p50)."""
    costs: Costs
    """The medians that can be compared with those of others; the medians above are over the cases of this
    backend alone."""
    not_timed: str = ""
    """Why it has no time per token though masks were filled, in a few words; empty where it has one."""
    is_control: bool = False
    """Does it enforce nothing and stand in the run only as a floor of the times? It is never recommended."""
    enforces_nothing: bool = False
    """Does it enforce nothing, though it is to be a backend like any other?"""
    accepted: str = ""
    """Which outputs it accepted, in words, where it was seen to enforce nothing; empty where something was
    refused, and where no invalid output was walked."""
    checked: Checked = Checked()
    inputs: frozenset[tuple[str, str]] = frozenset()
    """The suites and the vocabulary that it was tried on, each with the digest of what it holds."""
    reads_as: str = ""
    """The language or library as which it reads regular expressions, where it says so and another reading may
    differ (`READERS`); else empty."""
    limits: str = ""
    """The time and the memory that a case might take, and the seed where one drew what the checks looked
    at."""
    run: str = ""
    """The name of the run that it was tried in, where the answer is of several."""

    def without(self, lost: Collection[CaseKey]) -> BackendAnswer:
        """Returns the backend as it is without these cases; its times stay those of all."""
        if not lost:
            return self
        kept = tuple(case for case in self.cases if (case.suite, case.case_id) not in lost)
        counts = counts_of_states((case.state, case.is_counted) for case in kept)
        return replace(self, cases=kept, counts=counts)

    def where_nothing_fits(self, ids: Collection[str]) -> BackendAnswer:
        """Returns the backend as it is where no document fits the cases of these ids. Whichever token is
        allowed there leads to none: who compiles such a case, and accepts no output of it, does not let a
        wrong one through. That it compiles what it could refuse is another fault."""
        if not ids:
            return self
        cases = tuple(_compiled_in_vain(case) if case.case_id in ids else case for case in self.cases)
        counts = counts_of_states((case.state, case.is_counted) for case in cases)
        return replace(self, cases=cases, counts=counts)

    def count(self, state: CaseState) -> int:
        """Returns how many cases are in the state."""
        return sum(case.state == state for case in self.cases)

    @property
    def works(self) -> int:
        """Returns how many cases work."""
        return self.counts.works

    @property
    def goes_wrong(self) -> int:
        """Returns in how many cases it fails by more than other faults."""
        return self.counts.failed - self.counts.other_fault

    @property
    def right_outputs(self) -> int:
        """Returns in how many cases outputs were judged and none was wrong: those that work, and those in
        which checks found other faults alone."""
        return self.works + sum(
            case.state == CaseState.OTHER_FAULT and case.was_judged for case in self.cases
        )

    def constraints(self, state: CaseState) -> tuple[str, ...]:
        """Returns what is not kept in the cases of the state, each once: first what instances show, then
        what documents that the backend wrote show, then what only masks show."""
        proofs = sorted(
            (
                proof
                for case in self.cases
                if case.state == state
                for proof in case.proofs
                if proof.state == state and proof.constraint
            ),
            key=lambda proof: proof.order,
        )
        return distinct(proof.constraint for proof in proofs)


def _compiled_in_vain(case: CaseAnswer) -> CaseAnswer:
    """Returns a case that no document fits with another fault, and no right output, where masks alone show
    that it is silently wrong; else as it is."""
    wrong = [proof for proof in case.proofs if proof.state == CaseState.SILENTLY_WRONG]
    if case.state != CaseState.SILENTLY_WRONG or not all(proof.is_of_a_mask for proof in wrong):
        return case
    other = CaseState.OTHER_FAULT
    proofs = tuple(replace(proof, state=other) if proof in wrong else proof for proof in case.proofs)
    return replace(case, state=other, proofs=proofs, was_judged=False)


def lost_to_us(backends: Iterable[BackendAnswer]) -> frozenset[CaseKey]:
    """Returns the cases that could not be measured on one of the backends, through our own fault.

    They say nothing of which is better. Controls, and backends of which nothing was judged, take no case from
    the others.
    """
    return frozenset(
        (case.suite, case.case_id)
        for backend in backends
        if backend.counts.judged and not backend.is_control
        for case in backend.cases
        if case.state == CaseState.NOT_MEASURED
    )


def backends_of(
    arms: Sequence[ArmSummary],
    proofs: Proofs,
    compiles: Compiles,
    info: RunInfo,
    names: Iterable[str] | None = None,
) -> list[BackendAnswer]:
    """Returns what each arm of one run is like, in the run's order.

    `proofs` and `compiles` have had all rows of the run. `names` are the arms' names where the caller has
    some of its own.
    """
    slowest = {tail.slowest.key: tail.slowest for tail in compiles.tails()}
    floors = controls(info)
    lenient = proofs.enforcing.enforcing_nothing(info) - floors
    checked = Checked.of(info)
    limits = f"{info.timeout_s:g} s, {info.memory_bytes / 1e9:g} GB"
    if not checked.is_nothing:
        limits += f", seed {info.seed}"
    if names is None:
        of_run = arm_names(info.arms)
        names = [of_run[arm.key[:3]] for arm in arms]
    shared = _solved_by_all(arms, floors | lenient)
    documented = {version_key(arm): arm.documented for arm in info.arms}
    made = []
    for arm, name in zip(arms, names, strict=True):
        per_token, first_mask = tbm(arm), ttfm(arm)
        levels, to_first = percentiles(per_token), percentiles(first_mask)["p50"]
        costs = Costs(len(first_mask), False, to_first, levels["p50"])
        if arm.key in shared:
            mine = arm.only(shared[arm.key])
            costs = Costs(len(mine.cases), True, *(percentiles(time(mine))["p50"] for time in (ttfm, tbm)))
        made.append(
            BackendAnswer(
                arm.key,
                name,
                arm.version,
                arm.vocabulary,
                arm.counts(),
                _cases(arm, proofs),
                slowest.get(arm.key),
                levels["p50"],
                levels["p99"],
                few("p99", len(per_token)),
                to_first,
                costs,
                arm.timed.why_not,
                is_control=arm.key in floors,
                enforces_nothing=arm.key in lenient,
                accepted=proofs.enforcing.accepted(arm.key),
                checked=checked,
                inputs=_inputs(arm, info),
                reads_as=next(filter(None, map(READERS.get, documented.get(arm.key[:3], ()))), ""),
                limits=limits,
            )
        )
    return made


def _solved_by_all(arms: Sequence[ArmSummary], left_out: Collection[ArmKey]) -> dict[ArmKey, set[CaseKey]]:
    """Returns for each arm the cases by whose times it can be compared with the others on its vocabulary; no
    arm where there is no other, or no such case. Those that are left out, and those that solve nothing, take
    no case from the others."""
    made: dict[ArmKey, set[CaseKey]] = {}
    able = [arm for arm in arms if arm.key not in left_out and arm.solves_any]
    for vocabulary in {arm.vocabulary for arm in able}:
        mine = [arm for arm in able if arm.vocabulary == vocabulary]
        shared = {
            key for key in common_solved(mine) if all(arm.cases[key].ttfm_ns is not None for arm in mine)
        }
        if shared and len(mine) > 1:
            made |= {arm.key: shared for arm in mine}
    return made


def _cases(arm: ArmSummary, proofs: Proofs) -> tuple[CaseAnswer, ...]:
    """Returns what each case is like on the arm, with its proofs."""
    return tuple(
        CaseAnswer(
            suite, case_id, proofs.names[suite, case_id], summary.rows.state,
            tuple(proofs.found.get(arm.key, {}).get((suite, case_id), ())), summary.rows.judged,
            summary.rows.is_judged, (suite, case_id) in proofs.cut_short.get(arm.key, ()),
        )
        for (suite, case_id), summary in arm.cases.items()
    )  # fmt: skip


def _inputs(arm: ArmSummary, info: RunInfo) -> frozenset[tuple[str, str]]:
    """Returns the suites and the vocabulary that the arm was tried on, each with the digest of what it
    holds."""
    digests = {f"the suite “{suite}”": info.suites.get(suite, {}) for suite, _ in arm.cases}
    digests[f"the vocabulary “{arm.vocabulary}”"] = info.vocabularies.get(arm.vocabulary, {})
    return frozenset((name, about.get("sha256", "")) for name, about in digests.items())
