"""From recorded figures to verdicts, on measurements whose truth is known."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from compared import measured_run
from measured import FILLS, arm, concluded, steady, write_measurement

from harness.cli.main import main
from harness.errors import BadInput
from harness.measure import show
from harness.measure.estimate import Comparison, compare, flagged, is_proven, pairs, undecided
from harness.measure.figures import Figures
from harness.measure.record import read_measurement
from harness.report.tables.time import time_frame

REFERENCE, COPY = arm("toy==1", "reference", "toy", "1"), arm("toy==1 (again)", "a/a", "toy", "1")
HEAD = arm("toy==2", "arm", "toy", "2")


def verdicts(found: list[Comparison], head: str = "toy==2") -> dict[str, str]:
    return {each.metric: each.verdict for each in found if each.head == head}


def measured(folder: Path, head: float, **options: object) -> list[Comparison]:
    arms = {REFERENCE: steady(1, seed=1), HEAD: steady(head, seed=2), COPY: steady(1, seed=3)}
    write_measurement(folder, arms, **options)  # type: ignore[arg-type]
    return concluded(folder)


def test_eight_percent_is_regressed_and_its_inverse_improved(tmp_path: Path) -> None:
    slower = measured(tmp_path / "slower", 1.08)
    assert (
        verdicts(slower)["fill"] == verdicts(slower)["accept"] == verdicts(slower)["compile"] == "regressed"
    )
    fill = next(each for each in slower if (each.head, each.metric) == ("toy==2", "fill"))
    assert fill.found.low < 1.08 < fill.found.high and fill.found.half_width < 0.01
    assert verdicts(measured(tmp_path / "faster", 1 / 1.12))["fill"] == "improved"


@pytest.mark.parametrize("head", [1.0, 1.02, 0.98])
def test_less_than_the_margin_is_no_change(tmp_path: Path, head: float) -> None:
    found = measured(tmp_path, head)
    assert set(verdicts(found).values()) == {"equivalent"}
    assert is_proven(found)


def test_one_fork_would_have_seen_no_change(tmp_path: Path) -> None:
    found = measured(tmp_path, 1.0, forks=1)
    said = " ".join(show.proof_text(Figures(read_measurement(tmp_path)), found).split())
    assert "1 fork, intervals" in said and "fill none: too few forks" in said and "inf" not in said


def test_of_margins_that_differ_by_family_the_widest_is_named_as_such(tmp_path: Path) -> None:
    found = measured(tmp_path, 1.0, families=("small", "large"))
    apart = [
        replace(each, margin=0.312 if (each.metric, each.family) == ("compile", "large") else 0.05)
        for each in found
    ]
    said = " ".join(show.proof_text(Figures(read_measurement(tmp_path)), apart).split())
    assert "intervals at 99%, widest margin of a family: compile 31.2%, ttfm 5.0%" in said


def test_without_an_equivalent_copy_nothing_is_said(tmp_path: Path) -> None:
    arms = {REFERENCE: steady(1, seed=1), HEAD: steady(1.5, seed=2), COPY: steady(1.3, seed=3)}
    write_measurement(tmp_path, arms)
    found = concluded(tmp_path)
    assert verdicts(found)["fill"] == "unproven"
    assert verdicts(found)["matcher_new"] == "equivalent"  # there the copy is the same
    assert not is_proven(found)
    assert undecided(found, Figures(read_measurement(tmp_path)))
    figures = Figures(read_measurement(tmp_path))
    assert "\nUNPROVEN in part: two arms" in show.text(figures, found)
    none = [comparison for comparison in found if comparison.metric == "fill"]
    assert show.proof_text(figures, none).startswith("UNPROVEN: two arms")


def test_a_noisy_machine_widens_the_margin(tmp_path: Path) -> None:
    """Rounds of identical code that lie four percent apart: five percent more is no longer told."""
    arms = {
        REFERENCE: steady(1, 0.04, seed=1),
        HEAD: steady(1.07, 0.04, seed=2),
        COPY: steady(1, 0.04, seed=3),
    }
    write_measurement(tmp_path, arms, forks=8)
    found = concluded(tmp_path)
    fill = next(each for each in found if (each.head, each.metric) == ("toy==2", "fill"))
    assert fill.margin == pytest.approx(3 * fill.floor) and fill.margin > 0.06
    assert fill.verdict in ("equivalent", "inconclusive", "unproven")


def test_one_wild_fork_does_not_make_a_verdict(tmp_path: Path) -> None:
    def wild(metric: str, fork: int, number: int) -> float:
        return 1.4 if fork == 2 else 1.0

    write_measurement(tmp_path, {REFERENCE: steady(1, seed=1), HEAD: wild, COPY: steady(1, seed=3)}, forks=8)
    assert verdicts(concluded(tmp_path))["fill"] == "inconclusive"


def test_a_change_must_be_confirmed_by_fresh_forks(tmp_path: Path) -> None:
    def slow_at_first(metric: str, fork: int, number: int) -> float:
        return 1.2 if fork < 5 else 1.0

    arms = {REFERENCE: steady(1, seed=1), HEAD: slow_at_first, COPY: steady(1, seed=3)}
    write_measurement(tmp_path / "not", arms, confirming=range(5))
    refuted = concluded(tmp_path / "not")
    assert verdicts(refuted)["fill"] == "inconclusive"
    assert "fresh forks say equivalent" in next(
        each.why for each in refuted if each.head == "toy==2" and each.metric == "fill"
    )
    confirmed = measured(tmp_path / "yes", 1.2, confirming=range(5))
    assert verdicts(confirmed)["fill"] == "regressed"
    assert "confirmed" in next(
        each.why for each in confirmed if each.head == "toy==2" and each.metric == "fill"
    )
    first = compare(Figures(read_measurement(tmp_path / "not")))
    assert {each.metric for each in flagged(first, Figures(read_measurement(tmp_path / "not")))} >= {
        "fill",
        "accept",
        "compile",
    }


def test_between_two_backends_nothing_is_flagged_or_waited_for(tmp_path: Path) -> None:
    other = arm("other")
    write_measurement(
        tmp_path, {REFERENCE: steady(1, seed=1), other: steady(3, 0.1, seed=2), COPY: steady(1, seed=3)}
    )
    figures = Figures(read_measurement(tmp_path))
    found = compare(figures)
    assert verdicts(found, "other")["fill"] == "regressed"
    assert not flagged(found, figures) and not undecided(found, figures)


def test_between_two_settings_of_a_backend_nothing_is_flagged_or_waited_for(tmp_path: Path) -> None:
    other = arm("toy:wrapper=other", "arm", REFERENCE.backend, REFERENCE.version, "wrapper=other")
    write_measurement(
        tmp_path, {REFERENCE: steady(1, seed=1), other: steady(3, 0.1, seed=2), COPY: steady(1, seed=3)}
    )
    figures = Figures(read_measurement(tmp_path))
    found = compare(figures)
    assert verdicts(found, "toy:wrapper=other")["fill"] == "regressed"
    assert not flagged(found, figures) and not undecided(found, figures)


def test_pairs_are_the_reference_with_all_and_versions_with_the_first(tmp_path: Path) -> None:
    arms = [REFERENCE, arm("a==1", backend="a"), arm("a==2", backend="a"), arm("a==3", backend="a"), COPY]
    write_measurement(
        tmp_path, {each: steady(1, seed=number) for number, each in enumerate(arms)}, forks=2, cases=1
    )
    found = pairs(Figures(read_measurement(tmp_path)))
    assert sorted(found) == [
        ("a==1", "a==2"),
        ("a==1", "a==3"),
        *(("toy==1", f"a=={number}") for number in (1, 2, 3)),
    ]


def test_failures_are_censored_not_dropped(tmp_path: Path) -> None:
    """An arm that solves the easy case only: its own set has one case, the common set too, and the figures
    say of how many."""
    arms = {REFERENCE: steady(1), HEAD: steady(1), COPY: steady(1)}
    write_measurement(tmp_path, arms, unsolved={"toy==2": {"speed1": "timeout"}})
    figures = Figures(read_measurement(tmp_path))
    assert [len(figures.own_set(each)) for each in ("toy==1", "toy==2")] == [2, 1]
    assert [each.case_id for each in figures.common_set] == ["speed0"]
    assert next(each for each in compare(figures) if each.head == "toy==2").cases == 1
    assert figures.measurement.unsolved == {"toy==2": {"speed1": "timeout"}}
    assert "1/2" in show.text(figures, compare(figures))


def test_an_arm_that_solves_nothing_leaves_the_others_their_common_cases(tmp_path: Path) -> None:
    """A control of a measurement solves nothing."""
    arms = {REFERENCE: steady(1), HEAD: steady(1), COPY: steady(1)}
    none = {"speed0": "unsolved", "speed1": "unsolved"}
    write_measurement(tmp_path, arms, unsolved={"toy==2": none})
    figures = Figures(read_measurement(tmp_path))
    assert [each.case_id for each in figures.common_set] == ["speed0", "speed1"]
    assert "2 of 2 cases that every arm solves, but for those that solve none" in show.arms_text(figures)


def fill_of(found: list[Comparison], metric: str = "fill", head: str = "toy==2") -> Comparison:
    return next(each for each in found if (each.head, each.metric) == (head, metric))


def test_a_case_that_further_forks_leave_out_stays(tmp_path: Path) -> None:
    """Five forks, of which the profile has three: the last two leave the slow case out, and count no more."""

    def slow_at_first(metric: str, fork: int, number: int) -> float:
        return 1.2 if fork < 3 else 1.0

    arms = {REFERENCE: steady(1, seed=1), HEAD: slow_at_first, COPY: steady(1, seed=3)}
    write_measurement(tmp_path, arms, left_out=lambda _, case, fork, __: case == "speed1" and fork >= 3)
    fill = fill_of(concluded(tmp_path))
    assert (fill.cases, fill.found.forks, fill.unjudged, fill.verdict) == (2, 3, 0, "regressed")


def test_no_more_forks_are_made_that_would_not_count(tmp_path: Path) -> None:
    """A wide interval asks for more forks; but not where the last was left out for lack of a slow case."""
    arms = {REFERENCE: steady(1, seed=1), HEAD: steady(1, 0.1, seed=2), COPY: steady(1, seed=3)}
    write_measurement(tmp_path / "all", arms, forks=4)
    write_measurement(
        tmp_path / "some", arms, forks=4, left_out=lambda _, case, fork, __: case == "speed1" and fork >= 3
    )
    for folder, asks in (("all", True), ("some", False)):
        figures = Figures(read_measurement(tmp_path / folder))
        found = compare(figures)
        assert "inconclusive" in verdicts(found).values()
        assert bool(undecided(found, figures)) is asks, folder


def too_slow(arm: str, case: str, fork: int, number: int) -> bool:
    """Whether the second case, of which the head's compile takes over 2 s, is warm here."""
    return (arm, case) == ("toy==2", "speed1") and (fork, number) != (0, 0)


