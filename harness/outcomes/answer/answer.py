"""The answer itself: the backend to use, the sentence that says so, how sure it is, and the gravest risks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.outcomes.answer import words
from harness.outcomes.answer.backends import BackendAnswer, backends_of, lost_to_us
from harness.outcomes.answer.cases import CaseAnswer, CaseKey, Proofs
from harness.outcomes.answer.certainty import (
    NOTHING,
    grounds,
    grounds_unranked,
    sure,
    unchecked,
    unfinished,
    why_not_surer,
)
from harness.outcomes.answer.risks import and_in_more, is_shown_by, sentence_of
from harness.outcomes.case_state import CaseState
from harness.outcomes.outcome import LAST
from harness.outcomes.slow_compiles import Compiles
from harness.outcomes.summary import ArmSummary, each_taken_in, summarize
from harness.rows.row import Row
from harness.rows.store import read_end, read_info, read_rows, read_samples

MOST_RISKS = 3

ENOUGH = 0.5
"""A backend that works on less than this share of what the best one works on is not recommended, however few
faults it has: one that refuses everything would have none."""


@dataclass(frozen=True)
class Risk:
    """One case in which something goes wrong."""

    case: CaseAnswer
    backends: tuple[str, ...]
    """The names of the backends in which it does."""
    sentence: str
    """What goes wrong, with the document that shows it."""


@dataclass(frozen=True)
class Answer:
    """What a run answers."""

    sentence: str
    """Names the backend to use, and says how it and the others fare."""
    best: BackendAnswer | None
    """The backend to use; None where nothing was judged, and where none may be put before another."""
    equals: tuple[BackendAnswer, ...]
    """The other backends that fare as well as the best: each has as many cases in each state."""
    backends: tuple[BackendAnswer, ...]
    """On the vocabulary that the answer is about, the best first; controls are last."""
    others: tuple[BackendAnswer, ...]
    """On further vocabularies."""
    risks: tuple[Risk, ...]
    """The gravest of what goes wrong with the best backend, or with those that are equal to it; at most
    three, the gravest first."""
    risks_elsewhere: tuple[Risk, ...]
    """The gravest risks of the other backends, chosen in the same way."""
    sure: str
    """How sure it is for these cases: `high`, `fair`, `low`, or why it is none of these (`NOTHING`)."""
    certainty: tuple[str, ...]
    """What that rests on, in sentences."""
    doubts: tuple[str, ...] = ()
    """The sentences of `certainty` that say why it is not surer, and which checks were not made."""

    @property
    def is_recommended(self) -> bool:
        """Is the best backend one to use? One without a right output, or that enforces nothing, is only the
        least bad."""
        return self.best is not None and words.is_of_use(self.best)


def read_answer(run: Path, *, verb: str = "Use", whose: str = "the") -> Answer:
    """Returns what the run in this folder answers. Raises BadInput."""
    return read_answered(run, verb=verb, whose=whose)[0]


def read_answered(
    run: Path,
    *takers: Callable[[Row], None],
    verb: str = "Use",
    whose: str = "the",
    untried: str = "",
    unfit: Collection[str] = (),
) -> tuple[Answer, list[ArmSummary], Compiles]:
    """Returns what the run answers, and its arms and compiles; every taker is given each row too, so that the
    rows are read once. The words, and `unfit`, are as in `answer_of`. Raises BadInput."""
    info = read_info(run)
    proofs, compiles = Proofs(), Compiles(info.timeout_s)
    rows = each_taken_in(read_rows(run), proofs.add, compiles.add, *takers)
    arms = summarize(rows, read_samples(run), info, run)
    proofs.explain(run)
    answer = answer_of(
        backends_of(arms, proofs, compiles, info),
        proofs,
        info.vocabulary_sizes,
        verb=verb,
        whose=whose,
        untried=untried,
        unfit=unfit,
        is_complete=read_end(run) is not None,
    )
    return answer, arms, compiles


def answer_of(
    backends: Sequence[BackendAnswer],
    proofs: Proofs,
    vocabulary_sizes: dict[str, int],
    *,
    verb: str = "Use",
    whose: str = "the",
    untried: str = "",
    unfit: Collection[str] = (),
    is_complete: bool,
) -> Answer:
    """Returns the answer about the backends, on the largest vocabulary: smaller ones are for tests.

    `verb` begins the sentence ("Use", "Set"); `whose` stands before the number of cases ("the", "your");
    `untried` is a clause about what was not tried, though the answer is about it, and so is not sure. `unfit`
    are the ids of cases that no document fits. Without `is_complete` a run is not whole, and nothing is
    recommended.
    """
    backends = [backend.where_nothing_fits(unfit) for backend in backends]
    walked = [backend for backend in backends if backend.cases] or backends
    names = list(dict.fromkeys(backend.vocabulary for backend in walked))
    chosen = max(names, key=lambda name: vocabulary_sizes.get(name, 0), default="")
    mine = [backend for backend in backends if backend.vocabulary == chosen]
    lost = lost_to_us(mine)
    ranked = ranking(mine, lost)
    ordered = (*ranked, *(backend for backend in mine if backend.is_control))
    judged = [backend for backend in ranked if backend.counts.judged]
    noun = "schema" if proofs.dialects == {"json_schema"} else "case"
    if judged and (why := words.why_not_ranked(judged, lost, noun, is_complete)):
        as_run = [backend for backend in mine if backend.counts.judged and not backend.is_control]
        return Answer(
            sentence=words.unranked(why, as_run, noun),
            best=None,
            equals=(),
            backends=(*as_run, *(backend for backend in ordered if backend not in as_run)),
            others=tuple(backend for backend in backends if backend.vocabulary != chosen),
            risks=(),
            risks_elsewhere=tuple(_risks(as_run)[:MOST_RISKS]),
            sure=NOTHING["comparable" if is_complete else "complete"],
            certainty=tuple(grounds_unranked(as_run, ordered, proofs, noun)),
        )
    best = judged[0] if judged else None
    equals = tuple(other for other in judged[1:] if best is not None and _is_equal(best, other, lost))
    chosen_ones = [one for one in (best, *equals) if one is not None]
    others = [one for one in ranked if all(one is not another for another in chosen_ones)]
    return Answer(
        sentence=words.sentence(best, equals, others, lost, noun, verb, whose),
        best=best,
        equals=equals,
        backends=ordered,
        others=tuple(backend for backend in backends if backend.vocabulary != chosen),
        risks=tuple(_risks(chosen_ones)[:MOST_RISKS]),
        risks_elsewhere=tuple(_risks(others)[:MOST_RISKS]),
        sure=sure(best, judged, proofs, lost, untried),
        certainty=tuple(grounds(best, ordered, proofs, noun, untried)),
        doubts=(
            *why_not_surer(best, judged, proofs, lost, noun, untried),
            *unchecked(judged),
            *unfinished(ordered, proofs, noun),
        )
        if best is not None
        else (),
    )  # fmt: skip


def ranking(backends: Sequence[BackendAnswer], lost: Collection[CaseKey]) -> list[BackendAnswer]:
    """Returns the backends but for controls, the one to use first.

    What goes wrong in the fewest cases comes first, then what has right outputs in the most, then what goes
    wrong less gravely, then what has the fewest faults besides, then what refuses the fewest, then what costs
    the least per token: a refusal is said aloud and can be answered, a fault cannot, but a case that is taken
    may work though nothing could judge it. Backends that have right outputs in too few
    cases (`ENOUGH`), or that enforce nothing, come last. The lost cases (`lost_to_us`) count on none.
    """
    able = [backend for backend in backends if not backend.is_control]
    most = max((backend.without(lost).right_outputs for backend in able), default=0)

    def standing(backend: BackendAnswer) -> tuple[object, ...]:
        fares = backend.without(lost)
        return (
            fares.right_outputs < ENOUGH * most or not words.is_of_use(backend),
            fares.goes_wrong,
            -fares.right_outputs,
            _by_gravity(fares),
            fares.count(CaseState.OTHER_FAULT),
            fares.count(CaseState.REFUSED),
            backend.costs.per_token_ns if backend.costs.per_token_ns is not None else float("inf"),
        )

    return sorted(able, key=standing)


def risks_by_backend(answer: Answer) -> Iterator[tuple[str, tuple[Risk, ...]]]:
    """Yields a heading and the risks below it: of the backend to use, then of the others; nothing where there
    are none."""
    if answer.risks:
        name = answer.best.name if answer.best is not None and not answer.equals else "them"
        yield f"What goes wrong with {name}, the worst first", answer.risks
    if answer.risks_elsewhere:
        names = {name for risk in answer.risks_elsewhere for name in risk.backends}
        others = names.pop() if len(names) == 1 else "the others" if answer.best is not None else "them"
        yield f"What goes wrong with {others}, the worst first", answer.risks_elsewhere


def _by_gravity(backend: BackendAnswer) -> tuple[int, ...]:
    """Returns in how many cases it goes wrong in each way, the gravest way first."""
    return tuple(backend.count(state) for state in CaseState if state.gravity < CaseState.OTHER_FAULT.gravity)


def _is_equal(one: BackendAnswer, other: BackendAnswer, lost: Collection[CaseKey]) -> bool:
    """Do the two have as many cases in each state, and right outputs in as many, but for those that we lost,
    and enforce both something or both nothing?"""
    mine, its = one.without(lost), other.without(lost)
    return (mine.right_outputs, mine.enforces_nothing) == (its.right_outputs, its.enforces_nothing) and all(
        mine.count(state) == its.count(state) for state in CaseState
    )


def _risks(ranked: Sequence[BackendAnswer]) -> list[Risk]:
    """Returns the risks of each case in which a backend fails, the gravest first; those of the first backend
    before others of the same gravity, and what is not kept for the first time before what a risk before it
    names already. Backends that fail equally gravely share a risk where the same thing shows it. A check of
    the interface that fails in many cases is one risk, of the first of them."""
    worst: dict[CaseKey, list[tuple[CaseAnswer, list[str], int]]] = {}
    for place, backend in enumerate(ranked):
        for case in backend.cases:
            if case.state.gravity >= CaseState.REFUSED.gravity:
                continue
            groups = worst.setdefault((case.suite, case.case_id), [])
            if groups and case.state.gravity > groups[0][0].state.gravity:
                continue
            if groups and case.state.gravity < groups[0][0].state.gravity:
                groups.clear()
            sharing = next((names for other, names, _ in groups if is_shown_by(case, other)), None)
            if sharing is not None:
                sharing.append(backend.name)
            else:
                groups.append((case, [backend.name], place))
    named: set[tuple[str, ...]] = set()
    listed = []
    risks = [group for groups in worst.values() for group in groups]
    alike = Counter(_check_of(case, names) for case, names, _ in risks)
    for case, names, place in risks:
        shown = case.proof.order[1:] if case.proof is not None else LAST[1:]
        check = _check_of(case, names)
        if check and check not in alike:
            continue  # the first case of this check has told it
        more = alike.pop(check) - 1 if check else 0
        sentence = and_in_more(sentence_of(case, names), more)
        listed.append((case.state.gravity, shown, place, Risk(case, tuple(names), sentence)))
    listed.sort(key=lambda one: one[:3])
    made = []
    for gravity, _, _, risk in listed:
        made.append((gravity, risk.case.constraints in named, risk))
        named.add(risk.case.constraints)
    return [risk for _, _, risk in sorted(made, key=lambda one: one[:2])]


def _check_of(case: CaseAnswer, names: Sequence[str]) -> tuple[str, ...]:
    """Returns the backends and the check of the interface that fails in the case; empty where an output is
    at fault, or another thing."""
    if case.state != CaseState.OTHER_FAULT or case.proof is None or not case.proof.check:
        return ()
    return (*names, case.proof.check)
