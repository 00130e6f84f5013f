"""The figures of benchmarks/decode.py: what is planned on a device, what its stored parts say, what is
promised of that, and the table."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from harness.measure.statistics import LEVEL, interval
from harness.serve.decode import overhead
from harness.serve.decode.figures import DecodeCell, Decoded
from harness.serve.decode.record import read_decoding
from harness.serve.requests import latency
from harness.walk.loop.outcome import STEP

BACKENDS = ("xgrammar", "llguidance", "outlines-core", "lm-format-enforcer")
PROMISED_OF = ("xgrammar", "llguidance")
"""The bitmask backends of which something is promised; others are reported."""

FORCED, MIXED, LONG = "all_forced", "function_calls", "long_arrays"
"""Workloads."""

WIDE = 100
"""An interval whose ends are so many times apart says nothing (two forks have such ones); the file has it all
the same."""

# ------------------------------------------------------------------------------------------------------- plan


@dataclass(frozen=True)
class Part:
    """What is done, and stored, in one go: `step` and `masks` in a process of their own, `serve` by the
    engine."""

    kind: Literal["step", "serve", "masks"]
    model: str = ""
    batch: int = 0
    batch_fill: bool = False

    @property
    def name(self) -> str:
        """Returns the part's name, which is also that of a record's folder."""
        if self.kind == "masks":
            return "masks"
        return f"{self.kind}-{self.model}-batch-{self.batch}{'-batch_fill' if self.batch_fill else ''}"


@dataclass(frozen=True)
class Plan:
    """What is decoded on a device."""

    models: tuple[str, ...]
    batches: tuple[int, ...]
    judged: int
    """The batch at which constrained runs are held against unconstrained ones."""
    texts: int
    """How many texts are decoded at batch 1; at larger batches each row has one."""
    forks: int
    rounds: int
    backends: tuple[str, ...] = BACKENDS

    def parts(self) -> Iterator[Part]:
        yield Part("masks")
        for model in self.models:
            for batch in self.batches:
                yield Part("step", model, batch)
                yield Part("serve", model, batch)
                if batch == self.judged:
                    yield Part("serve", model, batch, batch_fill=True)


def plan_of(device: str, quick: bool) -> Plan:
    if quick:
        return (
            Plan(("tiny",), (1, 8), 8, 2, 2, 1, PROMISED_OF)
            if device == "cpu"
            else Plan(("1b",), (1, 32), 32, 4, 2, 1, PROMISED_OF)
        )
    return (
        Plan(("tiny",), (1, 8), 8, 3, 3, 1)
        if device == "cpu"
        else Plan(("1b", "8b"), (1, 8, 32, 128), 32, 4, 3, 2)
    )


# ------------------------------------------------------------------------------------ promises and arithmetic


@dataclass(frozen=True)
class Promise:
    """What is promised of a figure."""

    limit: float
    at_most: bool = True
    on_cpu: bool = True
    """Is it judged on a CPU too?"""

    def __str__(self) -> str:
        return f"{'<=' if self.at_most else '>='} {self.limit:g}"


PROMISES = {
    "tpot_over_floor": Promise(1.3, on_cpu=False),
    "constrained_over_unconstrained": Promise(1.05, on_cpu=False),
    "jump_forward_of_ceiling": Promise(0.85, at_most=False),
    "logits_apart": Promise(0.1),
    "logits_apart_float32": Promise(1e-3),
}
"""Logits: the relative distance beyond which `load_model` refuses a model, in bfloat16 and in float32."""

TITLES = {
    "tpot_over_floor": "unconstrained TPOT over the floor",
    "step_over_floor": "a bare step over the floor",
    "constrained_over_unconstrained": "constrained TPOT over unconstrained",
    "jump_forward_of_ceiling": "jump-forward's speed-up, share of its ceiling",
    "step": "a bare step",
    "eager_over_graph": "a step eager over as a graph (CPU: static buffers, no capture)",
    "logits": "relative distance of the logits, graph and eager",
    "masks": "masks, by the device's clock",
    "host": "masks in the loop, by the host's clock: median of a step",
    "bandwidth": "bandwidth of a copy",
}


@dataclass(frozen=True)
class Figure:
    """One number."""

    what: str
    """One of TITLES."""
    of: str
    """Model, batch and subject."""
    value: float | None
    """None: not measured, as `note` says."""
    low: float | None = None
    high: float | None = None
    unit: str = ""
    promise: str = ""
    """One of PROMISES; empty where nothing is promised."""
    note: str = ""


def floor_ns(
    read_bytes: int, cache_bytes_per_token: int, lengths: Iterable[float], bandwidth: float
) -> float:
    """Returns the least time of a pass: the weights once, and each row's cache at its length (tokens), at so
    many bytes a second."""
    return (read_bytes + cache_bytes_per_token * sum(lengths)) / bandwidth * 1e9


def verdict(figure: Figure, device: str) -> str:
    """`kept`, `NOT KEPT`, why it is not judged, or nothing where nothing is promised."""
    if not figure.promise:
        return ""
    if figure.value is None:
        return "not measured here"
    promise = PROMISES[figure.promise]
    if device == "cpu" and not promise.on_cpu:
        return "not judged on a CPU"
    return (
        "kept"
        if (figure.value <= promise.limit) == promise.at_most or figure.value == promise.limit
        else "NOT KEPT"
    )


def of_logs(
    what: str, of: str, x: Sequence[float], unit: str = "", promise: str = "", note: str = ""
) -> Figure:
    """Returns the figure of logarithms, one for each fork or round; it has no interval where there is only
    one."""
    if not x:
        return Figure(what, of, None, unit=unit, promise=promise, note=note or "not measured")
    estimate = interval(x)
    low, high = (estimate.low, estimate.high) if math.isfinite(estimate.high) else (None, None)
    return Figure(what, of, estimate.ratio, low, high, unit, promise, note)


def best_is_judged(figures: Sequence[Figure], promise: str) -> list[Figure]:
    """The figures of one subject, where lower is better: the smallest is held to the promise, the others
    are only shown.
    """
    known = [figure for figure in figures if figure.value is not None]
    best = min(known, key=lambda candidate: candidate.value or 0.0) if known else figures[0]
    return [replace(figure, promise=promise if figure is best else "") for figure in figures]


# ---------------------------------------------------------------------------------------------------- figures


def figures_of(parts: dict[str, dict[str, Any]], plan: Plan, out: Path) -> list[Figure]:
    """Returns the figures of all that was done; one that could not be measured is named where something is
    promised of it."""
    figures: list[Figure] = []
    for model in plan.models:
        for batch in plan.batches:
            title = f"{model} batch {batch}"
            step = parts.get(Part("step", model, batch).name, {})
            bare = {} if "not_measured" in step else step
            figures += (
                of_steps(bare, title, batch) if bare else missing(step, ("logits", "logits_apart"), title)
            )
            serve = parts.get(Part("serve", model, batch).name, {})
            ways = [serve, parts.get(Part("serve", model, batch, batch_fill=True).name, {})]
            records = [Decoded(read_decoding(out / way["record"])) for way in ways if "record" in way]
            if batch == 1:
                kept: tuple[str, ...] = ("tpot_over_floor", "jump_forward_of_ceiling")
                if not records:
                    figures += [figure for what in kept for figure in missing(serve, (what, what), title)]
                    continue
                figures += over_floor(records[0], bare, title)
                figures += jumps(records[0], title)
            elif batch == plan.judged and not records:
                figures += missing(serve, ("constrained_over_unconstrained",) * 2, title)
            figures += constrained(records, title, judged=batch == plan.judged)
            figures += [figure for record in records[:1] for figure in of_masks(record, title)]
    for row in parts.get("masks", {}).get("rows", []):
        logs = [math.log(ns / 1e3) for ns in row["ns"]]
        figures.append(
            of_logs("masks", f"batch {row['batch']} {row['name']}", logs, "us", note=row.get("why", ""))
        )
    order = list(TITLES)
    return sorted(figures, key=lambda figure: order.index(figure.what))


def missing(part: dict[str, Any], what: tuple[str, str], title: str) -> list[Figure]:
    """Nothing, where the part was not tried yet."""
    return (
        [Figure(what[0], title, None, promise=what[1], note=part["not_measured"])]
        if "not_measured" in part
        else []
    )


def bandwidth(step: dict[str, Any]) -> float:
    """Bytes a second, of the median copy."""
    return float(step["copy_bytes"] / statistics.median(step["copy_ns"]) * 1e9)


def of_steps(step: dict[str, Any], title: str, batch: int) -> Iterator[Figure]:
    model, times = step["model"], step["step_ns"]
    least = floor_ns(
        model["read_bytes"], model["cache_bytes_per_token"], [step["length"]] * batch, bandwidth(step)
    )
    yield of_logs("bandwidth", title, [math.log(step["copy_bytes"] / ns) for ns in step["copy_ns"]], "GB/s")
    yield of_logs(
        "step_over_floor",
        title,
        [math.log(time / least) for time in times["graph"]],
        note=f"floor {least / 1e3:.0f} us",
    )
    for which in ("graph", "eager"):
        yield of_logs("step", f"{title} {which}", [math.log(time / 1e3) for time in times[which]], "us")
    pairs = zip(times["eager"], times["graph"], strict=True)
    yield of_logs("eager_over_graph", title, [math.log(eager / graph) for eager, graph in pairs])
    promise = "logits_apart_float32" if model["dtype"] == "float32" else "logits_apart"
    yield Figure(
        "logits",
        title,
        step["logits_apart"],
        promise=promise,
        note=f"{step['same_choice']:.0%} of rows choose the same id",
    )


def over_floor(decoded: Decoded, step: dict[str, Any], title: str) -> list[Figure]:
    """Returns the TPOT of the unconstrained runs, all arms' alike; by fork the mean of the logarithms."""
    if not step:
        return [
            Figure(
                "tpot_over_floor", title, None, promise="tpot_over_floor", note="no bandwidth was measured"
            )
        ]
    rate, model = bandwidth(step), decoded.decoding.model
    logs: dict[int, list[float]] = {}
    for cell in (cell for cell in decoded.cells if cell.role == "none"):
        for run in cell.warm:
            for done in latency.answered(one.completed for one in run.completed):
                took = latency.tpot(done)
                if took:
                    length = done.prompt + (len(done.ids) + 1) / 2
                    least = floor_ns(model["read_bytes"], model["cache_bytes_per_token"], [length], rate)
                    logs.setdefault(run.fork, []).append(math.log(took / least))
    return [
        of_logs(
            "tpot_over_floor",
            title,
            [statistics.mean(log) for log in logs.values()],
            promise="tpot_over_floor",
        )
    ]


