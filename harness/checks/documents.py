"""The mask against the outputs of a JSON Schema or a structural tag, with documents in any spelling.

No choice of white space or order excuses a token that leads to an invalid document, or to none."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from harness.backend.grammar import Grammar
from harness.backend.layout import Layout
from harness.backend.vocabulary import Vocabulary
from harness.cases.case import Case
from harness.checks import MASKS
from harness.checks.exact_mask import is_no_utf8, spread
from harness.checks.looking import name_of
from harness.checks.subject import NotApplicable, Place, Subject
from harness.oracle.automaton import DEAD, NoOracle
from harness.oracle.json_schema.automaton import JsonSchemaAutomaton
from harness.oracle.json_schema.budget import SECONDS
from harness.oracle.language import outputs_of
from harness.oracle.structural_tag import StructuralTagAutomaton, tag_of_any_documents
from harness.oracle.tag_formats.automaton import FormatAutomaton
from harness.rows.row import Finding
from harness.text import counted

CATEGORY = MASKS

Outputs = JsonSchemaAutomaton | StructuralTagAutomaton | FormatAutomaton

TOKENS_LEAD = "every_allowed_token_leads_to_a_document"
"""The check's name, under which it counts places, and those where no token is wrongly allowed (`sound`)."""
TRIAL_SECONDS = 2.0
"""Processor time of an automaton that serves a counter-experiment only."""
MOST_NAMED = 3
"""Keywords that a cause names at most; more of them are `several_keywords`."""


def check_every_allowed_token_leads_to_a_document(subject: Subject) -> Iterator[Finding]:
    """With each token that the mask allows, some document of the schema (or output of the structural tag)
    goes on, and end-of-sequence is allowed only behind one."""
    documents = documents_of_case(subject.case, vocabulary=subject.vocabulary)
    for place, allowed in subject.masks():
        try:
            state = subject.state_behind(documents, place.tokens)
            if state == DEAD and place.tokens:
                continue  # the backend went where no document goes: found at the place before
            wrong = allowed & ~subject.trie.mask(documents, state)
            subject.count(TOKENS_LEAD, places=1, sound=not wrong.any())
            tokens = np.flatnonzero(wrong).tolist()
            for cause, some in _causes(subject, documents, place, tokens):
                yield _finding(subject, place, some, cause)
        except NoOracle as why:
            raise NotApplicable(str(why)) from why


def _causes(
    subject: Subject, documents: Outputs, place: Place, wrong: list[int]
) -> Iterator[tuple[str, list[int]]]:
    """Yields the wrong tokens by their cause. Where tokens are read by their ids, the text before them does
    not say what may follow, and so they have but one cause, besides an early end."""
    if documents.reads_tokens:
        ends = [token for token in wrong if token in subject.vocabulary.eos_tokens]
        others = [token for token in wrong if token not in subject.vocabulary.eos_tokens]
        if ends:
            yield "early_end", ends
        if others:
            yield "token_id", others
        return
    yield from causes_of_wrong_tokens(subject.case, subject.vocabulary, documents, place.text, wrong)


def documents_of_case(
    case: Case,
    without: frozenset[str] = frozenset(),
    repeats_names: bool = False,
    layout: Layout | None = None,
    asserts_formats: bool = False,
    vocabulary: Vocabulary | None = None,
) -> Outputs:
    """Returns the automaton of the case's documents, as `language.outputs_of` describes it; that of a
    counter-experiment may take less time. Raises NotApplicable where there is none."""
    try:
        seconds = TRIAL_SECONDS if without or repeats_names else SECONDS
        return outputs_of(
            case.grammar,
            case.draft,
            case.asserts_formats or asserts_formats,
            without,
            repeats_names,
            seconds,
            layout,
            vocabulary,
        )
    except NoOracle as why:
        raise NotApplicable(str(why)) from why


def _of_any_documents(grammar: Grammar) -> Outputs:
    """The outputs, were every JSON document valid."""
    if grammar.dialect == "json_schema":
        return outputs_of(Grammar("json_schema", "true"))
    return outputs_of(Grammar(grammar.dialect, tag_of_any_documents(grammar.text)))


def _finding(subject: Subject, place: Place, tokens: list[int], cause: str) -> Finding:
    what = (
        f"allows {counted(len(tokens), 'token')} with which no {WANTED[subject.case.grammar.dialect]} goes on"
    )
    why = EXPLAINED.get(cause, "") or _without(cause)
    return mask_finding(subject, place, what, tokens, why, cause, is_over=False)


def mask_finding(
    subject: Subject, place: Place, what: str, tokens: list[int], why: str, cause: str, *, is_over: bool
) -> Finding:
    """Returns a finding about tokens that a mask wrongly forbids (`is_over`) or wrongly allows: what it does,
    a few of the tokens, and why that is wrong."""
    chosen = spread(tokens)
    names = ", ".join(name_of(subject, token) for token in chosen[:3])
    return Finding(
        position=place.position,
        text=f"after {place.text[-60:]!r} it {what}, e.g. {names}{why}",
        cause=cause,
        instance=place.instance,
        over=len(tokens) if is_over else 0,
        under=0 if is_over else len(tokens),
        examples=subject.hex_of(chosen),
        walk=(*place.tokens, chosen[0]),
    )


