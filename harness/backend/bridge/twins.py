"""Ids with the same bytes, for backends behind a tokenizer that cannot have two tokens of one spelling.

There the first of such ids stands for all: the mask's bits of the others follow its bit, and where one of
them is accepted, so is it.
"""

from __future__ import annotations

import numpy as np

from harness.backend.grammar import Bitmask, BoolMask
from harness.backend.vocabulary import Vocabulary


def twins(vocabulary: Vocabulary) -> dict[int, int]:
    """Returns each plain id whose bytes a lower id has too, and that id."""
    first = vocabulary.ids_by_bytes
    return {token: first[text] for token, text in vocabulary.plain_tokens().items() if first[text] != token}


class Twins:
    """What the bridges do for twins; `first` has nothing where there are none, and then nothing is done."""

    def __init__(self, first: dict[int, int]) -> None:
        self.first = first
        self._others = np.fromiter(first.keys(), np.int64, len(first))
        self._firsts = np.fromiter(first.values(), np.int64, len(first))
        self._words = self._others >> 5
        self._bits = np.uint32(1) << (self._others & 31).astype(np.uint32)

    def spread(self, bitmask: Bitmask) -> None:
        """Gives each twin the bit of its first."""
        if self.first:
            words = bitmask.view(np.uint32)
            shifts = (self._firsts & 31).astype(np.uint32)
            allowed = (words[self._firsts >> 5] >> shifts & np.uint32(1)).astype(np.bool_)
            np.bitwise_and.at(words, self._words, ~self._bits)
            np.bitwise_or.at(words, self._words[allowed], self._bits[allowed])

    def with_bytes(self, tokens: list[bytes]) -> list[bytes]:
        """Gives each twin, in a list of every id's bytes, those of its first; returns the list."""
        for token, first in self.first.items():
            tokens[token] = tokens[first]
        return tokens

    def spread_forbidden(self, mask: BoolMask) -> None:
        """Gives each twin, in a mask of the second format, what its first has."""
        if self.first:
            mask[self._others] = mask[self._firsts]


NO_TWINS = Twins({})
