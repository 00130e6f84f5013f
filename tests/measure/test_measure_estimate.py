"""From recorded figures to verdicts, on measurements whose truth is known."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from measured import FILLS, arm, steady, write_measurement

from harness.errors import BadInput
from harness.measure import show
from harness.measure.estimate import Comparison, compare, flagged, is_proven, pairs, undecided
from harness.measure.figures import Figures
from harness.measure.record import read_measurement
from harness.measure.session import conclude

REFERENCE, COPY = arm("toy==1", "reference", "toy", "1"), arm("toy==1 (again)", "a/a", "toy", "1")
HEAD = arm("toy==2", "arm", "toy", "2")


def verdicts(found: list[Comparison], head: str = "toy==2") -> dict[str, str]:
    return {each.metric: each.verdict for each in found if each.head == head}


def measured(folder: Path, head: float, **options: object) -> list[Comparison]:
    arms = {REFERENCE: steady(1, seed=1), HEAD: steady(head, seed=2), COPY: steady(1, seed=3)}
    write_measurement(folder, arms, **options)  # type: ignore[arg-type]
    return conclude(folder)


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
    assert is_proven(found, Figures(read_measurement(tmp_path)))


def test_without_an_equivalent_copy_nothing_is_said(tmp_path: Path) -> None:
    arms = {REFERENCE: steady(1, seed=1), HEAD: steady(1.5, seed=2), COPY: steady(1.3, seed=3)}
    write_measurement(tmp_path, arms)
    found = conclude(tmp_path)
    assert verdicts(found)["fill"] == "unproven"
    assert verdicts(found)["matcher_new"] == "equivalent"  # there the copy is the same
    assert not is_proven(found, Figures(read_measurement(tmp_path)))
    assert undecided(found, Figures(read_measurement(tmp_path)))
    assert "UNPROVEN" in show.text(Figures(read_measurement(tmp_path)), found)


def test_a_noisy_machine_widens_the_margin(tmp_path: Path) -> None:
    """Rounds of identical code that lie four percent apart: five percent more is no longer told."""
    arms = {
        REFERENCE: steady(1, 0.04, seed=1),
        HEAD: steady(1.07, 0.04, seed=2),
        COPY: steady(1, 0.04, seed=3),
    }
    write_measurement(tmp_path, arms, forks=8)
    found = conclude(tmp_path)
    fill = next(each for each in found if (each.head, each.metric) == ("toy==2", "fill"))
    assert fill.margin == pytest.approx(3 * fill.floor) and fill.margin > 0.06
    assert fill.verdict in ("equivalent", "inconclusive", "unproven")


def test_one_wild_fork_does_not_make_a_verdict(tmp_path: Path) -> None:
    def wild(metric: str, fork: int, number: int) -> float:
        return 1.4 if fork == 2 else 1.0

    write_measurement(tmp_path, {REFERENCE: steady(1, seed=1), HEAD: wild, COPY: steady(1, seed=3)}, forks=8)
    assert verdicts(conclude(tmp_path))["fill"] == "inconclusive"


def test_a_change_must_be_confirmed_by_fresh_forks(tmp_path: Path) -> None:
    def slow_at_first(metric: str, fork: int, number: int) -> float:
        return 1.2 if fork < 5 else 1.0

    arms = {REFERENCE: steady(1, seed=1), HEAD: slow_at_first, COPY: steady(1, seed=3)}
    write_measurement(tmp_path / "not", arms, confirming=range(5))
    refuted = conclude(tmp_path / "not")
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


def test_per_token_figures_are_the_minimum_over_everything(tmp_path: Path) -> None:
    write_measurement(
        tmp_path, {REFERENCE: lambda metric, fork, number: 1 + fork + number, COPY: steady(1)}, forks=3
    )
    figures = Figures(read_measurement(tmp_path))
    steps = figures.structural("toy==1", figures.measurement.traces)
    assert len(steps) == 2 and steps[0][:, 0].tolist() == list(FILLS)


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


def test_a_measurement_that_was_killed_is_read_to_its_last_whole_line(tmp_path: Path) -> None:
    write_measurement(tmp_path, {REFERENCE: steady(1), COPY: steady(1)}, forks=2)
    whole = (tmp_path / "rounds.jsonl").read_bytes()
    (tmp_path / "rounds.jsonl").write_bytes(whole[: whole.rindex(b"\n", 0, len(whole) - 1) - 30])
    recorded = read_measurement(tmp_path)
    assert recorded.end is None and len(recorded.slots) == 2 * 4 * 2 * 2
