"""The figures of decode records that more than one section shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from harness.measure.statistics import Interval, interval
from harness.report.figures.estimates import Estimate
from harness.report.page.inputs import Inputs, Subject
from harness.serve.decode.figures import DecodeCell, Decoded
from harness.serve.requests import latency
from harness.walk.loop.outcome import Completed


def combined(series: Iterable[Sequence[float]]) -> Interval | None:
    """Returns the interval of the mean over several loads, fork by fork; None of nothing, or where the loads
    have different forks."""
    rows = [list(row) for row in series if row]
    if not rows or len({len(row) for row in rows}) > 1:
        return None
    return interval(np.mean(rows, axis=0).tolist())


def usual(decoded: Decoded, arm: str, role: str = "constrained") -> list[DecodeCell]:
    """Returns the arm's cells of stepwise with all requests there at the start and every knob as usual, which
    the figures over batch sizes are of."""
    return [
        cell
        for cell in decoded.cells
        if cell.arm == arm and cell.role == role and cell.setting.rate is None
        and cell.setting.strategy == "stepwise" and not cell.setting.unusual
    ]  # fmt: skip


def batches(inputs: Inputs) -> list[int]:
    """Returns every batch size at which something was decoded."""
    return sorted(
        {
            cell.setting.batch
            for one in inputs.decoded
            for arm in one.decoding.setup.arms
            for cell in usual(one, arm.name)
        }
    )


def chosen(sizes: Sequence[int]) -> list[int]:
    """Returns the smallest, the largest, and the one in between."""
    if len(sizes) <= 3:
        return list(sizes)
    return [sizes[0], sizes[len(sizes) // 2], sizes[-1]]


def pooled_overhead(decoded: Decoded, arm: str, batch: int) -> Interval | None:
    """Returns the interval of TPOT over that without a grammar at this batch size, over all workloads; None
    where nothing was paired."""
    paired = [decoded.over_none(cell) for cell in usual(decoded, arm) if cell.setting.batch == batch]
    return combined(estimate.x for estimate in paired if estimate is not None)


def overhead(subject: Subject, batch: int) -> Estimate | None:
    """Returns what TPOT takes more than without a grammar, as a share, over all workloads; of the first
    record that has it."""
    for decoded, arm in subject.decoded:
        pooled = pooled_overhead(decoded, arm, batch)
        if pooled is not None:
            return _less_one(pooled)
    return None


def speed_up(subject: Subject) -> Estimate | None:
    """Returns what the time of stepwise is over that of jump-forward, over all loads; None if unknown."""
    for decoded, arm in subject.decoded:
        cells = [
            cell
            for cell in decoded.cells
            if cell.arm == arm and cell.role == "constrained" and cell.strategy == "jump_forward"
        ]
        gained = [decoded.speed_up(cell) for cell in cells if not cell.setting.unusual]
        pooled = combined(gain.ratio.x for gain in gained if gain is not None)
        if pooled is not None:
            return Estimate(pooled.ratio, *_bounds(pooled))
    return None


def _bounds(pooled: Interval) -> tuple[float | None, float | None]:
    return (pooled.low, pooled.high) if math.isfinite(pooled.high) else (None, None)


def _less_one(pooled: Interval) -> Estimate:
    low, high = _bounds(pooled)
    return Estimate(pooled.ratio - 1, None if low is None else low - 1, None if high is None else high - 1)


def tpot_guide(inputs: Inputs) -> tuple[float, str] | None:
    """Returns one TPOT without a grammar at batch 1 (the smallest there is), and whose; None where nothing
    was decoded."""
    for decoded in inputs.decoded:
        cells = [cell for arm in decoded.decoding.setup.arms for cell in usual(decoded, arm.name, "none")]
        least = min((cell.setting.batch for cell in cells), default=0)
        values = [
            value
            for cell in cells
            if cell.setting.batch == least
            for value in values_of(cell.completed, latency.tpot)
        ]
        if values:
            return float(np.median(values)), f"one TPOT of {decoded.decoding.setup.model[:24]}, batch {least}"
    return None


def values_of(completed: Iterable[Completed], figure: Callable[[Completed], float | None]) -> list[float]:
    """Returns the figure of each answered request that has one."""
    return [value for request in latency.answered(completed) if (value := figure(request)) is not None]


def about(decoded: Decoded) -> str:
    """Returns which model, and where."""
    setup, model = decoded.decoding.setup, decoded.decoding.model
    shape = " (a shape: random weights)" if model.get("kind") == "shape" else ""
    where = model.get("device_name", model.get("device", setup.device))
    often = decoded.decoding.often
    return f"{setup.model[:60]}{shape} on {where}; vocabulary {setup.vocabulary[:60]}; {often}"


def upper(value: float, say: Callable[[float], str], most: float = 99.0, beyond: str = ">99") -> str:
    """Returns the upper bound of an interval in words; one fork gives none. A bound above `most` says no more
    than `beyond`, as on the terminal."""
    if not math.isfinite(value):
        return "∞"
    return say(value) if value <= most else beyond
