"""The search for the first slower release: what a measurement at each step may say, and what it may not
decide."""

from __future__ import annotations

import math

import pytest

from harness.backend.registry import BackendSpec
from harness.diagnose.bisect import slowdown as module
from harness.diagnose.bisect.outcome import Question, Unavailable
from harness.diagnose.bisect.slowdown import slowdown
from harness.errors import BadInput
from harness.measure.statistics import Interval

QUESTION = Question("toy", "a case", ())
VERSIONS = [f"1.{number}" for number in range(9)]


def around(ratio: float, width: float = 0.02) -> Interval:
    return Interval(ratio, ratio * (1 - width), ratio * (1 + width), 5)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[Interval, str]]:
    """What every version over 1.0 comes to: 1.5 was the first to be 30 % slower."""
    known = {
        each: (around(1.3), "regressed") if int(each[2:]) >= 5 else (around(1.01), "equivalent")
        for each in VERSIONS
    }

    def ratio(
        question: Question, spec: BackendSpec, metric: str, good: str, version: str, say: object
    ) -> tuple[Interval, str]:
        assert (good, metric) == ("1.0", "fill")
        if version not in known:
            raise Unavailable("does not install")
        return known[version]

    monkeypatch.setattr(module, "ratio", ratio)
    monkeypatch.setattr(module, "without_version", lambda backend: (BackendSpec(backend), "toy", "1.8"))
    monkeypatch.setattr(module, "check_named", lambda *_: None)
    return known


def search(metric: str = "fill") -> module.Slowdown:
    return slowdown(QUESTION, metric, "1.0", "1.8", lambda _: None, lambda _: VERSIONS)


def test_the_first_slower_release_is_found(measured: dict[str, tuple[Interval, str]]) -> None:
    found = search()
    assert (found.search.first_bad, found.search.last_good, found.search.skipped) == ("1.5", "1.4", ())
    assert found.is_proven
    assert "toy==1.5 is the first version" in found.text("toy") and found.to_json()["first_bad"] == "1.5"
    assert len(found.steps) <= 2 + math.ceil(math.log2(len(VERSIONS)))


def test_a_small_step_before_is_not_taken_for_it(measured: dict[str, tuple[Interval, str]]) -> None:
    measured["1.4"] = around(1.06), "regressed"  # slower than the first, but nearer to it than to the last
    assert search().search.first_bad == "1.5"


@pytest.mark.parametrize("untold", [(around(1.14, 0.1), "regressed"), (around(1.3), "unproven"), None])
def test_what_is_not_clear_is_skipped(
    measured: dict[str, tuple[Interval, str]], untold: tuple[Interval, str] | None
) -> None:
    if untold is None:
        del measured["1.4"]
    else:
        measured["1.4"] = untold
    found = search()
    assert found.search.candidates == ("1.4", "1.5") and found.to_json()["first_bad"] is None
    assert "one of 1.4, 1.5" in found.text("toy") and not found.is_proven


def test_without_a_proven_slowdown_there_is_nothing_to_search_for(
    measured: dict[str, tuple[Interval, str]],
) -> None:
    measured["1.8"] = around(1.02), "equivalent"
    with pytest.raises(BadInput, match="not proven to be slower"):
        search()
    with pytest.raises(BadInput, match="is not measured; choose one of"):
        search("speed")
