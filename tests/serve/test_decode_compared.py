"""Which requests two runs are compared by, over what time their rates are, and which texts two records have
in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from decode_runs import MS, Played, decoding, judged, request, step, table

from harness.serve.decode import overhead
from harness.serve.decode.figures import Decoded
from harness.serve.decode.record import DecodedBatch, Loss
from harness.serve.decode.setting import Setting
from harness.serve.decode.verdicts import changes_text, compare_records, gate
from harness.serve.requests import latency
from harness.walk.loop.outcome import Completed


def batch(requests: Sequence[Completed], *, fork: int) -> DecodedBatch:
    done = tuple(judged(each, as_replayed=True) for each in requests)
    steps = table([step(1, 1, MS)])
    return DecodedBatch(fork, 1, 0, "arm", "constrained", 0, MS, 1, 0, {}, done, steps, 0, 0)


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


MINE, CALLS = Setting("mine", "jump_forward", texts=2), Setting("calls", "jump_forward", texts=2)
TEXT: dict[str, Any] = {
    "name": "a",
    "dialect": "json_schema",
    "tokens": 33,
    "bytes": 90,
    "grammar_bytes": 219,
}


def record(
    settings: Sequence[Setting], text: Mapping[str, Any], texts: Mapping[str, Sequence[int]], **other: Any
) -> Decoded:
    """A record whose workload `mine` has this text, and whose `calls` never change."""
    sides: dict[Setting, dict[str, Played]] = {}
    for setting in settings:
        side = {"x": Played(texts if setting.workload == "mine" else {"a": [1, 5], "b": [2, 2]})}
        sides |= {setting: side, replace(setting, strategy="stepwise"): side}
    made = decoding(sides, plain=Played({"a": [1] * 6, "b": [1] * 4}), losses=other.pop("losses", ()))
    workloads = {setting.workload: [dict(TEXT)] for setting in settings} | {"mine": [dict(text)]}
    children = (replace(made.children[0], workloads=workloads),)
    return Decoded(replace(made, children=children, setup=replace(made.setup, **other)))


FORCED, FREE = {"a": [1, 5], "b": [2, 2]}, {"a": [1] * 6, "b": [1] * 4}


@pytest.mark.parametrize("loss", [(), (Loss(0, "x", 0, "backend", "killed"),)])
@pytest.mark.parametrize("changed", ["name", "tokens", "bytes", "grammar_bytes"])
def test_other_texts_under_the_same_name_are_not_compared(changed: str, loss: tuple[Loss, ...]) -> None:
    """An edited folder of schemas is no change of the backend, neither for the worse nor for the better."""
    ours = record([MINE], TEXT, FORCED)
    theirs = record([MINE], TEXT | {changed: "other" if changed == "name" else 7}, FREE, losses=loss)
    for base, head in ((ours, theirs), (theirs, ours)):
        found = compare_records(base, head)
        assert {(each.figure, each.verdict) for each in found} == {("texts", "unproven")}
        assert gate(found, time=False) == gate(found, time=True) == "unproven"
        said = changes_text(found)
        assert said.startswith(
            "not compared: the texts of mine are not the same in both records\n\ngate: UNP"
        )
    assert gate(compare_records(ours, record([MINE], TEXT, FREE)), time=False) == "failed"


def test_the_other_workloads_of_such_records_are_compared_and_are_no_whole_pass() -> None:
    ours, theirs = record([MINE, CALLS], TEXT, FORCED), record([MINE, CALLS], TEXT | {"bytes": 7}, FREE)
    found = compare_records(ours, theirs)
    assert {each.setting for each in found if each.figure == "tokens_per_pass"} == {
        CALLS.name,
        replace(CALLS, strategy="stepwise").name,
    }
    assert gate(found, time=False) == "unproven"


def test_another_vocabulary_spells_the_same_texts_and_an_older_record_says_less_of_them() -> None:
    ours = record([MINE], TEXT, FORCED)
    spelled = record([MINE], TEXT | {"tokens": 50}, FORCED, sha256="1" * 64)
    older = record([MINE], {"name": "a", "tokens": 33}, FORCED)
    for theirs in (spelled, older):
        assert gate(compare_records(ours, theirs), time=False) == "ok"
