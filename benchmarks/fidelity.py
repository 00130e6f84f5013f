"""Are the engine's figures those of the library?

Its warm fills beside a hand-written loop in the same process, and what its time goes to.

    python benchmarks/fidelity.py [BACKEND ...]        (default: the four real ones)

Of each backend two things are printed, of the suite `speed` with tekken, on one processor:
  1. fill, engine over loop (promised: within 3 %). A process loads the backend once. The engine's side is the
     handler that serves a measurement; the loop makes the library's own calls on the same compiled grammar.
     They take turns, a round each, in the engine's own order. Per token the minimum over all passes, the sum
     over the tokens of a case, the geometric mean over cases, and of that over several processes. The same of
     a second copy of the loop says how much of the ratio is chance.
  2. the share of the wall time that was spent inside timed calls (promised: at least 80 %), from a small real
     measurement with the backend and its A/A copy as arms: of the time that the arms worked on their rounds,
     and of the time that the coordinator spent on whole forks, which has warm-ups (their compiles and passes
     count), counts, the pipes and the recording in it. Of `matcher_new` a round stores the minimum only, and
     that is what every pass is taken to have spent.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent / "parts"))

from endings import script

from harness.backend.process.system import ENVIRONMENT
from harness.backend.registry import parse_specs
from harness.errors import OK, BadInput
from harness.measure.arm import MeasureHandler, load_arm
from harness.measure.figures import shape
from harness.measure.protocol import MOST_PASSES, PROFILES, order
from harness.measure.record import Recorded, read_measurement
from harness.measure.session import MeasureRequest, measure
from harness.measure.statistics import geometric_mean

BACKENDS = ("xgrammar", "llguidance", "outlines-core", "lm-format-enforcer")
VOCABULARY = "tekken"
FORKS = 2
PROCESSES = 4
"""The processes of one backend: where things lie in memory differs in each, and moves a ratio by a
percent."""
VISITS = 3
SECONDS_OF_A_VISIT = 0.2
"""Every case is visited so often in a process, the others in between: a slow minute of the machine hits no
case alone."""

Nanoseconds = NDArray[np.int64]
Walk = Callable[[], list[int]]
"""One pass of the hand-written loop: the nanoseconds of every fill."""


@script
def main(arguments: Sequence[str]) -> int:
    """Exit code: 0, or 2 for bad input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("backends", nargs="*", default=BACKENDS, metavar="BACKEND")
    backends: Sequence[str] = parser.parse_args(arguments).backends
    for spec in parse_specs(",".join(backends)):
        if spec.name not in LOOPS:
            raise BadInput(f"no loop of {spec.name}; there are {', '.join(LOOPS)}")
    with tempfile.TemporaryDirectory() as scratch:
        for backend in backends:
            folder = Path(scratch) / backend.replace(":", "_")
            measure(
                MeasureRequest(
                    ("speed",), backend, None, VOCABULARY, "quick", folder, FORKS, None, 4.0, ("fidelity",)
                ),
                lambda _: None,
            )
            print(
                fidelity_text(
                    backend,
                    [compared(folder, number) for number in range(PROCESSES)],
                    shares(read_measurement(folder)),
                ),
                flush=True,
            )
    return OK


def compared(folder: Path, number: int) -> Compared:
    """Returns what a process of its own finds."""
    environment = {**os.environ, **ENVIRONMENT, "PYTHONHASHSEED": str(number)}
    done = subprocess.run(
        [sys.executable, __file__, "--one", str(folder)], stdout=subprocess.PIPE, text=True, env=environment
    )
    if done.returncode:
        sys.exit(f"{folder.name}: the process that compares has failed")
    return Compared(**json.loads(done.stdout.splitlines()[-1]))


def fidelity_text(backend: str, processes: Sequence[Compared], share: Shares) -> str:
    one = processes[0]
    ratio, control = (
        geometric_mean([getattr(compared, name) for compared in processes]) for name in ("ratio", "control")
    )
    smallest, largest = (min(one.smallest for one in processes), max(one.largest for one in processes))
    cases = f"{smallest:.3f} to {largest:.3f} in single cases"
    return (
        f"{backend:19} fill, engine over loop: {ratio:.4f} (in {len(processes)} processes "
        f"{' '.join(f'{compared.ratio:.4f}' for compared in processes)}; "
        f"{cases}); the loop over itself: {control:.4f}\n"
        f"{'':19} {one.cases} cases, {one.tokens} tokens, {one.loop_ns / one.tokens:.0f} ns each in the "
        "loop\n"
        f"{'':19} inside timed calls: {share.rounds:.1%} of {share.rounds_s:.1f} s of rounds, "
        f"{share.forks:.1%} of {share.forks_s:.1f} s of forks ({share.once_s:.1f} s of them counts and "
        "mechanisms)"
    )


