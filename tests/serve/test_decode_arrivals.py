"""Arrivals have the distributions that their names promise, and are the same for a seed."""

from __future__ import annotations

import math
import statistics
from itertools import pairwise

import pytest

from harness.errors import BadInput
from harness.serve.requests.arrivals import at_once, fixed, gamma, poisson, trace

COUNT = 20_000


def gaps(times: tuple[int, ...]) -> list[float]:
    """Seconds."""
    return [(after - before) / 1e9 for before, after in pairwise((0, *times))]


def variation(times: tuple[int, ...]) -> float:
    """Standard deviation of the gaps over their mean: 1 for Poisson, 1 / sqrt(burstiness) for gamma."""
    between = gaps(times)
    return statistics.stdev(between) / statistics.fmean(between)


def check_is_poisson(times: tuple[int, ...], rate: float) -> None:
    """The share of gaps up to each of five lengths is the exponential's, and counts in windows vary as their
    mean."""
    between = gaps(times)
    for quantile in (0.1, 0.25, 0.5, 0.75, 0.95):
        length = -math.log(1 - quantile) / rate
        assert sum(gap <= length for gap in between) / len(between) == pytest.approx(quantile, abs=0.012)
    window, counts = 10 / rate, [0] * (len(times) // 10 + 1)
    for each in times:
        counts[int(each / 1e9 / window)] += 1
    assert statistics.variance(counts[:-1]) / statistics.fmean(counts[:-1]) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("rate", [0.5, 8.0, 2_000.0])
def test_poisson_arrivals_are_exponential(rate: float) -> None:
    times = poisson(COUNT, rate, seed=1)
    check_is_poisson(times, rate)
    assert variation(times) == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize(
    "wrong", [gamma(COUNT, 8.0, 0.5, 1), gamma(COUNT, 8.0, 2.0, 1), fixed(COUNT, 8.0), poisson(COUNT, 9.0, 1)]
)
def test_what_is_not_poisson_of_that_rate_is_seen(wrong: tuple[int, ...]) -> None:
    with pytest.raises(AssertionError):
        check_is_poisson(wrong, 8.0)


@pytest.mark.parametrize("burstiness", [0.25, 0.5, 1.0, 4.0, 25.0])
def test_gamma_arrivals_have_the_burstiness_asked_for(burstiness: float) -> None:
    assert variation(gamma(COUNT, 8.0, burstiness, seed=2)) == pytest.approx(
        1 / math.sqrt(burstiness), rel=0.05
    )


@pytest.mark.parametrize("burstiness", [1e-3, 0.1, 1.0, 10.0, math.inf])
@pytest.mark.parametrize("count", [1, 7, 100])
def test_every_seed_offers_the_same_load(burstiness: float, count: int) -> None:
    for seed in range(5):
        times = gamma(count, 4.0, burstiness, seed)
        assert len(times) == count
        assert times[-1] == pytest.approx(count / 4.0 * 1e9, abs=1)
        assert list(times) == sorted(times)
        assert all(type(each) is int and each >= 0 for each in times)


def test_a_seed_gives_the_same_times_always_and_another_seed_others() -> None:
    assert poisson(100, 8.0, seed=3) == poisson(100, 8.0, seed=3) != poisson(100, 8.0, seed=4)
    assert poisson(4, 2.0, seed=0) == PINNED


PINNED = (902_201_836, 1_590_090_116, 1_854_704_498, 2_000_000_000)
"""Any change of these changes what every published run under load was asked."""


def test_a_fixed_rate_is_even() -> None:
    assert fixed(4, 2.0) == (500_000_000, 1_000_000_000, 1_500_000_000, 2_000_000_000)
    assert gamma(4, 2.0, math.inf, seed=9) == fixed(4, 2.0)


def test_an_infinite_rate_brings_all_at_once() -> None:
    assert at_once(3) == poisson(3, math.inf, seed=1) == fixed(3, math.inf) == (0, 0, 0)


def test_none_arrive_where_none_are_asked_for() -> None:
    assert poisson(0, 1.0, seed=1) == fixed(0, 1.0) == at_once(0) == trace([]) == ()


def test_a_trace_is_taken_as_it_is() -> None:
    assert trace([0, 0.25, 0.25, 3]) == (0, 250_000_000, 250_000_000, 3_000_000_000)


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan])
def test_a_rate_that_is_none_is_bad_input(rate: float) -> None:
    with pytest.raises(BadInput, match="rate must be above 0"):
        poisson(3, rate, seed=1)


@pytest.mark.parametrize("burstiness", [0.0, -1.0, math.nan, 5e-4])
def test_a_burstiness_that_is_none_is_bad_input(burstiness: float) -> None:
    with pytest.raises(BadInput, match="burstiness must be above 0"):
        gamma(3, 1.0, burstiness, seed=1)


@pytest.mark.parametrize("times", [[0.0, -1.0], [math.inf], [math.nan], [1e300], [2.0, 1.0]])
def test_a_trace_that_is_none_is_bad_input(times: list[float]) -> None:
    with pytest.raises(BadInput, match="of the trace"):
        trace(times)
