"""Backends that fail in the decode loop, beside healthy ones."""

from __future__ import annotations

from typing import Any, ClassVar

from decode_tools import Around, AroundAdapter, FakeModel, regex, request, serve

from harness.backend.grammar import GrammarObject
from harness.walk.loop.outcome import Completed
from harness.walk.loop.strategies.base import Strategy

GOOD = [request(f"good {number}", regex("[a-d]{0,12}xyz"), seed=number) for number in range(4)]


BAD = regex("(c|x)d[a-z]{5}boom")


class Panic(BaseException):
    """Stands for a panic of Rust, which comes through as no Exception."""


class Faulty(Around):
    """Raises in one kind of call, for grammars that contain `boom`, from the second call on."""

    phase: ClassVar[str] = ""
    kind: ClassVar[type[BaseException]] = RuntimeError

    calls = 0

    def spoil(self, phase: str) -> None:
        if phase == self.phase and "boom" in self.compiled.grammar.text:
            self.calls += 1
            if self.calls > 1 or phase != "fill":
                raise self.kind("it broke\nwith a long dump")

    def fill_bitmask(self, bitmask: Any) -> None:
        self.spoil("fill")
        super().fill_bitmask(bitmask)

    def accept_token(self, token: int) -> bool:
        self.spoil("accept")
        return super().accept_token(token)

    def rollback(self, count: int) -> None:
        self.spoil("rollback")
        super().rollback(count)

    def copy(self) -> GrammarObject:
        self.spoil("copy")
        return super().copy()

    def jump_forward(self) -> bytes:
        self.spoil("jump_forward")
        return super().jump_forward()


def faulty(phase: str, kind: type[BaseException] = RuntimeError, **fields: Any) -> AroundAdapter:
    return AroundAdapter(type("Faulty", (Faulty,), {"phase": phase, "kind": kind, **fields}))


def finish_beside(adapter: AroundAdapter, strategy: Any = Strategy, **options: Any) -> Completed:
    """Serves a bad request among good ones; the good ones must have what they have alone."""
    wanted = [GOOD[0], GOOD[1], request("bad", BAD), GOOD[2], GOOD[3]]
    expected = {
        completed_one.name: completed_one.ids
        for completed_one in serve(wanted, None, strategy)
        if completed_one.name != "bad"
    }
    completed = serve(wanted, adapter, strategy, FakeModel(rows=3), **options)
    for completed_one in completed:
        if completed_one.name != "bad":
            assert (completed_one.ids, completed_one.end) == (expected[completed_one.name], "end_of_sequence")
    return completed[2]