def constrained(records: Sequence[Decoded], title: str, *, judged: bool) -> list[Figure]:
    """Stepwise of every backend and workload, by each way to fill."""
    ways: dict[tuple[str, str], list[Figure]] = {}
    for decoded in records:
        backend = {arm.name: arm.backend for arm in decoded.decoding.setup.arms}
        for cell in decoded.cells:
            if cell.strategy == "stepwise":
                over = decoded.over_none(cell)
                left = over.left_out if over else 0
                of = f"{title} {cell.setting.workload} {cell.arm}{' *' if cell.setting.batch_fill else ''}"
                note = f"{left} requests left out" if left else ""
                one = of_logs("constrained_over_unconstrained", of, over.x if over else (), note=note)
                ways.setdefault((backend[cell.arm], cell.setting.workload), []).append(one)
    promised = {key for key in ways if judged and key[0] in PROMISED_OF}
    return [
        figure
        for key, figures in ways.items()
        for figure in (
            best_is_judged(figures, "constrained_over_unconstrained") if key in promised else figures
        )
    ]


def jumps(decoded: Decoded, title: str) -> list[Figure]:
    """Where everything is forced the promise; the other workload is shown.

    A backend that forces nothing has no ceiling to reach.
    """
    backend = {arm.name: arm.backend for arm in decoded.decoding.setup.arms}
    figures = []
    for cell in (cell for cell in decoded.cells if cell.strategy == "jump_forward"):
        promise = (
            "jump_forward_of_ceiling"
            if cell.setting.workload == FORCED and backend[cell.arm] in PROMISED_OF
            else ""
        )
        figures.append(
            of_ceiling(decoded.speed_up(cell), f"{title} {cell.setting.workload} {cell.arm}", promise)
        )
    return figures


