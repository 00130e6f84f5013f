"""The sentences of an answer. Names of constraints stand between backticks, as code does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from harness.outcomes.answer.cases import DESCRIPTIONS, CaseAnswer, CaseKey, Proof, Proofs, number_of
from harness.outcomes.case_state import CaseState
from harness.text import counted, duration, one_line, shorten

if TYPE_CHECKING:
    from harness.outcomes.answer.backends import BackendAnswer

MOST_CONSTRAINTS = 3
MOST_BACKENDS = 2
MOST_CLAUSES = 2
"""Clauses about what goes wrong with another backend than the best."""

LONGEST_EVIDENCE = 160
"""Characters of what stands beside a state."""

MOST_UNRANKED = 4
"""Backends of which is told how they fare where none is put before another."""

UNJUDGED = "was not judged"

NOTHING = {
    "known": "nothing is known",
    "comparable": "nothing can be compared",
    "complete": "nothing is concluded",
}
"""What stands in place of how sure an answer is where there is none: because nothing was judged, because the
backends did not walk the same, or because a run is not whole."""

NO_REFERENCE = "no instance with a known verdict, and no mask that was compared with an exact reference"
"""Why a case is not judged."""

CLAUSES = {
    CaseState.BREAKS: "breaks on {}",
    CaseState.SILENTLY_WRONG: "is silently wrong in {}",
    CaseState.VALID_REFUSED: "refuses valid output in {}",
    CaseState.TOO_SLOW: "is too slow in {}",
    CaseState.OTHER_FAULT: "has another fault in {}",
}

RIGHT_OUTPUT = (
    "Output is right in the cases that work, and in those of which outputs were judged and in which checks "
    "of the interface alone found a fault."
)
"""What a backend's number of right outputs counts."""


def sentence(
    best: BackendAnswer | None,
    equals: Sequence[BackendAnswer],
    others: Sequence[BackendAnswer],
    noun: str,
    verb: str,
    whose: str,
) -> str:
    """Returns what to use and how the backends fare, in one or two sentences."""
    if best is None:
        return f"Nothing can be said yet: no {noun} of this run could be judged."
    fares = _fares_of_all(best, noun, whose)
    rest = [*_goes_wrong(best, *equals), *_refuses(best)]
    names = _and([best.name, *(other.name for other in equals)])
    if not is_of_use(best):
        first = f"None of these backends can be recommended: {names}{', each of which' if equals else ''} "
        first += f"{fares}{_joined(rest)}{_open(best)}."
    elif equals:
        first = f"{names} are equally right: each {fares}{_joined(rest)}{_open(best)}."
        first += _cheaper(best, equals)
    elif others:
        first = f"{verb} {best.name}: it {fares}{_joined(rest)}{_open(best)}."
    else:
        first = f"{best.name} {fares}{_joined(rest)}{_open(best)}."
    return " ".join([first, *_others(others), *_enforces_nothing([best, *equals, *others])])


def is_of_use(backend: BackendAnswer) -> bool:
    """Has the backend right outputs, and not only because it lets everything through?"""
    return backend.right_outputs > 0 and not backend.enforces_nothing


def why_not_ranked(judged: Sequence[BackendAnswer], noun: str, is_complete: bool) -> str:
    """Says why none of the judged backends may be put before another; empty where one may."""
    if not is_complete:
        return "A run here is not whole, so nothing is recommended yet"
    if len({frozenset(_keys(backend)) for backend in judged}) > 1:
        if len({frozenset(_ids(backend)) for backend in judged}) > 1:
            return f"These backends were not tried on the same {noun}s, so none is put before another"
        return (
            f"These backends were tried on the same {noun}s in suites of other names, which may judge other "
            "outputs, so none is put before another"
        )
    if len({backend.checked for backend in judged}) > 1:
        efforts = sorted({backend.checked.effort for backend in judged}, key=lambda level: (level < 0, level))
        levels = _and("all" if effort < 0 else str(effort) for effort in efforts)
        how = f"effort {levels}" if len(efforts) > 1 else "not each with all of them"
        return f"These backends were not tried with the same checks ({how}), so none is put before another"
    return ""


