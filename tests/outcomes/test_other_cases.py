"""Measured ratios over other cases than before: a set that changed is no change of a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import measured
import pytest
from histories import add_times, entry, noise, write_entries
from measured import Factor, arm, steady, write_measurement

from harness.cli.main import main
from harness.errors import OK, UNPROVEN
from harness.outcomes.compare.times import ratio_lines
from harness.outcomes.history.measurements import Entry, measurements_text, read_entries, series
from harness.shape import shaped

LOST = {"ref": {"speed2": "timeout"}}


@pytest.fixture(autouse=True)
def uneven(monkeypatch: pytest.MonkeyPatch) -> None:
    """The arm `toy` takes 0.2 times as long as the reference in `speed2`, and as long in the other cases."""
    plain = measured.slot

    def slot(fork: int, number: int, place: int, name: str, case: str, factor: Factor, **more: Any) -> Any:
        share = 0.2 if (name, case) == ("toy", "speed2") else 1.0
        return plain(fork, number, place, name, case, lambda *of: factor(*of) * share, **more)

    monkeypatch.setattr("measured.slot", slot)


def run(
    folder: Path,
    number: int = 0,
    unsolved: Mapping[str, Mapping[str, str]] | None = None,
    toy: float = 1.0,
    copy: float = 1.0,
    **more: Any,
) -> Path:
    """Writes a run of the reference, its copy and `toy` over three cases."""
    arms = {
        arm("ref", "reference"): steady(1, seed=3 * number + 1),
        arm("ref (again)", "a/a", "ref"): steady(copy, seed=3 * number + 2),
        arm("toy"): steady(toy, seed=3 * number + 3),
    }
    started = f"2026-11-{number + 1:02}T12:00:00+00:00"
    write_measurement(
        folder, arms, cases=3, unsolved=unsolved, run=f"run{number:02}", started=started, **more
    )
    return folder


# ------------------------------------------------------------------------------------------------ of two runs


def fill(base: Path, head: Path) -> str:
    return next(line for name, line in ratio_lines(base, head) if name == "toy" and line.startswith("fill"))


def test_two_runs_are_compared_over_the_cases_that_both_judged(tmp_path: Path) -> None:
    before, lost = run(tmp_path / "before"), run(tmp_path / "lost", 1, LOST)
    said = ", over 2 cases judged in both runs, of 3 and 2"
    assert fill(before, lost).startswith("fill speed: 1.00") and fill(before, lost).endswith(said)
    assert "%)" in fill(before, lost) and abs(float(fill(before, lost).split("(")[1].split("%")[0])) < 1
    assert fill(lost, before).endswith("of 2 and 3")


def test_the_same_cases_are_compared_without_a_word(tmp_path: Path) -> None:
    before, slower = run(tmp_path / "before"), run(tmp_path / "slower", 1, toy=1.5)
    assert "(+4" in fill(before, slower) or "(+5" in fill(before, slower)
    assert fill(before, slower).endswith("%)")


def test_runs_that_judged_no_case_in_common_are_not_compared(tmp_path: Path) -> None:
    ours = run(tmp_path / "ours", 0, {"ref": {"speed0": "timeout", "speed1": "timeout"}})
    theirs = run(tmp_path / "theirs", 1, LOST)
    assert fill(ours, theirs) == "fill speed: not compared, no case is judged in both runs"


def test_a_ratio_of_an_unproven_run_says_so(tmp_path: Path) -> None:
    before, noisy = run(tmp_path / "before"), run(tmp_path / "noisy", 1, copy=1.4)
    assert fill(before, noisy).endswith("%), unproven now")
    assert fill(noisy, before).endswith("%), unproven before")


# --------------------------------------------------------------------------------------------- of a history


def test_the_reference_that_solves_a_case_less_raises_no_alert(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Toy is as quick as ever. Without the case in which it is the quickest, its ratio grows."""
    history = tmp_path / "past"
    history.mkdir()
    for number in range(14):
        add_times(history, run(tmp_path / f"run{number}", number, LOST if number >= 11 else None))
    (entries,) = read_entries(history).values()
    toy = next(one for one in series(entries) if (one.backend, one.metric) == ("toy", "fill"))
    assert [one.ratio_cases for one in toy.entries] == [3] * 11 + [2] * 3
    assert [one.cases for one in toy.entries] == [3] * 14 and len({e.ratio_digest for e in toy.entries}) == 2
    assert toy.entries[0].ratio < 0.6 and toy.entries[-1].ratio > 0.9
    assert (toy.state, toy.events, toy.is_over_other_cases) == ("no baseline", (), True)
    assert "6 figures not held against earlier runs over other cases" in measurements_text(history)
    assert main(["history", str(history), "--gate"]) == UNPROVEN
    capsys.readouterr()


def track(ratios: list[float], digests: list[str]) -> list[Entry]:
    return [
        replace(entry(number, ratio), ratio_digest=digest)
        for number, (ratio, digest) in enumerate(zip(noise(ratios, 1), digests, strict=True))
    ]


@pytest.mark.parametrize(
    ("digests", "state"),
    [
        (["a"] * 14, "alert"),
        ([""] * 14, "alert"),
        ([""] * 11 + ["a"] * 3, "alert"),
        (["a"] * 11 + ["b"] * 3, "no baseline"),
    ],
    ids=["the same", "not known", "not known of the older ones", "other cases"],
)
def test_a_step_is_an_alert_where_the_cases_are_the_same(digests: list[str], state: str) -> None:
    (one,) = series(track([1.0] * 11 + [1.5] * 3, digests))
    assert one.state == state and len(one.events) == (state == "alert")
    assert one.is_over_other_cases == (state != "alert")


def test_a_set_that_changes_to_and_fro_keeps_its_baseline() -> None:
    digests = ["a", "a", "a", "b"] * 6
    ratios = [2.0 if digest == "b" else 1.0 for digest in digests]
    assert [one.state for one in series(track(ratios[:-1], digests[:-1]))] == ["quiet"]
    slower = [1.5 * ratio if number > 18 else ratio for number, ratio in enumerate(ratios)][:-1]
    (one,) = series(track(slower, digests[:-1]))
    assert one.state == "alert" and [event.at for event in one.events] == [22]


def test_an_alert_over_the_cases_before_stays_in_the_feed() -> None:
    (one,) = series(track([1.0] * 11 + [1.5] * 3 + [0.8] * 2, ["a"] * 14 + ["b"] * 2))
    assert one.state == "no baseline" and [event.at for event in one.events] == [13]


def test_an_unproven_run_over_fewer_cases_ends_no_alert() -> None:
    """An arm that was lost in a case leaves a run unproven, and over the other cases."""
    *proven, last = track([1.0] * 11 + [1.5] * 4, ["a"] * 14 + ["b"])
    (one,) = series([*proven, replace(last, proven=False)])
    assert (one.state, one.is_over_other_cases) == ("alert", False)


def test_a_history_from_before_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries = track([1.0] * 12, [""] * 12)
    lines = [asdict(one) for one in entries]
    for line in lines:
        del line["ratio_cases"], line["ratio_digest"]
    assert [shaped(Entry, line) for line in lines] == entries
    write_entries(tmp_path, entries)
    assert main(["history", str(tmp_path), "--gate"]) == OK
    assert "not held against" not in capsys.readouterr().out
