"""Estimate, interval and verdict of paired log-ratios; exact or in closed form, so that the same numbers give
the same verdict.

scipy is not used: importing scipy.stats takes 0.8 to 1.0 s (two cores, scipy 1.17), which each of the dozen
modules that need Student's t would add to its command, for 60 lines that the tests hold against tables.

All of it works on `x`, the natural logarithms of head over base, one per fork: forks are the units, rounds
within them are not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Judgement = Literal["regressed", "improved", "equivalent", "inconclusive"]

LEVEL = 0.99
"""The confidence level of every interval."""

Z = NormalDist().inv_cdf(1 - (1 - LEVEL) / 2)
"""The quantile of the normal distribution that bounds an interval at LEVEL."""

FALSE_SHARE = 0.01
"""The largest share of the discoveries that may be false."""

EXACT_FROM = 8
"""The number of forks from which on the signed-rank interval of this level is finite; below it, Student's t
is used, nominal down to five."""


@dataclass(frozen=True)
class Interval:
    """A ratio head over base (1.1: ten percent slower), its interval at LEVEL, and from how many forks it
    comes."""

    ratio: float
    low: float
    high: float
    forks: int

    @property
    def half_width(self) -> float:
        """Returns half of the interval on the logarithmic scale; about the plus-minus of the ratio as a
        share."""
        return (
            (math.log(self.high) - math.log(self.low)) / 2
            if self.low > 0 and math.isfinite(self.high)
            else math.inf
        )


def interval(x: Sequence[float]) -> Interval:
    """Returns the Hodges-Lehmann estimate, with an interval by signed ranks from EXACT_FROM forks on and by
    Student's t below.

    One fork has an estimate and no interval (0 to infinity). Raises ValueError without any fork.
    """
    values = np.asarray(x, float)
    if not len(values):
        raise ValueError("no forks")
    walsh = walsh_averages(values)
    centre = float(np.median(walsh))
    if len(values) == 1:
        return Interval(_exp(centre), 0.0, math.inf, 1)
    if len(values) >= EXACT_FROM:
        low, high = signed_rank_bounds(walsh, len(values))
    else:
        half = (
            student_quantile(1 - (1 - LEVEL) / 2, len(values) - 1)
            * float(values.std(ddof=1))
            / math.sqrt(len(values))
        )
        low, high = float(values.mean()) - half, float(values.mean()) + half
    return Interval(_exp(centre), _exp(min(low, centre)), _exp(max(high, centre)), len(values))


def _exp(exponent: float) -> float:
    """Returns e to the power of `exponent`; infinity where a double is too small for it, as in a record that
    was damaged."""
    try:
        return math.exp(exponent)
    except OverflowError:
        return math.inf


def walsh_averages(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the averages of every pair, each with itself included, ascending: their median is the
    Hodges-Lehmann estimate."""
    first, second = np.triu_indices(len(values))
    averages: NDArray[np.float64] = np.sort((values[first] + values[second]) / 2)
    return averages