# ------------------------------------------------------------------------------------------------- the shares


@dataclass(frozen=True)
class Shares:
    """The shares of the wall time that were spent inside timed calls."""

    rounds: float
    rounds_s: float
    """Wall time of the `round` operations, as the arms took it."""
    forks: float
    forks_s: float
    """Wall time of the forks once their arms were loaded, as the coordinator took it."""
    once_s: float
    """The part of these seconds that counts and mechanisms took in the arms. They call the backend too, and
    are not timed as calls."""


def shares(recorded: Recorded) -> Shares:
    timed = 0
    for slot in recorded.slots:
        shaped_slot = shape(slot, recorded.of(slot.figures))
        timed += (
            int(shaped_slot.sums.sum())
            + slot.passes * shaped_slot.matcher_new_ns
            + int(shaped_slot.cold.sum())
        )
        timed += (shaped_slot.compile_ns or 0) + (shaped_slot.cold_matcher_new_ns or 0)
    warm_up = sum(other["timed_ns"] for other in recorded.others if other["kind"] == "warm_up")
    once_s = sum(other.get("wall_ns", 0) for other in recorded.others) / 1e9
    rounds_s = sum(slot.wall_ns for slot in recorded.slots) / 1e9
    forks_s = sum(other["measure_s"] for other in recorded.others if other["kind"] == "fork")
    return Shares(timed / 1e9 / rounds_s, rounds_s, (timed + warm_up) / 1e9 / forks_s, forks_s, once_s)


# ----------------------------------------------------------------------------------------- engine beside loop


@dataclass(frozen=True)
class Compared:
    """What the process that compares prints."""

    ratio: float
    smallest: float
    largest: float
    cases: int
    tokens: int
    loop_ns: int
    """The sum over all cases."""
    control: float
    """The loop over a second copy of itself that took turns with the two: what the ratio would be if there
    were no difference."""


def compare(folder: Path) -> Compared:
    """Returns the cases that the measurement in this folder solved, in this process."""
    of = read_measurement(folder).measurement
    arm = of.arms[0]
    handler, _ = load_arm(arm.spec, of.vocabulary, str(folder / "cases.jsonl"), of.cpu)
    assert isinstance(handler, MeasureHandler)
    gc.collect()
    gc.freeze()
    traces = [trace for trace in of.traces if arm.name in trace.solved_by]
    turns = [Turns(handler, LOOPS[arm.backend], trace.offset, trace.instance) for trace in traces]
    for _ in range(VISITS):
        for turn in turns:
            turn.visit()
    for trace, turn in zip(traces, turns, strict=True):
        fills = f"{turn.least.shape[1]} tokens, {' '.join(map(str, turn.least.sum(axis=1)))} ns"
        print(
            f"{arm.backend}: {trace.case}: {fills} in {turn.number} rounds of {turn.passes} passes",
            file=sys.stderr,
        )
    engine, loop, again = np.array([turn.least.sum(axis=1) for turn in turns], float).T
    ratios, tokens = engine / loop, sum(turn.least.shape[1] for turn in turns)
    return Compared(
        geometric_mean(ratios),
        ratios.min(),
        ratios.max(),
        len(turns),
        tokens,
        int(loop.sum()),
        geometric_mean(again / loop),
    )


