"""Which requests two runs are compared by, and over what time their rates are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from decode_runs import MS, judged, request, step, table

from harness.serve.decode import overhead
from harness.serve.decode.record import DecodedBatch
from harness.serve.requests import latency
from harness.walk.loop.outcome import Completed


def batch(requests: Sequence[Completed], *, fork: int) -> DecodedBatch:
    done = tuple(judged(each, as_replayed=True) for each in requests)
    return DecodedBatch(fork, 1, 0, "arm", "constrained", 0, MS, 1, 0, {}, done, table([step(1, 1, MS)]))


def test_a_request_without_a_token_has_no_answer() -> None:
    assert latency.answered([replace(request("e", (10,)), ids=(), token_ns=())]) == []


def test_a_refused_request_that_ends_last_is_a_part_of_the_time() -> None:
    late = request("c", (14, 15), end="refused", done=100)
    found = latency.rates([request("a", (20, 30), arrived=5), late])
    begun = min(5, late.arrived_ns / 1e6)
    assert found is not None and found.seconds == pytest.approx((100 - begun) / 1e3)


def test_texts_are_equal_only_where_both_were_replayed() -> None:
    head, base = request("a", (10, 20), ids=(1, 2)), request("a", (10, 20), ids=(1, 3))
    replayed = judged(head, as_replayed=True)
    assert overhead.of_equal_text(replayed, judged(base, as_replayed=True))
    assert not overhead.of_equal_text(replayed, judged(base, as_replayed=False))


def test_the_wait_in_the_queue_is_no_service() -> None:
    waited = request("a", (20, 30), arrived=5, done=31, admitted_ns=8_000_000)
    assert overhead.service(waited) == 23e6


def test_a_request_that_differs_in_one_fork_is_left_out_of_all() -> None:
    one, other, longer = request("a", (10, 20)), request("b", (10, 20)), request("b", (10, 20, 30))
    runs = [
        (batch([one, other], fork=0), batch([one, other], fork=0)),
        (batch([one, longer], fork=1), batch([one, other], fork=1)),
    ]
    found = overhead.paired(runs, latency.tpot)
    assert found is not None and (found.requests, found.left_out) == (1, 1)
