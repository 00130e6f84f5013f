"""Right backends that take their time, so that a deadline is met or missed by a known share of it."""

from __future__ import annotations

import time

from harness.backend.grammar import Bitmask, Grammar
from harness.backend.vocabulary import Vocabulary

from .reference import Reference, ReferenceGrammar, ReferenceObject


class SlowObject(ReferenceObject):
    def fill_bitmask(self, bitmask: Bitmask) -> None:
        adapter = self.compiled.adapter
        assert isinstance(adapter, Slow)
        time.sleep(adapter.fill_ms / 1000)
        super().fill_bitmask(bitmask)


class Slow(Reference):
    """Sleeps `compile_ms` for each character of a grammar, and `fill_ms` before each mask."""

    object_class = SlowObject

    def __init__(self, vocabulary: Vocabulary, *, compile_ms: int = 0, fill_ms: int = 0) -> None:
        super().__init__(vocabulary)
        self.compile_ms, self.fill_ms = compile_ms, fill_ms

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        time.sleep(len(grammar.text) * self.compile_ms / 1000)
        return super().compile(grammar)


class HangsOnTwo(Reference):
    """Compiles for `slow_ms` where the grammar has a `b`, and for ever where it has an `a` too."""

    def __init__(self, vocabulary: Vocabulary, *, slow_ms: int = 300) -> None:
        super().__init__(vocabulary)
        self.slow_ms = slow_ms

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        if "b" in grammar.text:
            time.sleep(600 if "a" in grammar.text else self.slow_ms / 1000)
        return super().compile(grammar)


class HangsOnFewTokens(Reference):
    """Compiles for ever where the vocabulary has little more than the bytes."""

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        if self.vocabulary.size < 300:
            time.sleep(600)
        return super().compile(grammar)
