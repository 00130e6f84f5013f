"""Every figure of a measurement: percentiles only where there are values for them, on the common set and on
each arm's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from measured import FILLS, arm, steady, write_measurement
from places import ROOT

from harness.cli.main import main
from harness.measure.figures import Figures
from harness.measure.record import read_measurement
from harness.report.tables.time import time_frame


@pytest.fixture
def run(tmp_path: Path) -> Path:
    arms = {
        arm("a", "reference"): steady(1, 0),
        arm("b"): steady(2, 0),
        arm("a (again)", "a/a"): steady(1, 0),
    }
    write_measurement(tmp_path, arms, cases=3, unsolved={"b": {"speed2": "timeout"}})
    return tmp_path


def test_common_and_own_sets_stand_apart(run: Path) -> None:
    frame = time_frame(run)
    fills = frame[frame.figure == "fill per token, warm"].set_index(["arm", "cases"])
    assert fills.of.to_dict() == {
        ("a", "common"): "2/3",
        ("a", "own"): "3/3",
        ("b", "common"): "2/3",
        ("b", "own"): "2/3",
    }
    assert fills.n.to_dict() == {("a", "common"): 8, ("a", "own"): 12, ("b", "common"): 8, ("b", "own"): 8}
    assert (
        fills.loc[("b", "own"), "max"] == pytest.approx(2 * max(FILLS))
        and fills.loc[("a", "own"), "p50"] == sorted(FILLS)[1]
    )


def test_an_arm_with_more_forks_than_another_has_no_smaller_minimum(tmp_path: Path) -> None:
    """Only the arm whose verdict is open gets more forks than the profile's three, and one of them is
    lucky."""

    def same(metric: str, fork: int, number: int) -> float:
        return 0.8 if fork == 4 else 1.1 - 0.05 * fork

    arms = {arm("a", "reference"): same, arm("b"): same, arm("a (again)", "a/a"): same}
    write_measurement(tmp_path, arms, left_out=lambda arm, _, fork, __: arm == "b" and fork >= 3)
    frame = time_frame(tmp_path)
    warm = frame[(frame.figure == "fill per token, warm") & (frame.cases == "common")].set_index("arm")
    assert warm.loc["a", "max"] == warm.loc["b", "max"] == max(FILLS), "that of the last of three forks"


def test_a_percentile_with_few_values_beyond_it_is_left_out(run: Path) -> None:
    frame = time_frame(run)
    fills = frame[
        (frame.figure == "fill per token, warm") & (frame.arm == "a") & (frame.cases == "own")
    ].iloc[0]
    assert fills["p50"] and fills["p90"] is None and fills["p99"] is None


def test_cold_is_apart_from_warm_and_positions_are_told(run: Path) -> None:
    frame = time_frame(run)
    of_a = frame[(frame.arm == "a") & (frame.cases == "own")].set_index("figure")
    assert of_a.loc["fill per token, cold", "max"] == pytest.approx(3 * max(FILLS))
    assert of_a.loc["fill at tokens 0 to 0, warm", "p50"] == FILLS[0] and of_a.loc[
        "fill at tokens 1 to 3, warm", "max"
    ] == max(FILLS)
    assert of_a.loc["serialized_bytes", "p50"] == 1000


def test_a_value_is_the_median_over_rounds_or_the_least_as_the_page_says(tmp_path: Path) -> None:
    """Twenty rounds of one case: a compile is the mean of the two in the middle, a warm fill the least."""
    arms = {
        arm("a", "reference"): steady(1, 0.05, seed=1),
        arm("b"): steady(2, 0.05, seed=2),
        arm("a (again)", "a/a"): steady(1, 0.05, seed=3),
    }
    write_measurement(tmp_path, arms, cases=1)
    frame = time_frame(tmp_path)
    of_a = frame[(frame.arm == "a") & (frame.cases == "own")].set_index("figure")
    slots = [slot for (name, *_), slot in Figures(read_measurement(tmp_path)).shapes.items() if name == "a"]
    compiles = sorted(float(slot.compile_ns or 0) for slot in slots)
    assert of_a.loc["compile per case", "p50"] == (compiles[9] + compiles[10]) / 2 not in compiles
    colds = sorted(float(slot.cold[2, 0]) for slot in slots)
    assert of_a.loc["fill per token, cold", "max"] == (colds[9] + colds[10]) / 2
    assert of_a.loc["fill per token, warm", "max"] == min(float(slot.warm[2, 0]) for slot in slots)
    said = (ROOT / "docs" / "measuring.md").read_text("utf-8")
    assert "the median over forks and rounds, which of an even number is the mean of the two" in said


def test_a_time_is_rounded_once(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """332,526 ns were 332,500 in the table, of which LaTeX made 332 µs, and 333 µs in the terminal."""
    monkeypatch.setattr(Figures, "median", lambda *_: 332_526.0)
    frame = time_frame(run)
    assert set(frame[frame.figure == "compile per case"]["p50"]) == {332_526.0}


def test_from_the_command_line(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["table", str(run), "times", "--format", "csv"])
    assert "fill per token, warm" in capsys.readouterr().out