WANTED = {"json_schema": "document of the schema", "structural_tag": "output of the structural tag"}
EXPLAINED = {
    "special_token": ": it is no text",
    "duplicate_name": ": the name stands in the object already",
    "early_end": ": the output may not end there",
    "control_character": ": in a string it must be escaped",
    "escape": ": JSON has no such escape",
    "surrogate": ": half a surrogate pair is no character",
    "invalid_utf8": ": it is no UTF-8",
    "number_form": ": JSON has no such number",
    "no_json": ": it is no JSON",
    "outside_tag": ": it completes a trigger with which no structure begins",
    "begin": ": no structure begins so",
    "end": ": the tag does not end so",
    "free_text": ": free text does not go on so here",
    "fixed_text": ": the form has another text here",
    "pattern": ": no sentence of the regular expression or of the grammar begins so",
    "token_id": ": with this id, or its bytes, no output goes on",
    "several_keywords": "; no three keywords alone forbid them",
}
"""What is wrong with the tokens, for the causes that are no keywords of the schema."""


def _without(cause: str) -> str:
    names = cause.removeprefix("keyword_").split("+")
    return f"; without {' and '.join(f'`{name}`' for name in names)} they would be right"


def causes_of_wrong_tokens(
    case: Case, vocabulary: Vocabulary, documents: Outputs, before: bytes, wrong: list[int]
) -> Iterator[tuple[str, list[int]]]:
    """Yields the tokens with which no output goes on behind the text `before`, by what forbids them: JSON
    itself, or the keywords without which they would be allowed."""
    any_json = _of_any_documents(case.grammar)
    behind = any_json.run(any_json.start, before)
    groups: dict[str, list[int]] = {}
    for token in wrong:
        text = vocabulary.tokens[token]
        if token in vocabulary.eos_tokens:
            cause = "" if any_json.accepting(behind) else "early_end"
        elif not text or token in vocabulary.special_tokens or token in vocabulary.padding_tokens:
            cause = "special_token"
        else:
            end = any_json.viable(before + text)
            cause = "" if end == len(before + text) else _no_json(any_json, before + text, end)
        groups.setdefault(cause, []).append(token)
    of_schema = groups.pop("", [])
    yield from groups.items()
    if of_schema:
        yield _of_schema(case, vocabulary, documents, before, of_schema), of_schema


def _of_schema(
    case: Case, vocabulary: Vocabulary, documents: Outputs, before: bytes, wrong: list[int]
) -> str:
    """What of the schema forbids tokens that JSON allows, by a counter-experiment."""
    keywords = sorted(documents.keywords, key=lambda keyword: keyword in BROAD)
    left, named = {*wrong}, []
    for keyword in keywords:
        if keyword in BROAD and _right(case, vocabulary, before, wrong, repeats_names=True) == {*wrong}:
            return "duplicate_name"
        right = _right(case, vocabulary, before, wrong, frozenset((keyword,)))
        if right == {*wrong}:
            return f"keyword_{keyword}"
        if right & left:
            named.append(keyword)
            left -= right
    return (
        f"keyword_{'+'.join(sorted(named))}" if not left and len(named) <= MOST_NAMED else "several_keywords"
    )


BROAD = (
    "type", "properties", "patternProperties", "items", "prefixItems", "allOf", "anyOf", "oneOf", "not", "if",
    "$ref", "$dynamicRef", "$recursiveRef",
)  # fmt: skip
"""Keywords with which much else goes: they are tried behind those that ask one thing."""


def _right(
    case: Case,
    vocabulary: Vocabulary,
    before: bytes,
    tokens: list[int],
    without: frozenset[str] = frozenset(),
    repeats_names: bool = False,
) -> set[int]:
    """Returns which of the tokens the schema allows behind the text if these keywords are left out of it."""
    try:
        relaxed = documents_of_case(case, without, repeats_names)
        state = relaxed.run(relaxed.start, before)
        return {
            token
            for token in tokens
            if (
                relaxed.accepting(state)
                if token in vocabulary.eos_tokens
                else relaxed.run(state, vocabulary.tokens[token]) != DEAD
            )
        }
    except (NoOracle, NotApplicable):
        return set()


def _no_json(any_json: Outputs, text: bytes, end: int) -> str:
    """What of JSON, or of a structural tag, the byte at `end` breaks."""
    where = any_json.place(any_json.run(any_json.start, text[:end]))
    if where in ("outside_tag", "free_text", "fixed_text", "pattern") and is_no_utf8(text[: end + 1]):
        return "invalid_utf8"
    if where in ("outside_tag", "begin", "end", "free_text", "fixed_text", "pattern"):
        return where
    if where in ("string", "name"):
        return "control_character" if text[end] < 0x20 else "invalid_utf8"
    if where == "escape":
        return "surrogate" if b"\\u" in text[max(0, end - 10) : end] else "escape"
    return "number_form" if where == "number" else "no_json"