def test_a_case_with_too_few_figures_is_not_judged_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = measured_run(tmp_path / "m", 1.0, warm=too_slow)
    compile_ = fill_of(concluded(folder), "compile")
    assert (compile_.cases, compile_.unjudged, compile_.verdict) == (1, 1, "unproven")
    assert fill_of(concluded(folder)).verdict == "equivalent", "it has all of these"
    said = "1 case was measured in too few forks, because a compile takes over 2 s, and is not judged"
    assert compile_.why == said
    assert main(["compare", str(folder), "--gate"]) == 0
    assert said in " ".join(capsys.readouterr().out.split())
    assert main(["compare", str(folder), "--gate", "--time", "--html", str(tmp_path / "page.html")]) == 4
    assert said in (tmp_path / "page.html").read_text("utf-8")
    capsys.readouterr()
    assert main(["compare", str(folder), "--json"]) == 0
    (pair,) = json.loads(capsys.readouterr().out)
    assert {each["metric"]: each["unjudged"] for each in pair["times"]} == {
        "compile": 1, "ttfm": 1, "cold_fill": 1, "fill": 0, "accept": 0, "matcher_new": 0,
    }  # fmt: skip
    figures = Figures(read_measurement(folder))
    assert not undecided(compare(figures), figures), "more forks would not measure it either"


