"""An adapter that kills its process when it fills a mask for a grammar that contains `boom`, and allows
everything for any other one."""

from __future__ import annotations

import ctypes
from typing import ClassVar

from harness.backend.grammar import (
    DIALECTS,
    Adapter,
    Bitmask,
    CompiledGrammar,
    Dialect,
    Grammar,
    GrammarObject,
)


class DiesInFill(Adapter):
    distribution: ClassVar[str] = ""
    dialects: ClassVar[frozenset[Dialect]] = frozenset(DIALECTS)

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        return DyingGrammar(self.vocabulary.eos_token, "boom" in grammar.text)


class DyingGrammar(CompiledGrammar):
    def __init__(self, eos_token: int, dies: bool) -> None:
        self.eos_token, self.dies = eos_token, dies

    def start(self) -> GrammarObject:
        return DyingObject(self)


class DyingObject(GrammarObject):
    def __init__(self, compiled: DyingGrammar) -> None:
        self.compiled, self.ended = compiled, False

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        if self.compiled.dies:
            ctypes.string_at(0)
        bitmask.fill(-1)

    def accept_token(self, token: int) -> bool:
        self.ended = token == self.compiled.eos_token
        return True

    def is_accepting(self) -> bool:
        return True

    def is_terminated(self) -> bool:
        return self.ended
