"""What goes wrong in one case, and what shows it, in a sentence or in a few words."""

from __future__ import annotations

from collections.abc import Sequence

from harness.checks.never_text import NEVER_TEXT
from harness.outcomes.answer.cases import CAUSES, DESCRIPTIONS, CaseAnswer, Proof, telling
from harness.outcomes.answer.words import MOST_CONSTRAINTS, coded
from harness.outcomes.case_state import CaseState
from harness.text import counted, listed, one_line, shorten, some

LONGEST_EVIDENCE = 160
"""Characters of what stands beside a state."""


def evidence(case: CaseAnswer, longest: int = LONGEST_EVIDENCE) -> str:
    """Returns what stands beside the state of a case where there is little room: the constraints that are
    broken, the valid output that is refused, or what was said; of a refusal it is said without the class of
    the exception. Empty where nothing shows it."""
    proof = case.proof
    if proof is None or case.state in (CaseState.WORKS, CaseState.NOT_JUDGED):
        return ""
    if names := telling(case.state, case.constraints):
        return some([coded(name) for name in names], MOST_CONSTRAINTS)
    if case.state == CaseState.VALID_REFUSED and proof.document:
        return f"`{shorten(proof.document, longest)}` is valid"
    if case.state == CaseState.OTHER_FAULT:
        return one_line(f"“{proof.check.replace('_', ' ')}” does not hold: {proof.said}", longest)
    name, _, words = proof.said.partition(": ")
    is_of_a_class = case.state == CaseState.REFUSED and name.isidentifier() and words
    return one_line(words if is_of_a_class else proof.said, longest)


def sentence_of(case: CaseAnswer, names: Sequence[str]) -> str:
    """Returns what goes wrong in the case with these backends, and what shows it. What was said by a check or
    a backend ends the sentence often, and mostly without a full stop."""
    sentence = _risk_sentence(case.state, listed(names), "" if len(names) > 1 else "s", case.proof)
    return sentence if sentence.endswith((".", "…", "!", "?")) else f"{sentence}."


def is_shown_by(case: CaseAnswer, other: CaseAnswer) -> bool:
    """Does what shows the risk of the other case, on another arm, show it for this one too?"""
    mine = [proof for proof in case.proofs if proof.state == case.state]
    told = _risk_sentence(other.state, "", "", other.proof)
    return any(_risk_sentence(case.state, "", "", proof) == told for proof in mine or (None,))


def and_in_more(sentence: str, count: int) -> str:
    """Returns the sentence of a risk, and behind it that so many more cases share it."""
    if not count:
        return sentence
    return f"{sentence} It is the same in {counted(count, 'more case')}."


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
        return f"{names} take{ending} too long{f': {said}' if said else '.'}"
    if state == CaseState.BREAKS:
        return f"{names} break{ending}{f': {said}' if said else '.'}"
    if proof and proof.constraint in DESCRIPTIONS and proof.constraint != CAUSES[NEVER_TEXT]:
        return f"{names} take{ending} {proof.constraint}: {said}"
    if proof and proof.check:
        check = proof.check.replace("_", " ")
        return f"With {names} “{check}” does not hold{f': {said}' if said else '.'}"
    return f"{names} {'have' if not ending else 'has'} another fault{f': {said}' if said else '.'}"
