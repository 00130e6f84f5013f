"""The mask against the documents of a JSON Schema in the backend's own layout.

What the backend says of its white space, order and escapes is its own word; a token that it forbids, though a
document that is written so goes on with it, is against that word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from harness.backend.grammar import forced_token
from harness.backend.layout import Layout
from harness.checks.documents import Outputs, documents_of_case
from harness.checks.exact_mask import ends_inside_a_character, spread, takes_the_characters
from harness.checks.forced_text import spell
from harness.checks.looking import name_of
from harness.checks.subject import NotApplicable, Place, Subject
from harness.oracle.automaton import DEAD, NoOracle
from harness.oracle.trie import TokenSet
from harness.rows.row import Finding

CATEGORY = "masks"

LAYOUT_IS_WRITTEN = "every_document_of_its_layout_can_be_written"
"""The check's name, under which it counts places whose text is in the layout, and those where no token is
missing (`complete`)."""

_FRACTION = re.compile(rb"-?[0-9]+\.[0-9]+\Z")
MOST_ZEROS = 4
"""Zeros that are tried behind a fraction."""

ALLOWED_BY = {
    "canonical_only": ": it forces one spelling in tokens of a text that is forced",
    "end_of_sequence": ": a document has ended",
    "partial_utf8": ": they end inside a character",
    "whitespace": ": white space that its layout has",
    "escape": ": an escape that its layout has",
    "property_order": ": a name that its layout does not put elsewhere",
    "unlisted_name": ": a name that the schema does not list",
    "number_form": ": it writes the number with more zeros at its end",
    "asserted_format": ": it takes `format` for a constraint, which here is none",
}
"""What the tokens are, for the causes that are no keywords of the schema."""


def check_every_document_of_its_layout_can_be_written(subject: Subject) -> Iterator[Finding]:
    """The mask allows each token with which a document goes on that is spelled as the backend says, and
    end-of-sequence behind each such document."""
    layout = declared_layout(subject)
    documents = documents_of_case(subject, layout=layout)
    for place in subject.places("layout"):
        try:
            state = documents.run(documents.start, place.text)
            if state == DEAD:
                continue  # written otherwise than the layout has it, which the backend is free to allow
            grammar_object = subject.reach(place.tokens)
            if grammar_object is None:
                continue
            allowed = subject.allowed(grammar_object)
            missing = subject.trie.mask(documents, state) & ~allowed
            subject.count(LAYOUT_IS_WRITTEN, places=1, complete=not missing.any())
            if not missing.any():
                continue
            for cause, tokens in _by_cause(subject, documents, layout, place, allowed, missing):
                yield _finding(subject, documents, place, tokens, cause)
        except NoOracle as why:
            raise NotApplicable(str(why)) from why


def declared_layout(subject: Subject) -> Layout:
    """Returns how the backend says that it writes JSON in the case's dialect. Raises NotApplicable if it does
    not say it."""
    is_tag = subject.case.grammar.dialect == "structural_tag"
    layout = subject.adapter.layout_in_tags if is_tag else subject.adapter.layout
    if layout is None:
        raise NotApplicable("the backend does not say how it writes JSON")
    return layout


def _finding(subject: Subject, documents: Outputs, place: Place, tokens: list[int], cause: str) -> Finding:
    chosen = spread(tokens)
    names = ", ".join(name_of(subject, token) for token in chosen[:3])
    keyword = cause.removeprefix("keyword_")
    why = ALLOWED_BY.get(cause, "") if keyword == cause else f"; of the schema only `{keyword}` speaks here"
    return Finding(
        position=place.position,
        text=f"after {place.text[-60:]!r} it forbids {len(tokens)} token(s) with which documents go on that "
        f"are spelled as it says, e.g. {names}{why}",
        cause=cause,
        instance=place.instance,
        over=len(tokens),
        examples=subject.hex_of(chosen),
        walk=(*place.tokens, chosen[0]),
    )


def _by_cause(
    subject: Subject,
    documents: Outputs,
    layout: Layout,
    place: Place,
    allowed: TokenSet,
    missing: TokenSet,
) -> Iterator[tuple[str, list[int]]]:
    """Yields the missing tokens by what they have in common."""
    tokens = np.flatnonzero(missing).tolist()
    if _is_forced(subject, documents, place, np.flatnonzero(allowed).tolist()):
        yield "canonical_only", tokens
        return
    if _is_allowed_behind_zeros(subject, place, tokens):
        yield "number_form", tokens
        return
    pieces = _pieces(subject, place, allowed, missing)
    groups: dict[str, list[int]] = {}
    for token in tokens:
        kind = "partial_utf8" if token in pieces else _kind(subject, documents, place, token, missing)
        groups.setdefault(kind, []).append(token)
    for kind in ("string", "name"):
        if kind in groups:  # where plain characters are missing too, it is not the escapes that are
            groups[kind] += groups.pop("escape", [])
    for kind, of_kind in groups.items():
        is_sure = kind in ("partial_utf8", "end_of_sequence")
        yield kind if is_sure else _cause(subject, layout, place, of_kind, kind), of_kind


def _is_forced(subject: Subject, documents: Outputs, place: Place, allowed: list[int]) -> bool:
    """Is the only token that is allowed a piece of a text that every document goes on with, and does the
    backend say that it forces it?"""
    token = forced_token(subject.compiled, place.tokens, allowed)
    if token is None or not (text := subject.vocabulary.tokens[token]):
        return False
    state = documents.run(documents.start, place.text)
    return documents.forced(state, len(text)) == text


def _pieces(subject: Subject, place: Place, allowed: TokenSet, missing: TokenSet) -> set[int]:
    """Returns the missing tokens that end inside a character, if the backend allows the characters that they
    begin."""
    texts = subject.vocabulary.tokens
    pieces = {
        token
        for token in np.flatnonzero(missing).tolist()
        if texts[token] and ends_inside_a_character(place.text + texts[token])
    }
    begun = {texts[token] for token in pieces}
    return pieces if takes_the_characters(subject, place, allowed, allowed | missing, begun) else set()


def _kind(subject: Subject, documents: Outputs, place: Place, token: int, missing: TokenSet) -> str:
    """Returns what is particular about the token's text, unless what stands before that is missing by itself;
    else where in a document it begins."""
    if token == subject.vocabulary.eos_token:
        return "end_of_sequence"
    state = documents.run(documents.start, place.text)
    first = documents.place(state)
    text = subject.vocabulary.tokens[token]
    for at, byte in enumerate(text):
        where = documents.place(state)
        is_space = where in ("between", "number") and byte in b" \t\n\r"
        if is_space or where == "escape" or (where in ("string", "name") and byte == 0x5C):
            before = subject.vocabulary.ids_by_bytes.get(text[:at])
            if before is None or not missing[before]:
                return "whitespace" if is_space else "escape"
            break
        state = documents.step(state, byte)
    return "value" if first == "between" else first


def _cause(subject: Subject, layout: Layout, place: Place, tokens: list[int], kind: str) -> str:
    """Returns the freedom of the layout that all these tokens use, or the only keyword of the schema that
    forbids anything here; else `kind`."""
    if not subject.case.asserts_formats:
        asserting = _mask(subject, place, layout, asserts_formats=True)
        if not asserting[tokens].any():
            return "asserted_format"
    for cause, narrower in _narrower(layout):
        if narrower != layout and not _mask(subject, place, narrower)[tokens].any():
            return cause
    if kind in ("whitespace", "escape"):
        return kind
    whole = _mask(subject, place, layout)
    speaking = [
        keyword
        for keyword in sorted(documents_of_case(subject, layout=layout).keywords)
        if (_mask(subject, place, layout, frozenset((keyword,))) & ~whole).any()
    ]
    return f"keyword_{speaking[0]}" if len(speaking) == 1 else kind


def _is_allowed_behind_zeros(subject: Subject, place: Place, tokens: list[int]) -> bool:
    """Does the text end in a fraction, and are all these tokens allowed behind some more zeros?"""
    if not _FRACTION.search(place.text):
        return False
    for zeros in range(1, MOST_ZEROS + 1):
        grammar_object = subject.reach((*place.tokens, *spell(subject, b"0" * zeros)))
        if grammar_object is not None and subject.allowed(grammar_object)[tokens].all():
            return True
    return False


def _narrower(layout: Layout) -> Iterator[tuple[str, Layout]]:
    """Yields layouts that lack one freedom of the given one, each with the freedom's name."""
    yield "property_order", replace(layout, order="listed")
    yield "unlisted_name", replace(layout, unlisted="never")
    if layout.separators is None:
        yield "whitespace", replace(layout, separators=(b"", b""))
        yield "whitespace", replace(layout, separators=(b" ", b" "))


def _mask(
    subject: Subject,
    place: Place,
    layout: Layout,
    without: frozenset[str] = frozenset(),
    asserts_formats: bool = False,
) -> TokenSet:
    """Returns the tokens with which a document goes on; all of them where there is no such automaton, or no
    document begins like the place's text, so that nothing is concluded."""
    try:
        documents = documents_of_case(subject, without, layout=layout, asserts_formats=asserts_formats)
        state = documents.run(documents.start, place.text)
        if state != DEAD:
            return subject.trie.mask(documents, state)
    except (NoOracle, NotApplicable):
        pass
    return np.ones(subject.vocabulary.size, dtype=np.bool_)
