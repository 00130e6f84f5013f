"""The mask against the documents of a JSON Schema in the backend's own layout.

What the backend says of its white space, order and escapes is its own word; a token that it forbids, though a
document that is written so goes on with it, is against that word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from harness.backend.grammar import ASSERTED_FORMAT, forced_token
from harness.backend.layout import Layout
from harness.cases.case import Case
from harness.cases.closed_alternatives import text_with_closed_alternatives
from harness.cases.plain_constants import text_with_plain_constants
from harness.checks import MASKS
from harness.checks.documents import Outputs, documents_of_case, mask_finding
from harness.checks.exact_mask import ends_inside_a_character, lost_behind, takes_the_characters
from harness.checks.never_text import NEVER_TEXT, never_text
from harness.checks.subject import NotApplicable, Place, Subject
from harness.oracle.automaton import DEAD, NoOracle
from harness.oracle.trie import TokenSet
from harness.rows.row import Finding
from harness.text import counted

CATEGORY = MASKS

LAYOUT_IS_WRITTEN = "every_document_of_its_layout_can_be_written"
"""The check's name, under which it counts places whose text is in the layout, and those where no token is
missing (`complete`)."""

_FRACTION = re.compile(rb"-?[0-9]+\.[0-9]+\Z")
MOST_ZEROS = 4
"""Zeros that are tried behind a fraction."""

NARROWER_FORMAT = "narrower_format"
"""The cause of tokens that are missing in strings of which the backend asserts the format, although strings
of that format go on with them."""

ALLOWED_BY = {
    "canonical_only": ": it forces one spelling in tokens of a text that is forced",
    "end_of_sequence": ": a document has ended",
    NEVER_TEXT: ": it never takes these ids for text, and takes the same text in other tokens",
    "partial_utf8": ": they end inside a character",
    "whitespace": ": white space that its layout has",
    "escape": ": an escape that its layout has",
    "property_order": ": a name that its layout does not put elsewhere",
    "unlisted_name": ": a name that the schema does not list",
    "further_item": ": an item behind those that the schema lists one by one",
    "number_form": ": it writes the number with more zeros at its end",
    ASSERTED_FORMAT: ": it enforces `format`, which this case does not ask for",
    NARROWER_FORMAT: ": it enforces `format`, and forbids strings that do have the format",
}
"""What the tokens are, for the causes that are no keywords of the schema."""


@dataclass(frozen=True, eq=False)
class Shortfall:
    """What a mask lacks at one place, against the documents in the backend's layout."""

    subject: Subject
    layout: Layout
    documents: Outputs
    place: Place
    state: int
    """The state of `documents` behind the place's text."""
    allowed: TokenSet
    demanded: TokenSet
    """The tokens with which a document goes on."""

    @cached_property
    def missing(self) -> TokenSet:
        """Returns the tokens that are demanded and not allowed."""
        return self.demanded & ~self.allowed

    def allows(self, text: bytes) -> bool:
        """Returns whether there is a token of this text, and it is allowed."""
        token = self.subject.vocabulary.ids_by_bytes.get(text)
        return token is not None and bool(self.allowed[token])

    @cached_property
    def only_keyword(self) -> str:
        """Returns the keyword without which more tokens would be demanded, if there is just one; else it is
        empty."""
        # Not `demanded`, from which constants that can be written in several ways may have been taken out.
        own = self.demanded_in(self.layout)
        speaking = [
            keyword
            for keyword in sorted(self.documents.keywords)
            if (self.demanded_in(self.layout, frozenset((keyword,))) & ~own).any()
        ]
        return speaking[0] if len(speaking) == 1 else ""

    @cached_property
    def of_formats(self) -> TokenSet:
        """Returns the missing tokens with which no document would go on if formats were asserted. Raises
        NotApplicable where that cannot be told."""
        case, none = self.subject.case, np.zeros_like(self.missing)
        if case.asserts_formats or '"format"' not in case.grammar.text:
            return none
        try:
            demanded = _demanded(self.subject, self.place, self.layout, asserts_formats=True)
        except (NoOracle, NotApplicable) as why:
            raise NotApplicable(f"it is not known whether a format explains it: {why}") from why
        return none if demanded is None else self.missing & ~demanded

    def demanded_in(self, layout: Layout, without: frozenset[str] = frozenset()) -> TokenSet:
        """Returns the tokens with which a document of another layout, or of a changed schema, goes on; all of
        them where there is no such automaton, or no document begins like the place's text, so that nothing
        is concluded."""
        try:
            demanded = _demanded(self.subject, self.place, layout, without)
        except (NoOracle, NotApplicable):
            demanded = None
        return np.ones(self.subject.vocabulary.size, dtype=np.bool_) if demanded is None else demanded