def test_a_slowdown_of_the_other_cases_stands(tmp_path: Path) -> None:
    folder = measured_run(tmp_path / "m", 1.2, warm=too_slow)
    compile_ = fill_of(concluded(folder), "compile")
    assert (compile_.unjudged, compile_.verdict) == (1, "regressed") and "not judged" in compile_.why
    assert main(["compare", str(folder), "--gate", "--time"]) == 1


def test_where_no_case_can_be_judged_there_is_an_estimate_alone(tmp_path: Path) -> None:
    folder = measured_run(
        tmp_path / "m",
        1.2,
        cases=1,
        warm=lambda arm, _, fork, number: arm == "toy==2" and (fork, number) != (0, 0),
    )
    compile_ = fill_of(concluded(folder), "compile")
    assert (compile_.cases, compile_.unjudged, compile_.verdict) == (0, 1, "unproven")
    assert (compile_.found.low, compile_.found.high) == (0, math.inf)
    assert compile_.found.ratio == pytest.approx(1.2, rel=0.02)
    same = measured_run(
        tmp_path / "same",
        1.0,
        cases=1,
        warm=lambda arm, _, fork, number: arm == "toy==2" and (fork, number) != (0, 0),
    )
    assert main(["compare", str(same), "--gate", "--time"]) == 4