def unranked(why: str, judged: Sequence[BackendAnswer], noun: str) -> str:
    """Returns why none is put before another, and how each fares on its own cases."""
    fares = [
        f"{backend.name} {_fares_of_all(backend, noun, 'its')}{_joined(_gravest(backend))}."
        for backend in judged[:MOST_UNRANKED]
    ]
    left = len(judged) - MOST_UNRANKED
    more = [f"{counted(left, 'more backend')} {'was' if left == 1 else 'were'} tried."] if left > 0 else []
    return " ".join([f"{why}: {fares[0]}", *fares[1:], *more, *_enforces_nothing(judged)])


def _keys(backend: BackendAnswer) -> set[CaseKey]:
    """Returns the cases that the backend was tried on, whatever they came to."""
    return {(case.suite, case.case_id) for case in backend.cases}


def _ids(backend: BackendAnswer) -> set[str]:
    """Returns what the same grammars have in common in suites of any name: what is judged of them there may
    differ."""
    return {case.case_id for case in backend.cases}


def _enforces_nothing(backends: Sequence[BackendAnswer]) -> Iterator[str]:
    """Yields a sentence about the backends that let everything through; nothing where none does."""
    yield from _let_through([backend for backend in backends if backend.enforces_nothing])


def _let_through(backends: Sequence[BackendAnswer]) -> Iterator[str]:
    """Yields how these backends were seen to enforce nothing, those that fared alike together; of a control
    that had nothing to let through only what it is."""
    names: dict[str, list[str]] = {}
    for backend in backends:
        names.setdefault(backend.accepted, []).append(backend.name)
    for accepted, alike in names.items():
        if accepted:
            yield f"{_and(alike)} enforced nothing: {accepted}."
        elif len(alike) == 1:
            yield f"{alike[0]} is a control, which enforces nothing."
        else:
            yield f"{_and(alike)} are controls, which enforce nothing."


def _more_is_right(backend: BackendAnswer) -> bool:
    """Are the outputs right in more cases than work?"""
    return backend.right_outputs > backend.works


def _fares(backend: BackendAnswer) -> str:
    """Returns in how many cases nothing is wrong with the outputs; where checks of the interface found faults
    in some of them, these do not work, and are told behind it."""
    if _more_is_right(backend):
        return f"gives right output in {backend.right_outputs:,}"
    return f"works on {backend.works:,}" if backend.works else "works on none"


def _fares_of_all(backend: BackendAnswer, noun: str, whose: str) -> str:
    """Returns the same with the number of all cases."""
    total = backend.counts.cases
    if total != 1:
        return f"{_fares(backend)} of {whose} {total:,} {noun}s"
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
            clauses = ["refuses them all"]
        fares = _and(clauses) if backend.counts.judged else UNJUDGED
        alike.setdefault(fares, []).append(backend.name)
    told = dict(list(alike.items())[:MOST_BACKENDS])
    for fares, names in told.items():
        yield f"{names[0]} {fares}." if len(names) == 1 else f"{_and(names)}: each {fares}."
    left = {fares: len(names) for fares, names in alike.items() if fares not in told}
    unjudged = left.pop(UNJUDGED, 0)
    if worse := sum(left.values()):
        yield "One more fares worse." if worse == 1 else f"{worse:,} more fare worse."
    if unjudged:
        yield f"One more {UNJUDGED}." if unjudged == 1 else f"{unjudged:,} more were not judged."


def _gravest(backend: BackendAnswer) -> list[str]:
    """Returns the first clauses of what goes wrong; with the other faults where these are why fewer cases
    work than have right output, so that the sentence and the counts agree."""
    clauses = [*_goes_wrong(backend), *_refuses(backend)]
    other = CLAUSES[CaseState.OTHER_FAULT].format(f"{backend.count(CaseState.OTHER_FAULT):,}")
    if _more_is_right(backend) and other not in clauses[:MOST_CLAUSES]:
        return [*clauses[:MOST_CLAUSES], other]
    return clauses[:MOST_CLAUSES]


