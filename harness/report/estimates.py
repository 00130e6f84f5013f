"""Numbers with their intervals, in closed form: the same rows give the same bytes. All intervals are at LEVEL."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from harness.measure.statistics import LEVEL, has_tail, student_quantile

Z = NormalDist().inv_cdf(1 - (1 - LEVEL) / 2)
"""Of the normal distribution."""
MANY = 1000
"""Groups beyond which Student's distribution is the normal one to three digits, and slow to reckon."""


@dataclass(frozen=True)
class Estimate:
    """A number and where it may lie; without an interval `low` and `high` are None."""

    value: float
    low: float | None = None
    high: float | None = None
    few: bool = False
    """Fewer than ten values lie beyond this percentile: an anecdote."""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Both ends, where both are known and finite."""
        if self.low is None or self.high is None or not (math.isfinite(self.low) and math.isfinite(self.high)):
            return None
        return self.low, self.high


def share(part: float, whole: float, units: float | None = None) -> Estimate | None:
    """Part of whole by Wilson's interval; `units`: how many of them are independent (the walks of one case are not). None of nothing."""
    if not whole:
        return None
    n, p = units or whole, part / whole
    middle = (p + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n)) / (1 + Z * Z / n)
    return Estimate(p, min(p, max(0.0, middle - half)), max(p, min(1.0, middle + half)))


def quantile(groups: Sequence[NDArray[np.int64]], level: float) -> Estimate | None:
    """A quantile of all values, as an observed one; None of nothing.

    The values of a group (the tokens of a case) go together, so the interval is that of the share below, whose variance is taken over
    groups (Woodruff), turned back into values; it has none with fewer than two groups.
    """
    groups = [each for each in groups if len(each)]
    if not groups:
        return None
    values = np.concatenate(groups)
    value = float(np.quantile(values, level, method="inverted_cdf"))
    few = not has_tail(level, len(values))
    if len(groups) < 2:
        return Estimate(value, few=few)
    sizes = np.array([len(each) for each in groups])
    below = np.add.reduceat(values <= value, np.concatenate([[0], np.cumsum(sizes)[:-1]]), dtype=np.int64)
    rest = below - below.sum() / len(values) * sizes
    error = math.sqrt(float((rest**2).sum()) * len(groups) / (len(groups) - 1)) / len(values)
    # Near the ends the share seen below does not vary; values that had nothing to do with each other would vary so much.
    error = max(error, math.sqrt(level * (1 - level) / len(values)))
    half = error * (Z if len(groups) > MANY else student_quantile(1 - (1 - LEVEL) / 2, len(groups) - 1))
    if level + half >= 1:
        # Nothing was seen beyond: the interval is open above.
        return Estimate(value, few=True)
    low, high = np.quantile(values, [max(0.0, level - half), level + half], method="inverted_cdf")
    return Estimate(value, min(float(low), value), max(float(high), value), few)


def best(found: Sequence[Estimate | None], lower: bool = True) -> list[bool]:
    """Which are the best: the leader and all whose intervals reach its own. Nobody, where that is all of them, or of a single one."""
    known = [each for each in found if each is not None and not each.few]
    if len(known) < 2 or any(each is not None and each.few for each in found):
        return [False] * len(found)
    leader = min(known, key=lambda each: each.value if lower else -each.value)
    ours = leader.bounds or (-math.inf, math.inf)

    def ties(each: Estimate | None) -> bool:
        if each is None:
            return False
        low, high = each.bounds or (-math.inf, math.inf)
        return each is leader or (low <= ours[1] if lower else high >= ours[0])

    tied = [ties(each) for each in found]
    return [False] * len(found) if sum(tied) == len(known) else tied