def signed_rank_bounds(walsh: NDArray[np.float64], count: int) -> tuple[float, float]:
    """Returns the interval of the Hodges-Lehmann estimate whose true level is the smallest that is at least
    LEVEL (exact Wilcoxon distribution)."""
    ways = np.zeros(count * (count + 1) // 2 + 1)
    ways[0] = 1
    for rank in range(1, count + 1):
        ways[rank:] += ways[:-rank].copy()
    below = np.cumsum(ways) / 2.0**count
    cut = int(
        np.searchsorted(below, (1 - LEVEL) / 2, side="right")
    )  # P(W < cut) is at most half of what may be missed
    if not cut:
        return -math.inf, math.inf
    return float(walsh[cut - 1]), float(walsh[-cut])


def student_cdf(t: float, degrees: int) -> float:
    """Returns P(T <= t) of Student's t with a whole number of degrees of freedom (Abramowitz and Stegun,
    26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(degrees))
    cosine, sine = math.cos(angle), math.sin(angle)
    if degrees % 2:
        terms, term = 0.0, cosine
        for k in range(1, (degrees - 1) // 2 + 1):
            terms += term
            term *= cosine * cosine * 2 * k / (2 * k + 1)
        area = 2 / math.pi * (angle + sine * terms)
    else:
        terms, term = 0.0, 1.0
        for k in range(1, degrees // 2 + 1):
            terms += term
            term *= cosine * cosine * (2 * k - 1) / (2 * k)
        area = sine * terms
    return (1 + area) / 2


def student_quantile(share: float, degrees: int) -> float:
    """Returns the t below which this share (above one half) lies."""
    low, high = 0.0, 1.0
    while student_cdf(high, degrees) < share:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if student_cdf(middle, degrees) < share else (low, middle)
    return (low + high) / 2


def judge(estimate: Interval, margin: float) -> Judgement:
    """Returns the verdict on a lower-is-better figure: its interval is outside, inside or across the margin
    (0.05 means five percent)."""
    if estimate.low > 1 + margin:
        return "regressed"
    if estimate.high < 1 - margin:
        return "improved"
    if 1 - margin <= estimate.low and estimate.high <= 1 + margin:
        return "equivalent"
    return "inconclusive"


def chance(x: Sequence[float], margin: float) -> float:
    """Returns how probable such values are if the true ratio lies within the margin (one-sided t on the
    nearer side); 1 for a single fork."""
    values = np.asarray(x, float)
    if len(values) < 2:
        return 1.0
    mean, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values))
    if mean <= 0 and margin >= 1:
        return 1.0  # no ratio is smaller by that much
    beyond = mean - math.log1p(margin) if mean > 0 else math.log1p(-margin) - mean
    if beyond <= 0:
        return 1.0
    return 1 - student_cdf(beyond / error, len(values) - 1) if error else 0.0


def false_discovery(chances: Sequence[float]) -> list[bool]:
    """Returns which discoveries remain if no more than FALSE_SHARE of them may be false (Benjamini and
    Hochberg's step-up)."""
    order = sorted(range(len(chances)), key=lambda index: chances[index])
    kept = max(
        (rank for rank, index in enumerate(order, 1) if chances[index] <= FALSE_SHARE * rank / len(chances)),
        default=0,
    )
    kept_places = set(order[:kept])
    return [index in kept_places for index in range(len(chances))]


def has_tail(share: float, count: int) -> bool:
    """Returns whether ten values or more lie beyond this quantile; with fewer it says too little to be
    shown."""
    return count * min(share, 1 - share) >= 10 - 1e-9


def geometric_mean(values: Sequence[float] | NDArray[np.float64]) -> float:
    """Returns the geometric mean of positive numbers."""
    return math.exp(float(np.mean(np.log(np.asarray(values, float)))))


def observed_quantile(
    values: Sequence[float] | NDArray[np.float64] | NDArray[np.int64], share: float
) -> float:
    """Returns the smallest of the values that at least this share of them does not exceed: of an even number
    the median is the lower one in the middle."""
    return float(np.quantile(np.asarray(values, float), share, method="inverted_cdf"))


def shown_quantiles(
    values: Sequence[float] | NDArray[np.float64] | NDArray[np.int64], shares: Mapping[str, float]
) -> dict[str, float | None]:
    """Returns these quantiles by name, as observed values; None where too few values lie beyond one. The
    median is shown of any number of values."""
    return {
        name: observed_quantile(values, share)
        if len(values) and (share == 0.5 or has_tail(share, len(values)))
        else None
        for name, share in shares.items()
    }


def quantile_interval(groups: Sequence[NDArray[np.float64]], share: float) -> tuple[float, float] | None:
    """Returns the interval of a quantile of all values, by whole groups (the tokens of one schema are
    correlated); None where the groups are too few for one at LEVEL.

    It holds every value that the groups do not contradict: of each group counts how many of its values lie
    below more than the share that should, and the sum of these surpluses may be as far from zero as chance
    makes the sum of so large ones, each of either sign. With one value in a group these are the ranks of the
    sign test. (Drawing groups with replacement held the median of eight or nine in 95 of 100 trials.)

    Even all groups, from the smallest to the largest, miss a quantile that lies on one side of every one: n
    of them bracket a median with 1 - 2^(1 - n) at most, so that there is no interval of it below eight.
    """
    groups = [group for group in groups if len(group)]
    if max(share, 1 - share) ** len(groups) > (1 - LEVEL) / 2:
        return None
    sizes = np.array([len(group) for group in groups])
    values = np.concatenate(groups)
    # The values ascending, each with its group and with the number of those before it in the same group.
    order = np.argsort(values, kind="stable")
    values, group = values[order], np.repeat(np.arange(len(groups)), sizes)[order]
    by_group = np.argsort(group, kind="stable")
    before = np.empty(len(values))
    before[by_group] = np.arange(len(values)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    # The sum of the groups' surpluses, and of their squares, before the first value and after each.
    surplus = np.arange(len(values) + 1) - share * len(values)
    rise = 2 * (before - share * sizes[group]) + 1
    squares = np.concatenate([[0.0], np.cumsum(rise)]) + float((share * sizes) @ (share * sizes))
    allowed = Z * np.sqrt(np.maximum(squares, 0))
    # Equal values come all at once: what counts is the state before the first and after the last of them.
    first = np.concatenate([[True], values[1:] != values[:-1]])
    last = np.concatenate([first[1:], [True]])
    low = values[last & (surplus[1:] >= -allowed[1:])]
    high = values[first & (surplus[:-1] <= allowed[:-1])]
    return float(low[0]), float(high[-1])


def share_bounds(part: float, whole: float, units: float | None = None) -> tuple[float, float]:
    """Returns the ends of Wilson's interval of part of whole, which must not be 0; `units`: how many of them
    are independent (the walks of one case are not)."""
    n, p = units or whole, part / whole
    middle = (p + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n)) / (1 + Z * Z / n)
    return min(p, max(0.0, middle - half)), max(p, min(1.0, middle + half))
