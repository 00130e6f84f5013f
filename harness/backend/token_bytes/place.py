"""A grammar of a few literal texts, with a place where a token's bytes may come beside others.

Nothing is forced at the place, since a backend may allow the canonical token alone where it is: another text
begins there with another byte.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import product

from harness.backend.grammar import Grammar

LEADS = ("c3", "e6", "e697", "f0", "f09f", "f09f98", "f1")
"""Beginnings of characters, as hex, which a token that begins inside a character may continue: one of them
stands before every token that any does, the last before what not all lead bytes of four allow."""
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


def place_of(content: bytes) -> Place | None:
    """Returns a place where a token of these bytes may come, among others; None where no UTF-8 text has the
    bytes."""
    whole = completed(content)
    if whole is None:
        return None
    before, text = whole
    others = (_behind(before + bytes([byte])) for byte in (*range(0x80, 0xC0), *b"01") if byte != content[0])
    other = next(each for each in others if each is not None)
    first = next(digit for digit in (b"0", b"1", b"2") if digit[0] not in (text[0], other[0]))
    texts = (text, other, first)
    choice = json.dumps([each.decode() for each in texts], ensure_ascii=False)
    return Place(Grammar("choice", choice), texts, before)


def completed(content: bytes) -> tuple[bytes, bytes] | None:
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
