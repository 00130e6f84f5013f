"""One cell, measured by a process of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gpu_plan import LONG_LIMIT, PROMPT, VOCABULARY, Cell, Plan
from gpu_running import keeper, running

from harness.errors import BadInput
from harness.text import one_line
from harness.whole_files import write_whole

ROOM = 64
"""Positions of a row beyond prompt and output, for a spelling that is longer for a moment."""


def measured(cell: Cell, plan: Plan, device: str, folder: Path) -> dict[str, Any]:
    """Measures the cell in this process, with records in the folder, and returns its result."""
    import torch

    from harness.rows.machine import usable_processors

    if device == "cpu":
        torch.set_num_threads(max(1, usable_processors() - 1))  # as in the children of `decode`
    if cell.kind in ("times", "probes"):
        from gpu_kernels import PROBES_PLAN, kernel_cell, times_plan

        if cell.kind == "probes":
            return kernel_cell(PROBES_PLAN, cell.backend, device, folder, say)
        sizes = times_plan(cell.vocabulary, cell.dtype, plan.kernel_batches, plan.kernel_rounds)
        return kernel_cell(sizes, ",".join(plan.kernel_backends), device, folder, say)
    if cell.kind == "smoke":
        from gpu_smoke import smoke

        return {"untried": smoke(plan, device, folder, cell.seconds, say)}
    if cell.kind == "decode":
        from gpu_decode import decode_cell

        return decode_cell(cell, plan, device, folder, say)

    from harness.backend.vocabulary import load_vocabulary

    vocabulary = load_vocabulary(VOCABULARY)
    if cell.kind == "floor":
        from gpu_floor import floor_cell

        keep = keeper(folder, {})
        return floor_cell(cell.shape, vocabulary, sorted(plan.batches), plan.copied, device, keep)

    from gpu_loads import Bench, cold_cell, share_cell
    from gpu_paths import check_fast

    from harness.backend.registry import make, parse_specs
    from harness.serve.decode.model.model import load_model

    adapter = make(parse_specs(cell.backend)[0], vocabulary)
    positions = PROMPT + LONG_LIMIT + ROOM
    model = load_model(cell.shape, vocabulary.size, rows=cell.batch, positions=positions, device=device)
    check_fast(model.describe())
    model.prepare(PROMPT)
    run = cold_cell if cell.kind == "cold" else share_cell
    about = {"model": model.describe()}
    bench = Bench(model, vocabulary, adapter)
    return run(bench, cell.batch, plan.repeats, keeper(folder, about)) | about


def say(message: str) -> None:
    """Print a line of progress."""
    print(f"    {one_line(message)}", flush=True)


def alone(cell: Cell, plan: Plan, device: str, out: Path, answer: Path) -> None:
    """Writes the result of the cell to the file; `error` where it cannot be had."""
    import torch

    try:
        result = measured(cell, plan, device, running(out, cell))
    except (BadInput, torch.OutOfMemoryError) as error:
        result = {"error": one_line(str(error))[:500]}
    except Exception as error:  # ours or a library's: it is told, and the other cells are measured
        import traceback

        traceback.print_exc()
        result = {"error": one_line(repr(error))[:500]}
    write_whole(answer, json.dumps(result))
