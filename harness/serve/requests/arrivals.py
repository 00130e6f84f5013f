"""When requests come in an open loop, that is, whether or not the server is ready for them: seeded, in
nanoseconds after the start.

Rates are requests a second; an infinite rate brings all at once. As in vLLM's serving benchmark, gaps are
gamma-distributed with `burstiness` as shape (1: Poisson; below 1 bursts, above 1 more even; infinite: fixed),
the first request comes after the first gap, and all times are stretched so that the last comes at `count /
rate`: every seed offers the same load.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from random import Random

from harness.errors import BadInput

_SECOND = 1_000_000_000

LEAST_BURSTINESS = 1e-3
"""The least shape of the gamma distribution; below it most gaps, and in the end all, are too small for a
float."""

_SMALLEST = 1e-250
"""Seconds. Where all gaps of few requests come out smaller than that, no float stretches them."""

_LATEST = 1e9
"""The latest second of a trace: in nanoseconds a record can hold it."""


def gamma(count: int, rate: float, burstiness: float, seed: int) -> tuple[int, ...]:
    """Returns `count` arrivals, ascending; the same seed gives the same times everywhere."""
    if not rate > 0:
        raise BadInput(f"arrivals: the rate must be above 0 requests a second, not {rate:g}")
    if not burstiness >= LEAST_BURSTINESS:
        raise BadInput(
            f"arrivals: the burstiness must be above 0, {LEAST_BURSTINESS:g} at least, not {burstiness:g}; "
            "1 is a Poisson process"
        )
    if math.isinf(rate):
        return at_once(count)
    if math.isinf(burstiness):
        return tuple(round(number / rate * _SECOND) for number in range(1, count + 1))
    random = Random(seed)
    times = list(accumulate(random.gammavariate(burstiness, 1 / (rate * burstiness)) for _ in range(count)))
    if times and times[-1] < _SMALLEST:
        return (*at_once(count - 1), round(count / rate * _SECOND))
    stretch = count / rate / times[-1] if times else 1.0
    return tuple(round(time_s * stretch * _SECOND) for time_s in times)


def poisson(count: int, rate: float, seed: int) -> tuple[int, ...]:
    """Returns independent arrivals: gamma with a burstiness of 1."""
    return gamma(count, rate, 1.0, seed)


def fixed(count: int, rate: float) -> tuple[int, ...]:
    """Returns one arrival every `1 / rate` seconds."""
    return gamma(count, rate, math.inf, 0)


def at_once(count: int) -> tuple[int, ...]:
    """Returns all arrivals at the start."""
    return (0,) * count


def trace(seconds: Sequence[float]) -> tuple[int, ...]:
    """Returns recorded arrivals, given in seconds after the start, ascending. Raises BadInput."""
    for index, second in enumerate(seconds):
        if not 0 <= second <= _LATEST:
            raise BadInput(
                f"arrivals: time {index} of the trace is {second:g}; give seconds after the start, from 0 to "
                f"{_LATEST:g}"
            )
    for index, (before, after) in enumerate(pairwise(seconds), 1):
        if after < before:
            raise BadInput(
                f"arrivals: time {index} of the trace ({after:g} s) is before the one above it "
                f"({before:g} s); sort them"
            )
    return tuple(round(second * _SECOND) for second in seconds)
