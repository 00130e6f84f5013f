"""What a measurement says where figures are missing: arms that were lost, cases with too few figures, and
identical code that was not compared."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from compared import COPY, HEAD, NEW, OLD, REFERENCE, measured_run, write_run
from measured import Factor, arm, concluded, steady, write_measurement

from harness.cli.main import main
from harness.errors import BAD_INPUT
from harness.measure import show
from harness.measure.estimate import NO_CONTROL, Comparison, compare, flagged, is_proven, undecided
from harness.measure.figures import Figures
from harness.measure.protocol import PROFILES
from harness.measure.record import read_measurement
from harness.measure.session import _confirm
from harness.outcomes.history.measurements import Entry, compared_entries, is_sound
from harness.outcomes.result import result_of
from harness.report.figures.estimates import best
from harness.report.figures.ratios import over_reference
from harness.report.tables.time import time_frame


def figures_of(folder: Path) -> Figures:
    return Figures(read_measurement(folder))


def entries_of(folder: Path) -> list[Entry]:
    return [entry for entry, _ in compared_entries(read_measurement(folder))]


def of(found: list[Comparison], metric: str = "fill", head: str = "toy==2", family: str = "") -> Comparison:
    return next(
        each for each in found if (each.head, each.metric) == (head, metric) and family in ("", each.family)
    )


def lose(folder: Path, arm: str, fork: int, *cases: str) -> None:
    """Writes down that the arm was lost in these cases in this fork."""
    *before, end = map(json.loads, (folder / "rounds.jsonl").read_text().splitlines())
    for case in cases:
        why = "no child after 300 s"
        before.append({"kind": "lost", "arm": arm, "case_id": case, "fork": fork, "text": why})
    end["lines"] += len(cases)
    (folder / "rounds.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (*before, end)))


BOTH = ("speed0", "speed1")


def test_what_was_measured_before_an_arm_was_lost_stays(tmp_path: Path) -> None:
    """Further forks lack the arm; the profile's three have it in every case."""
    folder = measured_run(tmp_path, 1.3, left_out=lambda arm, _, fork, __: arm == "toy==2" and fork >= 3)
    lose(folder, "toy==2", 3, *BOTH)
    figures = figures_of(folder)
    found = compare(figures)
    fill = of(found)
    assert (fill.verdict, fill.cases, fill.unjudged, fill.found.forks) == ("regressed", 2, 0, 3)
    assert len(figures.own_set("toy==2")) == len(figures.common_set) == 2
    frame = time_frame(folder)
    assert frame[(frame.arm == "toy==2") & (frame.figure == "compile per case")]["n"].tolist() == [2, 2]
    shown = " ".join(show.arms_text(figures).split())
    assert (
        "that every arm solves arm" in shown and "toy==2 was lost in 2 cases while it was measured" in shown
    )


def test_a_loss_in_one_of_the_profiles_forks_leaves_the_case_unjudged(tmp_path: Path) -> None:
    folder = measured_run(tmp_path, 1.3)
    lose(folder, "toy==2", 2, "speed1")
    fill = of(concluded(folder))
    assert (fill.verdict, fill.cases, fill.unjudged) == ("regressed", 1, 1)
    assert fill.why == "1 case was measured in too few forks, because an arm was lost, and is not judged"


def test_an_arm_that_was_lost_at_once_solves_no_fewer_cases_for_it(tmp_path: Path) -> None:
    folder = measured_run(tmp_path, 1.0)
    lose(folder, "toy==2", 0, *BOTH)
    shown = " ".join(show.arms_text(figures_of(folder)).split())
    assert "that every arm solves, but for those that were lost in all arm" in shown
    assert "toy==2 lost - - - - -" in shown
    assert main(["compare", str(folder), "--gate", "--time"]) == 4


def test_a_measurement_of_an_older_protocol_is_to_be_made_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rounds = measured_run(tmp_path, 1.0) / "rounds.jsonl"
    rounds.write_text(rounds.read_text().replace('"protocol":2', '"protocol":1', 1))
    assert main(["compare", str(tmp_path)]) == BAD_INPUT
    said = f"grammarbench: {tmp_path}: a measurement by protocol 1, this version reads 2; measure anew\n"
    assert capsys.readouterr().err == said


