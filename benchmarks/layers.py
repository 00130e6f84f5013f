"""What a layer of few tokens takes on a GPU, against reading its weights: the kernels of few tokens
(`harness/serve/decode/model/few.py`) by turns with those of many.

    python benchmarks/layers.py [--device cuda|cpu]

Prints for the shapes 1b and 8b, and passes of one row by 1 to 256 tokens behind 40 others: microseconds of a
pass over the layers, shared out over them, with the kernels that such a pass has, with those of many tokens,
and for one token, whose products are sums, with the products of few tokens too; each over the floor, which is
a layer's weights at the bandwidth of a copy. All ways of a pass are measured by turns in the same process,
and several passes are queued at once, so that the device does not wait for the host in between. The
vocabulary has 512 ids, so that the head counts for nothing. On a CPU the shape is tiny and there are no such
kernels: it shows that the script works.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from unittest.mock import patch

import torch

sys.path.insert(0, str(Path(__file__).parent / "parts"))

from gpu_floor import copies
from gpu_plan import plan_of

from harness.measure.kernels.clock import Clock, clock_of
from harness.measure.kernels.rounds import Effort, by_turns
from harness.serve.decode.model import fused
from harness.serve.decode.model.graphs import Static
from harness.serve.decode.model.model import Model, load_model

BEHIND, VOCABULARY = 40, 512
TOKENS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
QUEUED, ROUNDS = 20, 8
"""Passes that are queued one behind the other, and how often they are. What the host does before the first of
them is shared out over all."""


def main() -> None:
    parser = argparse.ArgumentParser(usage="python benchmarks/layers.py [--device cuda|cpu]")
    parser.add_argument("--device", choices=["cuda", "cpu"])
    device = parser.parse_args().device or ("cuda" if torch.cuda.is_available() else "cpu")
    clock = clock_of(device)
    moved, copy_ns = copies(plan_of(device).copied, device)
    rate = moved / statistics.median(copy_ns)
    print(f"{device}: a copy moves {rate:.0f} GB/s; microseconds of a layer")
    for shape in ("1b", "8b") if device == "cuda" else ("tiny",):
        model = load_model(shape, VOCABULARY, rows=1, positions=BEHIND + max(TOKENS), device=device)
        layers = model.network.model.model.layers
        floor = sum(weight.numel() * weight.element_size() for weight in layers[0].parameters()) / rate / 1e3
        print(f"{shape}: {len(layers)} layers, floor {floor:.1f}")
        for tokens in TOKENS:
            found = passes(model, tokens, clock)
            each = [
                f"{name} {us / len(layers):.1f} ({us / len(layers) / floor:.2f})"
                for name, us in found.items()
            ]
            print(f"  {tokens} token{'s' if tokens > 1 else ''}: {', '.join(each)}")


def passes(model: Model, tokens: int, clock: Clock) -> dict[str, float]:
    """Returns the microseconds of a pass with each of the kernels, by their name."""
    calls: dict[str, Callable[[], object]] = {}
    for name in ("as it is", "many", *(["units"] if tokens == 1 and fused.working_kernels() else [])):
        with having(name):
            if isinstance(model._runner, Static):
                model._runner = Static(model.network, model.device, capture=True)
            model.rollback(0, 0)
            model.extend({0: range(BEHIND)})
            calls[name] = extended(model, tokens)
            calls[name]()  # captures it
    found = by_turns(calls, clock, Effort(rounds=ROUNDS), rewarm=False)
    return {
        name: statistics.median(each.totals_ns) / each.calls / QUEUED / 1e3 for name, each in found.items()
    }


def extended(model: Model, tokens: int) -> Callable[[], object]:
    """Returns QUEUED passes that each append so many tokens behind the first ones, by the graphs that the
    model has now."""
    runner = model._runner

    def call() -> object:
        model._runner = runner
        for _ in range(QUEUED):
            model.rollback(0, BEHIND)
            logits = model.extend({0: range(tokens)})
        return logits

    return call


def having(name: str) -> AbstractContextManager[object]:
    """Returns what all passes are captured in: with the kernels of many tokens, or with the products of few
    tokens for one."""
    if name == "many":
        return patch.object(fused, "few_for", lambda states: None)
    if name == "units":
        return patch("harness.serve.decode.model.few.BY_SUMS", 0)
    return nullcontext()


if __name__ == "__main__":
    main()
