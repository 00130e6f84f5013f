"""What the decode loop adds to TPOT on a device that works while the host goes on, without such a device.

    python benchmarks/beside.py [BACKEND ...]          (default: xgrammar llguidance)

The device is a clock: a pass takes so long as it took an H200 with the shape 1b, and choosing tokens waits
until it is over. What is queued for a device (masks, logits, tokens) is as many small operations of torch as
on CUDA, which let other threads run as those do. Prints TPOT of constrained over that of unconstrained
decoding of the same texts, in the same process by turns, where masks are filled by the loop's own thread and
by two others. What is more than 1 is the host's: grammar, backend, loop, and waking threads. A machine that
does something else beside it wakes threads late.

Then, at batch 1 and with texts of which everything is forced, the share of its ceiling that jump-forward's
speed-up reaches, with the passes of both shapes. What is missing to 1 is that passes of several tokens take
longer, and the host, which has to know a token before it can write what follows.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent / "parts"))

from endings import script

from harness.backend.grammar import Adapter
from harness.backend.registry import load
from harness.backend.vocabulary import load_vocabulary
from harness.errors import OK
from harness.measure.protocol import order
from harness.serve.decode.overhead import service
from harness.serve.decode.workloads import find_workload, requests
from harness.serve.requests import latency
from harness.walk.loop import loop
from harness.walk.loop.compiling import CompileQueue
from harness.walk.loop.loop import Loop, LoopOptions
from harness.walk.loop.masks import Masks
from harness.walk.loop.outcome import Completed
from harness.walk.loop.request import Request
from harness.walk.loop.sampling import Chosen, Sampler
from harness.walk.loop.silent import SilentModel
from harness.walk.loop.strategies import make_strategy

PASS_US = {1: 705, 8: 880, 32: 1070}
"""Microseconds of a pass of 1b by batch, and of what the device does behind it."""
BEHIND_US = 48
JUMP_PASS_US = {
    "1b": {1: 705, 4: 810, 8: 840, 16: 970, 256: 1200},
    "8b": {1: 3625, 4: 3900, 8: 4090, 16: 4530, 256: 4900},
}
"""Microseconds of a pass of one row, by the most tokens that it feeds. Those of 256 tokens are assumed."""
ROUNDS = 4
WAYS = {"own thread": 1, "other threads": 2}
"""Two other threads, because one is the loop's own."""


class Clock(SilentModel):
    """A model without logits, whose passes end when the device's clock says so."""

    def __init__(self, vocabulary_size: int, rows: int, pass_us: Mapping[int, int]) -> None:
        """`pass_us` has the microseconds of a pass by the most tokens of a row."""
        super().__init__(vocabulary_size, rows)
        self.pass_us = pass_us
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
        width = max(map(len, tokens.values()))
        self.give(next(us for most, us in self.pass_us.items() if width <= most))
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


def served(
    adapter: Adapter, made: Sequence[Request], model: Clock, strategy: str, options: LoopOptions | None
) -> list[Completed]:
    """Returns the completed requests of a second run, whose grammars are compiled; unconstrained without
    options."""
    vocabulary = adapter.vocabulary
    queue = None if options is None else CompileQueue(adapter, workers=0)
    try:
        with beside(model):
            one = Loop(model, vocabulary, make_strategy(strategy, vocabulary, 0), queue, options)
            one.serve(made)
            gc.collect()
            gc.disable()
            completed = one.serve(made).completed
    finally:
        gc.enable()
        if queue is not None:
            queue.close()
    assert all(done.end in ("limit", "end_of_sequence") for done in completed), completed
    return completed


def fills(name: str, adapter: Adapter, rows: int) -> None:
    """Prints what masks add to TPOT, by who fills them."""
    made = requests(
        find_workload("function_calls"), adapter.vocabulary, count=max(4, rows), prompt_tokens=32, limit=64
    )
    ways: dict[str, LoopOptions | None] = {"none": None}
    ways |= {way: LoopOptions(fill_threads=threads) for way, threads in WAYS.items()}
    found: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(ROUNDS):
        for way, options in order(list(ways.items()), number):
            model = Clock(adapter.vocabulary.size, rows, {64: PASS_US[rows]})
            completed = served(adapter, made, model, "stepwise", options)
            found[way].append(statistics.mean(latency.tpot(done) or 0 for done in completed) / 1e3)
    none = statistics.median(found["none"])
    said = ", ".join(f"{way} {statistics.median(found[way]) / none:.3f}" for way in WAYS)
    print(
        f"{name}, batch {rows}: none {none:.0f} us a token (the device's {PASS_US[rows] + BEHIND_US}); "
        f"over it, masks filled by: {said}",
        flush=True,
    )


def jumps(name: str, adapter: Adapter, shape: str) -> None:
    """Prints the share of its ceiling that jump-forward's speed-up reaches."""
    made = requests(find_workload("all_forced"), adapter.vocabulary, count=4, prompt_tokens=32, limit=64)
    shares, ceiling = [], 1.0
    for number in range(ROUNDS):
        spent, passes = {}, {}
        for strategy in order(("stepwise", "jump_forward"), number):
            model = Clock(adapter.vocabulary.size, 1, JUMP_PASS_US[shape])
            completed = served(adapter, made, model, strategy, LoopOptions())
            spent[strategy] = sum(map(service, completed))
            passes[strategy] = sum(done.account.passes for done in completed)
        ceiling = passes["stepwise"] / passes["jump_forward"]
        shares.append(spent["stepwise"] / spent["jump_forward"] / ceiling)
    print(
        f"{name}, {shape}, jump-forward: {statistics.median(shares):.3f} of its ceiling of {ceiling:.2f} "
        f"({min(shares):.3f} to {max(shares):.3f})",
        flush=True,
    )


@script
def main(arguments: Sequence[str]) -> int:
    """Exit code: 0, or 2 for bad input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("backends", nargs="*", default=["xgrammar", "llguidance"], metavar="BACKEND")
    backends: list[str] = parser.parse_args(arguments).backends
    torch.set_num_threads(1)
    vocabulary = load_vocabulary("tekken")
    for name, adapter_class in [(name, load(name)) for name in backends]:
        adapter = adapter_class(vocabulary)
        for rows in PASS_US:
            fills(name, adapter, rows)
        for shape in JUMP_PASS_US:
            jumps(name, adapter, shape)
    assumed = ", ".join(f"{shape} {passes[256]} us" for shape, passes in JUMP_PASS_US.items())
    print(f"passes of more than 16 tokens are assumed, not measured: {assumed}")
    return OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
