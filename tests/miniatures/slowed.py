"""A right backend whose every fill is made several times over: against each other, two of them differ by a known share and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from harness.grammar import Adapter, Bitmask, CompiledGrammar, Dialect, Grammar, GrammarObject
from harness.registry import load
from harness.vocabulary import Vocabulary


class _Object(GrammarObject):
    def __init__(self, right: GrammarObject, times: int) -> None:
        self.right, self.times = right, range(times)

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        for _ in self.times:
            self.right.fill_bitmask(bitmask)

    def filler(self, bitmask: Bitmask) -> Callable[[], object]:
        fill, times = self.right.filler(bitmask), self.times

        def fill_again_and_again() -> None:
            for _ in times:
                fill()

        return fill_again_and_again

    def accept_token(self, token: int) -> bool:
        return self.right.accept_token(token)

    def is_accepting(self) -> bool:
        return self.right.is_accepting()

    def is_terminated(self) -> bool:
        return self.right.is_terminated()


class _Grammar(CompiledGrammar):
    def __init__(self, right: CompiledGrammar, times: int) -> None:
        self.right, self.times = right, times

    def start(self) -> GrammarObject:
        return _Object(self.right.start(), self.times)


class Slowed(Adapter):
    """`times=27` takes 8 % more for its fills than `times=25`."""

    distribution: ClassVar[str] = ""
    dialects: ClassVar[frozenset[Dialect]] = frozenset({"json_schema", "regex", "ebnf"})

    def __init__(self, vocabulary: Vocabulary, *, times: int = 25) -> None:
        super().__init__(vocabulary)
        self.right, self.times = load("llguidance")(vocabulary), times

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        return _Grammar(self.right.compile(grammar), self.times)
