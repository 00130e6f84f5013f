"""An adapter whose compiles do what the grammar's text says, and end when the test says."""

from __future__ import annotations

import threading
import weakref
from typing import ClassVar

from harness.backend.grammar import (
    Adapter,
    Bitmask,
    CompiledGrammar,
    Dialect,
    Grammar,
    GrammarObject,
    InvalidGrammar,
    UnsupportedGrammar,
)
from harness.backend.vocabulary import byte_vocabulary


class Panic(BaseException):
    """Stands for a panic of a Rust extension, which is no Exception."""


class CountingObject(GrammarObject):
    """Knows its position only."""

    def __init__(self) -> None:
        self.position = 0

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        bitmask[:] = -1

    def accept_token(self, token: int) -> bool:
        self.position += 1
        return True

    def is_accepting(self) -> bool:
        return False

    def is_terminated(self) -> bool:
        return False


class CountingGrammar(CompiledGrammar):
    """Starts CountingObjects."""

    def start(self) -> GrammarObject:
        return CountingObject()


class Gated(Adapter):
    """`hang...` waits until `release` is called for it, `raise`, `panic`, `exit`, `invalid`, `unsupported` do
    so, all else compiles."""

    distribution: ClassVar[str] = ""
    dialects: ClassVar[frozenset[Dialect]] = frozenset({"regex"})

    def __init__(self) -> None:
        super().__init__(byte_vocabulary())
        self.begun: list[str] = []
        """The texts whose compiles began."""
        self.made: list[weakref.ref[CompiledGrammar]] = []
        self.now = 0
        self.most = 0
        """Compiles at one time."""
        self._lock = threading.Lock()
        self._gates: dict[str, threading.Event] = {}

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        with self._lock:
            self.begun.append(grammar.text)
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            return self._compile(grammar.text)
        finally:
            with self._lock:
                self.now -= 1

    def _compile(self, text: str) -> CompiledGrammar:
        if text.startswith("hang"):
            assert self._gate(text).wait(60), "a test did not release a compile"
        what = text.removeprefix("hang ")
        if what.startswith("raise"):
            raise RuntimeError("the compiler\ngave up")
        if what.startswith("panic"):
            raise Panic("index out of bounds")
        if what.startswith("exit"):
            raise SystemExit(3)
        if what.startswith("invalid"):
            raise InvalidGrammar("unbalanced parenthesis at 3")
        if what.startswith("unsupported"):
            raise UnsupportedGrammar("no lookahead")
        made = CountingGrammar()
        self.made.append(weakref.ref(made))
        return made

    def release(self, text: str) -> None:
        """Lets the compiles of this text go on, now and later."""
        self._gate(text).set()

    def alive(self) -> int:
        """Returns how many compiled grammars somebody still holds."""
        return sum(reference() is not None for reference in self.made)

    def _gate(self, text: str) -> threading.Event:
        with self._lock:
            return self._gates.setdefault(text, threading.Event())
