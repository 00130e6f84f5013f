"""What the decode loop costs beside what it measures: scheduling and bookkeeping, per step.

    python benchmarks/loop.py [BACKEND] [--profile]          (default: llguidance)

On the tiny shape with tekken, replaying one text under its grammar in every row, at batch 1 and 8. Prints for
each batch, with fills beside the forward pass and without
  1. ours per step: of each step's wall time what is left without forward pass, exposed fill, move, apply,
     sampling, accept and strategy; and the time between steps, of which nothing is anyone else's;
  2. both together as a share of TPOT, against what we promise;
  3. TPOT over that of a plain loop written by hand, which keeps no account at all and fills after the forward
     pass; the two take turns. Of each round the median over its steps, prefill left out: on a shared machine
     a mean counts other processes' turns, and is given beside it. Of the rounds the median. `--profile` shows
     where the loop's own time goes, by function.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import os
import pstats
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "parts"))
# Before torch is loaded: a second thread would share a processor with the fills.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from endings import script

from harness.backend.grammar import Adapter, CompiledGrammar, allocate_bitmask
from harness.backend.registry import load
from harness.backend.vocabulary import Vocabulary, load_vocabulary
from harness.errors import GATE_FAILED, OK
from harness.serve.decode.model.model import Model, load_model
from harness.serve.decode.workloads import Workload, find_workload, requests
from harness.walk.loop.compiling import CompileQueue
from harness.walk.loop.loop import Loop, LoopOptions
from harness.walk.loop.outcome import STEP, Served
from harness.walk.loop.outcome import steps as by_name
from harness.walk.loop.request import Request
from harness.walk.loop.strategies.base import Strategy

VOCABULARY, WORKLOAD = "tekken", "long_arrays"
PROMPT, STEPS, ROUNDS = 64, 100, 3
"""Tokens of each prompt and, at most, of each output; how often the two loops take turns."""
PROMISED_US, AT_BATCH_1 = 100, 1
PROMISED_SHARE, AT_BATCH_8 = 0.05, 8


@dataclass(frozen=True)
class Round:
    """One run of the loop, and one of the plain one. Microseconds."""

    within: float
    """Our own microseconds within a step, the median over steps."""
    between: float
    """The microseconds from the end of a step to the start of the next, the mean over steps."""
    mean: float
    """Both together, the mean over steps."""
    exposed: float
    """What the fills held the loop up per step, their hand-over included; the median over steps. Not ours."""
    tpot: float
    """The median over steps, as is the plain one."""
    plain_tpot: float

    @property
    def ours(self) -> float:
        return self.within + self.between


@script
def main(argv: Sequence[str] | None = None) -> int:
    """Prints the figures. Exit code: 0, 1 where a promise is not kept, or 2 for bad input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("backend", nargs="?", default="llguidance", metavar="BACKEND")
    parser.add_argument("--profile", action="store_true", help="show where the loop's own time goes")
    wanted = parser.parse_args(argv)
    vocabulary = load_vocabulary(VOCABULARY)
    adapter = load(wanted.backend)(vocabulary)
    print(
        f"{wanted.backend}, {VOCABULARY}, tiny shape on the CPU; medians of {ROUNDS} rounds of {STEPS} "
        "steps, microseconds"
    )
    kept = True
    for batch in (AT_BATCH_1, AT_BATCH_8):
        model = load_model("tiny", vocabulary.size, rows=batch, positions=PROMPT + STEPS + 1)
        made = same_text(vocabulary, batch)
        compiled = adapter.compile(made[0].grammar) if made[0].grammar else None
        assert compiled is not None
        for overlap in (True, False):
            options = LoopOptions(overlap=overlap)
            if wanted.profile:
                profiled(model, adapter, made, options)
                continue
            rounds = [one_round(model, adapter, compiled, made, options) for _ in range(ROUNDS + 1)]
            kept = report(batch, overlap, rounds[1:]) and kept  # the first is a warm-up
    return OK if kept else GATE_FAILED


def same_text(vocabulary: Vocabulary, batch: int) -> list[Request]:
    """Returns the workload's longest text in each row, so that all rows live until the end."""
    workload = find_workload(WORKLOAD)
    longest = max(workload.texts, key=lambda text: len(text.content))
    return requests(
        Workload(workload.name, (longest,)), vocabulary, count=batch, prompt_tokens=PROMPT, limit=STEPS
    )