def _goes_wrong(backend: BackendAnswer, *equals: BackendAnswer) -> list[str]:
    """Returns a clause for each way in which cases fail, with what is not kept, where that is the same for
    the backends that are told together with it."""
    clauses = []
    for state, words in CLAUSES.items():
        number = backend.count(state)
        if not number:
            continue
        names = backend.constraints(state) if state == CaseState.SILENTLY_WRONG else ()
        if any(set(other.constraints(state)) != set(names) for other in equals):
            names = ()
        shown = ", ".join(coded(name) for name in names[:MOST_CONSTRAINTS])
        more = f" and {len(names) - MOST_CONSTRAINTS} more" if len(names) > MOST_CONSTRAINTS else ""
        clauses.append(words.format(f"{number:,}") + (f" ({shown}{more})" if shown else ""))
    return clauses


def _refuses(backend: BackendAnswer) -> list[str]:
    refused = backend.count(CaseState.REFUSED)
    # Behind "refuses valid output in 2", "refuses 3" alone could be read as more of the same.
    altogether = " altogether" if backend.count(CaseState.VALID_REFUSED) else ""
    return [f"refuses {refused:,}{altogether}"] if refused else []


def _open(backend: BackendAnswer) -> str:
    left = []
    if not_judged := backend.counts.not_judged:
        left.append(f"{not_judged:,} {'is' if not_judged == 1 else 'are'} not judged")
    if lost := backend.counts.not_measured:
        left.append(f"{lost:,} could not be measured, through our own fault")
    return f"; {_and(left)}" if left else ""


def _cheaper(best: BackendAnswer, equals: Sequence[BackendAnswer]) -> str:
    costs = [
        f"{backend.name} {duration(backend.per_token_ns)}"
        for backend in (best, *equals)
        if backend.per_token_ns is not None
    ]
    return f" Half of the tokens cost at most: {', '.join(costs)}." if len(costs) > 1 else ""


def sure(best: BackendAnswer | None, judged: Sequence[BackendAnswer], proofs: Proofs) -> str:
    """Returns how sure the answer is for these cases: by the share of them that was judged, and by whether
    the difference of the backends is more than one case."""
    if best is None:
        return NOTHING["known"]
    share = best.counts.judged / best.counts.cases
    apart = len(judged) < 2 or _is_apart(best, judged[1])
    if share >= 0.9 and apart:
        return "high"
    return "fair" if share >= 0.5 and (apart or share >= 0.9) else "low"


def _is_apart(one: BackendAnswer, other: BackendAnswer) -> bool:
    """Do the two differ in more than one case?"""
    return abs(one.counts.failed - other.counts.failed) + abs(one.works - other.works) > 1


def certainty(
    best: BackendAnswer | None, backends: Sequence[BackendAnswer], proofs: Proofs, noun: str
) -> Iterator[str]:
    """Yields what the answer rests on; `backends` are all that were tried, the best first."""
    if best is None:
        yield from _why_nothing(backends, proofs, noun)
        return
    judged = [backend for backend in backends if backend.counts.judged and not backend.is_control]
    total = best.counts.cases
    by = []
    valid, invalid = number_of(proofs.valid.get(best.key)), number_of(proofs.invalid.get(best.key))
    if valid or invalid:
        by.append(f"{valid:,} valid and {counted(invalid, 'invalid output')}")
    if compared := proofs.masks_compared.get(best.key):
        number = counted(len(compared), noun)
        by.append(f"whole masks of {number} compared with an exact reference")
    yield (
        f"{f'In {best.run} ' if best.run else ''}{best.counts.judged:,} of {counted(total, noun)} "
        f"{'was' if total == 1 else 'were'} judged"
        f"{', by ' if by else ''}{_and(by)}."
    )
    if places := _places(judged, proofs):
        yield (
            f"At {counted(sum(places.values()), 'place')} in {counted(len(places), noun)} the whole "
            "mask was compared with what the possible documents allow."
        )
    yield from _controls(backends)
    yield from _cut_short(backends, proofs, noun)
    held = {backend.name: len(proofs.formats_held.get(backend.key, ())) for backend in judged}
    if any(held.values()):
        by = [f"{name} ({counted(number, noun)})" for name, number in held.items() if number]
        rest = "" if held[best.name] else f", and was not seen to with {best.name}"
        yield f"JSON Schema leaves open whether `format` binds a string; it does with {_and(by)}{rest}."
    if best.counts.not_judged:
        yield (
            f"Of {best.counts.not_judged:,} nothing is known but that {best.name} compiles "
            f"{'it' if best.counts.not_judged == 1 else 'them'}: {NO_REFERENCE}."
        )
    if unknown := best.counts.refused_unjudged:
        ones = "refused one" if unknown == 1 else "refused ones"
        yield f"{unknown:,} {ones} had nothing to be judged by."
    yield from _unchecked(judged)
    if any(_more_is_right(backend) for backend in judged):
        yield RIGHT_OUTPUT
    if len(judged) > 1:
        one, other = judged[0], judged[1]
        states = {(case.suite, case.case_id): case.state for case in other.cases}
        differ = [
            case for case in one.cases
            if (case.suite, case.case_id) in states and states[case.suite, case.case_id] != case.state
        ]  # fmt: skip
        yield f"{one.name} and {other.name} differ in {counted(len(differ), noun)}."
    yield f"A {noun} that works showed no fault here; that is no proof for outputs that were not tried."


