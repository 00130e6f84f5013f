"""Ten thousand requests, of which many go wrong in every way: no object, thread or memory is left.

And what leaks is caught.
"""

from __future__ import annotations

import gc
import mmap
import os
import threading
import time
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest
import torch
from decode_tools import WORDS, regex, request

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
from harness.walk.loop.active import ActiveRequest
from harness.walk.loop.compiling import CompileQueue
from harness.walk.loop.loop import Loop, LoopOptions
from harness.walk.loop.outcome import Served
from harness.walk.loop.request import Request
from harness.walk.loop.step import Fills
from harness.walk.loop.strategies.base import Move, Strategy

MS = 1_000_000
THINK = WORDS.size - 2
A_ROUND, ROUNDS = 500, 20
FAULTS = ("start", "fill", "accept", "rollback", "jump_forward")


class Anything(GrammarObject):
    """Allows every token, and raises where its grammar says so."""

    alive: ClassVar[weakref.WeakSet[Anything]] = weakref.WeakSet()

    def __init__(self, where: str) -> None:
        self.where = where
        self.accepted = 0
        self.alive.add(self)

    def spoil(self, where: str) -> None:
        if where == self.where and self.accepted >= 2:
            raise RuntimeError(f"no {where}")

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        self.spoil("fill")
        bitmask.fill(-1)

    def accept_token(self, token: int) -> bool:
        self.spoil("accept")
        self.accepted += 1
        return True

    def is_accepting(self) -> bool:
        return True

    def is_terminated(self) -> bool:
        return False

    def rollback(self, count: int) -> None:
        self.spoil("rollback")
        self.accepted -= count

    def jump_forward(self) -> bytes:
        self.spoil("jump_forward")
        return b""


class Compiled(CompiledGrammar):
    def __init__(self, where: str) -> None:
        self.where = where

    def start(self) -> GrammarObject:
        if self.where == "start":
            raise RuntimeError("no start")
        return Anything(self.where)


class Backend(Adapter):
    distribution: ClassVar[str] = ""
    dialects: ClassVar[frozenset[Dialect]] = frozenset({"regex"})
    slow_s = 0.004

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        if grammar.dialect != "regex":
            raise UnsupportedGrammar("no such dialect")
        if grammar.text == "wrong":
            raise InvalidGrammar("no such grammar")
        if grammar.text == "crash":
            raise RuntimeError("it broke")
        if grammar.text.startswith("slow"):
            time.sleep(self.slow_s)
        return Compiled(grammar.text)


class Quick:
    """A model that knows one thing to say."""

    device = torch.device("cpu")
    began: None = None
    rows, positions, chunk, vocabulary_size = 16, 256, 64, WORDS.size

    def __init__(self) -> None:
        self.held = [0] * self.rows
        self.logits = torch.zeros((5 * self.rows, 5, self.vocabulary_size))

    def extend(self, tokens: Mapping[int, Sequence[int]], *, every: bool = False) -> torch.Tensor:
        for row, added in tokens.items():
            self.held[row] += len(added)
        logits = (
            self.logits[: len(tokens), : max(map(len, tokens.values()))]
            if every
            else self.logits[: len(tokens), 0]
        )
        return logits.clone()

    def extend_unseen(self, rows: Sequence[int], tokens: torch.Tensor) -> torch.Tensor:
        return self.extend(dict.fromkeys(rows, (0,)))

    def length(self, row: int) -> int:
        return self.held[row]

    def rollback(self, row: int, length: int) -> None:
        self.held[row] = length

    def finish(self) -> None: ...


class Guesses(Strategy):
    """Asks what is forced, and drafts what is half wrong: so there is something to roll back."""

    draft_tokens = 2

    def advance(self, active: ActiveRequest) -> Move | None:
        active.forced()
        return None

    def draft(self, active: ActiveRequest) -> Sequence[int]:
        return (0, 1)


def wanted(number: int, count: int) -> list[Request]:
    """Of each 20 five whose grammar raises, three without their grammar, two cancelled, and one whose compile
    times out."""
    made = []
    for each in range(count):
        kind, name = each % 20, f"{number} {each}"
        if kind < 5:
            made.append(request(name, regex(FAULTS[kind]), limit=8))
        elif kind < 7:
            made.append(request(name, regex(("wrong", "crash")[kind - 5]), limit=3))
        elif kind == 7:
            made.append(request(name, Grammar("json_schema", "{}"), limit=3))
        elif kind == 8:
            made.append(request(name, regex("good"), limit=200, cancel_ns=(1 + each % 90) * MS))
        elif kind == 9:
            made.append(request(name, regex(f"slow {each}"), limit=3, cancel_ns=(each % 7) * MS))
        elif kind == 10 and each % 60 == 10:
            made.append(request(name, regex(f"slow {each}"), limit=3))
        else:
            made.append(request(name, None if kind == 11 else regex("good"), limit=3, reasoning=kind > 17))
    return made


