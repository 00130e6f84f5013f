"""The sentences that say what to use and how the backends fare. Names of constraints stand between backticks,
as code does."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from harness.outcomes.answer.backends import BackendAnswer
from harness.outcomes.answer.cases import DESCRIPTIONS, CaseKey, telling
from harness.outcomes.case_state import CaseState
from harness.text import counted, duration, listed, some

MOST_CONSTRAINTS = 3
MOST_BACKENDS = 2
MOST_CLAUSES = 2
"""Clauses about what goes wrong with another backend than the best."""

MOST_UNRANKED = 4
"""Backends of which is told how they fare where none is put before another."""

UNJUDGED = "was not judged"

CLAUSES = {
    CaseState.BREAKS: "breaks on {}",
    CaseState.SILENTLY_WRONG: "is silently wrong in {}",
    CaseState.VALID_REFUSED: "refuses valid output in {}",
    CaseState.TOO_SLOW: "is too slow in {}",
    CaseState.OTHER_FAULT: "has another fault in {}",
}


def sentence(
    best: BackendAnswer | None,
    equals: Sequence[BackendAnswer],
    others: Sequence[BackendAnswer],
    lost: Collection[CaseKey],
    noun: str,
    verb: str,
    whose: str,
) -> str:
    """Returns what to use and how the backends fare, in a few sentences. Backends that are equal are so
    without the lost cases (`lost_to_us`)."""
    if best is None:
        return f"Nothing can be said yet: no {noun} of this run could be judged."
    told, also = best, equals
    where = also_lost = ""
    if lost and equals and is_of_use(best):
        told, *also = (backend.without(lost) for backend in (best, *equals))
        whose, where, also_lost = "the", " where all could be measured", f" {lost_line(lost, noun)}"
    rest = [*_goes_wrong(told, *also).values(), *_refuses(told)]
    fares = f"{listed([_fares_of_all(told, noun, whose), *rest])}{_open(told)}."
    names = listed([best.name, *(other.name for other in equals)])
    if not is_of_use(best) and (equals or others):
        each = ", each of which" if equals else ""
        first = f"None of these backends can be recommended: {names}{each} {fares}"
    elif not is_of_use(best):
        first = f"{names} cannot be recommended: it {fares}"
    elif equals:
        first = f"{names} are equally right{where}: each {fares}{also_lost}{_cheaper(best, equals, noun)}"
    elif others:
        first = f"{verb} {best.name}: it {fares}"
    else:
        first = f"{best.name} {fares}"
    return " ".join([first, *_others(others), *_enforces_nothing([best, *equals, *others])])


def is_of_use(backend: BackendAnswer) -> bool:
    """Has the backend right outputs, and not only because it lets everything through?"""
    return backend.right_outputs > 0 and not backend.enforces_nothing


def why_not_ranked(
    judged: Sequence[BackendAnswer], lost: Collection[CaseKey], noun: str, is_complete: bool
) -> str:
    """Says why none of the judged backends may be put before another; empty where one may."""
    if not is_complete:
        return "A run here is not whole, so nothing is recommended yet"
    if len({frozenset(_keys(backend)) for backend in judged}) > 1:
        if len({frozenset(ids(backend)) for backend in judged}) > 1:
            return f"These backends were not tried on the same {noun}s, so none is put before another"
        return (
            f"These backends were tried on the same {noun}s in suites of other names, which may judge other "
            "outputs, so none is put before another"
        )
    inputs = [backend.inputs for backend in judged]
    if other := frozenset.union(*inputs) - frozenset.intersection(*inputs):
        names = sorted({name for name, _ in other})
        return (
            f"These backends were tried on the same {noun}s, but {listed(names)} "
            f"{'is' if len(names) == 1 else 'are'} not the same in their runs, so none is put before another"
        )
    if len({backend.checked for backend in judged}) > 1:
        efforts = sorted({backend.checked.effort for backend in judged}, key=lambda level: (level < 0, level))
        levels = listed("all" if effort < 0 else str(effort) for effort in efforts)
        how = f"effort {levels}" if len(efforts) > 1 else "not each with all of them"
        return f"These backends were not tried with the same checks ({how}), so none is put before another"
    if lost and not any(backend.without(lost).counts.judged for backend in judged):
        return f"No {noun} was measured with all of them, by our own fault, so none is put before another"
    return ""


def unranked(why: str, judged: Sequence[BackendAnswer], noun: str) -> str:
    """Returns why none is put before another, and how each fares on its own cases."""
    fares = [
        f"{backend.name} {listed([_fares_of_all(backend, noun, 'its'), *_gravest(backend)])}."
        for backend in judged[:MOST_UNRANKED]
    ]
    left = len(judged) - MOST_UNRANKED
    more = [f"{counted(left, 'more backend')} {'was' if left == 1 else 'were'} tried."] if left > 0 else []
    return " ".join([f"{why}: {fares[0]}", *fares[1:], *more, *_enforces_nothing(judged)])


def _keys(backend: BackendAnswer) -> set[CaseKey]:
    """Returns the cases that the backend was tried on, whatever they came to."""
    return {(case.suite, case.case_id) for case in backend.cases}


def ids(backend: BackendAnswer) -> set[str]:
    """Returns what the same grammars have in common in suites of any name: what is judged of them there may
    differ."""
    return {case.case_id for case in backend.cases}


def _enforces_nothing(backends: Sequence[BackendAnswer]) -> Iterator[str]:
    """Yields a sentence about the backends that let everything through; nothing where none does."""
    yield from let_through([backend for backend in backends if backend.enforces_nothing])


def let_through(backends: Sequence[BackendAnswer]) -> Iterator[str]:
    """Yields how these backends were seen to enforce nothing, those that fared alike together; of a control
    that had nothing to let through only what it is."""
    names: dict[str, list[str]] = {}
    for backend in backends:
        names.setdefault(backend.accepted, []).append(backend.name)
    for accepted, alike in names.items():
        if accepted:
            yield f"{listed(alike)} enforced nothing: {accepted}."
        elif len(alike) == 1:
            yield f"{alike[0]} is a control, which enforces nothing."
        else:
            yield f"{listed(alike)} are controls, which enforce nothing."


def more_is_right(backend: BackendAnswer) -> bool:
    """Are the outputs right in more cases than work?"""
    return backend.right_outputs > backend.works


def _fares(backend: BackendAnswer) -> str:
    """Returns in how many cases nothing is wrong with the outputs; where another fault was found in some of
    them, these do not work, and are told behind it."""
    if more_is_right(backend):
        return f"gives right output in {backend.right_outputs:,}"
    return f"works on {backend.works:,}" if backend.works else "works on none"


def _fares_of_all(backend: BackendAnswer, noun: str, whose: str) -> str:
    """Returns the same with the number of all cases."""
    total = backend.counts.cases
    if total != 1:
        return f"{_fares(backend)} of {whose} {total:,} {noun}s"
    if backend.count(CaseState.REFUSED):
        return f"refuses {whose} one {noun}"
    if not backend.right_outputs:
        return f"does not work on {whose} one {noun}"
    return f"{_fares(backend).removesuffix(' 1')} {whose} one {noun}"


def _others(others: Sequence[BackendAnswer]) -> Iterator[str]:
    """Yields how the other backends fare, those that fare alike together; of the last ones only how many
    they are."""
    alike: dict[str, list[str]] = {}
    for backend in others:
        clauses = [_fares(backend), *_gravest(backend)]
        if backend.count(CaseState.REFUSED) == backend.counts.cases:
            clauses = ["refuses it" if backend.counts.cases == 1 else "refuses them all"]
        fares = f"{listed(clauses)}{_open(backend)}" if backend.counts.judged else UNJUDGED
        alike.setdefault(fares, []).append(backend.name)
    told = dict(list(alike.items())[:MOST_BACKENDS])
    for fares, names in told.items():
        yield f"{names[0]} {fares}." if len(names) == 1 else f"{listed(names)}: each {fares}."
    left = {fares: len(names) for fares, names in alike.items() if fares not in told}
    unjudged = left.pop(UNJUDGED, 0)
    if more := sum(left.values()):
        yield "One more is ranked behind." if more == 1 else f"{more:,} more are ranked behind."
    if unjudged:
        yield f"One more {UNJUDGED}." if unjudged == 1 else f"{unjudged:,} more were not judged."


def _gravest(backend: BackendAnswer) -> list[str]:
    """Returns the first clauses of what goes wrong; with the other faults where these are why fewer cases
    work than have right output, so that the sentence and the counts agree."""
    wrong = _goes_wrong(backend)
    clauses = [*wrong.values(), *_refuses(backend)][:MOST_CLAUSES]
    other = wrong.get(CaseState.OTHER_FAULT)
    return [*clauses, other] if other and more_is_right(backend) and other not in clauses else clauses


def _goes_wrong(backend: BackendAnswer, *equals: BackendAnswer) -> dict[CaseState, str]:
    """Returns a clause for each way in which cases fail, with what is not kept, where that is the same for
    the backends that are told together with it."""
    clauses = {}
    for state, words in CLAUSES.items():
        number = backend.count(state)
        if not number:
            continue
        names = telling(state, backend.constraints(state))
        if any(set(telling(state, other.constraints(state))) != set(names) for other in equals):
            names = ()
        shown = some([coded(name) for name in names], MOST_CONSTRAINTS)
        if (left := len(names) - MOST_CONSTRAINTS) > 0:
            # After "in 3", a reader could take "1 more" for one more case.
            shown += " cause" if left == 1 else " causes"
        is_among_right = (
            state == CaseState.OTHER_FAULT
            and number == backend.right_outputs - backend.works
            and backend.right_outputs < backend.counts.cases
        )
        among = " of those with right output" if is_among_right else ""
        clauses[state] = words.format(f"{number:,}{among}") + (f" ({shown})" if shown else "")
    return clauses


def _refuses(backend: BackendAnswer) -> list[str]:
    """Returns a clause about the refused cases; of a backend's only case `_fares_of_all` tells it."""
    refused = backend.count(CaseState.REFUSED) if backend.counts.cases > 1 else 0
    # Behind "refuses valid output in 2", "refuses 3" alone could be read as more of the same.
    altogether = " altogether" if backend.count(CaseState.VALID_REFUSED) else ""
    return [f"refuses {refused:,}{altogether}"] if refused else []