def of_ceiling(gain: overhead.SpeedUp | None, of: str, promise: str) -> Figure:
    """Speed-up over ceiling."""
    what = "jump_forward_of_ceiling"
    if gain is None or gain.ceiling is None or not gain.ratio.x:
        return Figure(what, of, None, promise=promise, note="no text came out the same as stepwise")
    if gain.saved <= 0:
        return Figure(what, of, None, note="it saves no pass")
    note = f"of a ceiling of {gain.ceiling:.2f}"
    return of_logs(
        what,
        of,
        [logarithm - math.log(gain.ceiling) for logarithm in gain.ratio.x],
        promise=promise,
        note=note,
    )


def of_masks(decoded: Decoded, title: str) -> Iterator[Figure]:
    """Yields what the loop's host waits: medians over the steps of the warm constrained runs."""
    for cell in (cell for cell in decoded.cells if cell.strategy == "stepwise" and cell.warm):
        for name in ("exposed_ns", "move_ns", "apply_ns", "accept_ns"):
            yield Figure(
                "host",
                f"{title} {cell.setting.workload} {cell.arm} {name[:-3]}",
                of_column(cell, name) / 1e3,
                unit="us",
            )


def of_column(cell: DecodeCell, name: str) -> float:
    """Returns the median over all steps of the warm runs, nanoseconds."""
    return float(np.median(np.concatenate([run.steps[:, STEP.index(name)] for run in cell.warm])))


# ------------------------------------------------------------------------------------------------------ table


def table(figures: Sequence[Figure], device: str) -> str:
    """Everything but the host's times, which are in the file; at most 80 columns."""
    lines = [f"* filled by one call for the whole batch; [interval at {LEVEL:.0%}]"]
    for what, title in TITLES.items():
        if what == "host":
            continue
        lines += ["", title] + [
            line for figure in figures if figure.what == what for line in figure_cells(figure, device)
        ]
    return "\n".join(lines)


def figure_cells(figure: Figure, device: str) -> list[str]:
    kept = verdict(figure, device)
    promised = f"promised {PROMISES[figure.promise]}: {kept}" if figure.promise else ""
    if figure.value is None:
        return [
            f"  {figure.of[:44]:44} not measured",
            *([f"    {figure.note}"[:80]] if figure.note else []),
            *([f"    {promised}"] if promised else []),
        ]
    bounds = ""
    if figure.low is not None and figure.high is not None:
        bounds = (
            f" [{short(figure.low)}, {short(figure.high)}]" if figure.high < WIDE * figure.low else " [wide]"
        )
    more = "; ".join(note for note in (promised, figure.note) if note)
    return [
        f"  {figure.of[:44]:44} {short(figure.value)}{bounds} {figure.unit}".rstrip()[:80],
        *([f"    {more}"[:80]] if more else []),
    ]


def short(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"
