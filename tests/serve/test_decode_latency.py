"""TTFT, TPOT, ITL, E2E, throughput and goodput against numbers worked out by hand, and against plausible
wrong definitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from decode_runs import is_caught, request, step, table
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import BadInput
from harness.measure.statistics import observed_quantile
from harness.serve.requests import latency
from harness.serve.requests.latency import Objectives, Rates
from harness.walk.loop.outcome import ANSWERED, Account, Completed, steps

MS = 1e6
JUMPING = request(
    "a", (20, 30, 30, 60), arrived=5, done=61, admitted_ns=8_000_000, account=Account(3, 1, passes=3)
)
"""Four ids in three messages: the second brings two."""
SINGLE = request("b", (12,), prompt=6)
REFUSED = request("c", (14, 15), end="refused", done=16)
FELL_BACK = request("d", (13,), fallback="timeout", prompt=5)
BATCH = [JUMPING, SINGLE, REFUSED]


def check_requests() -> None:
    assert latency.ttft(JUMPING) == 15 * MS  # from arrival at 5, not from the row at 8
    assert latency.ttft_from_row(JUMPING) == 12 * MS  # from the row
    assert latency.ttft_from_row(replace(JUMPING, admitted_ns=None)) == 15 * MS
    assert latency.tpot(JUMPING) == pytest.approx(40 / 3 * MS)
    assert latency.tpot(SINGLE) is None
    assert latency.e2e(JUMPING) == 56 * MS
    assert latency.itl_per_message(JUMPING) == [10 * MS, 30 * MS]
    assert latency.itl_per_token(JUMPING) == [5 * MS, 5 * MS, 30 * MS]
    assert latency.itl_per_token(SINGLE) == latency.itl_per_message(SINGLE) == []


def check_rates() -> None:
    found = latency.rates(BATCH)
    assert found is not None
    assert (found.requests, found.output_tokens, found.prompt_tokens) == (2, 5, 10)
    assert found.seconds == pytest.approx(0.061)
    assert found.output_throughput == pytest.approx(5 / 0.061)
    assert found.total_throughput == pytest.approx(15 / 0.061)
    assert found.request_throughput == pytest.approx(2 / 0.061)
    assert latency.tokens_per_pass(BATCH) == 5 / 4
    assert latency.rates([*BATCH, FELL_BACK]) == found, "what ran without its grammar counts as the backend's"
    lost = latency.rates([REFUSED])
    assert lost is not None and lost.seconds == pytest.approx(0.016)
    assert lost.output_throughput == lost.total_throughput == lost.request_throughput == 0
    assert latency.rates([]) is None and latency.tokens_per_pass([REFUSED]) is None


def check_goodput() -> None:
    batch = [*BATCH, FELL_BACK]
    assert latency.goodput(batch, Objectives()) == pytest.approx(2 / 0.061)
    assert latency.goodput(batch, Objectives(tpot_ms=13)) == pytest.approx(
        1 / 0.061
    )  # the single id keeps any TPOT, as in vLLM
    assert latency.goodput(batch, Objectives(tpot_ms=13.4, ttft_ms=15)) == pytest.approx(2 / 0.061)
    assert latency.goodput(batch, Objectives(ttft_ms=14)) == pytest.approx(1 / 0.061)
    assert latency.goodput(batch, Objectives(e2e_ms=11)) == 0
    assert latency.goodput([REFUSED], Objectives()) == latency.goodput([FELL_BACK], Objectives()) == 0
    assert latency.goodput([], Objectives()) is None


def check_percentiles() -> None:
    hundred = latency.percentiles([float(each) for each in range(100, 0, -1)])
    assert (
        hundred["n"],
        hundred["mean"],
        hundred["p50"],
        hundred["p90"],
        hundred["p95"],
        hundred["p99"],
    ) == (
        100,
        50.5,
        50,
        90,
        None,
        None,
    )
    assert latency.percentiles([float(each) for each in range(1, 1001)])["p99"] == 990
    assert latency.percentiles([1.0, 9.0])["p50"] == 1.0  # observed values, nothing between
    assert latency.percentiles([])["p50"] is None


CHECKS = [check_requests, check_rates, check_goodput, check_percentiles]


@pytest.mark.parametrize("check", CHECKS, ids=lambda each: each.__name__)
def test_by_hand(check: Callable[[], None]) -> None:
    check()


def _guidellm_tpot(each: Completed) -> float | None:
    return (each.token_ns[-1] - each.arrived_ns) / len(each.ids)


def _over_n(each: Completed) -> float | None:
    return (each.token_ns[-1] - each.token_ns[0]) / len(each.ids)


def _over_passes(each: Completed) -> float | None:
    return (
        None
        if len(each.ids) < 2
        else (each.token_ns[-1] - each.token_ns[0]) / max(1, each.account.passes - 1)
    )


def _zero_gaps(each: Completed) -> list[float]:
    return [float(gap) for gap in np.diff(each.token_ns)]


def _all_counted(completed: Sequence[Completed]) -> Rates:
    span = max(each.done_ns for each in completed) - min(each.arrived_ns for each in completed)
    return Rates(
        span / 1e9,
        len(completed),
        sum(len(each.ids) for each in completed),
        sum(each.prompt for each in completed),
    )


def _since_the_first_token(completed: Sequence[Completed]) -> Rates | None:
    good = latency.answered(completed)
    span = max(each.done_ns for each in good) - min(each.token_ns[0] for each in good) if good else 0
    return (
        Rates(span / 1e9, len(good), sum(len(each.ids) for each in good), sum(each.prompt for each in good))
        if good
        else None
    )


def _aiperf_good(each: Completed, objectives: Objectives) -> bool:
    of = latency.tpot(each)
    late = objectives.ttft_ms is not None and latency.ttft(each) > objectives.ttft_ms * MS
    slow = objectives.tpot_ms is not None and (of is None or of > objectives.tpot_ms * MS)
    return each.end in ANSWERED and not each.fallback and not late and not slow


def _good_without_grammar(each: Completed, objectives: Objectives) -> bool:
    return is_good(replace(each, fallback=""), objectives)


def _interpolated(values: Sequence[float]) -> dict[str, float | None]:
    return {
        "n": len(values),
        "mean": None,
        **{name: float(np.quantile(values or [0.0], share)) for name, share in latency.LEVELS.items()},
    }


def _without_the_rule_of_ten(values: Sequence[float], shares: Mapping[str, float]) -> dict[str, float | None]:
    return {name: observed_quantile(values, share) if values else None for name, share in shares.items()}


def _of_answers_only(completed: Sequence[Completed]) -> Rates | None:
    return rates(completed) if latency.answered(completed) else None


is_good, rates = latency.is_good, latency.rates

MUTANTS = {
    "TTFT without the wait for a row": (
        check_requests,
        "ttft",
        lambda each: float(each.token_ns[0] - each.admitted_ns),
    ),
    "TTFT from row with the wait for one": (check_requests, "ttft_from_row", latency.ttft),
    "TPOT over n": (check_requests, "tpot", _over_n),
    "TPOT with TTFT in it": (check_requests, "tpot", _guidellm_tpot),
    "TPOT over passes": (check_requests, "tpot", _over_passes),
    "ITL with gaps of nothing": (check_requests, "itl_per_message", _zero_gaps),
    "ITL per token as per message": (check_requests, "itl_per_token", latency.itl_per_message),
    "E2E to the last token": (check_requests, "e2e", lambda each: float(each.token_ns[-1] - each.arrived_ns)),
    "E2E from the row": (check_requests, "e2e", lambda each: float(each.done_ns - each.admitted_ns)),
    "throughput of refused requests too": (check_rates, "rates", _all_counted),
    "throughput since the first token": (check_rates, "rates", _since_the_first_token),
    "no rates where nothing was answered": (check_rates, "rates", _of_answers_only),
    "no goodput where nothing was answered": (check_goodput, "rates", _of_answers_only),
    "jump factor of all requests": (check_rates, "answered", list),
    "rates of what ran without its grammar": (check_rates, "is_answered", lambda each: each.end in ANSWERED),
    "goodput as AIPerf's at one token": (check_goodput, "is_good", _aiperf_good),
    "goodput of what ran without its grammar": (check_goodput, "is_good", _good_without_grammar),
    "interpolated percentiles of few values": (check_percentiles, "percentiles", _interpolated),
    "no rule of ten": (check_percentiles, "shown_quantiles", _without_the_rule_of_ten),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_definition_is_caught(name: str) -> None:
    check, attribute, wrong = MUTANTS[name]
    assert is_caught(check, latency, attribute, wrong)


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 4)), min_size=1, max_size=12), st.integers(0, 20)
)
def test_the_figures_of_a_request_hang_together(messages: list[tuple[int, int]], arrived: int) -> None:
    """TPOT is the mean gap per token but for the first message's extra ids; gaps and TTFT add up to the last
    token."""
    now, times = arrived, []
    for gap, count in messages:
        now += gap
        times += [now] * count
    each = request("a", times, arrived=arrived)
    per_message, per_token = latency.itl_per_message(each), latency.itl_per_token(each)
    assert latency.ttft(each) + sum(per_message) == pytest.approx(times[-1] * MS - arrived * MS)
    assert sum(per_token) == pytest.approx(sum(per_message))
    assert len(per_token) == len(times) - times.count(times[0])
    of = latency.tpot(each)
    assert (of is None) == (len(times) == 1)
    assert of is None or of * (len(times) - 1) == pytest.approx(sum(per_message))
    assert latency.ttft(each) <= latency.e2e(each)


def test_what_a_step_leaves_for_the_loop_itself() -> None:
    columns = steps(
        table(
            [
                step(
                    2,
                    8,
                    100,
                    forward_ns=70,
                    fill_ns=50,
                    exposed_ns=5,
                    move_ns=1,
                    apply_ns=2,
                    sample_ns=3,
                    accept_ns=4,
                )
            ]
        )
    )
    assert columns["own_ns"].tolist() == [15]  # fills that ran beside the forward pass are not subtracted
    assert columns["rows"].tolist() == [2]


def test_objectives_are_read_as_vllm_reads_them() -> None:
    assert latency.objectives_of("ttft:500 tpot:50") == Objectives(500, 50)
    assert latency.objectives_of("") == latency.OBJECTIVES
    assert str(Objectives(ttft_ms=500, e2e_ms=2000)) == "TTFT <= 500 ms, E2E <= 2000 ms"
    for wrong in ("itl:5", "ttft", "ttft:soon", "ttft:-1", "ttft:nan"):
        with pytest.raises(BadInput, match="is no objective"):
            latency.objectives_of(wrong)
