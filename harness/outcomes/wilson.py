"""The interval of a share of cases, in closed form: the same counts give the same bytes."""

from __future__ import annotations

import math
from statistics import NormalDist

from harness.measure.statistics import LEVEL

Z = NormalDist().inv_cdf(1 - (1 - LEVEL) / 2)
"""The quantile of the normal distribution that bounds an interval at LEVEL."""


def share_bounds(part: float, whole: float, units: float | None = None) -> tuple[float, float]:
    """Returns the ends of Wilson's interval of part of whole, which must not be 0; `units`: how many of them
    are independent (the walks of one case are not)."""
    n, p = units or whole, part / whole
    middle = (p + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n)) / (1 + Z * Z / n)
    return min(p, max(0.0, middle - half)), max(p, min(1.0, middle + half))