def check_every_document_of_its_layout_can_be_written(subject: Subject) -> Iterator[Finding]:
    """The mask allows each token with which a document goes on that is spelled as the backend says, and
    end-of-sequence behind each such document."""
    layout = declared_layout(subject)
    documents = documents_of_case(subject.case, layout=layout, vocabulary=subject.vocabulary)
    for place, allowed in subject.masks():
        try:
            state = subject.state_behind(documents, place.tokens)
            if state == DEAD:
                continue  # written otherwise than the layout has it, which the backend is free to allow
            shortfall = Shortfall(
                subject, layout, documents, place, state, allowed, subject.trie.mask(documents, state)
            )
            if shortfall.missing.any():
                agreed = _agreed(shortfall)
                if agreed is None:
                    continue  # what stands before the place could be written otherwise
                shortfall = agreed
            is_complete = not shortfall.missing.any()
            subject.count(LAYOUT_IS_WRITTEN, places=1, complete=is_complete)
            if not is_complete:
                yield from (_finding(subject, place, *group) for group in _by_cause(shortfall))
        except NoOracle as why:
            raise NotApplicable(str(why)) from why


def _agreed(shortfall: Shortfall) -> Shortfall | None:
    """Returns what the mask lacks against those documents alone of which everybody says that they are written
    so; None if none of them begins like the place's text.

    A library may write each alternative of the schema in an order of its own, and without the names of
    others, and the numbers of `enum` and `const` as the schema has them, such as `1.0`.
    """
    subject, place = shortfall.subject, shortfall.place
    if shortfall.layout.order != "any":
        layout = replace(shortfall.layout, alternatives_agree=True)
        reached = _reached(subject, place, layout)
        if reached is None:
            return None
        documents, state = reached
        demanded = shortfall.demanded & subject.trie.mask(documents, state)
        shortfall = Shortfall(subject, layout, documents, place, state, shortfall.allowed, demanded)
    changed = [text_with_plain_constants]
    if shortfall.layout.unlisted in ("asked", "never"):
        changed.append(text_with_closed_alternatives)
    for change in changed:
        text = change(subject.case.grammar.text)
        if text is None or not shortfall.missing.any():
            continue
        grammar = replace(subject.case.grammar, text=text)
        case = replace(subject.case, grammar=grammar)
        demanded_too = _demanded(subject, place, shortfall.layout, case=case)
        if demanded_too is None:
            return None
        shortfall = replace(shortfall, demanded=shortfall.demanded & demanded_too)
    return shortfall


def _demanded(
    subject: Subject,
    place: Place,
    layout: Layout,
    without: frozenset[str] = frozenset(),
    asserts_formats: bool = False,
    case: Case | None = None,
) -> TokenSet | None:
    """Returns the tokens with which a document of the layout, or of the schema without some keywords, goes on
    at the place; None if no document begins like its text. `case` stands in for the subject's where it is
    given. Raises NoOracle and NotApplicable."""
    reached = _reached(subject, place, layout, without, asserts_formats, case)
    return None if reached is None else subject.trie.mask(*reached)


def _reached(
    subject: Subject,
    place: Place,
    layout: Layout,
    without: frozenset[str] = frozenset(),
    asserts_formats: bool = False,
    case: Case | None = None,
) -> tuple[Outputs, int] | None:
    """Returns the documents of the layout, or of the schema without some keywords, and their state behind the
    place's text; None if no document begins like it. `case` stands in for the subject's where it is given.
    Raises NoOracle and NotApplicable."""
    documents = documents_of_case(
        case or subject.case,
        without,
        layout=layout,
        asserts_formats=asserts_formats,
        vocabulary=subject.vocabulary,
    )
    state = subject.state_behind(documents, place.tokens)
    return None if state == DEAD else (documents, state)


def declared_layout(subject: Subject) -> Layout:
    """Returns how the backend says that it writes JSON in the case's dialect. Raises NotApplicable if it does
    not say it."""
    if subject.layout is None:
        raise NotApplicable("the backend does not say how it writes JSON")
    return subject.layout


def _finding(subject: Subject, place: Place, cause: str, tokens: list[int]) -> Finding:
    keyword = cause.removeprefix("keyword_")
    why = ALLOWED_BY.get(cause, "") if keyword == cause else f"; of the schema only `{keyword}` speaks here"
    return mask_finding(
        subject,
        place,
        f"forbids {counted(len(tokens), 'token')} with which a valid document can go on in its own layout",
        tokens,
        why,
        cause,
        is_over=True,
    )