def one_round(
    model: Model, adapter: Adapter, compiled: CompiledGrammar, made: list[Request], options: LoopOptions
) -> Round:
    gc.collect()
    plain_tpot = plain_loop(model, adapter, compiled, made)
    gc.collect()
    served = serve(model, adapter, made, options)
    assert all(
        request.end == "limit" and request.ids == made[0].reference[:STEPS]
        for request in served.completed
        if made[0].reference
    ), served
    steps = np.array(served.steps[-(STEPS - 1) :], dtype=np.int64)
    assert (steps[:, STEP.index("fed")] == len(made)).all(), "a step of prefill is among them"
    wall = steps[:, STEP.index("wall_ns")]
    exposed = steps[:, STEP.index("exposed_ns")]
    ours = by_name(steps)["own_ns"]
    times = np.array([request.token_ns for request in served.completed], dtype=np.int64).mean(axis=0)
    gaps = np.diff(times)
    between = float(gaps.mean() - wall.mean())
    medians = (
        float(np.median(ours)),
        between,
        float(ours.mean()) + between,
        float(np.median(exposed)),
        float(np.median(gaps)),
        plain_tpot,
    )
    return Round(*(ns / 1e3 for ns in medians))


def serve(model: Model, adapter: Adapter, made: list[Request], options: LoopOptions) -> Served:
    queue = CompileQueue(adapter, workers=0)
    try:
        return Loop(model, adapter.vocabulary, Strategy(adapter.vocabulary), queue, options).serve(made)
    finally:
        queue.close()


def plain_loop(model: Model, adapter: Adapter, compiled: CompiledGrammar, made: Sequence[Request]) -> float:
    """TPOT in nanoseconds of a loop that does the same and nothing more; the model's rows are empty again
    behind it."""
    batch, size = len(made), adapter.vocabulary.size
    reference = made[0].reference
    assert reference is not None
    objects = [compiled.start() for _ in made]
    masks = [allocate_bitmask(size) for _ in made]
    for row in range(batch):
        model.rollback(row, 0)
    for start in range(0, PROMPT, model.chunk):
        logits = model.extend(
            {row: request.prompt[start : start + model.chunk] for row, request in enumerate(made)}
        )
    known = []
    for step in range(STEPS):
        scores = logits.numpy()
        scores[:, reference[step]] += 1e6
        fed = {}
        for row in range(batch):
            objects[row].fill_bitmask(masks[row])
            forbidden = np.unpackbits(~masks[row].view(np.uint8), count=size, bitorder="little").view(
                np.bool_
            )
            np.copyto(scores[row, :size], -np.inf, where=forbidden)
            token = int(scores[row].argmax())
            assert token == reference[step] and objects[row].accept_token(token)
            fed[row] = [token]
        known.append(time.perf_counter_ns())
        logits = model.extend(fed)
    for row in range(batch):
        model.rollback(row, 0)
    return float(np.median(np.diff(known)))


def report(batch: int, overlap: bool, rounds: list[Round]) -> bool:
    """Prints a line; is what we promise for this batch kept?"""

    def median(values: Sequence[float]) -> float:
        return statistics.median(values)

    ours, mean = median([one.ours for one in rounds]), median([one.mean for one in rounds])
    share = median([one.ours / one.tpot for one in rounds])
    ratio = median([one.tpot / one.plain_tpot for one in rounds])
    kept = ours <= PROMISED_US if batch == AT_BATCH_1 else share <= PROMISED_SHARE
    exposed = median([one.exposed for one in rounds])
    promised = f"at most {PROMISED_US} us" if batch == AT_BATCH_1 else f"at most {PROMISED_SHARE:.0%} of TPOT"
    within, between = median([one.within for one in rounds]), median([one.between for one in rounds])
    tpot, plain = median([one.tpot for one in rounds]), median([one.plain_tpot for one in rounds])
    print(
        f"batch {batch}, fills {'beside' if overlap else 'behind'} the forward pass: ours {ours:6.1f} us a "
        "step "
        f"({within:.1f} within, {between:.1f} between; mean {mean:.0f}), {share:.2%} of TPOT {tpot:.0f} us; "
        f"fills hold it up {exposed:.0f} us; "
        f"TPOT over the plain loop's {plain:.0f} us: {ratio:.3f}; promised {promised}: "
        f"{'kept' if kept else 'NOT KEPT'}",
        flush=True,
    )
    return kept


def profiled(model: Model, adapter: Adapter, made: list[Request], options: LoopOptions) -> None:
    """Prints where the time of one run goes, by function; `prepare` and the prefill are included."""
    profile = cProfile.Profile()
    profile.runcall(serve, model, adapter, made, options)
    print(f"\nbatch {len(made)}, {options}")
    pstats.Stats(profile).sort_stats("tottime").print_stats("harness", 25)


if __name__ == "__main__":
    sys.exit(main())
