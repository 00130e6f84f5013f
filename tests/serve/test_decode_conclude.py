"""Where a mechanism wins, loses or is undecided, and two arms or two records compared, on records whose truth
is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from decode_runs import Played, arm, decoding, is_caught
from report_folders import write_decoding

from harness.measure.statistics import judge
from harness.serve.decode import conclude, right, show
from harness.serve.decode.conclude import Switched, advise, switched
from harness.serve.decode.figures import Decoded
from harness.serve.decode.record import Decoding, Loss
from harness.serve.decode.setting import Setting
from harness.serve.decode.verdicts import (
    DecodeChange,
    changes_text,
    compare,
    compare_arms,
    compare_records,
    gate,
)

STEP = Setting("calls", texts=2)
JUMP = replace(STEP, strategy="jump_forward")
SERIAL = replace(STEP, overlap=False)
FREE = replace(STEP, workload="free"), replace(STEP, workload="free", strategy="jump_forward")
ALL = {"a": [1, 1, 1, 1, 1, 1], "b": [1, 1, 1, 1]}
HALF = {"a": [1, 3, 2], "b": [2, 2]}


def one(on: Played, off: Played, *, pair: tuple[Setting, Setting] = (STEP, JUMP), forks: int = 5) -> Switched:
    record = decoding({pair[0]: {"x": off}, pair[1]: {"x": on}}, mechanisms=[("it", *pair)], forks=forks)
    return switched(Decoded(record))[0]


def check_effects() -> None:
    assert one(Played(HALF), Played(ALL)).effect == "wins"
    assert one(Played(HALF, 25), Played(ALL)).effect == "loses"  # half the passes, each 2.5 times as long
    assert one(Played(ALL, 10.05), Played(ALL)).effect == "equal"
    assert (
        one(Played(ALL, 9.85), Played(ALL), pair=(SERIAL, STEP)).effect == "equal"
    )  # 1.5 percent is within the margin
    assert one(Played(ALL, 9.5), Played(ALL), pair=(SERIAL, STEP)).effect == "wins"
    assert one(Played(HALF, 15, noise=0.5), Played(ALL, noise=0.5)).effect == "undecided"
    assert one(Played(HALF), Played(ALL), forks=1).effect == "undecided"  # one process proves nothing


def check_no_pass_saved_is_no_win() -> None:
    found = one(Played(ALL, 8), Played(ALL))
    assert found.e2e.interval is not None and found.e2e.interval.high < 0.98
    assert (found.effect, found.saved) == ("undecided", 0)
    assert "no pass" in found.why
    assert one(Played(ALL, 12), Played(ALL)).effect == "loses"  # it may lose without saving any


def check_what_comes_out_wrong_loses() -> None:
    found = one(Played(HALF, broken=("b",)), Played(ALL))
    assert (found.effect, found.why) == ("loses", "10 requests came out right instead of 20")
    assert (
        one(Played(HALF, fallback=("a",)), Played(ALL)).effect == "loses"
    )  # giving a grammar up is no speed
    assert (
        one(Played(HALF, broken=("b",)), Played(ALL, broken=("b",))).effect == "wins"
    )  # it could not before either


CHECKS = [check_effects, check_no_pass_saved_is_no_win, check_what_comes_out_wrong_loses]


@pytest.mark.parametrize("check", CHECKS, ids=lambda each: each.__name__)
def test_by_hand(check: Callable[[], None]) -> None:
    check()


@pytest.mark.parametrize(
    ("check", "module", "name", "wrong"),
    [
        (check_effects, conclude, "MARGIN", 0.0),
        (
            check_effects,
            conclude,
            "EFFECTS",
            {"improved": "loses", "regressed": "wins", "equivalent": "equal", "inconclusive": "undecided"},
        ),
        (
            check_effects,
            conclude,
            "judge",
            lambda found, margin: "improved" if found.ratio < 1 - margin else "equivalent",
        ),
        (
            check_no_pass_saved_is_no_win,
            conclude,
            "_effect",
            lambda e2e, *others: (conclude.EFFECTS[judge(e2e.interval, 0.02)], ""),
        ),
        (
            check_what_comes_out_wrong_loses,
            right,
            "solved_or_cut",
            lambda requests: right.Share(len(requests), len(requests)),
        ),
    ],
    ids=["no margin", "upside down", "no interval", "saved or not", "wrong outputs count"],
)
def test_a_wrong_rule_is_caught(
    check: Callable[[], None], module: ModuleType, name: str, wrong: object
) -> None:
    assert is_caught(check, module, name, wrong)


def experiment() -> Decoding:
    """jump_forward: x wins on calls and loses on free text; y never has it."""
    sides = {
        STEP: {"x": Played(ALL), "y": Played(ALL)},
        JUMP: {"x": Played(HALF)},
        FREE[0]: {"x": Played(ALL)},
        FREE[1]: {"x": Played(ALL, 11)},
        SERIAL: {"x": Played(ALL, 12), "y": Played(ALL, 13)},
    }
    mechanisms = [("jump_forward", STEP, JUMP), ("jump_forward", *FREE), ("overlap", SERIAL, STEP)]
    return decoding(
        sides,
        plain=Played(ALL, 9),
        mechanisms=mechanisms,
        losses=[Loss(0, "y", 1, "not_offered", "no forced text")],
    )


def test_the_default_follows_from_where_it_wins_and_loses() -> None:
    found = {(each.mechanism, each.arm): each for each in advise(switched(Decoded(experiment())))}
    assert {key: each.default for key, each in found.items()} == {
        ("jump_forward", "x"): "by load",
        ("jump_forward", "y"): "open",
        ("overlap", "x"): "on",
        ("overlap", "y"): "on",
    }
    assert found["jump_forward", "x"].where("wins") == ["calls x1"] and found["jump_forward", "x"].where(
        "loses"
    ) == ["free x1"]
    assert found["jump_forward", "y"].switched[0].why == "no forced text"
    gained = found["jump_forward", "x"].switched[0]
    assert (
        gained.e2e.interval is not None
        and gained.ceiling == 2
        and gained.e2e.interval.ratio == pytest.approx(0.5)
    )


def test_no_difference_is_said_only_where_every_load_says_so() -> None:
    same = one(Played(ALL), Played(ALL), pair=(SERIAL, STEP))
    wild = replace(same, effect="undecided")
    assert [each.default for each in advise([same, same])] == ["either"]
    assert [each.default for each in advise([same, wild])] == ["open"]
    assert [each.default for each in advise([wild, replace(same, effect="loses")])] == ["off"]


def test_the_text_says_all_of_it() -> None:
    said = show.decoding_text(experiment())
    assert max(map(len, said.splitlines())) <= 80
    for part in (
        "jump_forward: x BY LOAD, y undecided",
        "wins 1, loses 1",
        "0.50 [0.50, 0.50]",
        "overlap: x ON, y ON",
        "no forced text",
    ):
        assert part in said
    assert conclude.conclusion([]) == []


def test_the_terminal_shows_the_mechanisms_alone() -> None:
    said = show.decoding_text(replace(experiment(), folder=Path("my record")))
    assert "recommended defaults" in said and "add up" in said
    assert "add --json" in said and "grammarbench report" not in said, "the page has none of the settings"
    assert "batch 1: 2 requests" not in said and max(map(len, said.splitlines())) <= 80
    assert "batch 1: 2 requests" in show.decoding_text(
        replace(experiment(), setup=replace(experiment().setup, mechanisms=()))
    )


def test_the_terminal_says_why_nothing_is_compared_with_running_free() -> None:
    texts = {"a": (1, 1, 1), "b": (1, 1)}
    fell_back = {Setting("calls", batch=1, texts=2): {"x": Played(texts, fallback=("a", "b"))}}
    said = show.decoding_text(replace(decoding(fell_back, plain=Played(texts)), folder=Path("record")))
    assert "    TPOT of 2 of 2 requests not compared: other length, no gap, or no grammar\n" in said
    assert max(map(len, said.splitlines())) <= 80


# --------------------------------------------------------------------------------------------------- verdicts


def of(changes: list[DecodeChange]) -> dict[str, str]:
    return {each.figure: each.verdict for each in changes}


def two_arms(
    head: float, copy: float = 10.0, noise: float = 0.002, broken: tuple[str, ...] = ()
) -> list[DecodeChange]:
    sides = {
        STEP: {
            "x": Played(ALL, 10, 0.002),
            "y": Played(ALL, head, noise, broken),
            "x (again)": Played(ALL, copy, 0.002),
        }
    }
    record = decoding(sides, arms=[arm("x", "reference"), arm("y"), arm("x (again)", "a/a")], forks=8)
    return compare_arms(Decoded(record), "x", "y")


def test_two_arms_of_a_record() -> None:
    assert of(two_arms(11))["tpot"] == of(two_arms(11))["e2e"] == "regressed"
    assert of(two_arms(9))["ttft"] == "improved"
    assert of(two_arms(10.1))["tpot"] == "equivalent"
    assert of(two_arms(10.5, noise=0.05))["tpot"] == "inconclusive"
    assert of(two_arms(11, copy=12))["tpot"] == "unproven"
    assert of(two_arms(10, broken=("b",)))["solved"] == "regressed"
    assert of(two_arms(10))["tokens_per_pass"] == of(two_arms(10))["solved"] == "equivalent"


def test_the_gate_fails_on_counts_and_if_asked_on_times() -> None:
    assert gate(two_arms(10), time=True) == "ok"
    assert (gate(two_arms(11), time=False), gate(two_arms(11), time=True)) == ("ok", "failed")
    assert gate(two_arms(10, broken=("b",)), time=False) == "failed"
    assert (gate(two_arms(11, copy=12), time=True), gate([], time=False)) == ("unproven", "unproven")
    said = changes_text(two_arms(11, broken=("b",)))
    assert "x -> y" in said and "solved" in said and "regressed" in said and "gate: FAILED" in said
    assert max(map(len, said.splitlines())) <= 80 and "tokens_per_pass" not in said, (
        "what is the same is left out"
    )


def test_two_settings_of_a_backend_in_one_record_gate_nothing(tmp_path: Path) -> None:
    sides = {STEP: {"x": Played(ALL, 10, 0.002), "x:wrapper=other": Played(ALL, 20, 0.002, ("b",))}}
    record = decoding(
        sides,
        arms=[arm("x", "reference"), replace(arm("x"), name="x:wrapper=other", options="wrapper=other")],
        forks=8,
    )
    write_decoding(tmp_path / "run", record)
    found = compare(tmp_path / "run", None)
    assert of(found)["tpot"] == of(found)["solved"] == "regressed" and not any(
        each.is_change for each in found
    )
    assert gate(found, time=True) == "unproven" and "(two settings: no change)" in " ".join(
        changes_text(found).split()
    )
    older = replace(
        record,
        setup=replace(
            record.setup, arms=(replace(arm("x"), version="1"), replace(record.setup.arms[1], options=""))
        ),
    )
    write_decoding(tmp_path / "versions", older)
    assert gate(compare(tmp_path / "versions", None), time=False) == "failed"


def test_a_version_is_held_against_the_one_before_and_not_that_against_its_copy(tmp_path: Path) -> None:
    """Forwards a version that takes less time is improved. Backwards, from it to the copy of the one before,
    it would be a regression."""
    sides = {
        STEP: {
            "x==1": Played(ALL, 10, 0.002, ("b",)),
            "x==2": Played(ALL, 8, 0.002),
            "x==1 (again)": Played(ALL, 10, 0.002, ("b",)),
        }
    }
    arms = [arm("x==1", "reference"), arm("x==2"), arm("x==1 (again)", "a/a")]
    record = decoding(sides, arms=[replace(each, backend="x") for each in arms], forks=8)
    write_decoding(tmp_path / "run", record)
    found = compare(tmp_path / "run", None)
    assert {(each.base, each.head) for each in found} == {("x==1", "x==2"), ("x==1", "x==1 (again)")}
    assert {each.verdict for each in found} == {"improved", "equivalent"}
    assert gate(found, time=False) == gate(found, time=True) == "ok"


def test_between_records_only_ratios_are_judged() -> None:
    """A machine that is 30 percent slower today changes no verdict; a grammar that costs more does."""

    def record(step: float, plain: float, jump: float, seed: int) -> Decoded:
        sides = {STEP: {"x": Played(ALL, step, 0.002)}, JUMP: {"x": Played(HALF, jump, 0.002)}}
        return Decoded(decoding(sides, plain=Played(ALL, plain, 0.002), forks=8, seed=seed))

    before = record(10, 9.5, 10, 1)
    found = compare_records(before, record(13, 12.35, 13, 2))
    assert (
        set(of(found).values()) == {"equivalent"}
        and {"overhead", "speed_up"} <= set(of(found))
        and "tpot" not in of(found)
    )
    dearer = {
        (each.setting, each.figure): each.verdict for each in compare_records(before, record(11, 9.5, 10, 2))
    }
    assert dearer[STEP.name, "overhead"] == "regressed" and dearer[JUMP.name, "overhead"] == "equivalent"
    assert dearer[JUMP.name, "speed_up"] == "improved"  # stepwise got slower, the strategy did not
    regressed = compare_records(before, record(11, 9.5, 10, 2))
    assert (gate(regressed, time=False), gate(regressed, time=True)) == ("ok", "unproven")
    assert compare_records(before, Decoded(decoding({STEP: {"z": Played(ALL)}}))) == []


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"hardware": "other"}, "hardware (h and other)"),
        ({"device": "cuda"}, "device (cpu and cuda)"),
        ({"model": "8b"}, "model (tiny and 8b)"),
        ({"dtype": "bfloat16"}, "dtype (None and bfloat16)"),
        ({"sha256": "1" * 64}, "vocabulary (000000000000 and 111111111111)"),
    ],
)
@pytest.mark.parametrize("broken", [(), ("b",)], ids=["right", "wrong"])
def test_records_of_two_machines_or_models_are_compared_in_counts_only(
    changed: dict[str, Any], why: str, broken: tuple[str, ...]
) -> None:
    sides = {STEP: {"x": Played(ALL, 10, 0.002)}}, {STEP: {"x": Played(ALL, 20, 0.002, broken)}}
    old, new = (decoding(each, plain=Played(ALL, 9.5, 0.002), forks=8) for each in sides)
    found = compare_records(Decoded(old), Decoded(replace(new, setup=replace(new.setup, **changed))))
    assert set(of(found)) == {"solved", "solved_or_cut", "valid", "tokens_per_pass"}
    said = " ".join(changes_text(found).split())
    assert said.startswith(f"no baseline: the records differ in {why} ")
    assert gate(found, time=False) == ("failed" if broken else "ok")
    assert gate(found, time=True) == ("failed" if broken else "unproven")
