"""Backends whose cost is known, on a clock that only they move, and one that hangs or refuses at a size."""

from __future__ import annotations

import json
import os
import time

from harness import Adapter, CompiledGrammar, Grammar, GrammarObject, UnsupportedGrammar
from harness.backend.grammar import Bitmask
from harness.backend.vocabulary import Vocabulary

COLD, AGAIN = 100_000, 1_000
"""Nanoseconds of the first compile of a grammar, and of any further one, for each byte of the grammar."""

COLD_FILL, FILL = 70_000, 5_000
"""Nanoseconds of the first fill at a place of a compiled grammar, and of any further one."""


class FakeClock:
    """Stands in for `time` where calls are timed: it moves only when a backend says so."""

    def __init__(self) -> None:
        self.now = 0

    def perf_counter_ns(self) -> int:
        return self.now

    process_time_ns = perf_counter_ns

    def process_time(self) -> float:
        return self.now / 1e9


class ClockedObject(GrammarObject):
    def __init__(self, compiled: ClockedGrammar) -> None:
        self.compiled, self.place = compiled, 0

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        bitmask[:] = -1
        self.compiled.clock.now += FILL if self.place in self.compiled.filled else COLD_FILL
        self.compiled.filled.add(self.place)

    def accept_token(self, token: int) -> bool:
        self.place += 1
        return True

    def is_accepting(self) -> bool:
        return True

    def is_terminated(self) -> bool:
        return False


class ClockedGrammar(CompiledGrammar):
    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.filled: set[int] = set()

    def start(self) -> ClockedObject:
        return ClockedObject(self)


class Clocked(Adapter):
    """Takes COLD for each byte of a grammar that it has not seen, and AGAIN for one that it has."""

    distribution = ""
    dialects = frozenset({"json_schema", "regex"})
    clock = FakeClock()

    def __init__(self, vocabulary: object, *, cache: bool = False) -> None:
        super().__init__(vocabulary)  # type: ignore[arg-type]
        self.cache = cache
        self.seen: set[str] = set()

    def compile(self, grammar: Grammar) -> ClockedGrammar:
        cost = AGAIN if grammar.text in self.seen else COLD
        if self.cache and grammar.text in self.seen:
            cost = 1
        self.seen.add(grammar.text)
        self.clock.now += cost * len(grammar.text)
        return ClockedGrammar(self.clock)


class Ending(Adapter):
    """Hangs at an enum of 8 values and more, and refuses a regex."""

    distribution = ""
    dialects = frozenset({"json_schema"})

    def compile(self, grammar: Grammar) -> ClockedGrammar:
        if grammar.dialect != "json_schema":
            raise UnsupportedGrammar("only JSON Schema")
        if len(json.loads(grammar.text).get("enum", ())) >= 8:
            time.sleep(60)
        return ClockedGrammar(FakeClock())


SMALL = 300
"""The ids of a vocabulary with which a backend is looked at before it is loaded in earnest."""


class RaisesAsItLoads(Clocked):
    """Raises with any vocabulary but the small one of the look before."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        if vocabulary.size > SMALL:
            raise RuntimeError("no such device")


class DiesAsItLoads(Clocked):
    """Aborts with any vocabulary but the small one of the look before."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        if vocabulary.size > SMALL:
            os.abort()