def test_no_forks_are_added_that_lack_a_lost_case(tmp_path: Path) -> None:
    """Fork 4 is the first that adds to the profile's three; the head does not load in it, so has no slot."""

    def wide(metric: str, fork: int, number: int) -> float:
        return 1.0 + 0.1 * (fork % 2)

    arms: dict[Any, Factor] = {REFERENCE: steady(1, seed=1), HEAD: wide, COPY: steady(1, seed=3)}
    write_measurement(tmp_path, arms, left_out=lambda arm, _, fork, __: arm == "toy==2" and fork >= 3)
    figures = figures_of(tmp_path)
    assert of(compare(figures)).verdict == "inconclusive" and "toy==2" in undecided(compare(figures), figures)
    lose(tmp_path, "toy==2", 3, *BOTH)
    figures = figures_of(tmp_path)
    fill = of(compare(figures))
    assert (fill.verdict, fill.why) == ("unproven", "an arm was lost in a further fork")
    assert not undecided(compare(figures), figures)


@pytest.mark.parametrize("cases", [(), ("speed1",), BOTH])
def test_a_change_is_not_confirmed_where_an_arm_is_lost(cases: tuple[str, ...], tmp_path: Path) -> None:
    """In the second of three fresh forks; the five before it are as they were."""
    folder = measured_run(tmp_path, 1.3, confirming=range(3))
    lose(folder, "toy==2", 6, *cases)
    fill = of(concluded(folder))
    assert (fill.cases, fill.found.forks) == (2, 5) and fill.found.ratio == pytest.approx(1.3, rel=0.02)
    if not cases:
        assert fill.verdict == "regressed" and fill.why.startswith("confirmed by 3 fresh forks")
        assert main(["compare", str(folder), "--gate", "--time"]) == 1
    else:
        assert (fill.verdict, fill.why) == ("unproven", "not confirmed: an arm was lost in fresh forks")
        assert main(["compare", str(folder), "--gate", "--time"]) == 4


def test_a_change_is_not_confirmed_by_fresh_forks_in_which_every_arm_was_lost(tmp_path: Path) -> None:
    folder = measured_run(tmp_path, 1.3, confirming=range(3), left_out=lambda _, __, fork, ___: fork >= 5)
    for name in ("toy==1", "toy==2"):
        lose(folder, name, 5, *BOTH)
    assert of(concluded(folder)).verdict == "unproven"


def test_a_change_is_confirmed_by_all_its_cases_or_not_at_all(tmp_path: Path) -> None:
    folder = measured_run(
        tmp_path,
        1.3,
        confirming=range(3),
        left_out=lambda arm, case, fork, _: (arm, case, fork) == ("toy==2", "speed1", 6),
    )
    fill = of(concluded(folder))
    assert (fill.verdict, fill.why, fill.cases) == (
        "inconclusive", "not confirmed: not every fresh fork has every case", 2,
    )  # fmt: skip


@pytest.mark.parametrize(("ratio", "is_lost", "made"), [(1.3, False, 3), (1.3, True, 3), (1.0, False, 10)])
def test_fresh_forks_end_where_an_arm_is_lost(ratio: float, is_lost: bool, made: int, tmp_path: Path) -> None:
    """Where they leave the verdict open, as many are made as the profile allows."""

    def unsure(metric: str, fork: int, number: int) -> float:
        return 1.3 if fork < 5 else ratio + (0 if ratio > 1 else 0.2 * (fork % 2))

    arms: dict[Any, Factor] = {REFERENCE: steady(1, seed=1), HEAD: unsure, COPY: steady(1, seed=3)}
    write_measurement(tmp_path, arms, confirming=range(3))
    if is_lost:
        lose(tmp_path, "toy==2", 6, *BOTH)
    forks: list[object] = []
    engine: Any = SimpleNamespace(
        measurement=read_measurement(tmp_path).measurement, fork=lambda *where, **_: forks.append(where)
    )
    _confirm(engine, tmp_path, engine.measurement.arms, PROFILES["quick"], lambda _: None)
    assert len(forks) == made


def other_versions(folder: Path, unsolved: tuple[str, ...]) -> Figures:
    """Two versions of `toy` beside a reference that does not solve these cases of the family `regex`."""
    arms = {
        arm("ours", "reference", "ours"): steady(1, seed=1),
        arm("toy==1", "arm", "toy", "1"): steady(1, seed=2),
        arm("toy==2", "arm", "toy", "2"): steady(1.3, seed=4),
        arm("ours (again)", "a/a", "ours"): steady(1, seed=3),
    }
    why = {"ours": dict.fromkeys(unsolved, "unsupported")}
    write_measurement(folder, arms, families=("json", "regex"), unsolved=why)
    return figures_of(folder)


