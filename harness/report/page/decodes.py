"""The figures of decode records that more than one section shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from harness.measure.statistics import Interval, interval
from harness.report.figures.estimates import Estimate
from harness.report.page.inputs import Inputs, Subject
from harness.serve.decode.figures import DecodeCell, Decoded
from harness.serve.decode.overhead import Paired
from harness.serve.decode.setting import Setting
from harness.serve.requests import latency
from harness.text import counted
from harness.walk.loop.outcome import Completed


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


def shared_workloads(workloads: Iterable[AbstractSet[str]]) -> list[str]:
    """Returns the workloads that all arms have, out of those of each arm; an arm that has none at all does
    not count."""
    sets = [of_arm for of_arm in workloads if of_arm]
    return sorted(set.intersection(*map(set, sets))) if sets else []


@dataclass(frozen=True)
class Pooled:
    """A ratio of one arm over several loads."""

    found: Interval
    """The interval of the mean over the loads, fork by fork, over the forks that all of these have."""
    workloads: tuple[str, ...]
    """The workloads that it is over: those that all arms of the record have, or those of this arm where it
    has none of these."""
    lacks: str
    """What another arm of the record has and this one has not, so that it is not ranked; empty for
    nothing."""
    note: str
    """On how many forks it rests, if on fewer than the arm has; else empty."""


_Loads = dict[str, dict[Setting, Paired]]
"""The ratio of each arm in each setting."""


@lru_cache(maxsize=8)  # the matrix asks for each batch size, and the charts over batch sizes once more
def overheads(decoded: Decoded) -> tuple[dict[int, dict[str, Pooled]], list[str]]:
    """Returns, by batch size and arm, TPOT over that without a grammar, over the workloads in which it is
    known of every arm of the record; and which workloads these are."""
    loads: _Loads = {}
    for arm in _arms(decoded):
        for cell in usual(decoded, arm):
            _add(loads, cell, decoded.over_none(cell))
    shared = shared_workloads({setting.workload for setting in of_arm} for of_arm in loads.values())
    sizes = sorted({setting.batch for of_arm in loads.values() for setting in of_arm})
    of_size: dict[int, _Loads] = {size: {} for size in sizes}
    for arm, of_arm in loads.items():
        for setting, load in of_arm.items():
            of_size[setting.batch].setdefault(arm, {})[setting] = load
    pooled = {size: _pooled(of_size[size], lambda setting: setting.workload in shared) for size in sizes}
    return pooled, shared


def speed_ups(decoded: Decoded) -> dict[str, Pooled]:
    """Returns, by arm, the time of stepwise over that of jump-forward, over the loads in which it is known of
    every arm of the record."""
    loads: _Loads = {}
    arms = _arms(decoded)
    for cell in decoded.cells:
        is_one = cell.role == "constrained" and cell.strategy == "jump_forward" and not cell.setting.unusual
        if is_one and cell.arm in arms:
            gain = decoded.speed_up(cell)
            _add(loads, cell, None if gain is None else gain.ratio)
    return _pooled(loads, lambda setting: all(setting in of_arm for of_arm in loads.values()))


def _arms(decoded: Decoded) -> list[str]:
    return [arm.name for arm in decoded.decoding.setup.arms if arm.role != "a/a"]


def _add(loads: _Loads, cell: DecodeCell, ratio: Paired | None) -> None:
    """Adds the ratio of this cell to the loads of its arm; nothing where nothing was paired."""
    if ratio is not None and ratio.by_fork:
        loads.setdefault(cell.arm, {})[cell.setting] = ratio


def _pooled(loads: _Loads, is_shared: Callable[[Setting], bool]) -> dict[str, Pooled]:
    """Returns, by arm, its ratio over the loads that all arms share; none of an arm whose loads have no fork
    in common."""
    most: dict[Setting, int] = {}
    for of_arm in loads.values():
        for setting, load in of_arm.items():
            most[setting] = max(load.requests, most.get(setting, 0))
    found = {}
    for arm, of_arm in loads.items():
        over = [setting for setting in of_arm if is_shared(setting)] or [*of_arm]
        forks = sorted(set.intersection(*({*of_arm[setting].by_fork} for setting in over)))
        if not forks:
            continue
        x = [float(np.mean([of_arm[setting].by_fork[fork] for setting in over])) for fork in forks]
        missing = {
            "load": len(most) - len(of_arm),
            "request": sum(most[setting] - of_arm[setting].requests for setting in over),
        }
        lacks = ", ".join(f"{counted(count, what)} not measured" for what, count in missing.items() if count)
        every = {fork for load in of_arm.values() for fork in load.by_fork}
        note = f"{len(forks)} of {counted(len(every), 'fork')}" if len(forks) < len(every) else ""
        workloads = tuple(sorted({setting.workload for setting in over}))
        found[arm] = Pooled(interval(x), workloads, lacks, note)
    return found


def overhead(subjects: Sequence[Subject], batch: int) -> list[tuple[Estimate, str] | None]:
    """Returns what TPOT takes more than without a grammar, as a share, of each subject, with a note."""
    return _of_subjects(subjects, lambda decoded: overheads(decoded)[0].get(batch, {}), 1.0)


def speed_up(subjects: Sequence[Subject]) -> list[tuple[Estimate, str] | None]:
    """Returns what the time of stepwise is over that of jump-forward, of each subject, with a note."""
    return _of_subjects(subjects, speed_ups, 0.0)


def _of_subjects(
    subjects: Sequence[Subject], pools: Callable[[Decoded], dict[str, Pooled]], less: float
) -> list[tuple[Estimate, str] | None]:
    """Returns the estimate of each subject, less so much: of the record with the most arms that have one, by
    which arms are ranked, else of the first that has it.

    Arms of two records are not ranked against each other: they may have decoded other texts with another
    model elsewhere.
    """
    records = list(dict.fromkeys(decoded for subject in subjects for decoded, _ in subject.decoded))
    pooled = {decoded: pools(decoded) for decoded in records}
    by = max(records, key=lambda decoded: len(pooled[decoded]), default=None)

    def of(subject: Subject) -> tuple[Estimate, str] | None:
        mine = {decoded: pooled[decoded][arm] for decoded, arm in subject.decoded if arm in pooled[decoded]}
        if not mine:
            return None
        pool = mine[by] if by in mine else next(iter(mine.values()))
        ratio, low, high = (end - less for end in (pool.found.ratio, pool.found.low, pool.found.high))
        why = pool.lacks if by in mine else "of another decoding"
        estimate = Estimate(ratio, low, high)
        return estimate.unranked(why) if why else estimate, pool.note

    return [of(subject) for subject in subjects]


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
