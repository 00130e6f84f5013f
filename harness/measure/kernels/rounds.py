"""Repetitions of several subjects by turns, forwards and then backwards, so that a drift of the machine
affects all of them alike."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from harness.measure.kernels.clock import Call, Clock

SAMPLE_NS = 100_000
"""Nanoseconds of a sample: it consists of as many calls as take this long, or of one call that takes
longer."""

MOST_CALLS = 1000


@dataclass(frozen=True)
class Effort:
    """How often calls are repeated."""

    rounds: int = 30
    least: int = 3
    """The least number of samples of each subject, however slow it is."""
    budget_ns: int = 200_000_000
    """Nanoseconds of clock time after which a subject that has its least number of samples is finished."""


@dataclass
class Samples:
    """`totals_ns[i]` is the time of `calls` calls together."""

    calls: int = 1
    totals_ns: list[int] = field(default_factory=list)


def by_turns(calls: Mapping[str, Call], clock: Clock, effort: Effort, *, rewarm: bool) -> dict[str, Samples]:
    """Samples of each call, which has been made before.

    With `rewarm`, one more call that is not timed goes before each sample: caches then hold what the call
    itself left.
    """
    samples_by_name = {}
    with collector_off():
        for name, call in calls.items():
            if rewarm:
                call()
            once = max(1, clock.time_ns(call, 1))
            samples_by_name[name] = Samples(min(MOST_CALLS, max(1, SAMPLE_NS // once)))
        for number in range(effort.rounds):
            order = list(calls)[:: -1 if number % 2 else 1]
            for name in order:
                samples = samples_by_name[name]
                if len(samples.totals_ns) >= effort.least and sum(samples.totals_ns) >= effort.budget_ns:
                    continue
                if rewarm:
                    calls[name]()
                    clock.finish()
                samples.totals_ns.append(clock.time_ns(calls[name], samples.calls))
    return samples_by_name


@contextmanager
def collector_off() -> Iterator[None]:
    """Returns a context without garbage collection."""
    gc.collect()
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
