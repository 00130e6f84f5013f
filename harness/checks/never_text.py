"""Ids that the library behind a backend never takes for text, such as added tokens that look like `<...>`:
masks forbid them wherever their text may stand. No output is lost where others write it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.backend.contract.place import accepted
from harness.backend.vocabulary import Vocabulary
from harness.checks.subject import Place, Subject
from harness.errors import OutOfTime

NEVER_TEXT = "never_text"
"""The cause of tokens that a mask lacks because the library never takes these ids for text."""

MOST_TRIED = 6
"""Tokens of which the same text is tried in other tokens; the others are believed to be like them."""


def never_text(subject: Subject, place: Place, forbidden: Sequence[int]) -> list[int]:
    """Returns those of the forbidden tokens that look like `<...>` and that the library never takes for text,
    if the backend takes their texts at the place in other tokens; else none."""
    texts = subject.vocabulary.tokens
    alike = [token for token in forbidden if texts[token][:1] == b"<" and texts[token][-1:] == b">"]
    # What the library takes its ids for is asked last: it may take a second to say.
    if not alike or not _is_taken_otherwise(subject, place, alike[0]):
        return []
    known = _taken_for(subject)
    tokens = [] if known is None else [token for token in alike if not known[token]]
    step = max(1, len(tokens) // MOST_TRIED)
    tried = tokens[::step][:MOST_TRIED]
    return tokens if all(_is_taken_otherwise(subject, place, token) for token in tried) else []


def _taken_for(subject: Subject) -> list[bytes] | None:
    """Returns the bytes that the library takes each id for; None where it does not show them."""
    try:
        known = subject.adapter.token_bytes()
    except OutOfTime:
        raise
    except Exception:  # `check --tokens` tells it; here nothing is known then
        return None
    return known if isinstance(known, list) and len(known) == subject.vocabulary.size else None


def _is_taken_otherwise(subject: Subject, place: Place, token: int) -> bool:
    """Does the backend take the text of the token at the place, a character at a time?"""
    pieces = [*_characters(subject.vocabulary, subject.vocabulary.tokens[token])]
    if not all(pieces) or any(token in ids for ids in pieces):
        return False
    ids = [piece for several in pieces for piece in several]
    grammar_object = subject.reach(place.tokens)
    return grammar_object is not None and accepted(grammar_object, ids) == len(ids)


def _characters(vocabulary: Vocabulary, text: bytes) -> Iterator[list[int]]:
    """Yields the tokens of each character of the text: one, or one for each byte; none where the vocabulary
    has no such tokens."""
    ids = vocabulary.ids_by_bytes
    for character in text.decode("utf-8", "surrogateescape"):
        content = character.encode("utf-8", "surrogateescape")
        several = [content] if content in ids else [bytes((byte,)) for byte in content]
        yield [ids[each] for each in several] if all(each in ids for each in several) else []
