"""The bandwidth of a copy, and bare steps of a model beside it: as a captured graph and eager, and how far
their logits are apart."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gpu_paths import check_fast
from gpu_plan import LIMIT, PROMPT
from gpu_running import PLANNED

from harness.backend.vocabulary import Vocabulary
from harness.errors import BadInput
from harness.measure.kernels.clock import clock_of
from harness.measure.kernels.rounds import Effort, by_turns
from harness.measure.kernels.timing import copy_call
from harness.text import one_line

if TYPE_CHECKING:
    import torch

    from harness.serve.decode.model.model import Model

STEPS, ROUNDS = 16, 8
"""Bare steps of a round, and rounds, of a graph and of eager by turns."""
WIDTHS = (96, 32, 16)
"""Tokens of a pass: a text as long as the first is fed in passes of each. The last are few enough for the
kernels of few tokens."""


def floor_cell(
    shape: str,
    vocabulary: Vocabulary,
    batches: Sequence[int],
    copied: int,
    device: str,
    keep: Callable[[dict[str, Any]], object] = lambda _: None,
) -> dict[str, Any]:
    """Returns the copy's bandwidth, and for each batch the bare steps; a batch that does not fit says so.
    `keep` is given what there is after each batch. Raises BadInput for a shape that is not on the fast
    paths."""
    import torch

    from harness.serve.decode.model.model import load_model

    moved, copy_ns = copies(copied, device)
    steps: dict[str, Any] = {}
    result = {"copy_bytes": moved, "copy_ns": copy_ns, "threads": torch.get_num_threads(), "steps": steps}
    for batch in batches:
        gc.collect()
        if device == "cuda":
            torch.cuda.empty_cache()
        try:
            model = load_model(shape, vocabulary.size, rows=batch, positions=PROMPT + LIMIT, device=device)
        except (BadInput, torch.OutOfMemoryError) as error:
            steps[str(batch)] = {"error": one_line(str(error))[:300]}
            continue
        check_fast(model.describe())
        try:
            steps[str(batch)] = bare(model, batch)
        except (BadInput, torch.OutOfMemoryError) as error:
            steps[str(batch)] = {"error": one_line(str(error))[:300]}
        del model
        keep(result | {PLANNED: len(batches)})
    return result


def copies(copied: int, device: str) -> tuple[int, list[float]]:
    """Returns the bytes that a copy which touches so many reads and writes, and the nanoseconds of each of
    several."""
    call, moved = copy_call(copied, device)
    call()
    copy = by_turns({"copy": call}, clock_of(device), Effort(rounds=15), rewarm=False)["copy"]
    return moved, [total / copy.calls for total in copy.totals_ns]


def bare(model: Model, batch: int) -> dict[str, Any]:
    """Returns the times of bare steps, one median for each round, and how the logits of both ways agree, and
    of a wide pass and narrow ones. On a CPU the same static buffers stand in for a captured graph."""
    import torch

    from harness.serve.decode.model.graphs import Direct, Static

    graph = model._runner if model._runner.static else Static(model.network, model.device, capture=False)
    runners = {"graph": graph, "eager": Direct(model.network, model.device)}
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(model.vocabulary_size, (batch, PROMPT), generator=generator).tolist()
    model.extend(dict(enumerate(ids)))
    logits = {}
    for which, runner in runners.items():
        model._runner = runner
        bare_steps(model, batch, 3)
        logits[which] = model.extend({row: [row + 1] for row in range(batch)}).float()
        for row in range(batch):
            model.rollback(row, PROMPT)
    step_ns: dict[str, list[float]] = {which: [] for which in runners}
    for number in range(ROUNDS):
        for which in list(runners)[:: -1 if number % 2 else 1]:
            model._runner = runners[which]
            step_ns[which].append(bare_steps(model, batch, STEPS))
    peak = model.peak_bytes()
    model._runner = graph
    return {
        "model": model.describe(),
        "length": PROMPT + (STEPS + 1) / 2,
        "step_ns": step_ns,
        "logits_apart": apart(logits["graph"], logits["eager"]),
        "same_choice": float((logits["graph"].argmax(-1) == logits["eager"].argmax(-1)).float().mean()),
        "wide_apart": _wide_apart_if_it_fits(model),
        "peak_bytes": peak,
    }


def _wide_apart_if_it_fits(model: Model) -> float | None:
    """Returns `wide_apart`; None too where the device has no memory left for such passes, because what was
    timed before is kept."""
    import torch

    try:
        return wide_apart(model)
    except (BadInput, torch.OutOfMemoryError):
        return None


def wide_apart(model: Model) -> float | None:
    """Returns how far the logits behind a text that is fed in one pass are from those behind the same text in
    narrower ones, at the width where they are farthest; None for a model whose passes are not so wide."""
    wide, *narrow = WIDTHS
    if model.chunk < wide:
        return None

    def fed(width: int) -> torch.Tensor:
        model.rollback(0, 0)
        for start in range(0, wide, width):
            logits = model.extend({0: text[start : start + width]})
        return logits.float()

    text = [(7 * place + 3) % model.vocabulary_size for place in range(wide)]
    whole = fed(wide)
    return max(apart(fed(width), whole) for width in narrow)


def bare_steps(model: Model, batch: int, steps: int) -> float:
    """Returns the median time of a pass by a token a row, nanoseconds, until the device is done; the rows are
    then as before."""
    known = []
    for step in range(steps):
        tokens = {row: [step + 1] for row in range(batch)}
        start = time.perf_counter_ns()
        model.extend(tokens)
        model.finish()
        known.append(time.perf_counter_ns() - start)
    for row in range(batch):
        model.rollback(row, PROMPT)
    return statistics.median(known)


def apart(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    """Returns the relative distance, over all values; infinite where one is not a number."""
    distance = float((ours - theirs).norm() / theirs.norm())
    return math.inf if math.isnan(distance) else distance