def one_round(number: int, count: int, backend: type[Backend], strategy: Strategy) -> Served:
    """One run with a queue and a loop of its own; every other one aborts what has no grammar, one by one in
    batches."""
    fallback = ("unconstrained", "abort")[number % 2]
    options = LoopOptions(
        fallback=fallback,  # type: ignore[arg-type]
        overlap=number % 3 > 0,
        batch_fill=number % 4 == 3,
        think_end=(THINK,),
    )
    with CompileQueue(backend(WORDS), workers=2, timeout_s=0.001) as queue:
        return Loop(Quick(), WORDS, strategy, queue, options).serve(wanted(number, count))


def resident_kb() -> int:
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def settled() -> int:
    """Threads that are left when compiles that were given up have had time to end."""
    until = time.monotonic() + 1
    while any("compile" in each.name for each in threading.enumerate()) and time.monotonic() < until:
        time.sleep(0.002)
    return threading.active_count()


def leaks(
    backend: type[Backend] = Backend, strategy: Strategy | None = None, *, count: int = 100, rounds: int = 6
) -> tuple[set[str], Counter[str]]:
    """What is more after the later rounds than after the first two, and how the requests ended."""
    strategy = strategy or Guesses(WORDS)
    ends: Counter[str] = Counter()
    for number in range(2):
        one_round(number, count, backend, strategy)
    settled()
    gc.collect()
    found: set[str] = set()
    threads, objects, resident, alive = (
        threading.active_count(),
        len(gc.get_objects()),
        resident_kb(),
        len(Anything.alive),
    )
    gc.disable()  # what stays is held by a name or a circle, and both are leaks
    try:
        for number in range(2, rounds):
            ends.update(
                each.compile_state if each.end == "aborted" or each.fallback else each.end
                for each in one_round(number, count, backend, strategy).completed
            )
            settled()
            if len(Anything.alive) > alive:
                found.add("grammar objects")
    finally:
        gc.enable()
    gc.collect()
    served = (rounds - 2) * count
    if settled() > threads:
        found.add("threads")
    if len(gc.get_objects()) - objects > 100 + served // 20:
        found.add("objects")
    if resident_kb() - resident > 4096 + served // 4:
        found.add("memory")
    return found, ends


@pytest.fixture(autouse=True)
def only_ours() -> None:
    gc.collect()
    Anything.alive.clear()


@pytest.mark.long
def test_ten_thousand_requests_leave_nothing() -> None:
    found, ends = leaks(count=A_ROUND, rounds=ROUNDS + 2)
    assert found == set()
    assert ends.total() == A_ROUND * ROUNDS
    for kind, share in {
        "fault": 0.2,
        "cancelled": 0.05,
        "invalid": 0.04,
        "unsupported": 0.04,
        "timeout": 0.01,
        "limit": 0.3,
    }.items():
        assert ends[kind] >= share * ends.total(), (kind, ends)


class KeepsObjects(Backend):
    kept: ClassVar[list[Any]] = []

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        compiled = super().compile(grammar)
        start = compiled.start

        def keeps() -> GrammarObject:
            self.kept.append(start())
            return self.kept[-1]  # type: ignore[no-any-return]

        compiled.start = keeps  # type: ignore[method-assign]
        return compiled


class KeepsBytes(Backend):
    """As a library does that never frees: nothing that Python counts, and pages that no earlier test has left
    free."""

    kept: ClassVar[list[mmap.mmap]] = []

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        compiled = super().compile(grammar)
        start = compiled.start

        def keeps() -> GrammarObject:
            pages = mmap.mmap(-1, 100_000)
            pages.write(bytes(100_000))
            self.kept.append(pages)
            return start()

        compiled.start = keeps  # type: ignore[method-assign]
        return compiled


class KeepsRequests(Guesses):
    """A strategy that forgets nobody."""

    def __init__(self) -> None:
        super().__init__(WORDS)
        self.kept: list[Any] = []

    def finished(self, active: ActiveRequest) -> None:
        self.kept.append([active.request.name, active.account])


@pytest.mark.long
def test_what_leaks_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert leaks()[0] == set()
    assert "grammar objects" in leaks(KeepsObjects)[0]
    assert "memory" in leaks(KeepsBytes)[0]
    assert leaks(strategy=KeepsRequests())[0] == {"objects"}
    KeepsObjects.kept.clear()
    KeepsBytes.kept.clear()
    close, open_ones = Fills.close, list[Fills]()
    monkeypatch.setattr(Fills, "close", lambda self: open_ones.append(self))
    found = leaks()[0]
    for each in open_ones:
        close(each)
    assert "threads" in found
