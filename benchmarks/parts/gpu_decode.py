"""The cells of the part `decode`: a record of `grammarbench decode` with settings of our own and an A/A arm,
and what is kept of it."""

from __future__ import annotations

import json
import math
import statistics
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from gpu_paths import check_fast
from gpu_plan import FORCED, LIMIT, MIXED, NO_OVERLAP, PROMPT, VOCABULARY, Cell, Plan
from gpu_running import SO_FAR
from gpu_store import middle

from harness.serve.decode import overhead
from harness.serve.decode.figures import DecodeCell, Decoded
from harness.serve.decode.record import FIGURES, LINES, DecodedBatch, read_decoding
from harness.serve.decode.session import DecodeRequest, decode
from harness.serve.decode.setting import OWN, Setting
from harness.serve.requests import latency
from harness.walk.loop.outcome import STEP, Completed
from harness.whole_files import write_whole

FILL_THREADS = 8
LARGE = 8 << 20
"""Bytes of a file of a record from which on a condensed one is kept beside it: of three arms, one of which
has filled so much, the whole may pass the 16 MiB that a lent machine gives back of a file."""

STEP_TIMES = (
    "forward_ns",
    "fill_ns",
    "exposed_ns",
    "move_ns",
    "apply_ns",
    "sample_ns",
    "accept_ns",
    "strategy_ns",
    "wall_ns",
)
"""The columns of a step of which the median is kept."""
STEP_MEANS = ("forward_ns", "wall_ns")
"""The columns of which the mean is kept too, because a few wide passes do not show in a median."""


def settings_of(batch: int, texts: int, own_kernel: bool) -> tuple[Setting, ...]:
    """Returns the settings of a batch: stepwise with masks filled beside the forward pass (in one thread and,
    where there are several rows, by one call for all of them; in many rows also by FILL_THREADS threads, ours
    and the backend's own), with masks applied by the backend's own kernel where that is wanted, without
    overlap, and the strategies. At batch 1 also texts of which everything is forced."""
    base = Setting(MIXED, batch=batch, texts=max(texts, batch), prompt_tokens=PROMPT, limit=LIMIT)

    def other(**changed: Any) -> Setting:
        return Setting(**{**base.to_json(), **changed})

    made = [base, other(overlap=False)]
    if own_kernel:
        made.append(other(kernel=OWN))
    if batch > 1:
        made.append(other(batch_fill=True))
    if batch >= 32:
        made += [other(fill_threads=FILL_THREADS), other(fill_threads=FILL_THREADS, batch_fill=True)]
    made += [other(strategy="jump_forward"), other(strategy="speculative")]
    if batch == 1:
        made += [other(workload=FORCED), other(workload=FORCED, strategy="jump_forward")]
    return tuple(made)


def request_of(
    backends: Sequence[str],
    shape: str,
    settings: tuple[Setting, ...],
    device: str,
    folder: Path,
    timeout_s: float = 300.0,
) -> DecodeRequest:
    """Returns the request for one fork and one warm round of exactly these settings, with records in the
    folder; a model without the fast paths is refused."""
    return DecodeRequest(
        workloads=(),
        backends=",".join(backends),
        model=shape,
        vocabulary=VOCABULARY,
        profile="quick",
        usual=Setting(""),
        strategies=None,
        batches=None,
        texts=None,
        prompt_tokens=None,
        forks=1,
        rounds=1,
        device=device,
        dtype=None,
        out=folder,
        timeout_s=timeout_s,
        memory_gb=64.0,
        argv=(),
        settings=settings,
        accepts=check_fast,
    )


def decode_cell(
    cell: Cell, plan: Plan, device: str, folder: Path, say: Callable[[str], None]
) -> dict[str, Any]:
    """Decodes into the folder and returns what is kept. The backends change places from fork to fork, so that
    each is the one that has an A/A arm."""
    shift = cell.fork % len(plan.backends)
    request = request_of(
        [*plan.backends[shift:], *plan.backends[:shift]],
        cell.shape,
        settings_of(cell.batch, plan.texts, plan.own_kernel),
        device,
        folder,
    )

    def accepts(model: Mapping[str, Any]) -> None:
        """Is asked about each arm's model, behind the runs of the arm before."""
        check_fast(model)
        keep_condensed(folder)

    decode(replace(request, rounds=plan.rounds, again=True, accepts=accepts), say)
    return condensed(Decoded(read_decoding(folder)))


