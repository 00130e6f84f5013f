"""Ratios of two runs of the same load: paired by request within a round of a fork, the fork being the unit.

A ratio of means would weigh long requests and disturbed rounds most; so each request is compared with itself, the logarithms are taken per
request at their median over the rounds and per fork at their mean over the requests, and the interval is that of the forks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from harness.decode import latency
from harness.decode.record import Batch, Judged
from harness.loop import accounting
from harness.loop.outcome import ANSWERED, Completed
from harness.measure.estimate import per_fork
from harness.measure.statistics import Interval, interval

Figure = Callable[[Completed], float | None]
Comparable = Callable[[Judged, Judged], bool]


@dataclass(frozen=True)
class Paired:
    """Head over base in one figure of the requests."""

    found: Interval | None
    """None where no request can be compared."""
    x: tuple[float, ...]
    """The logarithms of the ratio, one a fork in their order; what the interval is of."""
    requests: int
    """Names that count: comparable in every fork."""
    left_out: int
    """Names that were served in both, and were not comparable in some fork."""


@dataclass(frozen=True)
class SpeedUp:
    """A strategy against stepwise, of the same texts."""

    found: Paired
    """Stepwise over strategy of the time from admission until done, summed over a run: 2.0 is twice as fast."""
    ceiling: float | None
    """Passes of stepwise over passes of the strategy, of the same requests: 1 / (1 - share of tokens without one). None without a pass."""
    saved: int
    """Passes."""

    @property
    def of_ceiling(self) -> float | None:
        """What share of the ceiling's speed-up was had: ratio over ceiling."""
        return None if self.ceiling is None or self.found.found is None else self.found.found.ratio / self.ceiling


def service(request: Completed) -> float:
    """From getting a row until done: what the request cost the batch, whoever it waited for."""
    return float(request.done_ns - (request.arrived_ns if request.admitted_ns is None else request.admitted_ns))


def is_answered(each: Judged) -> bool:
    return each.completed.end in ANSWERED and not each.completed.fallback and bool(each.completed.ids)


def of_equal_length(head: Judged, base: Judged) -> bool:
    """Both answered, with as many tokens: the same number of passes but for what the strategy saves."""
    return is_answered(head) and is_answered(base) and len(head.completed.ids) == len(base.completed.ids)


def of_equal_text(head: Judged, base: Judged) -> bool:
    """Both answered, with the same ids, or both with the text that was replayed."""
    same = head.completed.ids == base.completed.ids or (head.as_replayed is True and base.as_replayed is True)
    return is_answered(head) and is_answered(base) and same


def is_served(head: Judged, base: Judged) -> bool:
    """Both answered, whatever came out."""
    return is_answered(head) and is_answered(base)


def paired(runs: Iterable[tuple[Batch, Batch]], figure: Figure, comparable: Comparable = of_equal_length) -> Paired:
    """Head over base of each (head, base) run of the same fork and round. 1.05: head takes five percent more.

    A request that cannot be compared (`comparable`), or whose figure is none or zero on a side, is left out and counted.
    """
    logs: dict[int, dict[str, dict[int, float]]] = {}
    seen: set[str] = set()
    for head, base in runs:
        theirs = _by_name(base)
        found = logs.setdefault(head.fork, {})
        for ours in head.completed:
            other = theirs.get(ours.completed.name)
            if other is None:
                continue
            seen.add(ours.completed.name)
            above, below = figure(ours.completed), figure(other.completed)
            if comparable(ours, other) and above and below:
                found.setdefault(ours.completed.name, {})[head.round] = math.log(above / below)
    shared = set.intersection(*(set(names) for names in logs.values())) if logs else set()
    x = tuple(per_fork(logs)) if shared else ()
    return Paired(interval(x) if x else None, x, len(shared), len(seen - shared))


def speed_up(runs: Iterable[tuple[Batch, Batch]]) -> SpeedUp:
    """Of (strategy, stepwise) runs: what was gained, beside what the passes saved allow at most.

    Of the texts that came out equal in every run, time and passes are both summed over a run before they are divided: a text that needs no
    pass at all would be endlessly faster, and a mean of ratios does not keep below a ratio of sums.
    """
    logs: dict[int, dict[str, dict[int, float]]] = {}
    sides = [(_by_name(strategy), _by_name(stepwise), strategy) for strategy, stepwise in runs]
    seen = {name for ours, theirs, _ in sides for name in ours.keys() & theirs.keys()}
    names = {
        name
        for name in seen
        if all(name in ours and name in theirs and of_equal_text(ours[name], theirs[name]) for ours, theirs, _ in sides)
    }
    passes = [0, 0]
    for ours, theirs, run in sides:
        spent = [0.0, 0.0]
        for place, side in enumerate((ours, theirs)):
            spent[place] = sum(service(side[name].completed) for name in names)
            passes[place] += sum(side[name].completed.account.passes for name in names)
        if spent[0] > 0 < spent[1]:
            logs.setdefault(run.fork, {}).setdefault("", {})[run.round] = math.log(spent[1] / spent[0])
    x = tuple(per_fork(logs))
    found = Paired(interval(x) if x else None, x, len(names), len(seen - names))
    return SpeedUp(found, passes[1] / passes[0] if passes[0] else None, passes[1] - passes[0])


def _by_name(run: Batch) -> dict[str, Judged]:
    return {each.completed.name: each for each in run.completed}


def saved_share(requests: Iterable[Completed]) -> float | None:
    """Of the ids of answered requests, those that needed no pass of their own (forced share, accepted drafts included)."""
    good = latency.answered(requests)
    ids = sum(len(each.ids) for each in good)
    return sum(accounting.saved(each.account) for each in good) / ids if ids else None
