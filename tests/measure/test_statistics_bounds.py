"""Intervals and chances at their bounds, on the faster side as on the slower one."""

from __future__ import annotations

import pytest

from harness.measure.statistics import Interval, chance, judge


@pytest.mark.parametrize(
    "logs",
    [[-0.055, -0.06, -0.05, -0.058, -0.052], [0.055, 0.046, 0.05, 0.058, 0.049]],
    ids=["faster", "slower"],
)
def test_what_barely_reaches_the_margin_may_be_chance(logs: list[float]) -> None:
    """The margin of five per cent is at -0.0513 and at 0.0488."""
    assert chance(logs, 0.05) > 0.01


@pytest.mark.parametrize("log", [0.2, -0.2])
def test_what_is_the_same_in_every_fork_is_no_chance(log: float) -> None:
    assert chance([log] * 4, 0.05) < 1e-6


@pytest.mark.parametrize("interval", [Interval(1.5, 1.25, 2, 5), Interval(0.5, 0.4, 0.75, 5)])
def test_an_interval_that_touches_the_margin_is_inconclusive(interval: Interval) -> None:
    assert judge(interval, 0.25) == "inconclusive"


def test_half_the_width_is_half() -> None:
    assert Interval(1.0, 1 / 1.1, 1.1, 5).half_width == pytest.approx(0.09531, abs=1e-4)