def test_a_case_in_which_the_head_was_lost_is_not_judged(tmp_path: Path) -> None:
    folder = measured_run(tmp_path / "m", 1.0, lost={"toy==2": "speed1"})
    fill = fill_of(concluded(folder))
    assert (fill.cases, fill.unjudged, fill.verdict) == (1, 1, "unproven")
    assert fill.why == "1 case was measured in too few forks, because an arm was lost, and is not judged"
    assert main(["compare", str(folder), "--gate", "--time"]) == 4


def test_between_backends_the_cases_that_are_judged_have_their_verdict(tmp_path: Path) -> None:
    other = arm("other")
    write_measurement(
        tmp_path,
        {REFERENCE: steady(1, seed=1), other: steady(3, seed=2), COPY: steady(1, seed=3)},
        warm=lambda arm, case, fork, number: (arm, case) == ("other", "speed1") and (fork, number) != (0, 0),
    )
    compile_ = fill_of(concluded(tmp_path), "compile", "other")
    assert (compile_.cases, compile_.unjudged, compile_.verdict) == (1, 1, "regressed")
    assert "not judged" in compile_.why


def test_a_change_without_a_figure_in_fresh_forks_is_not_confirmed(tmp_path: Path) -> None:
    folder = measured_run(
        tmp_path / "m",
        1.2,
        confirming=range(3),
        left_out=lambda arm, _, fork, __: arm == "toy==2" and fork >= 5,
    )
    fill = fill_of(concluded(folder))
    assert (fill.verdict, fill.why) == ("inconclusive", "not confirmed: no figure in fresh forks")
    assert main(["compare", str(folder), "--gate", "--time"]) == 0
    other = arm("other")
    arms = {REFERENCE: steady(1, seed=1), other: steady(3, seed=2), COPY: steady(1, seed=3)}
    write_measurement(
        tmp_path / "o",
        arms,
        confirming=range(3),
        left_out=lambda arm, _, fork, __: arm == "other" and fork >= 5,
    )
    assert fill_of(concluded(tmp_path / "o"), head="other").verdict == "regressed", "it is no change"


def test_per_token_figures_are_the_minimum_over_whole_forks(tmp_path: Path) -> None:
    write_measurement(
        tmp_path, {REFERENCE: lambda metric, fork, number: 1 + fork + number, COPY: steady(1)}, forks=3
    )
    figures = Figures(read_measurement(tmp_path))
    steps = figures.structural("toy==1", figures.measurement.traces)
    assert len(steps) == 2 and steps[0][:, 0].tolist() == list(FILLS)


