"""The reference backend (adapters/reference.py): it answers every call from the reference automaton, and is
slow only on its first visit to a state.

The checks are proven with mutants of this backend."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from harness.backend.grammar import (
    DIALECTS,
    Adapter,
    Bitmask,
    BoolMask,
    CompiledGrammar,
    Dialect,
    Grammar,
    GrammarObject,
    InvalidGrammar,
    UnsupportedGrammar,
)
from harness.backend.layout import LAYOUTS, LayoutName
from harness.backend.vocabulary import Vocabulary
from harness.oracle.automaton import DEAD, Automaton, NoOracle
from harness.oracle.language import language_of, outputs_of
from harness.oracle.trie import trie_of


class ReferenceObject(GrammarObject):
    def __init__(self, adapter: Reference, language: Automaton[Any]) -> None:
        self._adapter = adapter
        self._language = language
        self._states = [language.start]
        self._is_terminated = False

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        if (
            bitmask.dtype != np.int32
            or bitmask.shape != (self._adapter.words,)
            or not bitmask.flags.writeable
        ):
            raise ValueError(f"a bitmask is a writable int32 array of {self._adapter.words} words")
        bits = np.zeros(self._adapter.words * 32, dtype=np.bool_)
        if not self._is_terminated:
            bits[: self._adapter.vocabulary.size] = self._adapter.trie.mask(self._language, self._states[-1])
        bitmask[:] = np.packbits(bits, bitorder="little").view(np.int32)

    def fill_bool_mask(self, mask: BoolMask) -> None:
        mask[:] = True if self._is_terminated else ~self._adapter.trie.mask(self._language, self._states[-1])

    def accept_token(self, token: int) -> bool:
        vocabulary = self._adapter.vocabulary
        if self._is_terminated:
            return False
        if token in vocabulary.eos_tokens:
            self._is_terminated = self.is_accepting()
            return self._is_terminated
        if not 0 <= token < vocabulary.size:
            return False
        is_text = token not in vocabulary.special_tokens and token not in vocabulary.padding_tokens
        text = vocabulary.tokens[token] if is_text else b""
        state = self._language.after_token(self._states[-1], token, text)
        if state == DEAD:
            return False
        self._states.append(state)
        return True

    def is_accepting(self) -> bool:
        return not self._is_terminated and self._language.accepting(self._states[-1])

    def is_terminated(self) -> bool:
        return self._is_terminated

    def rollback(self, count: int) -> None:
        if not 0 <= count < len(self._states) + self._is_terminated:
            raise ValueError(f"cannot roll back {count} tokens")
        if count and self._is_terminated:
            self._is_terminated = False
            count -= 1
        del self._states[len(self._states) - count :]

    def copy(self) -> ReferenceObject:
        clone = ReferenceObject(self._adapter, self._language)
        clone._states = self._states.copy()
        clone._is_terminated = self._is_terminated
        return clone

    def jump_forward(self) -> bytes:
        return b"" if self._is_terminated else self._language.forced(self._states[-1])

    def fast_forward_tokens(self) -> list[int]:
        try:
            return self._adapter.vocabulary.encode(self.jump_forward())
        except ValueError:  # the vocabulary cannot spell it
            return []


class ReferenceGrammar(CompiledGrammar):
    def __init__(self, adapter: Reference, language: Automaton[Any]) -> None:
        self._adapter = adapter
        self._language = language

    def start(self) -> ReferenceObject:
        return ReferenceObject(self._adapter, self._language)


class Reference(Adapter):
    """Compiles JSON Schemas (their documents in any spelling), structural tags, regular expressions, EBNF and
    choices exactly.

    `mask=bool` selects the second mask format, `formats=assert` makes `format` a constraint, and
    `layout=compact` or `layout=spaced` leaves a JSON document one spelling.
    """

    distribution: ClassVar[str] = ""
    dialects: ClassVar[frozenset[Dialect]] = frozenset(DIALECTS)

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        mask: Literal["bitmask", "bool"] = "bitmask",
        formats: Literal["annotate", "assert"] = "annotate",
        layout: LayoutName = "any",
    ) -> None:
        super().__init__(vocabulary)
        self.layout = self.layout_in_tags = LAYOUTS[layout]
        self.asserts_formats = formats == "assert"
        self.mask_format = mask
        self.trie = trie_of(vocabulary)
        self.words = (vocabulary.size + 31) // 32

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        try:
            language = self._language(grammar)
        except NoOracle as why:
            raise UnsupportedGrammar(str(why)) from why
        if language.start == DEAD:
            raise InvalidGrammar("it has no sentence at all")
        return ReferenceGrammar(self, language)

    def _language(self, grammar: Grammar) -> Automaton[Any]:
        if grammar.dialect in ("json_schema", "structural_tag"):
            return outputs_of(
                grammar, None, self.asserts_formats, layout=self.layout, vocabulary=self.vocabulary
            )
        return language_of(grammar)