def _open(backend: BackendAnswer) -> str:
    """Returns in how many cases it is not known how the backend fares; empty where there are none."""
    left = []
    if not_judged := backend.counts.not_judged:
        left.append(f"{not_judged:,} {'is' if not_judged == 1 else 'are'} not judged")
    if backend.counts.not_measured:
        left.append(f"{backend.counts.not_measured:,} could not be measured, through our own fault")
    return f"; {listed(left)}" if left else ""


def lost_line(lost: Collection[CaseKey], noun: str) -> str:
    """Returns how many cases were not measured whole, as a sentence."""
    return f"Of {counted(len(lost), noun)} a part could not be measured, through our own fault."


def _cheaper(best: BackendAnswer, equals: Sequence[BackendAnswer], noun: str) -> str:
    """Returns what a token costs with each, in the cases that all backends solve where there are some."""
    costs = [
        f"{backend.name} {duration(backend.costs.per_token_ns)}"
        for backend in (best, *equals)
        if backend.costs.per_token_ns is not None
    ]
    where = "Half of the tokens"
    if best.costs.is_shared and best.costs.cases < best.counts.cases:
        where = f"In the {counted(best.costs.cases, noun)} that all solve, half of the tokens"
    return f" {where} cost at most: {', '.join(costs)}." if len(costs) > 1 else ""


def coded(constraint: str) -> str:
    """Returns the name of a constraint between backticks; a description as it stands."""
    return constraint if constraint in DESCRIPTIONS else f"`{constraint}`"