def keep_condensed(folder: Path) -> None:
    """Writes what is kept of a large record so far beside it: its own files may be larger than what the
    machine gives back. A fault in this costs no measurement."""
    files = [folder / name for name in (LINES, FIGURES)]
    if all(not file.exists() or file.stat().st_size < LARGE for file in files):
        return
    try:
        write_whole(folder / SO_FAR, json.dumps(condensed(Decoded(read_decoding(folder)))))
    except Exception:
        traceback.print_exc()


def condensed(decoded: Decoded) -> dict[str, Any]:
    """Returns the model, what each arm did in each setting, how the A/A arm compares with its reference, and
    what was lost. Ratios are natural logarithms, each the mean over the requests of this one fork.

    A setting that was lost by a fault of ours has no figures, and one that has no warm run has none either.
    Where a fault of ours lost one, or the record came to no end, `partial` says so: the cell is to be
    measured again. If nothing has figures, the whole is an `error`.
    """
    decoding = decoded.decoding
    backends = {arm.name: arm.backend for arm in decoding.setup.arms}
    reference = next(arm.name for arm in decoding.setup.arms if arm.role == "reference")
    again = next(arm.name for arm in decoding.setup.arms if arm.role == "a/a")
    rows, twins, measured = [], [], 0
    for cell in decoded.cells:
        if not cell.warm or lost(decoded, cell.arm, cell):
            continue
        measured += cell.role == "constrained"
        row = {"arm": cell.arm, "backend": backends[cell.arm], "again": cell.arm == again}
        rows.append(row | setting_of(cell) | figures_of_cell(decoded, cell))
        if cell.arm == again and not lost(decoded, reference, cell):
            beside = decoded.runs(decoded.key_of(cell), (reference, cell.role, cell.place))
            pair = overhead.paired(beside, latency.tpot)
            twins.append(setting_of(cell) | {"backend": backends[again], "x": first(pair.x)})
    result = {
        "model": decoding.model,
        "rows": rows,
        "again": twins,
        "lost": [
            {"arm": loss.arm, "setting": decoding.setup.settings[loss.setting].name, "why": loss.why}
            for loss in decoding.losses
        ],
    }
    ours = [loss.why for loss in decoding.losses if loss.whose == "harness_error"]
    if decoding.is_complete and rows and not ours:
        return result
    why = f"{measured} of {len(backends) * len(decoding.setup.settings)} settings have figures"
    if ours:
        why += f"; harness_error in {len(ours)}, the first: {ours[0]}"
    elif not rows and decoding.losses:
        why += f"; the first that was lost: {decoding.losses[0].why}"
    return result | {"partial": why} if rows else {"error": why}


def lost(decoded: Decoded, arm: str, cell: DecodeCell) -> bool:
    """Returns whether the cell's runs on that arm were lost by a fault of ours. Those of an unconstrained run
    were, where such a fault is among those that left no setting of its load."""
    whose = {loss.setting: loss.whose for loss in decoded.decoding.losses if loss.arm == arm}
    if cell.role == "constrained":
        return whose.get(cell.place) == "harness_error"
    places = enumerate(decoded.decoding.setup.settings)
    load = [whose.get(place) for place, one in places if one.plain == cell.setting.plain]
    return None not in load and "harness_error" in load


def salvaged(folder: Path, why: str) -> dict[str, Any]:
    """Returns what is kept of a cell that came to no end, out of the record that it left, or of what
    `keep_condensed` wrote beside it, whichever holds more: the whole where all was measured by then, and
    `error` where nothing has figures."""
    found: list[dict[str, Any]] = [{}]
    with suppress(Exception):  # whatever a torn record leads to: then there is nothing to keep
        found.append(condensed(Decoded(read_decoding(folder))))
    with suppress(OSError, ValueError):
        found.append(json.loads((folder / SO_FAR).read_text("utf-8")))
    kept = max(found, key=lambda one: len(one.get("rows", ())))
    if not kept.get("rows"):
        return {"error": why}
    return kept | {"partial": f"{why}; {kept['partial']}"} if "partial" in kept else kept


