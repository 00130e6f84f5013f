"""A right backend whose every fill takes a known share longer: two of them differ by that and by nothing
else."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar

from harness.backend.grammar import Adapter, Bitmask, CompiledGrammar, Dialect, Grammar, GrammarObject
from harness.backend.registry import load
from harness.backend.vocabulary import Vocabulary

TIMES = 12
"""Every fill is made so often, so that the readings of the clock inside it weigh little."""


class _Object(GrammarObject):
    def __init__(self, right: GrammarObject, percent: int) -> None:
        self.right, self.percent = right, percent

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        self.right.fill_bitmask(bitmask)

    def filler(self, bitmask: Bitmask) -> Callable[[], object]:
        fill, times, share, clock = (
            self.right.filler(bitmask),
            range(TIMES),
            self.percent / 100,
            time.perf_counter_ns,
        )

        def fill_and_idle() -> None:
            start = clock()
            for _ in times:
                fill()
            end = clock()
            end += int((end - start) * share)
            while clock() < end:
                pass

        return fill_and_idle

    def accept_token(self, token: int) -> bool:
        return self.right.accept_token(token)

    def is_accepting(self) -> bool:
        return self.right.is_accepting()

    def is_terminated(self) -> bool:
        return self.right.is_terminated()


class _Grammar(CompiledGrammar):
    def __init__(self, right: CompiledGrammar, percent: int) -> None:
        self.right, self.percent = right, percent

    def start(self) -> GrammarObject:
        return _Object(self.right.start(), self.percent)


class Slowed(Adapter):
    """`percent=8` takes 8 % more for its fills than `percent=0`."""

    distribution: ClassVar[str] = ""
    dialects: ClassVar[frozenset[Dialect]] = frozenset({"json_schema", "regex", "ebnf"})

    def __init__(self, vocabulary: Vocabulary, *, percent: int = 0) -> None:
        super().__init__(vocabulary)
        self.right, self.percent = load("llguidance")(vocabulary), percent

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        return _Grammar(self.right.compile(grammar), self.percent)
