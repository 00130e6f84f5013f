"""The sentences of an answer. Names of constraints stand between backticks, as code does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from harness.outcomes.answer.cases import DESCRIPTIONS, CaseAnswer, Proof, Proofs
from harness.outcomes.case_state import CaseState
from harness.text import duration, one_line, shorten

if TYPE_CHECKING:
    from harness.outcomes.answer.backends import BackendAnswer

MOST_CONSTRAINTS = 3
MOST_BACKENDS = 2

LONGEST_EVIDENCE = 160
"""Characters of what stands beside a state."""

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
    noun: str,
    verb: str,
    whose: str,
) -> str:
    """Returns what to use and how the backends fare, in one or two sentences."""
    if best is None:
        return f"Nothing can be said yet: no {noun} of this run could be judged."
    fares = _fares_of_all(best, noun, whose)
    rest = [*_goes_wrong(best), *_refuses(best)]
    names = _and([best.name, *(other.name for other in equals)])
    if not best.right_outputs:
        first = f"None of these backends can be recommended: {names}{', each of which' if equals else ''} "
        first += f"{fares}{_joined(rest)}{_open(best)}."
    elif equals:
        first = f"{names} are equally right: each {fares}{_joined(_goes_wrong(best) + _refuses(best))}."
        first += _cheaper(best, equals)
    elif others:
        first = f"{verb} {best.name}: it {fares}{_joined(rest)}{_open(best)}."
    else:
        first = f"{best.name} {fares}{_joined(rest)}{_open(best)}."
    return " ".join([first, *_others(others)])


def _fares(backend: BackendAnswer) -> str:
    """Returns in how many cases nothing is wrong with the outputs; where checks of the interface found faults
    in some of them, these do not work, and are told behind it."""
    if backend.right_outputs > backend.works:
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
        clauses = [_fares(backend), *[*_goes_wrong(backend), *_refuses(backend)][:2]]
        if backend.count(CaseState.REFUSED) == backend.counts.cases:
            clauses = ["refuses them all"]
        fares = _and(clauses) if backend.counts.judged else "was not judged"
        alike.setdefault(fares, []).append(backend.name)
    told = list(alike.items())[:MOST_BACKENDS]
    for fares, names in told:
        yield f"{names[0]} {fares}." if len(names) == 1 else f"{_and(names)}: each {fares}."
    left = len(others) - sum(len(names) for _, names in told)
    if left:
        yield "One more fares worse." if left == 1 else f"{left:,} more fare worse."


def _goes_wrong(backend: BackendAnswer) -> list[str]:
    """Returns a clause for each way in which cases fail, with what is not kept."""
    clauses = []
    for state, words in CLAUSES.items():
        number = backend.count(state)
        if not number:
            continue
        names = backend.constraints(state) if state == CaseState.SILENTLY_WRONG else ()
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
    not_judged = backend.counts.not_judged
    return f"; {not_judged:,} {'is' if not_judged == 1 else 'are'} not judged" if not_judged else ""


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
        return "nothing is known"
    share = best.counts.judged / best.counts.cases
    apart = len(judged) < 2 or _is_apart(best, judged[1])
    if share >= 0.9 and apart:
        return "high"
    return "fair" if share >= 0.5 and (apart or share >= 0.9) else "low"


def _is_apart(one: BackendAnswer, other: BackendAnswer) -> bool:
    """Do the two differ in more than one case?"""
    return abs(one.counts.failed - other.counts.failed) + abs(one.works - other.works) > 1


def certainty(
    best: BackendAnswer | None, judged: Sequence[BackendAnswer], proofs: Proofs, noun: str
) -> Iterator[str]:
    """Yields what the answer rests on."""
    if best is None:
        yield "There is no instance with a known verdict, and no exact reference to compare masks with."
        return
    total = best.counts.cases
    by = []
    if proofs.valid or proofs.invalid:
        by.append(
            f"{len(proofs.valid):,} valid and {len(proofs.invalid):,} invalid "
            f"{_plural('output', len(proofs.invalid))}"
        )
    if proofs.masks_compared:
        number = len(proofs.masks_compared)
        by.append(f"whole masks of {number:,} {_plural(noun, number)} compared with an exact reference")
    yield (
        f"{best.counts.judged:,} of {total:,} {_plural(noun, total)} were judged"
        f"{', by ' if by else ''}{_and(by)}."
    )
    if proofs.places:
        number, places = len(proofs.places), sum(proofs.places.values())
        yield (
            f"At {places:,} {_plural('place', places)} in {number:,} {_plural(noun, number)} the whole mask "
            "was compared with what the possible documents allow."
        )
    if proofs.cut_short:
        short = [
            f"{len(cases):,} {_plural(noun, len(cases))} of {backend}"
            for backend, cases in proofs.cut_short.items()
        ]
        yield f"The time for the checks was up before all were made in {_and(short)}."
    held = {backend.name: len(proofs.formats_held.get(backend.key, ())) for backend in judged}
    if any(held.values()):
        by = [f"{name} ({number:,} {_plural(noun, number)})" for name, number in held.items() if number]
        rest = "" if held[best.name] else f", and was not seen to with {best.name}"
        yield f"JSON Schema leaves open whether `format` binds a string; it does with {_and(by)}{rest}."
    if best.counts.not_judged:
        yield (
            f"Of {best.counts.not_judged:,} nothing is known but that {best.name} compiles "
            f"{'it' if best.counts.not_judged == 1 else 'them'}: no instance, no reference."
        )
    if len(judged) > 1:
        one, other = judged[0], judged[1]
        states = {(case.suite, case.case_id): case.state for case in other.cases}
        differ = [
            case for case in one.cases
            if (case.suite, case.case_id) in states and states[case.suite, case.case_id] != case.state
        ]  # fmt: skip
        yield f"{one.name} and {other.name} differ in {len(differ):,} {_plural(noun, len(differ))}."
    yield f"A {noun} that works showed no fault here; that is no proof for outputs that were not tried."


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


def _plural(noun: str, number: int) -> str:
    return noun if number == 1 else f"{noun}s"


def _joined(clauses: Sequence[str]) -> str:
    return "".join(f", {clause}" for clause in clauses[:-1]) + (f" and {clauses[-1]}" if clauses else "")


def _and(parts: Iterable[str]) -> str:
    every = list(parts)
    return " and ".join(filter(None, (", ".join(every[:-1]), every[-1]))) if every else ""