def setting_of(cell: DecodeCell) -> dict[str, Any]:
    """Returns what tells the cell's setting apart within the record."""
    setting = cell.setting
    several = f"{setting.fill_threads} threads" if setting.fill_threads > 1 else ""
    if setting.batch_fill:
        way = f"one call, {several} of its own" if several else "one call"
    else:
        way = several or "one thread"
    way += ", own kernel" if setting.kernel else ""
    return {
        "workload": setting.workload,
        "strategy": cell.strategy,
        "way": "" if cell.role == "none" else way if setting.overlap else NO_OVERLAP,
    }


def figures_of_cell(decoded: Decoded, cell: DecodeCell) -> dict[str, Any]:
    """Returns the figures of one arm in one setting: medians over the warm runs, and the logarithms."""
    done = latency.answered(cell.completed)
    over, gain = decoded.over_none(cell), decoded.speed_up(cell)
    values = decoded.values(cell)
    steps = np.concatenate([run.steps for run in cell.warm])
    return {
        "requests": len(cell.judged),
        "answered": len(done),
        "ends": dict(Counter(request.end for request in cell.completed)),
        "right": dict(Counter(request.right for request in cell.judged)),
        "fallback": sum(bool(request.fallback) for request in cell.completed),
        "tpot_ns": middle(latency.tpot(request) for request in done),
        "ttft_ns": middle(latency.ttft(request) for request in done),
        "ttft_cold_ns": middle(
            latency.ttft(request)
            for run in decoded.first_runs(cell)
            for request in latency.answered(one.completed for one in run.completed)
        ),
        "tokens_per_s": values["output_throughput"],
        "tokens_per_pass": values["tokens_per_pass"],
        "peak_bytes": values["peak"],
        "step_ns": {
            name.removesuffix("_ns"): float(np.median(steps[:, STEP.index(name)]))
            for name in STEP_TIMES
            if len(steps)
        },
        "step_mean_ns": {
            name.removesuffix("_ns"): float(np.mean(steps[:, STEP.index(name)]))
            for name in STEP_MEANS
            if len(steps)
        },
        "captured": sum(run.captured for run in cell.warm),
        "repeated": sum(run.repeated for run in cell.warm),
        "over_none": first(over.x) if over else None,
        "left_out": over.left_out if over else 0,
        "per_byte": per_byte(decoded, cell) if cell.role == "none" else None,
        "speed_up": first(gain.ratio.x) if gain else None,
        "ceiling": gain.ceiling if gain else None,
        "saved": gain.saved if gain else None,
    }


def per_byte(decoded: Decoded, cell: DecodeCell) -> float | None:
    """Returns the mean over the requests of the logarithm of TPOT (nanoseconds) over the bytes that each of
    its passes must read: the weights once, and the cache of every row of the pass at its length."""
    model = decoded.decoding.model
    logs = []
    for run in cell.warm:
        for request in latency.answered(one.completed for one in run.completed):
            took = latency.tpot(request)
            if took:
                read = model["read_bytes"] + model["cache_bytes_per_token"] * tokens_read(request, run, cell)
                logs.append(math.log(took / read))
    return statistics.mean(logs) if logs else None


def tokens_read(request: Completed, run: DecodedBatch, cell: DecodeCell) -> float:
    """Returns how many tokens of cache the request's passes read on average, over all rows of the batch.

    All requests of a batch begin together, unless a row serves several texts, which is so at batch 1 alone.
    """
    passes = len(request.ids) - 1
    lengths = request.prompt + np.arange(1, passes + 1)
    if cell.setting.batch == 1:
        return float(lengths.mean())
    widths = run.steps[:, STEP.index("fed")] > run.steps[:, STEP.index("rows")]
    rows = run.steps[~widths, STEP.index("rows")][:passes]
    return float((rows * lengths[: len(rows)]).mean())


def first(x: Sequence[float]) -> float | None:
    """Returns the one logarithm of a record of one fork; None if nothing could be compared."""
    return x[0] if x else None