def test_a_control_that_was_not_measured_is_none_that_failed(tmp_path: Path) -> None:
    figures = other_versions(tmp_path, ("regex0", "regex1"))
    found = compare(figures)
    regex = next(each for each in found if (each.base, each.family) == ("toy==1", "regex"))
    assert (regex.verdict, regex.why) == ("unproven", NO_CONTROL)
    assert is_proven(found) and not undecided(found, figures), "more forks would not change it"
    said = " ".join(show.proof_text(figures, found).split())
    assert said.startswith(
        "proven: two arms of identical code came out equivalent wherever a case of them is"
    )


def test_a_control_that_was_measured_everywhere_says_so(tmp_path: Path) -> None:
    figures = other_versions(tmp_path, ())
    found = compare(figures)
    assert {each.verdict for each in found if each.base == "toy==1" and each.family == "regex"} == {
        "regressed", "equivalent",
    }  # fmt: skip
    assert show.proof_text(figures, found).startswith(
        "proven: two arms of identical code came out equivalent everywhere\n"
    )


def test_a_control_without_a_case_to_judge_makes_no_run_unproven(tmp_path: Path) -> None:
    """Compiles that were made in the first fork only."""
    arms = {REFERENCE: steady(1, seed=1), HEAD: steady(1, seed=2), COPY: steady(1, seed=3)}
    write_measurement(tmp_path, arms, cases=1, warm=lambda _, __, fork, number: (fork, number) != (0, 0))
    figures = figures_of(tmp_path)
    found = compare(figures)
    control, compile_ = of(found, "compile", COPY.name), of(found, "compile")
    assert (control.cases, control.verdict) == (0, "unproven") and "identical" not in control.why
    assert compile_.verdict == "unproven" and compile_.why.startswith(NO_CONTROL)
    assert is_proven(found) and not undecided(found, figures)
    said = " ".join(show.proof_text(figures, found).split())
    assert "compile none: too few forks" in said and ", fill none" not in said
    entries = [entry for entry in entries_of(tmp_path) if entry.version == "2"]
    assert {entry.metric for entry in entries if is_sound(entry)} == {"fill", "accept", "matcher_new"}


def test_of_identical_code_nothing_is_to_be_confirmed(tmp_path: Path) -> None:
    arms = {REFERENCE: steady(1, seed=1), HEAD: steady(1, seed=2), COPY: steady(1.3, seed=3)}
    write_measurement(tmp_path, arms)
    figures = figures_of(tmp_path)
    found = compare(figures)
    assert of(found, head=COPY.name).verdict == "regressed" and not flagged(found, figures)


def test_settings_of_one_version_are_not_confirmed_by_forks_made_for_others(tmp_path: Path) -> None:
    """Forks that confirm a change of `toy` with an option have the same arms as the ratio of that option."""

    def drops(metric: str, fork: int, number: int) -> float:
        return 1.08 if fork < 5 else 1.0

    arms: dict[Any, Factor] = {
        REFERENCE: steady(1, seed=1),
        arm("toy==1:x=1", "arm", "toy", "1", "x=1"): drops,
        arm("toy==2:x=1", "arm", "toy", "2", "x=1"): lambda *where: 1.5 * drops(*where),
        COPY: steady(1, seed=3),
    }
    write_measurement(tmp_path, arms, confirming=range(3))
    found = concluded(tmp_path)
    assert (of(found, head="toy==1:x=1").verdict, of(found, head="toy==1:x=1").why) == ("regressed", "")
    changed = next(each for each in found if (each.base, each.head) == ("toy==1:x=1", "toy==2:x=1"))
    assert changed.metric == "compile" and changed.why.startswith("confirmed by 3 fresh forks")


def test_passes_that_took_no_time_have_no_ratio_of_means(tmp_path: Path) -> None:
    """Such a record was altered, and all its other figures stay."""
    folder = measured_run(tmp_path, 1.0)
    recorded = read_measurement(folder)
    stored = np.fromfile(folder / "rounds.i64", "<i8")
    for slot in recorded.slots:
        if slot.arm == "toy==2":
            start, count = slot.figures
            stored[start + count - 2 * slot.passes : start + count] = 0
    stored.tofile(folder / "rounds.i64")
    found = concluded(folder)
    assert math.isnan(of(found).mean_ratio) and of(found).verdict == "equivalent"
    assert of(found, "compile").mean_ratio == pytest.approx(1, rel=0.02)


