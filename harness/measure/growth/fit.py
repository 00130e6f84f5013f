"""How a cost grows with a size: a power with a constant before it, or an exponential, with an interval, and
the word for it.

The model is cost = c + a * n^b with c, a >= 0: a fixed cost, which hides the growth of small sizes, and what
grows. It is fitted to the largest sizes by least squares of the relative errors, over a grid of b. The
interval of b is the profile of that sum of squares at Student's t (Bates and Watts, Nonlinear Regression
Analysis, 1988, section 6.1): all b that fit hardly worse than the best one. An exponential c + a * g^n is
fitted in the same way and wins only where it fits much better. Everything is in closed form, so the same
numbers give the same verdict.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.measure.statistics import LEVEL, student_quantile
from harness.text import counted

Kind = Literal["constant", "less than linear", "linear", "worse than linear", "exponential", "not judged"]

TAIL = 7
"""The number of the largest sizes that are fitted; powers of two, so the largest is 64 times the smallest."""

FEWEST = 5
"""The fewest sizes that say anything: the model has three parameters."""

FLAT = 1.5
"""A cost is constant if it grows by less than this factor over TAIL sizes; fewer of them show too little."""

SCATTER = 0.03
"""The relative error that every measured cost is taken to have at least; no interval is narrower than that
allows."""

MARGIN = 0.15
"""How far an exponent may be from one for growth to be called linear."""

BETTER = 4.0
"""How many times smaller than that of a power the sum of squares of an exponential must be to be believed."""

ROUGH = 0.2
"""The relative error with which an exponential must fit to be believed."""

CONVEX = 1.5
"""The least exponent of e^(k n / largest n) that is told from a straight line."""

RISING = 3
"""How many of the largest sizes must cost clearly more than the median of the others for an exponential: one
jump is none, whatever the scatter before it."""

RISEN = 2.0
"""How many times the scatter the last size but one must cost more than the median of those before it for the
last one to be no jump."""

POWERS = np.arange(0.02, 8.0, 0.01)
RATES = np.geomspace(0.2, 300.0, 400)
"""Exponents k of e^(k n / largest n)."""

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Growth:
    """How one cost grows along one axis."""

    kind: Kind
    exponent: float | None = None
    """The b of n^b, with its interval at LEVEL; None where nothing was fitted."""
    low: float | None = None
    high: float | None = None
    base: float | None = None
    """For an exponential, the factor of each step of the size."""
    sizes: tuple[int, ...] = ()
    """The sizes that were fitted."""
    why: str = ""
    """For `not judged`, why; for others, what is to be minded."""


def growth(sizes: Sequence[int], costs: Sequence[float], *, floor: float = 0.0) -> Growth:
    """Returns how the costs grow with the sizes. Costs below `floor` cannot be told apart: a cost that never
    exceeds it is constant.

    Only sizes that were measured belong here; what refused, failed or was killed must be told beside it.
    """
    tail = tuple(sizes[-TAIL:])
    if len(tail) < FEWEST:
        return Growth(
            "not judged",
            sizes=tail,
            why=f"only {counted(len(tail), 'size')} {'was' if len(tail) == 1 else 'were'} measured",
        )
    n = np.array(tail, float)
    values = np.maximum(np.array(costs[-TAIL:], float), max(floor, 1e-9))
    if values.max() <= floor:
        return Growth("constant", sizes=tail)
    if values.max() < FLAT * values.min():
        if len(tail) == TAIL:
            return Growth("constant", sizes=tail)
        return Growth("not judged", sizes=tail, why=f"it hardly grows, but over {len(tail)} sizes only")
    if values[-1] < FLAT * values.min():
        return Growth("not judged", sizes=tail, why="it falls, or is highest between")
    powers = np.array([_misfit((n / n[-1]) ** power, values) for power in POWERS])
    best = int(powers.argmin())
    degrees = len(tail) - 3
    scatter = max(float(powers[best]), degrees * SCATTER**2)
    allowed = scatter * (1 + student_quantile(1 - (1 - LEVEL) / 2, degrees) ** 2 / degrees)
    within = POWERS[powers <= allowed]
    exponent, low, high = float(POWERS[best]), float(within.min()), float(within.max())
    rates = np.array([_misfit(np.exp(rate * (n / n[-1] - 1)), values) for rate in RATES])
    rate = int(rates.argmin())
    misfit = max(float(rates[rate]), degrees * SCATTER**2)
    fits = misfit < len(tail) * ROUGH**2 and scatter > BETTER * misfit
    is_clear = bool((values[-RISING:] > FLAT * np.median(values[:-RISING])).all())
    if RATES[rate] > CONVEX and fits and is_clear:
        return Growth("exponential", base=math.exp(float(RATES[rate]) / n[-1]), sizes=tail)
    # One jump at the last size is the limit of ever larger powers: the grid alone would end their interval.
    rise = values[-2] / np.median(values[:-2]) - 1
    is_one_jump = high == POWERS[-1] and rise < RISEN * math.sqrt(scatter / degrees)
    if is_one_jump or best == len(POWERS) - 1:
        return Growth("not judged", sizes=tail, why="it jumps at the last sizes, which no power does")
    kind, why = _kind(exponent, low, high)
    return Growth(kind, exponent, low, high, None, tail, why)


def _kind(exponent: float, low: float, high: float) -> tuple[Kind, str]:
    if low > 1 and exponent > 1 + MARGIN:
        return "worse than linear", ""
    if high < 1 and exponent < 1 - MARGIN:
        return "less than linear", ""
    if low >= 1 - 2 * MARGIN and high <= 1 + 2 * MARGIN:
        return "linear", ""
    return "not judged", "the interval of the exponent is too wide"


def _misfit(shape: Values, values: Values) -> float:
    """Returns the least sum of squared relative errors of `c + a * shape` with c and a not negative."""
    one, grown = 1 / values, shape / values
    a11, a12, a22 = float(one @ one), float(one @ grown), float(grown @ grown)
    b1, b2 = float(one.sum()), float(grown.sum())
    determinant = a11 * a22 - a12 * a12
    if determinant > 1e-12 * a11 * a22:
        c, a = (b1 * a22 - b2 * a12) / determinant, (b2 * a11 - b1 * a12) / determinant
    else:
        c, a = -1.0, -1.0
    if a < 0:
        c, a = b1 / a11, 0.0
    elif c < 0:
        c, a = 0.0, b2 / a22
    error = c * one + a * grown - 1
    return float(error @ error)


@dataclass(frozen=True)
class Slope:
    """How much a process keeps for each further step, with its interval at LEVEL."""

    per_step: float
    low: float
    high: float
    steps: int
    """How many steps the estimate rests on."""


FEWEST_RISES = 4


def slope(series: Sequence[Sequence[tuple[int, float]]]) -> Slope | None:
    """Returns the slope over the second half of each series of (step, value), from the rises between one
    value and the next; None where there are too few of them.

    The first half is left out, because a process that takes memory for the first time reuses it later. A rise
    weighs as much as the steps that it was made in, and a last one of few steps, where the time was up,
    counts with the one before it: otherwise what an allocator takes at once would be that of a few steps.
    """
    rises: list[float] = []
    steps: list[int] = []
    for one in map(_without_a_short_end, series):
        for (before, low), (after, high) in pairwise(one[len(one) // 2 :]):
            rises.append(high - low)
            steps.append(after - before)
    if len(rises) < FEWEST_RISES:
        return None
    weights = np.array(steps) / np.mean(steps)
    mean = sum(rises) / sum(steps)
    squares = float(weights @ (np.array(rises) / np.array(steps) - mean) ** 2)
    half_width = student_quantile(1 - (1 - LEVEL) / 2, len(rises) - 1) * math.sqrt(
        squares / (len(rises) - 1) / len(rises)
    )
    return Slope(mean, mean - half_width, mean + half_width, sum(steps))


def _without_a_short_end(series: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Returns the series with its last rise joined to the one before it, if it has fewer than half as many
    steps."""
    points = list(series)
    if len(points) > 2 and 2 * (points[-1][0] - points[-2][0]) < points[-2][0] - points[-3][0]:
        del points[-2]
    return points
