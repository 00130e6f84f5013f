"""Adapters that kill their process: in a fill for a grammar that contains `boom`, or over many blanks."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Sequence
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
from harness.oracle.reference import Reference, ReferenceGrammar, ReferenceObject


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


class DiesOverBlanks(Reference):
    """Kills itself where many tokens are written at once."""

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        compiled = super().compile(grammar)

        class Object(ReferenceObject):
            def accept_tokens(self, tokens: Sequence[int]) -> int:
                if len(tokens) > 40:
                    os.kill(os.getpid(), signal.SIGKILL)
                return super().accept_tokens(tokens)

        class Compiled(ReferenceGrammar):
            def start(self) -> ReferenceObject:
                return Object(self._adapter, self._language)

        return Compiled(self, compiled._language)
