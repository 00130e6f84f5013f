"""The ids of a text that the tokenizer does not give back as it was: its own ids around what it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.backend.vocabulary.model import Vocabulary

WINDOW = 64
"""Characters that are asked about first: the whole rest at every change would take quadratic time."""


def ids_by_parts(vocabulary: Vocabulary, text: str) -> list[int]:
    """Returns ids that decode to the text: the tokenizer's own of all that it gives back, and the longest
    match for each run of characters that it changes (a normalizer), leaves out or has no token for.

    Raises ValueError where no token continues the longest match."""
    tokens: list[int] = []
    at, window, changed = 0, WINDOW, ""
    while at < len(text):
        part = text[at : at + window]
        kept, length = _kept(vocabulary, part)
        if 2 * length > len(part) and at + len(part) < len(text):
            window *= 2  # a change so near the end of the window may come of the end
            continue
        if kept:
            tokens += vocabulary.longest_match(changed.encode())
            tokens += kept
            changed = ""
        changed += part[length : length + 1]
        at, window = at + length + 1, WINDOW
    return tokens + vocabulary.longest_match(changed.encode())


def _kept(vocabulary: Vocabulary, text: str) -> tuple[list[int], int]:
    """Returns the ids of the beginning that the tokenizer gives back, and its length in characters."""
    ids = vocabulary.canonical(text)
    if not ids:  # it raises: a character for which it does so alone ends the beginning
        unknown = (at for at, character in enumerate(text) if not vocabulary.canonical(character))
        text = text[: next(unknown, 0)]
        ids = vocabulary.canonical(text) if text else []
    wanted = text.encode()
    ends = _ends(vocabulary, ids, wanted)
    first = vocabulary.decode(ids[len(ends) - 1 : len(ends)])
    length = _whole(wanted, ends[-1] + _alike(first, wanted[ends[-1] :]))
    own = vocabulary.canonical(wanted[:length].decode())
    if not vocabulary.spells(own, wanted[:length]):
        count = max(count for count, end in enumerate(ends) if end <= length and _whole(wanted, end) == end)
        own, length = ids[:count], ends[count]
    return own, len(wanted[:length].decode())


def _ends(vocabulary: Vocabulary, ids: list[int], text: bytes) -> list[int]:
    """Returns 0, and where each token ends in the text, up to the first that is not what stands there."""
    ends = [0]
    for token in ids:
        if token in vocabulary.special_tokens or not text.startswith(vocabulary.tokens[token], ends[-1]):
            break
        ends.append(ends[-1] + len(vocabulary.tokens[token]))
    return ends


def _whole(text: bytes, length: int) -> int:
    """Returns the bytes of the whole characters within this many."""
    while length < len(text) and text[length] & 0xC0 == 0x80:
        length -= 1
    return length


def _alike(first: bytes, second: bytes) -> int:
    """Returns how many bytes both begin with."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(first), len(second)))