def _places(judged: Sequence[BackendAnswer], proofs: Proofs) -> dict[CaseKey, int]:
    """Returns at how many places of each case whole masks were compared, on the backend where they were
    most."""
    places: dict[CaseKey, int] = {}
    for backend in judged:
        for key, number in proofs.places.get(backend.key, {}).items():
            places[key] = max(number, places.get(key, 0))
    return places


def certainty_unranked(
    judged: Sequence[BackendAnswer], backends: Sequence[BackendAnswer], proofs: Proofs, noun: str
) -> Iterator[str]:
    """Yields what is known where none of the judged backends is put before another; `backends` are all that
    were tried."""
    if len(judged) > 1:
        common = len(set.intersection(*map(_ids, judged)))
        number = counted(common, noun) if common else f"No {noun}"
        yield f"{number} {'were' if common > 1 else 'was'} tried with all of them."
    else:
        cases = judged[0].counts.cases
        yield f"{counted(cases, noun)} {'was' if cases == 1 else 'were'} tried."
    yield from _unchecked(judged)
    yield from _controls(backends)
    yield from _cut_short(backends, proofs, noun)
    if any(_more_is_right(backend) for backend in judged):
        yield RIGHT_OUTPUT
    yield f"A {noun} that works showed no fault here; that is no proof for outputs that were not tried."


def _why_nothing(backends: Sequence[BackendAnswer], proofs: Proofs, noun: str) -> Iterator[str]:
    """Yields why no backend was judged."""
    yield from _controls(backends)
    able = [backend for backend in backends if not backend.is_control]
    if not any(backend.cases for backend in backends):
        yield f"No {noun} was walked."
    lost = {
        (case.suite, case.case_id)
        for backend in able
        for case in backend.cases
        if case.state == CaseState.NOT_MEASURED
    }
    if lost:
        yield f"Of {counted(len(lost), noun)} a part could not be measured, through our own fault."
    yield from _cut_short(able, proofs, noun)
    if any(case.state == CaseState.NOT_JUDGED for backend in able for case in backend.cases):
        yield f"{'Of the others there' if lost else 'There'} is {NO_REFERENCE}."


def _unchecked(judged: Sequence[BackendAnswer]) -> Iterator[str]:
    """Yields that no checks were made; nothing where some were, with any of the backends."""
    if all(backend.checked.is_nothing for backend in judged):
        yield "No checks were made; only outputs were judged."


def _controls(backends: Sequence[BackendAnswer]) -> Iterator[str]:
    """Yields which backends are controls; nothing where none is."""
    yield from _let_through([backend for backend in backends if backend.is_control])


def _cut_short(backends: Sequence[BackendAnswer], proofs: Proofs, noun: str) -> Iterator[str]:
    """Yields in how many cases the checks were not all made, with which backends; nothing where all were."""
    cut = [(backend.name, len(proofs.cut_short.get(backend.key, ()))) for backend in backends]
    short = [f"{counted(number, noun)} of {name}" for name, number in cut if number]
    if short:
        yield f"The time for the checks was up before all were made in {_and(short)}."


