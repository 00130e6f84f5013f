"""A text that is cut at its limit: who judges it, and what terminal, page and gate say of it."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from decode_runs import Played, decoding, judged, request

from harness.backend.grammar import Grammar
from harness.oracle.judge import Judge
from harness.serve.decode import conclude, show
from harness.serve.decode.engine import DecodeEngine, Turn
from harness.serve.decode.figures import Decoded
from harness.serve.decode.record import DecodeRecorder, Decoding
from harness.serve.decode.setting import Setting
from harness.serve.decode.verdicts import compare_arms, gate
from harness.serve.decode.workloads import ReferenceText, judge_cut
from harness.serve.requests.words import Right

STEP = Setting("calls", batch=2, texts=2, limit=6, mode="greedy")
ALL = {"a": [1, 1, 1, 1, 1, 1], "b": [1, 1, 1, 1]}


def test_a_cut_text_is_invalid_where_no_valid_one_begins_so() -> None:
    schema = ReferenceText("date", Grammar("json_schema", '{"type": "string"}'), b'"2026"')
    regex = ReferenceText("digits", Grammar("regex", "[0-9]{4}"), b"2026")
    unknown = ReferenceText("tag", Grammar("structural_tag", '{"triggers": [], "structures": []}'), b"")
    with Judge() as judging:
        for text, cut, right in (
            (schema, b'"20', "unjudged"),
            (schema, '"é'.encode()[:-1], "unjudged"),  # the last character is cut in two
            (schema, b"lorem ipsum", "invalid"),
            (regex, b"20", "unjudged"),
            (regex, b"2x", "invalid"),
            (unknown, b"x", "unjudged"),
        ):
            assert judge_cut(text, cut, judging) == right, cut


def answered(*ends: str, as_replayed: bool | None = None) -> dict[str, Any]:
    completed = [asdict(request(f"{number}", end=end)) for number, end in enumerate(ends)]
    facts = {"wall_ns": 1, "passes": 0, "peak_bytes": 1, "counts": {}, "completed": completed}
    texts = {"texts": [b"x".hex()] * len(ends), "as_replayed": [as_replayed] * len(ends)}
    return facts | texts | {"captured": 0}


def test_the_judge_is_asked_of_cut_texts_too_but_for_beginnings_of_what_is_replayed(tmp_path: Path) -> None:
    setup = decoding({STEP: {"x": Played(ALL)}}).setup
    asked: list[bool] = []

    def judge(workload: str, number: int, text: bytes, cut: bool) -> Right:
        asked.append(cut)
        return "invalid"

    def right_of(answer: dict[str, Any], role: Any = "constrained") -> list[str]:
        batch = engine._batch(answer, b"", "x", Turn(0, 0, 1, 0, role, 0), 0)
        return [each.right for each in batch.completed]

    with DecodeRecorder(tmp_path, setup) as recorder:
        engine = DecodeEngine(setup, 1, 1.0, recorder, judge, lambda _: None)
        assert right_of(answered("limit", "end_of_sequence", "refused")) == ["invalid", "invalid", "unjudged"]
        assert asked == [True, False]
        assert right_of(answered("limit", as_replayed=True)) == ["unjudged"]
        assert right_of(answered("limit", as_replayed=False)) == ["invalid"]
        assert right_of(answered("limit"), "none") == ["unjudged"] and len(asked) == 3


def cut(record: Decoding, arm: str, right: Right) -> Decoding:
    """Returns the record with all texts of that arm cut at their limit."""

    def short(done: Any) -> Any:
        return judged(replace(done.completed, end="limit"), right, None)

    batches = tuple(
        replace(batch, completed=tuple(map(short, batch.completed))) if batch.arm == arm else batch
        for batch in record.batches
    )
    return replace(record, batches=batches)


def two_arms() -> Decoding:
    return decoding({STEP: {"x": Played(ALL), "y": Played(ALL)}}, forks=8)


def of(record: Decoding) -> dict[str, str]:
    return {each.figure: each.verdict for each in compare_arms(Decoded(record), "x", "y")}


def test_the_gate_sees_texts_that_come_to_no_end_any_more() -> None:
    assert of(two_arms())["solved"] == of(two_arms())["solved_or_cut"] == "equivalent"
    worse = of(cut(two_arms(), "y", "unjudged"))
    assert (worse["solved"], worse["solved_or_cut"]) == ("regressed", "equivalent")


def test_the_gate_sees_texts_that_are_wrong_before_their_limit() -> None:
    both = cut(cut(two_arms(), "x", "unjudged"), "y", "unjudged")
    assert (of(both)["solved"], of(both)["solved_or_cut"]) == ("equivalent", "equivalent")
    assert gate(compare_arms(Decoded(both), "x", "y"), time=False) == "ok"
    wrong = cut(both, "y", "invalid")
    assert (of(wrong)["solved"], of(wrong)["solved_or_cut"]) == ("equivalent", "regressed")
    assert gate(compare_arms(Decoded(wrong), "x", "y"), time=False) == "failed"


def test_a_mechanism_that_has_texts_end_wrongly_before_their_limit_has_lost() -> None:
    off, on = STEP, replace(STEP, overlap=False)

    def effect(right: Right) -> str:
        made = decoding(
            {off: {"x": Played(ALL)}, on: {"x": Played(ALL, 5)}}, mechanisms=[("overlap", off, on)]
        )
        short = cut(made, "x", "unjudged")
        spoilt = tuple(
            replace(batch, completed=tuple(replace(one, right=right) for one in batch.completed))
            if batch.setting == 1
            else batch
            for batch in short.batches
        )
        (switch,) = conclude.switched(Decoded(replace(short, batches=spoilt)))
        return switch.effect

    assert (effect("unjudged"), effect("invalid")) == ("wins", "loses")


def test_what_was_cut_is_not_solved_and_its_number_is_shown() -> None:
    short = cut(two_arms(), "y", "unjudged")
    found = {cell.arm: Decoded(short).values(cell) for cell in Decoded(short).cells}
    assert [(found[arm]["solved"], found[arm]["cut"]) for arm in "xy"] == [(1, 0), (0, 1)]
    assert found["y"]["valid"] is None
    assert show.decoding_text(short).count("32/32 cut at the limit") == 1
    assert "cut at the limit" not in show.decoding_text(two_arms())
