"""Walks one token at a time, and makes the small vocabulary that a script walks with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from harness.backend.grammar import Adapter, Grammar, GrammarObject, allocate_bitmask, allowed_tokens
from harness.backend.vocabulary import Vocabulary, byte_vocabulary

END = "end"
"""End-of-sequence among tokens that are spelled as hex of their bytes."""


@dataclass(frozen=True)
class Step:
    """The result of one token."""

    token: int
    allowed: bool
    accepted: bool
    allowed_tokens: tuple[int, ...]
    """All tokens that the mask allowed."""

    @property
    def refused(self) -> bool:
        return not (self.allowed and self.accepted)


def stepped(adapter: Adapter, grammar: Grammar, tokens: Sequence[int]) -> Iterator[Step]:
    """Yields the tokens one by one, up to the first refusal. What the backend raises comes through."""
    yield from stepped_on(adapter, adapter.compile(grammar).start(), tokens)


def stepped_on(adapter: Adapter, grammar_object: GrammarObject, tokens: Sequence[int]) -> Iterator[Step]:
    """Yields the same of an object of the compiled grammar."""
    for token in tokens:
        allowed = _allowed(adapter, grammar_object)
        step = Step(token, token in allowed, bool(grammar_object.accept_token(token)), allowed)
        yield step
        if step.refused:
            return


def _allowed(adapter: Adapter, grammar_object: GrammarObject) -> tuple[int, ...]:
    size = adapter.vocabulary.size
    if adapter.mask_format == "bool":
        forbidden = np.ones(size, dtype=np.bool_)
        grammar_object.fill_bool_mask(forbidden)
        return tuple(np.flatnonzero(~forbidden).tolist())
    mask = allocate_bitmask(size)
    grammar_object.fill_bitmask(mask)
    return tuple(allowed_tokens(mask, size).tolist())


def small_vocabulary(words: Sequence[bytes]) -> Vocabulary:
    """Returns a vocabulary of these tokens, then every other byte, then end-of-sequence: the order in which a
    script has them."""
    if not words:
        return byte_vocabulary()
    tokens = [
        *words,
        *(byte for byte in (bytes([number]) for number in range(256)) if byte not in words),
        b"",
    ]
    end = len(tokens) - 1
    return Vocabulary("small", tuple(tokens), (end,), {end: "</s>"})


def spelled(vocabulary: Vocabulary, tokens: Sequence[int]) -> list[str] | None:
    """Returns the tokens as hex of their bytes, with `END` where end-of-sequence comes last; None if other
    tokens have no bytes."""
    if (
        not all(vocabulary.tokens[token] for token in tokens if token != vocabulary.eos_token)
        or vocabulary.eos_token in tokens[:-1]
    ):
        return None
    return [END if token == vocabulary.eos_token else vocabulary.tokens[token].hex() for token in tokens]


def tokens_of(vocabulary: Vocabulary, spelling: Sequence[str]) -> list[int]:
    """Returns the ids of the tokens with this spelling. Raises KeyError for one that the vocabulary lacks."""
    return [
        vocabulary.eos_token if token == END else vocabulary.ids_by_bytes[bytes.fromhex(token)]
        for token in spelling
    ]


def words_of(spelling: Sequence[str]) -> tuple[bytes, ...]:
    """Returns the tokens of more than a byte among them, each once."""
    return tuple(dict.fromkeys(bytes.fromhex(token) for token in spelling if token != END and len(token) > 2))