@pytest.mark.parametrize("cases", [2, 3, 6])
def test_the_medians_of_terminal_and_table_are_the_same(
    tmp_path: Path, cases: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the number of cases was even, the terminal showed the larger of the two values in the middle, and
    the table the smaller one."""
    arms = {REFERENCE: steady(1, 0), COPY: steady(1, 0)}
    write_measurement(tmp_path, arms, forks=1, cases=cases)
    monkeypatch.setattr(Figures, "median", lambda self, arm, metric, case: (int(case[-1]) + 1) * 1e6)
    lines = show.arms_text(Figures(read_measurement(tmp_path))).splitlines()
    shown = lines[2].split()
    assert lines[-1].endswith("fills and accepts of each case's mean per token"), "the table's are of tokens"
    frame = time_frame(tmp_path)
    (told,) = set(frame[frame.figure == "compile per case"]["p50"])
    assert shown[2:4] == [f"{told / 1e6:g}", "ms"] == [f"{(cases + 1) // 2}", "ms"]


@pytest.mark.parametrize(("cases", "has_interval"), [(1, False), (7, False), (8, True)])
def test_a_median_over_few_cases_has_no_interval(tmp_path: Path, cases: int, has_interval: bool) -> None:
    """One case, with however many tokens, had an interval without width."""
    write_measurement(tmp_path, {REFERENCE: steady(1), COPY: steady(1)}, forks=1, cases=cases)
    frame = time_frame(tmp_path)
    measured = frame[(frame.cases == "common") & (frame.unit == "ns")]
    assert len(measured) and measured["p50"].notna().all()
    assert set(measured["p50_low"].notna()) == set(measured["p50_high"].notna()) == {has_interval}


@pytest.mark.parametrize("missing", ["masks_sha256", "allowed"])
def test_counts_without_what_is_compared_are_told(tmp_path: Path, missing: str) -> None:
    write_measurement(tmp_path, {REFERENCE: steady(1), COPY: steady(1)}, forks=1)
    lines = [json.loads(line) for line in (tmp_path / "rounds.jsonl").read_text().splitlines()]
    for line in lines:
        if line["kind"] == "counts":
            del line[missing]
    (tmp_path / "rounds.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(BadInput, match=f"not a line of a measurement .*{missing}"):
        read_measurement(tmp_path)


def test_a_slot_that_was_made_again_counts_once(tmp_path: Path) -> None:
    write_measurement(tmp_path, {REFERENCE: steady(1), COPY: steady(1)}, forks=1, cases=1)
    recorded = read_measurement(tmp_path)
    again = [type(each)(**{**vars(each), "again": 1}) for each in recorded.slots]
    doubled = type(recorded)(**{**vars(recorded), "slots": (*recorded.slots, *again)})
    assert {each.again for each in Figures(doubled).slots.values()} == {1}


def test_means_are_told_and_never_judged(tmp_path: Path) -> None:
    found = measured(tmp_path, 1.08)
    assert all(math.isfinite(each.mean_ratio) for each in found)
    assert "means" in show.comparisons_text(found, means=True) and "means" not in show.comparisons_text(found)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"{}\n", "not a line of such a record"),
        (b"nonsense\n", "not JSON"),
        (b'{"kind": "slot"}\n', "not a line of a measurement"),
    ],
)
def test_a_damaged_file_is_one_clear_line(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "rounds.jsonl").write_bytes(content)
    with pytest.raises(BadInput, match=said):
        read_measurement(tmp_path)


@pytest.mark.parametrize("named", [7, [0], [0, 1.5], ["0", "1"], None])
@pytest.mark.parametrize("kind", ["counts", "warm_up"])
def test_figures_that_are_no_place_and_count_are_told(tmp_path: Path, kind: str, named: object) -> None:
    write_measurement(tmp_path, {REFERENCE: steady(1), COPY: steady(1)}, forks=2)
    line = {"kind": kind, "arm": REFERENCE.name, "case_id": "x", "error": "lost", "figures": named}
    *before, _ = (tmp_path / "rounds.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "rounds.jsonl").write_text("".join([*before, json.dumps(line) + "\n"]))
    with pytest.raises(BadInput, match=r"rounds.jsonl:\d+: not a line of a measurement .*/figures"):
        read_measurement(tmp_path)


def test_a_measurement_whose_end_is_not_the_end_of_all_its_lines_is_told(tmp_path: Path) -> None:
    write_measurement(tmp_path, {REFERENCE: steady(1), COPY: steady(1)}, forks=1)
    *before, lost, end = (tmp_path / "rounds.jsonl").read_text().splitlines(keepends=True)
    for lines, said in (
        ([*before, end], f"its last line speaks of {len(before)} lines, {len(before) - 1} are there"),
        ([*before, lost, end, lost], "it stands behind the end"),
    ):
        (tmp_path / "rounds.jsonl").write_text("".join(lines))
        with pytest.raises(BadInput, match=rf"not a line of a measurement \({said}\)"):
            read_measurement(tmp_path)


def test_a_measurement_that_was_killed_is_read_to_its_last_whole_line(tmp_path: Path) -> None:
    write_measurement(tmp_path, {REFERENCE: steady(1), COPY: steady(1)}, forks=2)
    whole = (tmp_path / "rounds.jsonl").read_bytes()
    (tmp_path / "rounds.jsonl").write_bytes(whole[: whole.rindex(b"\n", 0, len(whole) - 1) - 30])
    recorded = read_measurement(tmp_path)
    assert recorded.end is None and len(recorded.slots) == 2 * 4 * 2 * 2
