"""What the decode loop adds to TPOT on a device that works while the host goes on, without such a device.

    python benchmarks/beside.py [BACKEND ...]          (default: xgrammar llguidance)

The device is a clock: a pass takes so long as it took an H200 with the shape 1b, and choosing tokens waits
until it is over. What is queued for a device (masks, logits, tokens) is as many small operations of torch as
on CUDA, which let other threads run as those do. Prints TPOT of constrained over that of unconstrained
decoding of the same texts, in the same process by turns, where masks are filled by the loop's own thread and
by two others. What is more than 1 is the host's: grammar, backend, loop, and waking threads. A machine that
does something else beside it wakes threads late.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from harness.backend.grammar import Adapter
from harness.backend.registry import load
from harness.backend.vocabulary import load_vocabulary
from harness.serve.decode.workloads import find_workload, requests
from harness.serve.requests import latency
from harness.walk.loop import loop
from harness.walk.loop.compiling import CompileQueue
from harness.walk.loop.loop import Loop, LoopOptions
from harness.walk.loop.masks import Masks
from harness.walk.loop.request import Request
from harness.walk.loop.sampling import Chosen, Sampler
from harness.walk.loop.silent import SilentModel
from harness.walk.loop.strategies import make_strategy

PASS_US = {1: 705, 8: 880, 32: 1070}
"""Microseconds of a pass by batch, and of what the device does behind it."""
BEHIND_US = 48
ROUNDS = 3
WAYS = {"own thread": 1, "other threads": 2}
"""Two other threads, because one is the loop's own."""


class Clock(SilentModel):
    """A model without logits, whose passes end when the device's clock says so."""

    def __init__(self, vocabulary_size: int, rows: int) -> None:
        super().__init__(vocabulary_size, rows)
        self.free_ns = 0
        """When the device is done with what it was given."""

    def give(self, microseconds: float) -> int:
        """Gives the device work for so long; returns when it is done, in nanoseconds."""
        self.free_ns = max(time.perf_counter_ns(), self.free_ns) + int(microseconds * 1e3)
        return self.free_ns

    def extend(self, tokens: Mapping[int, Sequence[int]], *, every: bool = False) -> Any:
        for row, added in tokens.items():
            self._lengths[row] += len(added)
        queued(8)
        self.give(PASS_US[self.rows])
        return Nothing()


class Nothing:
    """Stands for logits, which nobody reads."""

    def __getitem__(self, _: Any) -> Nothing:
        return self

    def __len__(self) -> int:
        return 0


class Arrival:
    """Stands for the CUDA event behind the tokens."""

    def __init__(self, at_ns: int) -> None:
        self.at_ns = at_ns

    def synchronize(self) -> None:
        left = self.at_ns - time.perf_counter_ns()
        time.sleep(max(left - 60_000, 0) / 1e9)  # the rest is waited for awake, because sleeping ends late
        while time.perf_counter_ns() < self.at_ns:
            pass


SMALL = torch.zeros(16)


def queued(operations: int) -> None:
    """Does so many small operations."""
    for _ in range(operations):
        SMALL.add_(1)


@contextmanager
def beside(model: Clock) -> Iterator[None]:
    """Makes the loop take the clock for a device beside the host."""

    def favour(sampler: Any, _: Any, wanted: Sequence[int]) -> None:
        queued(6)
        sampler.wanted = np.array(wanted)

    def choose(sampler: Any, _: Any) -> Chosen:
        queued(8)
        ids = sampler.wanted
        return Chosen(ids, np.zeros(len(ids)), torch.from_numpy(ids), Arrival(model.give(BEHIND_US)))

    with (
        patch.object(loop, "works_beside", lambda device: True),
        patch.object(Masks, "move", lambda masks, count: queued(9)),
        patch.object(Masks, "apply", lambda masks, logits: queued(2)),
        patch.object(Sampler, "favour", favour),
        patch.object(Sampler, "choose", choose),
    ):
        yield


def tpot_us(adapter: Adapter, made: Sequence[Request], rows: int, threads: int | None) -> float:
    """Returns the mean TPOT of the requests, microseconds; unconstrained if there are no threads."""
    vocabulary = adapter.vocabulary
    model = Clock(vocabulary.size, rows)
    queue = None if threads is None else CompileQueue(adapter, workers=0)
    options = LoopOptions(fill_threads=threads or 1)
    try:
        with beside(model):
            one = Loop(model, vocabulary, make_strategy("stepwise", vocabulary, 0), queue, options)
            one.serve(made)  # compiles
            gc.collect()
            gc.disable()
            completed = one.serve(made).completed
    finally:
        gc.enable()
        if queue is not None:
            queue.close()
    assert all(done.end in ("limit", "end_of_sequence") for done in completed), completed
    return statistics.mean(latency.tpot(done) or 0 for done in completed) / 1e3


def main() -> None:
    torch.set_num_threads(1)
    vocabulary = load_vocabulary("tekken")
    for name in sys.argv[1:] or ("xgrammar", "llguidance"):
        adapter = load(name)(vocabulary)
        for rows, pass_us in PASS_US.items():
            made = requests(
                find_workload("function_calls"), vocabulary, count=max(4, rows), prompt_tokens=32, limit=64
            )
            ways: dict[str, int | None] = {"none": None, **WAYS}
            found: dict[str, list[float]] = {way: [] for way in ways}
            for _ in range(ROUNDS):
                for way, threads in ways.items():
                    found[way].append(tpot_us(adapter, made, rows, threads))
            none = statistics.median(found["none"])
            said = ", ".join(f"{way} {statistics.median(found[way]) / none:.3f}" for way in WAYS)
            print(
                f"{name}, batch {rows}: none {none:.0f} us a token (the device's {pass_us + BEHIND_US}); "
                f"over it, masks filled by: {said}",
                flush=True,
            )


if __name__ == "__main__":
    main()
