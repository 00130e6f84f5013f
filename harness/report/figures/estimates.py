"""Numbers with their intervals, in closed form: the same rows give the same bytes.

All intervals are at LEVEL.

What has no interval is not ranked, however far apart two numbers lie: no factor is large enough to stand in
for an interval. In the published runs over MaskBench and the JSON-Schema-Test-Suite, the p99 of a few
compiles drawn at random lay up to 6,570 times off that of all of them, and the p50 up to 1,090 times
(docs/methods.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from harness.measure.statistics import (
    LEVEL,
    Z,
    has_tail,
    observed_quantile,
    quantile_interval,
    share_bounds,
    student_quantile,
)
from harness.outcomes.outcome import Counts

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
    why: str = ""
    """Why there is no interval, in a few words; empty where there is one, or where nobody says why."""
    room: float = 1.0
    """Where ratios are ranked, both ends of the interval are taken this many times further out."""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Returns both ends, where both are known and finite."""
        if (
            self.low is None
            or self.high is None
            or not (math.isfinite(self.low) and math.isfinite(self.high))
        ):
            return None
        return self.low, self.high

    def unranked(self, why: str) -> Estimate:
        """Returns the number without its interval, so that it is not ranked, and why."""
        return replace(self, low=None, high=None, why=why)

    @property
    def ranked_bounds(self) -> tuple[float, float] | None:
        """Returns the ends that decide whether it is told from another: `bounds` with `room`."""
        bounds = self.bounds
        return None if bounds is None else (bounds[0] / self.room, bounds[1] * self.room)

    @property
    def can_rank(self) -> bool:
        """Has it an interval, and values enough behind it?"""
        return self.bounds is not None and not self.few

    @property
    def why_not(self) -> str:
        """Returns why it cannot be ranked, in a few words; empty if it can."""
        return "" if self.can_rank else self.why or ("too few values" if self.few else "no interval")


def share(part: float, whole: float, units: float | None = None) -> Estimate | None:
    """Returns part of whole, with Wilson's interval; `units`: how many of them are independent (the walks of
    one case are not). None of nothing."""
    if not whole:
        return None
    return Estimate(part / whole, *share_bounds(part, whole, units))


def conformance(counts: Counts) -> Estimate | None:
    """Returns the conformance of counted cases (`Counts.conformance`) with Wilson's interval; None where none
    was judged."""
    return share(counts.works, counts.judged)


def quantile(groups: Sequence[NDArray[np.int64]], level: float) -> Estimate | None:
    """Returns a quantile of all values, as an observed one; None of nothing.

    The values of a group (the tokens of a case) go together. The interval of the median is that of every
    table (`quantile_interval`), which would want hundreds of groups for a p99. That of another quantile is
    the interval of the share below, whose variance is taken over groups (Woodruff), turned back into values;
    it has none with fewer than two groups.
    """
    groups = [group for group in groups if len(group)]
    if not groups:
        return None
    values = np.concatenate(groups)
    value = observed_quantile(values, level)
    few = not has_tail(level, len(values))
    if len(groups) < 2:
        return Estimate(value, few=few, why="one case")
    if level == 0.5:
        bounds = quantile_interval([group.astype(float) for group in groups], level)
        if bounds is None:
            return Estimate(value, few=few, why="few cases")
        return Estimate(value, *bounds, few)
    sizes = np.array([len(group) for group in groups])
    below = np.add.reduceat(values <= value, np.concatenate([[0], np.cumsum(sizes)[:-1]]), dtype=np.int64)
    rest = below - below.sum() / len(values) * sizes
    error = math.sqrt(float((rest**2).sum()) * len(groups) / (len(groups) - 1)) / len(values)
    # Near the ends the share seen below does not vary; values that had nothing to do with each other would
    # vary so much.
    error = max(error, math.sqrt(level * (1 - level) / len(values)))
    half = error * (Z if len(groups) > MANY else student_quantile(1 - (1 - LEVEL) / 2, len(groups) - 1))
    if level + half >= 1:
        # Nothing was seen beyond: the interval is open above.
        return Estimate(value, few=True)
    low, high = np.quantile(values, [max(0.0, level - half), level + half], method="inverted_cdf")
    return Estimate(value, min(float(low), value), max(float(high), value), few)


def best(estimates: Sequence[Estimate | None], lower: bool = True) -> list[bool]:
    """Returns which are the best: the leader and all whose intervals overlap with its own.

    Nobody is, where that is all of them, where there is a single one, and where one of them cannot be ranked:
    it may be the best.
    """
    known = [estimate for estimate in estimates if estimate is not None]
    if len(known) < 2 or not all(estimate.can_rank for estimate in known):
        return [False] * len(estimates)
    leader = min(known, key=lambda estimate: estimate.value if lower else -estimate.value)
    tied = [estimate is not None and overlap(leader, estimate) for estimate in estimates]
    return [False] * len(estimates) if sum(tied) == len(known) else tied


def overlap(one: Estimate, other: Estimate) -> bool:
    """Do the intervals overlap, so that neither number is proven larger? Both must have one."""
    ours, theirs = one.ranked_bounds, other.ranked_bounds
    assert ours is not None and theirs is not None
    return ours[0] <= theirs[1] and theirs[0] <= ours[1]


def is_better(one: Estimate, other: Estimate, lower: bool = True) -> bool:
    """Is one proven better than the other? Not without both intervals."""
    if not (one.can_rank and other.can_rank) or overlap(one, other):
        return False
    return one.value < other.value if lower else one.value > other.value


def order(estimates: Sequence[Estimate], lower: bool = True) -> list[tuple[int, str]]:
    """Returns the places of those that can be ranked, the best first, each with how it stands to the one
    before it.

    `›`: it is proven worse. `=`: its interval overlaps with those of all that stand at the place of the one
    before. `≥`: it overlaps with the one before, but not with all of these, so that some of them are proven
    better. The first has no sign.
    """
    places = [place for place, estimate in enumerate(estimates) if estimate.can_rank]
    places.sort(key=lambda place: estimates[place].value if lower else -estimates[place].value)
    signed: list[tuple[int, str]] = []
    equal: list[Estimate] = []
    for place in places:
        estimate = estimates[place]
        sign = (
            ""
            if not equal
            else "="
            if all(overlap(estimate, one) for one in equal)
            else "≥"
            if overlap(estimate, equal[-1])
            else "›"
        )
        equal = [*equal, estimate] if sign == "=" else [estimate]
        signed.append((place, sign))
    return signed
