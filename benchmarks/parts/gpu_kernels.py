"""The cells of the part `kernels`: `grammarbench measure kernels` on a part of its sizes, and what the stored
run says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.measure.kernels.plan import KernelPlan
from harness.measure.kernels.rounds import Effort
from harness.measure.kernels.session import measure
from harness.measure.kernels.stored import read

TIMES = (
    "kernel",
    "batch",
    "share",
    "outcome",
    "text",
    "median_ns",
    "min_ns",
    "gb_per_s",
    "of_copy",
    "no_graph",
)
MOVES = ("form", "memory", "company", "batch", "median_ns", "gb_per_s", "text")
"""What is kept of a row."""


def kernel_cell(
    plan: KernelPlan, specs: str | None, device: str, folder: Path, say: Callable[[str], None]
) -> dict[str, Any]:
    """Measures into the folder, and returns what `stored_cell` does."""
    measure(specs, device, plan, folder, (), say)
    return stored_cell(folder)


def stored_cell(folder: Path) -> dict[str, Any]:
    """Returns what the folder holds of a cell, whether or not that came to its end: the kernels that could
    not be asked and why; the times beside the copy's; the movement of masks to the device; and what the
    probes came to. Raises BadInput if it holds no run."""
    stored = read(folder)
    probed: dict[str, Counter[str]] = {}
    for row in stored.probes:
        probed.setdefault(row["kernel"], Counter())[row["outcome"]] += 1
    return {
        "on": stored.run["on"],
        "unusable": {row["kernel"]: row["problem"] for row in stored.kernels if row["problem"]},
        "times": [kept(row, TIMES) for row in stored.times if row["threads"] == 1],
        "moves": [kept(row, MOVES) for row in stored.moves],
        "probed": {kernel: dict(outcomes) for kernel, outcomes in probed.items()},
        "failed": [
            kept(row, ("kernel", "probe", "dtype", "outcome", "text", "documented"))
            for row in stored.probes
            if row["outcome"] not in ("passed", "refused")
        ],
    }


def kept(row: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Returns those fields of the row that it has and that are not empty."""
    return {name: row[name] for name in names if row.get(name) not in (None, "")}


def times_plan(vocabulary: int, dtype: str, batches: tuple[int, ...], rounds: int) -> KernelPlan:
    """Returns the plan of times alone, for one vocabulary and one type of logits."""
    return KernelPlan(
        (vocabulary,), batches, (dtype,), shares_on_all_threads=(), effort=Effort(rounds), probes=False
    )


PROBES_PLAN = KernelPlan(vocabularies=())
"""The plan of the probes alone."""
