"""Repetitions of several subjects by turns, forwards and then backwards, so that a drift of the machine
affects all of them alike."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from harness.backend.garbage import no_garbage_collection
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


def raise_again(_: str, error: BaseException) -> None:
    """Raises the error: nothing is known to be at fault but ourselves."""
    raise error


def by_turns(
    calls: Mapping[str, Call],
    clock: Clock,
    effort: Effort,
    *,
    rewarm: bool,
    raised: Callable[[str, BaseException], None] = raise_again,
) -> dict[str, Samples]:
    """Returns the samples of each call, which has been made before.

    With `rewarm`, one more call that is not timed goes before each sample: caches then hold what the call
    itself left. `raised` is told of a call that raises; if it returns, the call has no samples, and the
    others go on.
    """
    samples_by_name = {}
    gc.collect()
    with no_garbage_collection():
        for name, call in calls.items():
            try:
                if rewarm:
                    call()
                once = max(1, clock.time_ns(call, 1))
            except BaseException as error:  # a panic in Rust is no Exception
                raised(name, error)
                continue
            samples_by_name[name] = Samples(min(MOST_CALLS, max(1, SAMPLE_NS // once)))
        for number in range(effort.rounds):
            order = list(calls)[:: -1 if number % 2 else 1]
            for name in order:
                samples = samples_by_name.get(name)
                if samples is None or _is_finished(samples, effort):
                    continue
                try:
                    if rewarm:
                        calls[name]()
                        clock.finish()
                    samples.totals_ns.append(clock.time_ns(calls[name], samples.calls))
                except BaseException as error:
                    del samples_by_name[name]
                    raised(name, error)
    return samples_by_name


def _is_finished(samples: Samples, effort: Effort) -> bool:
    return len(samples.totals_ns) >= effort.least and sum(samples.totals_ns) >= effort.budget_ns