def _by_cause(shortfall: Shortfall) -> Iterator[tuple[str, list[int]]]:
    """Yields causes, each with the missing tokens that have it."""
    tokens = np.flatnonzero(shortfall.missing).tolist()
    if (only := _forced(shortfall)) is not None:
        lost = lost_behind(shortfall.subject, shortfall.place, only, tokens)
        if kept := sorted({*tokens} - {*lost}):
            yield "canonical_only", kept
        if not lost:
            return
        tokens = lost
    if _is_allowed_behind_zeros(shortfall, tokens):
        yield "number_form", tokens
        return
    of_formats = [token for token in tokens if shortfall.of_formats[token]]
    asserts_format = bool(of_formats)
    if asserts_format:
        yield ASSERTED_FORMAT, of_formats
        tokens = [token for token in tokens if not shortfall.of_formats[token]]
    if unread := never_text(shortfall.subject, shortfall.place, tokens):
        yield NEVER_TEXT, unread
        tokens = sorted({*tokens} - {*unread})
    pieces = _pieces(shortfall, tokens)
    groups: dict[str, list[int]] = {}
    for token in tokens:
        kind = "partial_utf8" if token in pieces else _kind(shortfall, token)
        groups.setdefault(kind, []).append(token)
    for kind in ("string", "name"):
        if kind in groups:  # where plain characters are missing too, it is not the escapes that are
            groups[kind] += groups.pop("escape", [])
    for kind, of_kind in groups.items():
        if kind in ("partial_utf8", "end_of_sequence"):
            yield kind, of_kind
        elif asserts_format and kind in ("string", "escape"):
            yield NARROWER_FORMAT, of_kind
        else:
            yield _cause(shortfall, of_kind, kind), of_kind


def _forced(shortfall: Shortfall) -> int | None:
    """Returns the only token that is allowed, if it is a piece of a text that every document goes on with.
    Where all that is missing ends inside a character, the backend must say that it forces this token: some
    backends know no such pieces."""
    subject, allowed = shortfall.subject, np.flatnonzero(shortfall.allowed).tolist()
    texts, before = subject.vocabulary.tokens, shortfall.place.text
    if len(allowed) != 1 or not (text := texts[allowed[0]]):
        return None
    if shortfall.documents.forced(shortfall.state, len(text)) != text:
        return None
    missing = np.flatnonzero(shortfall.missing).tolist()
    is_partial = all(ends_inside_a_character(before + texts[token]) for token in missing)
    if is_partial and forced_token(subject.compiled, shortfall.place.tokens, allowed) is None:
        return None
    return int(allowed[0])


def _pieces(shortfall: Shortfall, tokens: list[int]) -> set[int]:
    """Returns the missing tokens that end inside a character, if the backend allows the characters that they
    begin."""
    subject, place = shortfall.subject, shortfall.place
    texts = subject.vocabulary.tokens
    pieces = {
        token for token in tokens if texts[token] and ends_inside_a_character(place.text + texts[token])
    }
    begun = {texts[token] for token in pieces}
    truth = shortfall.allowed | shortfall.missing
    return pieces if takes_the_characters(subject, place, shortfall.allowed, truth, begun) else set()


def _kind(shortfall: Shortfall, token: int) -> str:
    """Returns what is particular about the token's text, unless what stands before that is missing by itself;
    else where in a document it begins."""
    vocabulary, documents = shortfall.subject.vocabulary, shortfall.documents
    if token in vocabulary.eos_tokens:
        return "end_of_sequence"
    state, text = shortfall.state, vocabulary.tokens[token]
    first = documents.place(state)
    for at, byte in enumerate(text):
        where = documents.place(state)
        is_blank = where in ("between", "number") and byte in b" \t\n\r"
        is_space = is_blank and not shortfall.allows(text[: at + 1])
        if is_space or where == "escape" or (where in ("string", "name") and byte == 0x5C):
            before = vocabulary.ids_by_bytes.get(text[:at])
            if before is None or not shortfall.missing[before]:
                return "whitespace" if is_space else "escape"
            break
        state = documents.step(state, byte)
    return "value" if first == "between" else first


def _cause(shortfall: Shortfall, tokens: list[int], kind: str) -> str:
    """Returns the freedom of the layout that all these tokens use and none of the allowed ones does, or the
    only keyword of the schema that forbids anything here; else `kind`."""
    layout = shortfall.layout
    for cause, narrower in _narrower(layout):
        if narrower != layout:
            using_it = shortfall.demanded & ~shortfall.demanded_in(narrower)
            if using_it[tokens].all() and not (using_it & shortfall.allowed).any():
                return cause
    if kind in ("whitespace", "escape") or not shortfall.only_keyword:
        return kind
    return f"keyword_{shortfall.only_keyword}"


def _is_allowed_behind_zeros(shortfall: Shortfall, tokens: list[int]) -> bool:
    """Does the text end in a fraction, and are all these tokens allowed behind some more zeros?"""
    subject, place = shortfall.subject, shortfall.place
    if not _FRACTION.search(place.text):
        return False
    for zeros in range(1, MOST_ZEROS + 1):
        grammar_object = subject.reach((*place.tokens, *(subject.spell(b"0" * zeros) or ())))
        if grammar_object is not None and subject.allowed(grammar_object)[tokens].all():
            return True
    return False


def _narrower(layout: Layout) -> Iterator[tuple[str, Layout]]:
    """Yields layouts that lack one freedom of the given one, each with the freedom's name."""
    yield "property_order", replace(layout, order="listed")
    yield "unlisted_name", replace(layout, unlisted="never")
    yield "further_item", replace(layout, unlisted="never", further_items=False)
    if layout.separators is None:
        yield "whitespace", replace(layout, separators=(b"", b""))
        yield "whitespace", replace(layout, separators=(b" ", b" "))