def coded(constraint: str) -> str:
    """Returns the name of a constraint between backticks; a description as it stands."""
    return constraint if constraint in DESCRIPTIONS else f"`{constraint}`"


def evidence(case: CaseAnswer) -> str:
    """Returns what stands beside the state of a case where there is little room: the constraints that are
    broken, the valid output that is refused, or what was said. Empty where nothing shows it."""
    proof = case.proof
    if proof is None or case.state in (CaseState.WORKS, CaseState.NOT_JUDGED):
        return ""
    if case.state == CaseState.SILENTLY_WRONG and case.constraints:
        left = len(case.constraints) - MOST_CONSTRAINTS
        named = ", ".join(coded(name) for name in case.constraints[:MOST_CONSTRAINTS])
        return f"{named}{f' and {left} more' if left > 0 else ''}"
    if case.state == CaseState.VALID_REFUSED and proof.document:
        return f"`{shorten(proof.document, LONGEST_EVIDENCE)}` is valid"
    if case.state == CaseState.OTHER_FAULT:
        return one_line(f"“{proof.check.replace('_', ' ')}” does not hold: {proof.said}", LONGEST_EVIDENCE)
    return one_line(proof.said, LONGEST_EVIDENCE)


def risk(case: CaseAnswer, names: Sequence[str]) -> str:
    """Returns what goes wrong in the case with these backends, and what shows it."""
    return _risk_sentence(case.state, _and(names), "" if len(names) > 1 else "s", case.proof)


def is_shown_by(case: CaseAnswer, other: CaseAnswer) -> bool:
    """Does what shows the risk of the other case, on another arm, show it for this one too?"""
    mine = [proof for proof in case.proofs if proof.state == case.state]
    told = _risk_sentence(other.state, "", "", other.proof)
    return any(_risk_sentence(case.state, "", "", proof) == told for proof in mine or (None,))


def and_in_more(sentence: str, count: int) -> str:
    """Returns the sentence of a risk, and behind it that so many more cases share it."""
    if not count:
        return sentence
    end = "" if sentence.endswith((".", "…")) else "."
    return f"{sentence}{end} It is the same in {count} more case{'' if count == 1 else 's'}."


def _risk_sentence(state: CaseState, names: str, ending: str, proof: Proof | None) -> str:
    """Returns the sentence; `ending` is that of its verb."""
    constraint = f"`{proof.constraint}`" if proof and proof.constraint else ""
    document = proof.document if proof else ""
    said = proof.said if proof else ""
    if state == CaseState.SILENTLY_WRONG:
        if proof and proof.instance is not None:
            shown = f"`{document}`" if document else f"“{proof.instance_name}”"
            return f"{names} accept{ending} {shown}, which {constraint or 'the case'} forbids."
        if document:
            return f"{names} let{ending} this through, which {constraint or 'the case'} forbids: `{document}`"
        if proof and proof.constraint in DESCRIPTIONS:
            return f"{names} allow{ending} {proof.constraint}: {said}"
        return f"{names} allow{ending} what {constraint or 'the case'} forbids: {said}"
    if state == CaseState.VALID_REFUSED:
        shown = f"`{document}`, which is valid." if document else f"valid output: {said}"
        return f"{names} refuse{ending} {shown}"
    if state == CaseState.TOO_SLOW:
        return f"{names} did not answer within the time limit{f': {said}' if said else '.'}"
    if state == CaseState.BREAKS:
        return f"{names} break{ending}{f': {said}' if said else '.'}"
    if proof and proof.check:
        check = proof.check.replace("_", " ")
        return f"With {names} “{check}” does not hold{f': {said}' if said else '.'}"
    return f"{names} {'have' if not ending else 'has'} another fault{f': {said}' if said else '.'}"


def _joined(clauses: Sequence[str]) -> str:
    return "".join(f", {clause}" for clause in clauses[:-1]) + (f" and {clauses[-1]}" if clauses else "")


def _and(parts: Iterable[str]) -> str:
    every = list(parts)
    return " and ".join(filter(None, (", ".join(every[:-1]), every[-1]))) if every else ""
