"""A backend that constrains nothing: it shows what a walk costs by itself, and what a check must catch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from harness import Adapter, CompiledGrammar, Grammar, GrammarObject
from harness.backend import adapter_parts as parts
from harness.backend.grammar import DIALECTS, Bitmask, BoolMask, pack_mask
from harness.backend.vocabulary import Vocabulary


class UnconstrainedObject(GrammarObject):
    def __init__(self, adapter: Unconstrained, length: int = 0, is_terminated: bool = False) -> None:
        self._adapter = adapter
        self._length = length
        self._is_terminated = is_terminated

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        np.copyto(bitmask, self._adapter.bitmask)

    def fill_bool_mask(self, mask: BoolMask) -> None:
        np.copyto(mask, self._adapter.forbidden)

    def accept_token(self, token: int) -> bool:
        if self._is_terminated or not self._adapter.allows(token):
            return False
        self._length += 1
        self._is_terminated = token in self._adapter.vocabulary.eos_tokens
        return True

    def is_accepting(self) -> bool:
        return True

    def is_terminated(self) -> bool:
        return self._is_terminated

    def rollback(self, count: int) -> None:
        if not 0 <= count <= self._length:
            raise ValueError(f"cannot take back {count} of {self._length} tokens")
        self._length -= count
        self._is_terminated = self._is_terminated and not count

    def copy(self) -> UnconstrainedObject:
        return UnconstrainedObject(self._adapter, self._length, self._is_terminated)


class UnconstrainedGrammar(CompiledGrammar):
    def __init__(self, adapter: Unconstrained) -> None:
        self._adapter = adapter

    def start(self) -> UnconstrainedObject:
        return UnconstrainedObject(self._adapter)


class Unconstrained(Adapter):
    """Allows every token except special tokens and padding, and allows the end everywhere, whatever the
    grammar says."""

    distribution = ""
    dialects = frozenset(DIALECTS)

    def __init__(self, vocabulary: Vocabulary, *, mask: Literal["bitmask", "bool"] = "bitmask") -> None:
        super().__init__(vocabulary)
        self.mask_format = mask
        self.forbidden: BoolMask = np.zeros(vocabulary.size, dtype=np.bool_)
        self.forbidden[[*vocabulary.special_tokens, *vocabulary.padding_tokens]] = True
        self.forbidden[list(vocabulary.eos_tokens)] = False
        self.bitmask: Bitmask = pack_mask(~self.forbidden)
        self._is_forbidden = self.forbidden.tobytes()  # a byte is read faster than a cell of an array

    def compile(self, grammar: Grammar) -> UnconstrainedGrammar:
        return UnconstrainedGrammar(self)

    def fill_bitmasks(self, objects: Sequence[GrammarObject], bitmasks: Bitmask) -> None:
        parts.require_a_row_for_each(len(objects), bitmasks)
        np.copyto(bitmasks, self.bitmask)

    def allows(self, token: int) -> bool:
        return 0 <= token < self.vocabulary.size and not self._is_forbidden[token]
