"""Estimate, interval and verdict: known values, and how often they are wrong where the truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measure.statistics import (
    Interval,
    chance,
    false_discovery,
    geometric_mean,
    interval,
    judge,
    observed_quantile,
    quantile_interval,
    student_cdf,
    student_quantile,
)

TABLE = {
    (0.975, 1): 12.706,
    (0.995, 1): 63.657,
    (0.995, 2): 9.925,
    (0.995, 4): 4.604,
    (0.975, 7): 2.365,
    (0.995, 30): 2.750,
}
"""Of any book: share, degrees of freedom, quantile."""


@pytest.mark.parametrize(("key", "quantile"), TABLE.items())
def test_students_quantiles_are_those_of_the_tables(key: tuple[float, int], quantile: float) -> None:
    assert student_quantile(*key) == pytest.approx(quantile, abs=6e-4)


@given(st.floats(-8, 8), st.integers(1, 40))
def test_students_distribution_is_symmetric_and_rises(t: float, degrees: int) -> None:
    assert student_cdf(t, degrees) + student_cdf(-t, degrees) == pytest.approx(1)
    assert student_cdf(t + 0.1, degrees) > student_cdf(t, degrees)


def test_the_signed_rank_interval_of_eight_is_the_whole_range_and_that_of_ten_less() -> None:
    """P(W = 0) is 1/256 for eight, below half of one percent; for ten, W <= 3 has 5 of 1,024 ways."""
    eight, ten = [0.01 * each for each in range(8)], [0.01 * each for each in range(10)]
    assert (interval(eight).low, interval(eight).high) == pytest.approx((1, math.exp(0.07)))
    walsh = sorted((a + b) / 2 for i, a in enumerate(ten) for b in ten[i:])
    assert (interval(ten).low, interval(ten).high) == pytest.approx((math.exp(walsh[3]), math.exp(walsh[-4])))


@pytest.mark.parametrize("forks", [3, 5, 8, 12])
def test_an_interval_misses_the_truth_about_as_rarely_as_it_says(forks: int) -> None:
    rng = np.random.default_rng(forks)
    trials = 4000
    missed = 0
    for x in rng.normal(0.02, 0.01, (trials, forks)):
        found = interval(x)
        missed += not found.low <= math.exp(0.02) <= found.high
    assert missed / trials < 0.016  # nominal 0.01; four standard errors of 4,000 trials above it


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=14))
def test_the_estimate_lies_in_its_interval_and_scales(x: list[float]) -> None:
    found, shifted = interval(x), interval([each + 0.5 for each in x])
    assert found.low <= found.ratio <= found.high
    assert shifted.ratio == pytest.approx(found.ratio * math.exp(0.5))


def test_one_fork_has_no_interval_and_none_raises() -> None:
    assert interval([0.1]) == Interval(math.exp(0.1), 0.0, math.inf, 1)
    assert judge(interval([5.0]), 0.05) == "inconclusive"
    with pytest.raises(ValueError, match="no forks"):
        interval([])


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.06, 1.2, "regressed"),
        (0.8, 0.94, "improved"),
        (0.96, 1.04, "equivalent"),
        (0.94, 1.04, "inconclusive"),
        (1.04, 1.2, "inconclusive"),
    ],
)
def test_the_verdict_is_where_the_interval_lies(low: float, high: float, verdict: str) -> None:
    assert judge(Interval(1.0, low, high, 5), 0.05) == verdict


def test_chance_is_small_only_beyond_the_margin() -> None:
    slow, same, fast = (
        [0.20, 0.21, 0.19, 0.2, 0.2],
        [0.01, -0.01, 0.0, 0.02, 0.01],
        [-0.3, -0.31, -0.29, -0.3, -0.3],
    )
    assert chance(slow, 0.05) < 1e-5 and chance(fast, 0.05) < 1e-5
    assert chance(same, 0.05) == 1.0 and chance([0.2], 0.05) == 1.0
    assert chance(fast, 1.0) == chance(fast, 3.0) == 1.0, (
        "a machine so noisy that the margin is more than all of it"
    )


def test_false_discovery_steps_up() -> None:
    assert false_discovery([0.001, 0.9, 0.004, 0.0075, 1.0]) == [True, False, True, False, False]
    # The largest of three lies under its own line, and takes the others with it.
    assert false_discovery([0.0099, 0.0098, 0.0097]) == [True, True, True]
    assert false_discovery([]) == []


def test_quantiles_are_drawn_by_whole_groups() -> None:
    """Two kinds of schemas, all tokens of one alike: between 1 and 9 the median may lie anywhere, whatever
    the number of tokens."""
    groups = [np.full(200, 1.0), np.full(200, 9.0)] * 4
    assert quantile_interval(groups, 0.5) == (1.0, 9.0)
    assert quantile_interval([np.concatenate(groups)] * 8, 0.5) == (1.0, 9.0)


def test_too_few_groups_have_no_interval_of_the_median() -> None:
    """Seven groups lie on one side of it in 1 of 64 times, eight in 1 of 128: more and less than one
    percent."""
    many = np.arange(1000, dtype=np.float64)
    assert [quantile_interval([many] * count, 0.5) for count in (0, 1, 3, 7)] == [None] * 4
    assert quantile_interval([np.zeros(0)] * 8 + [many] * 7, 0.5) is None
    assert quantile_interval([np.array([float(each)]) for each in range(8)], 0.5) == (0.0, 7.0)
    assert quantile_interval([many] * 20, 0.9) is None, "a tail needs more groups than the median"


def test_the_interval_of_a_median_of_single_values_has_the_ranks_of_the_sign_test() -> None:
    """The second of twelve values lies above the median in 13 of 4,096 draws, the third in 79."""
    twelve = [np.array([float(each)]) for each in (3, 11, 0, 7, 5, 9, 1, 10, 2, 8, 4, 6)]
    assert quantile_interval(twelve, 0.5) == (1.0, 10.0)


@pytest.mark.parametrize("values", [1, 30], ids=["one value", "thirty values that are alike"])
@pytest.mark.parametrize("groups", [8, 9, 14, 30])
def test_an_interval_of_a_median_misses_the_truth_about_as_rarely_as_it_says(
    groups: int, values: int
) -> None:
    rng = np.random.default_rng(groups)
    trials, missed = 2000, 0
    for of_groups in rng.normal(0, 1, (trials, groups)):
        found = quantile_interval([rng.normal(centre, 0.3, values) for centre in of_groups], 0.5)
        assert found is not None
        missed += not found[0] <= 0 <= found[1]
    assert missed / trials < 0.019  # nominal 0.01; four standard errors of 2,000 trials above it


def test_a_median_is_an_observed_value() -> None:
    assert observed_quantile([9.0, 1.0], 0.5) == 1.0 and observed_quantile([3.0, 1.0, 2.0], 0.5) == 2.0


def test_a_geometric_mean_takes_opposite_ratios_for_none() -> None:
    assert geometric_mean([2.0, 0.5]) == pytest.approx(1.0)
