"""What a mask says of one token, at a place where the token's bytes may stand or may not."""

from __future__ import annotations

from dataclasses import dataclass

from harness.backend.grammar import Adapter, allocate_bitmask, is_allowed
from harness.backend.token_bytes.compare import WrongToken
from harness.backend.token_bytes.place import Place, place_of
from harness.backend.vocabulary import Vocabulary


@dataclass(frozen=True)
class Shown:
    """A mask that tells a wrong reading: the grammar is a `choice` of texts."""

    choice: str
    before: bytes
    allowed: bool
    """Whether the mask allows the token, wrongly; else it forbids it, wrongly."""


def allows(adapter: Adapter, place: Place, token: int) -> bool | None:
    """Returns whether the mask at the place allows the token; None where the place is not reached. What the
    backend raises escapes."""
    grammar_object = adapter.compile(place.grammar).start()
    for step in adapter.vocabulary.encode(place.before):
        if not grammar_object.accept_token(step):
            return None
    bitmask = allocate_bitmask(adapter.vocabulary.size)
    grammar_object.fill_bitmask(bitmask)
    return is_allowed(bitmask, token)


def shown(adapter: Adapter, wrong: WrongToken) -> Shown | None:
    """Returns a mask that is wrong because the backend reads the token so; None where none is found.

    Where the backend's bytes stand and the true ones do not, the token must be forbidden; where it is the
    other way round, allowed.
    """
    for content, would in ((wrong.read, True), (wrong.true, False)):
        place = place_of(content) if content else None
        if place is None or place.fits(wrong.true) == would:
            continue
        if allows(adapter, place, wrong.token) is would:
            return Shown(place.grammar.text, place.before, would)
    return None


def held(adapter: Adapter, token: int) -> tuple[bool, Shown | None]:
    """Returns whether a mask could be asked about the token, and that mask where it says that the token is
    not what the vocabulary says: text that is forbidden where its bytes stand, or a special token that is
    allowed where its name stands. What the backend raises escapes."""
    vocabulary = adapter.vocabulary
    content = vocabulary.tokens[token] or vocabulary.special_tokens.get(token, "").encode()
    place = place_of(content) if content else None
    said = None if place is None else allows(adapter, place, token)
    if place is None or said is None:
        return False, None
    is_right = said == place.fits(vocabulary.tokens[token])
    return True, None if is_right else Shown(place.grammar.text, place.before, said)


def sample(vocabulary: Vocabulary, most: int) -> list[int]:
    """Returns so many ids at most, of every sort: specials, bytes, leading spaces, parts of characters,
    text beyond ASCII, long ones, and others; each sort is taken at even distances."""
    sorts: dict[object, list[int]] = {}
    for token, text in enumerate(vocabulary.tokens):
        if token not in vocabulary.padding_tokens:
            sorts.setdefault(_sort(vocabulary, token, text), []).append(token)
    share = max(1, most // max(1, len(sorts)))
    chosen = [tokens[:: max(1, len(tokens) // share)][:share] for tokens in sorts.values()]
    return sorted(token for tokens in chosen for token in tokens)


def _sort(vocabulary: Vocabulary, token: int, text: bytes) -> object:
    if token in vocabulary.special_tokens or not text:
        return "special"
    try:
        plain = text.decode()
    except UnicodeDecodeError:
        return "byte" if len(text) == 1 else "part"
    return (plain.startswith(" "), plain.isascii(), len(plain) > 8, len(text) == 1)
