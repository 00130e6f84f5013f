"""A whole record: its cells, their figures, whether the text came out right, the terminal's text and the
JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from types import ModuleType

import pytest
from decode_runs import MS, Played, decoding, is_caught, judged, request

from harness.serve.decode import right, show
from harness.serve.decode.as_json import to_json
from harness.serve.decode.figures import Decoded
from harness.serve.decode.record import DecodedBatch, Decoding, Judged, Loss
from harness.serve.decode.setting import Setting
from harness.serve.requests import latency, titles
from harness.walk.loop.outcome import ANSWERED

STEP = Setting("calls", batch=2, texts=2)
JUMP = replace(STEP, strategy="jump_forward")
SERIAL = replace(STEP, overlap=False)
ALL = {"a": [1, 1, 1, 1, 1, 1], "b": [1, 1, 1, 1]}
HALF = {"a": [1, 3, 2], "b": [2, 2]}


def record() -> Decoding:
    sides = {
        STEP: {"x": Played(ALL, 10), "a backend of a long name==1.2.3": Played(ALL, 12, broken=("b",))},
        JUMP: {"x": Played(HALF, 10)},
        SERIAL: {"x": Played(ALL, 11, fallback=("a",))},
    }
    lost = Loss(0, "a backend of a long name==1.2.3", 1, "not_offered", "no forced text")
    return decoding(sides, plain=Played(ALL, 8), losses=[lost])


def check_cells() -> None:
    decoded = Decoded(record())
    cells = {(each.arm, each.strategy, each.setting.overlap): each for each in decoded.cells}
    assert [(each.arm[0], each.strategy) for each in decoded.cells] == [
        ("x", "none"), ("x", "stepwise"), ("x", "jump_forward"), ("x", "stepwise"), ("a", "none"), ("a",
        "stepwise"),
    ]  # fmt: skip
    jump, stepwise = cells["x", "jump_forward", True], cells["x", "stepwise", True]
    assert len(jump.warm) == 10 and len(jump.cold) == 5  # the cold round is apart
    over = decoded.over_none(stepwise)
    assert over is not None and over.interval is not None and over.interval.ratio == pytest.approx(10 / 8)
    gain = decoded.speed_up(jump)
    assert gain is not None and gain.ratio.interval is not None
    assert (
        gain.ratio.interval.ratio == pytest.approx(2)
        and gain.ceiling == 2
        and gain.of_ceiling == pytest.approx(1)
    )
    assert decoded.speed_up(stepwise) is None and decoded.over_none(cells["x", "none", True]) is None


def test_a_strategy_is_held_against_stepwise_whatever_it_drafts() -> None:
    speculative = replace(STEP, strategy="speculative", draft_tokens=8)
    sides = {
        STEP: {"x": Played(ALL, 10)},
        JUMP: {"x": Played(HALF, 10)},
        speculative: {"x": Played(HALF, 10)},
    }
    decoded = Decoded(decoding(sides, plain=Played(ALL, 8)))
    gains = {each.strategy: decoded.speed_up(each) for each in decoded.cells if each.role == "constrained"}
    assert {name for name, gain in gains.items() if gain is not None} == {"jump_forward", "speculative"}


@pytest.mark.parametrize("first", [STEP, JUMP, SERIAL])
def test_the_unconstrained_run_has_the_setting_of_its_load_whatever_is_first(first: Setting) -> None:
    """Else a page that shows what is stepwise would have no line without a grammar."""
    order = sorted((STEP, JUMP, SERIAL), key=lambda each: each != first)
    decoded = Decoded(decoding({each: {"x": Played(ALL)} for each in order}, plain=Played(ALL, 8)))
    none, *others = decoded.cells
    assert (none.role, none.setting) == ("none", STEP)
    assert [each.setting for each in others] == order
    assert all(decoded.unconstrained(each) == decoded.key_of(none) for each in others)


def test_the_first_run_of_a_process_says_nothing_of_grammars_on_cuda() -> None:
    made = record()
    for device, known in (("cpu", True), ("cuda", False), ("cuda:0", False)):
        child = replace(made.children[0], model=made.children[0].model | {"device": device})
        decoded = Decoded(replace(made, children=(child,)))
        assert decoded.cells
        for cell in decoded.cells:
            cold, warm = (decoded.values(cell)[name] for name in ("ttft_cold", "ttft"))
            assert isinstance(cold, dict) and isinstance(warm, dict)
            assert (cold["p50"] is not None) is known and warm["p50"] is not None
            assert cell.cold, "the record has it all the same"


def check_values() -> None:
    decoded = Decoded(record())
    jump = next(each for each in decoded.cells if each.strategy == "jump_forward")
    found = decoded.values(jump, latency.Objectives(e2e_ms=20))
    assert set(found) | {"overhead", "overhead_e2e", "speed_up", "ceiling"} == set(titles.FIGURES)
    ttft, tpot = found["ttft"], found["tpot"]
    assert isinstance(ttft, dict) and (ttft["n"], ttft["p50"], ttft["p90"]) == (20, 10 * MS, None)
    assert isinstance(tpot, dict) and tpot["mean"] == pytest.approx((20 / 5 + 10 / 3) / 2 * MS)
    assert found["output_throughput"] == pytest.approx(10 / 0.03) and found[
        "total_throughput"
    ] == pytest.approx(18 / 0.03)
    assert found["goodput"] == pytest.approx(1 / 0.03)  # a takes 30 ms, b 20
    assert (found["tokens_per_pass"], found["saved_share"]) == (2, 0.5)
    assert (found["valid"], found["as_replayed"], found["fallback"], found["drift"]) == (1, 1, 0, 0)
    forward = found["pass"]
    assert isinstance(forward, dict) and (forward["n"], forward["p50"]) == (30, 10 * MS)


def check_right() -> None:
    requests = [
        judged(request("a", canonical=True)),
        judged(request("a (2)", (1, 2, 3), canonical=False)),
        judged(request("b", end="refused", why="expected a quote"), "unjudged", False),
        judged(request("c", fallback="timeout"), "invalid", None),
        judged(request("d", end="limit"), "invalid", None),
        judged(request("e", compile_state=""), "unjudged", None),
        judged(request("f", end="limit"), "unjudged", None),
    ]
    assert str(right.valid(requests)) == "2/3"  # the fallback is not a text of the grammar
    assert str(right.as_replayed(requests)) == "2/3"
    assert str(right.canonical(requests)) == "1/2"
    assert str(right.fallback(requests)) == "1/6"
    assert str(right.solved(requests)) == "3/7"  # of the two that were cut nobody knows how they would end
    assert (str(right.solved_or_cut(requests)), str(right.cut(requests))) == ("4/7", "2/7")
    assert right.ends(requests) == {"end_of_sequence": 4, "limit": 2, "refused": 1}
    assert right.refusals(requests) == {"refused: expected a quote": 1, "timeout": 1}
    assert right.drift(requests, {"a": 2}) == pytest.approx(5 / 4 - 1)
    short = judged(request("a", (1, 2, 3), end="limit"), "unjudged")  # a beginning says nothing of the whole
    assert right.drift([*requests, short], {"a": 2}) == right.drift(requests, {"a": 2})
    assert right.drift([short], {"a": 2}) is None
    assert right.drift(requests, {}) is None and right.valid([]).share is None and str(right.valid([])) == "-"


def test_who_ran_without_a_grammar_has_no_time_of_one() -> None:
    made = record()

    def timed(batch: DecodedBatch) -> DecodedBatch:
        own = [
            replace(one, completed=replace(one.completed, grammar_ns=(10, 20)))
            if one.completed.compile_state and not one.completed.fallback
            else one
            for one in batch.completed
        ]
        return replace(batch, completed=tuple(own))

    decoded = Decoded(replace(made, batches=tuple(map(timed, made.batches))))
    serial = next(cell for cell in decoded.cells if not cell.setting.overlap)
    found = decoded.values(serial)
    grammar, waited = found["grammar"], found["waited"]
    assert isinstance(grammar, dict) and isinstance(waited, dict) and found["fallback"] == 0.5
    assert (grammar["n"], grammar["p50"]) == (10, 30 / 4), "b alone, of four ids"
    for name in ("ttft", "tpot", "e2e"):
        levels = found[name]
        assert isinstance(levels, dict) and levels["n"] == 10, "b alone: a's times are not the backend's"
    assert waited["n"] == 20, "until it was given up, the other waited too"


CHECKS = [check_cells, check_values, check_right]


@pytest.mark.parametrize("check", CHECKS, ids=lambda each: each.__name__)
def test_by_hand(check: Callable[[], None]) -> None:
    check()


def _share_of_all(of: Callable[[Judged], bool]) -> Callable[[list[Judged]], right.Share]:
    return lambda requests: right.Share(sum(map(of, requests)), len(requests))


MUTANTS: dict[str, tuple[Callable[[], None], ModuleType | type, str, object]] = {
    "cold rounds as warm": (check_values, DecodedBatch, "is_cold", property(lambda batch: False)),
    "valid of all requests": (check_right, right, "valid", _share_of_all(lambda each: each.right == "valid")),
    "replayed of all requests": (
        check_right,
        right,
        "as_replayed",
        _share_of_all(lambda each: each.as_replayed is True),
    ),
    "canonical where nobody asked": (
        check_right,
        right,
        "canonical",
        _share_of_all(lambda each: each.completed.canonical is True),
    ),
    "fallback of all requests": (
        check_right,
        right,
        "fallback",
        _share_of_all(lambda each: bool(each.completed.fallback)),
    ),
    "solved by being answered": (
        check_right,
        right,
        "solved",
        _share_of_all(lambda each: each.completed.end in ANSWERED),
    ),
    "solved though cut": (check_right, right, "solved", right.solved_or_cut),
    "drift of the first requests only": (check_right, right, "text_of", lambda name, texts: name),
    "forced of all ids": (check_values, latency, "tokens_per_pass", lambda completed: 1.0),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_definition_is_caught(name: str) -> None:
    assert is_caught(*MUTANTS[name])


def test_a_run_that_was_made_again_counts_once() -> None:
    found = record()
    twice = replace(found, batches=(*found.batches, *found.batches))
    assert [len(each.warm) for each in Decoded(twice).cells] == [
        len(each.warm) for each in Decoded(found).cells
    ]


def test_what_does_not_add_up_is_told() -> None:
    found = record()
    assert Decoded(found).findings() == []
    assert "add up to the token" in show.decoding_text(found)
    first = next(each for each in found.batches if found.setting(each) == JUMP)
    account = replace(first.completed[0].completed.account, forced=9)
    wrong = replace(
        first,
        completed=(
            replace(first.completed[0], completed=replace(first.completed[0].completed, account=account)),
        ),
    )
    broken = replace(found, batches=(*found.batches, wrong))
    assert {each.rule for _, each in Decoded(broken).findings()} >= {
        "ids are sampled + forced + retokenized - rolled back"
    }
    assert "ACCOUNTING" in show.decoding_text(broken) and "jump_forward batch 2, fork 0, round 0" in " ".join(
        show.decoding_text(broken).split()
    )


def test_the_terminal_shows_it_in_80_columns() -> None:
    said = show.decoding_text(record())
    assert max(map(len, said.splitlines())) <= 80, max(said.splitlines(), key=len)
    for part in (
        "1.25 [1.25, 1.25]",
        "TTFT <= 500 ms, TPOT <= 50 ms",
        "overlap=off",
        "not offered: no forced text",
        "expected a quote",
    ):
        assert part in " ".join(said.split()) or part in said, part
    assert "INCOMPLETE" in show.decoding_text(replace(record(), end=None))
    empty = replace(record(), batches=(), children=())
    assert "0 requests" in show.decoding_text(empty)


def test_a_run_in_which_nothing_was_answered_is_a_rate_of_nothing() -> None:
    """It was left out, so that an arm which loses three runs of five was as fast as one that loses none."""
    made = record()

    def lost(batch: DecodedBatch) -> DecodedBatch:
        gone = [replace(one, completed=replace(one.completed, end="aborted")) for one in batch.completed]
        return replace(batch, completed=tuple(gone)) if batch.fork < 3 else batch

    rates = ("output_throughput", "total_throughput", "request_throughput", "goodput")
    whole, most = Decoded(made), Decoded(replace(made, batches=tuple(map(lost, made.batches))))
    for before, after in zip(whole.cells, most.cells, strict=True):
        assert all(whole.values(before)[name] for name in rates if name != "goodput")
        assert [most.values(after)[name] for name in rates] == [0, 0, 0, 0]


def test_the_json_is_json() -> None:
    found = json.loads(json.dumps(to_json(record()), allow_nan=False))
    assert len(found["cells"]) == 6 and all(
        cell["figures"].keys() <= found["figures"].keys() for cell in found["cells"]
    )
    jump = next(each for each in found["cells"] if each["strategy"] == "jump_forward")
    assert jump["speed_up"]["found"]["ratio"] == pytest.approx(2) and jump["speed_up"]["passes_saved"] == 50
    single = to_json(decoding({STEP: {"x": Played(ALL)}}, plain=Played(ALL), forks=1))
    assert json.dumps(single, allow_nan=False) and single["cells"][1]["overhead"]["high"] is None


def test_every_figure_is_defined() -> None:
    for name, each in titles.FIGURES.items():
        assert each.definition.endswith(".") and len(each.title) <= 14, name
    assert [each.name for each in fields(titles.Title)] == ["title", "unit", "better", "definition", "alias"]
    said = [
        titles.say("ttft", 1.25e7),
        titles.say("valid", 0.5),
        titles.say("peak", 3 * 2**30),
        titles.say("tokens_per_pass", None),
    ]
    assert said == ["12.5 ms", "50%", "3.00 GiB", "-"]
    shares = {0.0: "0%", 1e-4: "0.01%", 0.9994: "99.9%", 7139 / 7140: "99.9%", 1.0: "100%", 1.5: "150%"}
    assert {share: titles.say("solved", share) for share in shares} == shares, "nearly all are not all"
