"""Ratios of two runs of the same load, paired by request within a round of a fork, with the fork as the unit.

A ratio of means would give most weight to long requests and disturbed rounds. So each request is compared
with itself: the logarithms are taken per request at their median over the rounds, and per fork at their mean
over the requests. The interval is that of the forks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from harness.measure.estimate import per_fork
from harness.measure.statistics import Interval, interval
from harness.serve.decode.record import DecodedBatch, Judged
from harness.serve.requests import latency
from harness.walk.loop import accounting
from harness.walk.loop.outcome import Completed

Figure = Callable[[Completed], float | None]
Comparable = Callable[[Judged, Judged], bool]


@dataclass(frozen=True)
class Paired:
    """The ratio of head over base in one figure of the requests."""

    interval: Interval | None
    """The ratio with its interval; None if no request can be compared."""
    by_fork: Mapping[int, float]
    """The logarithm of the ratio of each fork, in their order; the interval is theirs."""
    requests: int
    """Number of requests that were comparable in every fork."""
    left_out: int
    """Number of requests that both sides served and that were not comparable in some fork."""

    @property
    def x(self) -> tuple[float, ...]:
        """Returns the logarithms."""
        return tuple(self.by_fork.values())


@dataclass(frozen=True)
class SpeedUp:
    """A strategy against stepwise, on the same texts."""

    ratio: Paired
    """Stepwise over strategy in the time from admission until done, summed over a run: 2.0 is twice as
    fast."""
    ceiling: float | None
    """Passes of stepwise over passes of the strategy, for the requests with equal texts: 1 / (1 - their share
    of ids without a pass) where the ids are equal too. None where either says that it took no pass."""
    saved: int
    """Number of passes saved."""

    @property
    def of_ceiling(self) -> float | None:
        """Returns the ratio over the ceiling: the share of the possible speed-up that was reached."""
        return (
            None
            if self.ceiling is None or self.ratio.interval is None
            else self.ratio.interval.ratio / self.ceiling
        )


def service(request: Completed) -> float:
    """Nanoseconds from getting a row until done: what the request cost the batch, without its waiting."""
    return float(
        request.done_ns - (request.arrived_ns if request.admitted_ns is None else request.admitted_ns)
    )


def of_equal_length(head: Judged, base: Judged) -> bool:
    """Returns whether both were answered with equally many tokens, which take equally many passes but for
    those that the strategy saves."""
    return _answered(head, base) and len(head.completed.ids) == len(base.completed.ids)


def of_equal_text(head: Judged, base: Judged) -> bool:
    """Returns whether both were answered with the same ids, or both with the text that was replayed."""
    same = head.completed.ids == base.completed.ids or (head.as_replayed is True and base.as_replayed is True)
    return _answered(head, base) and same


def _answered(head: Judged, base: Judged) -> bool:
    return latency.is_answered(head.completed) and latency.is_answered(base.completed)


def paired(
    runs: Iterable[tuple[DecodedBatch, DecodedBatch]],
    figure: Figure,
    comparable: Comparable = of_equal_length,
) -> Paired:
    """Returns the ratio of head over base over pairs of runs (head, base) of the same fork and round; 1.05
    means that head takes five percent more.

    A request that cannot be compared (`comparable`), or whose figure is missing or not above zero on a side,
    is left out and counted.
    """
    logs: dict[int, dict[str, dict[int, float]]] = {}
    compared_names: set[str] = set()
    for head, base in runs:
        theirs = _by_name(base)
        of_fork = logs.setdefault(head.fork, {})
        for ours in head.completed:
            other = theirs.get(ours.completed.name)
            if other is None:
                continue
            compared_names.add(ours.completed.name)
            above, below = figure(ours.completed), figure(other.completed)
            if comparable(ours, other) and above and below and above > 0 and below > 0:
                of_fork.setdefault(ours.completed.name, {})[head.round] = math.log(above / below)
    shared = set.intersection(*(set(names) for names in logs.values())) if logs else set()
    return _over(logs, len(shared), len(compared_names - shared))


def speed_up(runs: Iterable[tuple[DecodedBatch, DecodedBatch]]) -> SpeedUp:
    """Returns the speed-up over pairs of runs (strategy, stepwise), beside the ceiling that the saved passes
    set.

    Only texts that came out equal in every run count. Their times and passes are summed over a run before
    they are divided: a text that needs no pass at all would be infinitely faster, and a mean of ratios may
    exceed a ratio of sums.
    """
    logs: dict[int, dict[str, dict[int, float]]] = {}
    sides = [(_by_name(strategy), _by_name(stepwise), strategy) for strategy, stepwise in runs]
    all_names = {name for ours, theirs, _ in sides for name in ours.keys() & theirs.keys()}
    names = {
        name
        for name in all_names
        if all(
            name in ours and name in theirs and of_equal_text(ours[name], theirs[name])
            for ours, theirs, _ in sides
        )
    }
    passes = [0, 0]
    for ours, theirs, run in sides:
        spent = [0.0, 0.0]
        for place, side in enumerate((ours, theirs)):
            spent[place] = sum(service(side[name].completed) for name in names)
            passes[place] += sum(side[name].completed.account.passes for name in names)
        if spent[0] > 0 < spent[1]:
            logs.setdefault(run.fork, {}).setdefault("", {})[run.round] = math.log(spent[1] / spent[0])
    pairing = _over(logs, len(names), len(all_names - names))
    return SpeedUp(pairing, passes[1] / passes[0] if all(passes) else None, passes[1] - passes[0])


def _over(logs: Mapping[int, Mapping[str, Mapping[int, float]]], requests: int, left_out: int) -> Paired:
    """Returns the ratio whose logarithms these are, by fork, request and round."""
    x = per_fork(logs)
    by_fork = dict(zip(sorted(logs), x, strict=True)) if x else {}
    return Paired(interval(x) if x else None, by_fork, requests, left_out)


def _by_name(run: DecodedBatch) -> dict[str, Judged]:
    return {request.completed.name: request for request in run.completed}


def saved_share(requests: Iterable[Completed]) -> float | None:
    """Returns the share of the ids of answered requests that needed no pass of their own (forced text,
    accepted drafts included)."""
    good = latency.answered(requests)
    ids = sum(len(request.ids) for request in good)
    return sum(accounting.saved(request.account) for request in good) / ids if ids else None