class Turns:
    """One case: the engine, the loop, and the loop once more."""

    def __init__(
        self,
        handler: MeasureHandler,
        loop: Callable[[Any, Any, Sequence[int]], Walk],
        offset: int,
        instance: int,
    ) -> None:
        self.handler, self.offset = handler, offset
        pass_ns = handler({"op": "warm_up", "offset": offset, "instance": instance}, b"")[0]["pass_ns"]
        self.passes = min(MOST_PASSES, max(1, round(PROFILES["quick"].pass_seconds * 1e9 / pass_ns)))
        held = handler.prepared[offset]
        self.walks = [loop(held.compiled, handler.adapter, held.tokens) for _ in range(2)]
        self.least = np.full((3, len(held.tokens)), np.iinfo(np.int64).max)
        """Per token the smallest fill of all passes of the engine, of the loop, and of the loop once more;
        nanoseconds."""
        self.number = 0
        """How many rounds were made."""

    def visit(self) -> None:
        """Pairs of rounds, forwards and backwards, of all three."""
        began = time.perf_counter()
        while True:
            for place in order(range(3), self.number):
                sums = self._engine_round() if place == 0 else self._loop_round(self.walks[place - 1])
                self.least[place] = np.minimum(self.least[place], sums)
            self.number += 1
            if self.number % 2 == 0 and time.perf_counter() - began > SECONDS_OF_A_VISIT:
                return

    def _engine_round(self) -> Nanoseconds:
        _, blob = self.handler(
            {"op": "round", "offset": self.offset, "repeats": self.passes, "fresh": False}, b""
        )
        steps: Nanoseconds = np.frombuffer(blob, "<i8")[1 : 1 + 2 * self.least.shape[1]]
        return steps[::2]

    def _loop_round(self, walk: Walk) -> Nanoseconds:
        gc.collect()
        gc.disable()
        try:
            least: Nanoseconds = np.min(np.array([walk() for _ in range(self.passes)], np.int64), axis=0)
            return least
        finally:
            gc.enable()


# The loops that anyone would write: a new matcher, then fill and accept; the library's own calls and nothing
# else.


def loop_xgrammar(compiled: Any, adapter: Any, tokens: Sequence[int]) -> Walk:
    import xgrammar

    mask = xgrammar.allocate_token_bitmask(1, adapter.vocabulary.size)
    grammar, clock = compiled._compiled, time.perf_counter_ns

    def walk() -> list[int]:
        matcher, fills = xgrammar.GrammarMatcher(grammar), []
        for token in tokens:
            start = clock()
            matcher.fill_next_token_bitmask(mask)
            fills.append(clock() - start)
            matcher.accept_token(token)
        return fills

    return walk


def loop_llguidance(compiled: Any, adapter: Any, tokens: Sequence[int]) -> Walk:
    mask = np.zeros((adapter.vocabulary.size + 31) // 32, np.int32)
    address, size, clock = mask.ctypes.data, mask.nbytes, time.perf_counter_ns
    start_matcher = compiled._matcher.deep_copy

    def walk(mask: Any = mask) -> list[int]:  # the array must live as long as its address is used
        matcher, fills = start_matcher(), []
        for token in tokens:
            start = clock()
            matcher.unsafe_compute_mask_ptr(address, size)
            fills.append(clock() - start)
            matcher.try_consume_tokens([token])
        return fills

    return walk


def loop_outlines_core(compiled: Any, adapter: Any, tokens: Sequence[int]) -> Walk:
    from outlines_core import Guide

    mask = np.zeros((adapter.vocabulary.size + 31) // 32, np.int32)
    address, words, clock, last = mask.ctypes.data, mask.size, time.perf_counter_ns, len(tokens) - 1

    def walk(mask: Any = mask) -> list[int]:
        guide, fills = Guide(compiled.index), []
        for place, token in enumerate(tokens):
            start = clock()
            guide.write_mask_into(address, words, 4)
            fills.append(clock() - start)
            if place < last:  # it knows no end-of-sequence
                guide.advance(token, False)
        return fills

    return walk


def loop_lm_format_enforcer(compiled: Any, adapter: Any, tokens: Sequence[int]) -> Walk:
    from lmformatenforcer import JsonSchemaParser, TokenEnforcer

    mask = np.zeros((adapter.vocabulary.size + 31) // 32, np.int32)
    parser, data, clock = compiled._parser, compiled._data, time.perf_counter_ns

    def walk() -> list[int]:
        enforcer, fills = TokenEnforcer(data, parser), []
        prefix: list[int] = []
        if isinstance(parser, JsonSchemaParser):
            parser.config = compiled._config  # the enforcer has just replaced it
        for token in tokens:
            start = clock()
            mask[:] = enforcer.get_allowed_tokens(prefix).allowed_tokens.numpy()
            fills.append(clock() - start)
            prefix.append(token)
        return fills

    return walk


LOOPS: dict[str, Callable[[Any, Any, Sequence[int]], Walk]] = {
    "xgrammar": loop_xgrammar,
    "llguidance": loop_llguidance,
    "outlines-core": loop_outlines_core,
    "lm-format-enforcer": loop_lm_format_enforcer,
}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(vars(compare(Path(sys.argv[2])))))
    else:
        sys.exit(main(sys.argv[1:]))
