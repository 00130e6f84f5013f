"""What a mask says of one token: a grammar of a few literal texts, with a place where the token's bytes may
stand or may not.

Nothing is forced at the place, since a backend may allow the canonical token alone where it is: another text
begins there with another byte.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import product

from harness.backend.grammar import Adapter, Grammar, allocate_bitmask, is_allowed
from harness.backend.token_bytes.compare import WrongToken
from harness.backend.vocabulary import Vocabulary

LEADS = ("c3", "e6", "e697", "f0", "f09f", "f09f98")
"""Beginnings of characters, as hex, which a token that begins inside a character may continue."""
TAILS = (b"\x80", b"\xa0", b"\x90")
"""Bytes that may complete a character; one of the three fits behind every beginning."""


@dataclass(frozen=True)
class Place:
    """A grammar, and the bytes after which a text stands there beside others."""

    grammar: Grammar
    texts: tuple[bytes, ...]
    """All outputs of the grammar."""
    before: bytes

    def fits(self, content: bytes) -> bool:
        """Returns whether a token of these bytes may come at the place; one without bytes never may."""
        return bool(content) and any(text.startswith(self.before + content) for text in self.texts)


@dataclass(frozen=True)
class Shown:
    """A mask that tells a wrong reading: the grammar is a `choice` of texts."""

    choice: str
    before: bytes
    allowed: bool
    """Whether the mask allows the token, wrongly; else it forbids it, wrongly."""


def place_of(content: bytes) -> Place | None:
    """Returns a place where a token of these bytes may come, among others; None where no UTF-8 text has the
    bytes."""
    whole = _completed(content)
    if whole is None:
        return None
    before, text = whole
    other = next(
        each
        for each in (before + bytes([byte]) for byte in (*range(0x80, 0xC0), *b"01"))
        if (completed := _behind(each)) is not None and each[len(before)] != content[0] and completed
    )
    beside = _behind(other)
    assert beside is not None
    first = next(digit for digit in (b"0", b"1", b"2") if digit[0] not in (text[0], beside[0]))
    texts = (text, beside, first)
    choice = json.dumps([each.decode() for each in texts], ensure_ascii=False)
    return Place(Grammar("choice", choice), texts, before)


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


def refused(adapter: Adapter, token: int) -> Shown | None:
    """Returns a mask that says that the token is not what the vocabulary says: text that is forbidden where
    its bytes stand, or a special token that is allowed where its name stands; None where the masks are right,
    or nothing can be asked."""
    vocabulary = adapter.vocabulary
    content = vocabulary.tokens[token] or vocabulary.special_tokens.get(token, "").encode()
    place = place_of(content) if content else None
    if place is None:
        return None
    should = place.fits(vocabulary.tokens[token])
    said = allows(adapter, place, token)
    return None if said is None or said == should else Shown(place.grammar.text, place.before, said)


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


def _completed(content: bytes) -> tuple[bytes, bytes] | None:
    """Returns what must stand before the bytes, and a whole text of both; None where no UTF-8 has them."""
    for lead in ("", *LEADS):
        before = bytes.fromhex(lead)
        text = _behind(before + content)
        if text is not None:
            return before, text
    return None


def _behind(beginning: bytes) -> bytes | None:
    """Returns the bytes, with those behind them that complete their last character; None where none do."""
    for count in range(4):
        for tail in product(TAILS, repeat=count):
            text = beginning + b"".join(tail)
            try:
                text.decode()
            except UnicodeDecodeError:
                continue
            return text
    return None