def slow_to_compile(folder: Path, slow: tuple[str, ...]) -> Figures:
    """The arm `b` takes half the reference's time in `speed0` and 100 times as long in `speed1`, of which its
    compile is made once only, if it is one of the `slow`."""
    arms: dict[Any, Factor] = {
        arm("ours", "reference", "ours"): steady(1, seed=1),
        arm("a"): steady(1, seed=2),
        arm("b"): steady(1, seed=4),
        arm("ours (again)", "a/a", "ours"): steady(1, seed=3),
    }
    write_measurement(
        folder,
        arms,
        warm=lambda arm, case, fork, number: (
            (arm, case) in [("b", each) for each in slow] and (fork, number) != (0, 0)
        ),
    )
    recorded = read_measurement(folder)
    stored = np.fromfile(folder / "rounds.i64", "<i8")
    for slot in recorded.slots:
        if slot.arm == "b" and slot.fresh:
            stored[slot.figures[0]] = stored[slot.figures[0]] * (0.5 if slot.case_id == "speed0" else 100)
    stored.tofile(folder / "rounds.i64")
    return figures_of(folder)


def test_an_arm_is_not_ranked_without_its_slowest_cases(tmp_path: Path) -> None:
    """It has the value of all cases, so it does not look twice as quick as it is slow."""
    ratios = over_reference(slow_to_compile(tmp_path, ("speed1",)), "compile")
    assert ratios["b"].value == pytest.approx(math.sqrt(50), rel=0.02)
    assert (ratios["b"].bounds, ratios["b"].why) == (None, "1 case not judged")
    assert ratios["a"].bounds is not None and not any(best(list(ratios.values())))
    entries = [entry for entry in entries_of(tmp_path) if entry.metric == "compile"]
    assert {entry.backend: is_sound(entry) for entry in entries} == {"ours": True, "a": True, "b": False}


def test_an_exported_ratio_without_the_slowest_cases_has_no_interval(tmp_path: Path) -> None:
    write_run(tmp_path, {OLD: {}, NEW: {}})
    slow_to_compile(tmp_path, ("speed1",))
    ratios = {one.arm: one for one in result_of(tmp_path).figures if one.name == "compile_ratio"}
    assert ratios["a 1 probe"].low is not None and ratios["a 1 probe"].why == ""
    assert ratios["b 1 probe"].low is ratios["b 1 probe"].high is None
    assert ratios["b 1 probe"].why == (
        "unproven: 1 case was measured in too few forks, because a compile takes over 2 s, and is not judged"
    )


def test_an_arm_with_every_case_in_every_fork_is_ranked(tmp_path: Path) -> None:
    ratios = over_reference(slow_to_compile(tmp_path, ()), "compile")
    assert ratios["b"].value == pytest.approx(math.sqrt(50), rel=0.02) and ratios["b"].can_rank
    assert best(list(ratios.values())) == [True, True, False]


def test_an_arm_that_was_lost_at_once_in_a_case_is_not_ranked_without_it(tmp_path: Path) -> None:
    """A child that hangs in its slow case does so in the first fork, and then there is no figure of it."""
    arms: dict[Any, Factor] = {
        arm("ours", "reference", "ours"): steady(1, seed=1),
        arm("a"): steady(1.5, seed=2),
        arm("b"): steady(0.5, seed=4),
        arm("ours (again)", "a/a", "ours"): steady(1, seed=3),
    }
    for name, of_arm in (("whole", ""), ("lost", "b")):
        write_measurement(
            tmp_path / name, arms, left_out=lambda arm, case, *_, of=of_arm: (arm, case) == (of, "speed1")
        )
    whole = over_reference(figures_of(tmp_path / "whole"), "fill")
    assert all(one.can_rank for one in whole.values()) and any(best(list(whole.values())))
    lose(tmp_path / "lost", "b", 0, "speed1")
    found = over_reference(figures_of(tmp_path / "lost"), "fill")
    assert (found["b"].bounds, found["b"].why) == (None, "1 case not judged")
    assert found["a"].can_rank and not any(best(list(found.values())))


def test_an_entry_of_a_history_has_the_forks_of_its_ratio(tmp_path: Path) -> None:
    """Two of five forks lack a slow case of the head, so that the ratio rests on three."""
    folder = measured_run(
        tmp_path,
        1.0,
        left_out=lambda arm, case, fork, _: (arm, case) == ("toy==2", "speed1") and fork >= 3,
    )
    forks = {entry.version: entry.forks for entry in entries_of(folder) if entry.metric == "fill"}
    assert forks == {"1": 5, "2": 3}
