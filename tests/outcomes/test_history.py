"""Measurements over time: files that are only added, ratios to a reference, and an alert that wants a step
that stays."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest
from histories import add_times, entry, write_entries
from hypothesis import given
from hypothesis import strategies as st
from measured import arm, steady, write_measurement
from synthetic import row, write_run

from harness.cli.main import main
from harness.outcomes.history import measurements
from harness.outcomes.history.alert_rule import state
from harness.outcomes.history.conformance import NO_CHECKS, SuiteHistory, releases
from harness.outcomes.history.measurements import alerts, read_entries, series

REFERENCE, COPY, HEAD = arm("ref", "reference", version="1"), arm("ref (again)", "a/a", "ref"), arm("toy")


def one_run(
    folder: Path,
    number: int,
    head: float,
    reference: str = "ref",
    others: dict[str, float] | None = None,
    **options: Any,
) -> Path:
    """The `number`-th run, a day after the one before."""
    arms = {
        arm(reference, "reference"): steady(1, seed=number),
        arm(f"{reference} (again)", "a/a", reference): steady(1, seed=50 + number),
    }
    arms |= {
        arm(name): steady(factor, seed=100 + number)
        for name, factor in ({"toy": head} | (others or {})).items()
    }
    write_measurement(
        folder, arms, run=f"run{number:02}", started=f"2026-11-{number + 1:02}T12:00:00+00:00", **options
    )
    return folder


def fill_state(folder: Path, backend: str = "toy") -> str:
    every = [each for entries in read_entries(folder).values() for each in series(entries)]
    return next(each.state for each in every if (each.backend, each.metric) == (backend, "fill"))


def test_a_step_that_stays_is_an_alert_and_one_bad_run_is_not(tmp_path: Path) -> None:
    past = tmp_path / "history"
    states = []
    for number, head in enumerate([2.0] * 9 + [2.4, 2.0, 2.0, 2.4, 2.4, 2.4]):
        add_times(past, one_run(tmp_path / f"run{number}", number, head))
        states.append(fill_state(past))
        code = main(["history", str(past), "--gate"])
        assert code == {"no baseline": 4, "quiet": 0, "alert": 1}[states[-1]]
    # One bad run is not a step, and hides none.
    assert states == ["no baseline"] * 10 + ["quiet"] * 4 + ["alert"]
    assert {each.backend for each in alerts(past)} == {"toy"}


def test_a_gate_that_finds_no_series_with_a_baseline_is_unproven(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    past = tmp_path / "history"
    past.mkdir()
    assert main(["history", str(past)]) == 0 and capsys.readouterr().err == ""
    assert main(["history", str(past), "--gate"]) == 4
    assert "no series of times has a baseline yet (it takes 11 runs)" in capsys.readouterr().err
    write_entries(past, [entry(number, 1.0) for number in range(11)])
    assert main(["history", str(past), "--gate"]) == 0 and capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("ratios", "said"),
    [
        ([1.0] * 10, "no baseline"),
        ([1.0] * 11, "quiet"),
        ([1.0] * 8 + [1.06] * 3, "alert"),
        ([1.0] * 8 + [1.06, 1.06, 1.04], "quiet"),
        ([1.0] * 6 + [1.02] * 2 + [1.06] * 3, "quiet"),
        ([1.0] * 7 + [1.5] + [1.06] * 3, "alert"),
        ([1.0] * 8 + [1.06] * 7, "alert"),
        ([1.0] * 8 + [1.06] * 8, "quiet"),
        ([1.0] * 8 + [1.06] * 3 + [1.0] * 3, "better"),
        ([1.0] * 8 + [0.9] * 3, "better"),
        ([9.0] * 5 + [1.0] * 8 + [1.2] * 3, "alert"),
    ],
)
def test_the_rule(ratios: list[float], said: str) -> None:
    assert state(ratios) == said


@given(st.lists(st.floats(0.98, 1.02), max_size=40))
def test_noise_within_two_percent_is_never_told(ratios: list[float]) -> None:
    assert state(ratios) in ("quiet", "no baseline")


def test_other_hardware_and_other_work_are_other_series(tmp_path: Path) -> None:
    past = tmp_path / "history"
    different: list[dict[str, Any]] = [{}, {"hardware": "other"}, {"workload": "other"}]
    for number, changed in enumerate(different):
        add_times(past, one_run(tmp_path / f"run{number}", number, 2.0, **changed))
    assert len(read_entries(past)) == 3
    assert len(list(past.glob("*/*/*.jsonl.gz"))) == 3


def test_a_new_reference_is_spliced_where_a_run_has_both(tmp_path: Path) -> None:
    """`toy` takes twice `ref`'s time, `ref` twice that of `next`: to `next` it is four, in the old
    runs too.
    """
    past = tmp_path / "history"
    add_times(past, one_run(tmp_path / "a", 0, 2.0))
    add_times(past, one_run(tmp_path / "b", 1, 4.0, reference="next", others={"ref": 2.0}))
    add_times(past, one_run(tmp_path / "c", 2, 4.0, reference="next"))
    (entries,) = read_entries(past).values()
    found = next(each for each in series(entries) if (each.backend, each.metric) == ("toy", "fill"))
    assert [each.ratio for each in found.entries] == pytest.approx([4.0, 4.0, 4.0], rel=0.02)
    assert {each.reference for each in found.entries} == {"next==1"}


@pytest.mark.parametrize("fields", [{"proven": False}, {"ratio": math.inf}, {"ratio": 0.0}])
def test_a_run_that_proves_nothing_moves_no_other_runs(tmp_path: Path, fields: dict[str, Any]) -> None:
    """Ten runs to `ref==1`, a sound one that has both references, two to `ref==2`, and one bad night that
    has both: its factor would be an alert of its own making."""
    of_new = {"reference": "ref==2"}
    entries = [entry(number, 1.0) for number in range(10)]
    entries += [entry(number, 1.0, **of_new) for number in range(10, 14)]
    of_old = {"backend": "ref", "version": "1", **of_new}
    entries += [entry(10, 1.0, **of_old), entry(13, **{"ratio": 0.8, **of_old, **fields})]
    past = tmp_path / "history"
    write_entries(past, entries)
    (read,) = read_entries(past).values()
    found = next(each for each in series(read) if each.backend == "alpha")
    assert [each.ratio for each in found.entries] == [1.0] * 14
    assert main(["history", str(past), "--gate"]) == 0


def test_without_such_a_run_the_series_begins_anew(tmp_path: Path) -> None:
    past = tmp_path / "history"
    add_times(past, one_run(tmp_path / "a", 0, 2.0))
    add_times(past, one_run(tmp_path / "b", 1, 4.0, reference="next"))
    (entries,) = read_entries(past).values()
    assert len(next(each for each in series(entries) if each.backend == "toy").entries) == 1


def test_it_is_only_appended_to_and_absolute_values_stand_beside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    past, run = tmp_path / "history", one_run(tmp_path / "a", 0, 2.0)
    path = add_times(past, run)
    before = path.read_bytes()
    assert main(["history", str(past), "--add", str(run)]) == 2
    assert "only appended to" in capsys.readouterr().err and path.read_bytes() == before
    (entries,) = read_entries(past).values()
    fill = next(each for each in entries if (each.backend, each.metric) == ("toy", "fill"))
    assert (
        fill.nanoseconds == pytest.approx(2 * (2000 + 3000 + 9000 + 2500), rel=0.02)
        and fill.low < fill.ratio < fill.high
    )
    assert main(["history", str(past), "--json"]) == 0
    assert {each["state"] for each in json.loads(capsys.readouterr().out)} == {"no baseline"}


def test_a_run_that_cannot_be_added_leaves_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = one_run(write_run(tmp_path / "run", [[(row(), b"")]]), 0, 2.0)
    rows = (run / "rows.jsonl").read_text()
    (run / "rows.jsonl").write_text(rows.replace('"rows":1', '"rows":2'))
    for _ in range(2):
        assert main(["history", str(tmp_path / "past"), "--add", str(run)]) == 2
    said = capsys.readouterr().err
    assert "added" not in said and "is there already" not in said
    (run / "rows.jsonl").write_text(rows)
    assert main(["history", str(tmp_path / "past"), "--add", str(run)]) == 0
    assert capsys.readouterr().err.count("added") == 2


def test_what_could_not_be_written_is_added_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, past = one_run(write_run(tmp_path / "run", [[(row(), b"")]]), 0, 2.0), tmp_path / "past"
    past.mkdir()
    (past / "conformance").touch()
    words = ["history", str(past), "--add", str(run)]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and f"{past / 'conformance'}: cannot be written (File exists)" in said
    (past / "conformance").unlink()
    assert not [path for path in past.rglob("*") if path.is_file()]
    add_times(past, run)  # as a history may be that was written when the disk was full
    (measured,) = past.rglob("*.gz")
    before = measured.read_bytes()
    assert main(words) == 0
    assert capsys.readouterr().err.count("added") == 2 and measured.read_bytes() == before
    assert main(words) == 2
    assert "is there already; a history is only appended to" in capsys.readouterr().err


def test_a_file_of_another_content_is_in_the_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, past = one_run(write_run(tmp_path / "run", [[(row(), b"")]]), 0, 2.0), tmp_path / "past"
    path = add_times(past, run)
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()) + b"{}\n"))
    assert main(["history", str(past), "--add", str(run)]) == 2
    assert "is there already, and differs" in capsys.readouterr().err
    assert list(past.rglob("*.gz")) == [path]


def test_a_run_with_checks_tells_more_of_a_version_than_a_later_one_without() -> None:
    def of(run: str, sample: str) -> SuiteHistory:
        return SuiteHistory("", run, "toy", "1", "", "probe", "keywords", "", {}, sample)

    checked, sampled, timed = of("a", ""), of("b", "a sample"), of("c", f"a sample; {NO_CHECKS}")
    assert releases([checked, timed]) == [checked] and releases([timed]) == [timed]
    assert releases([timed, checked, timed, sampled, timed]) == [sampled]


def test_bad_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", str(tmp_path / "none")]) == 2
    assert main(["history", str(tmp_path / "h"), "--add", str(tmp_path / "none")]) == 2
    (tmp_path / "decode.jsonl").touch()
    assert main(["history", str(tmp_path / "h"), "--add", str(tmp_path)]) == 2
    assert "holds a decoding, and a history takes none" in capsys.readouterr().err
    damaged = tmp_path / "d" / "hw" / "work" / "x.jsonl.gz"
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"no gzip")
    assert main(["history", str(tmp_path / "d")]) == 2
    assert "no file of a history" in capsys.readouterr().err
    assert measurements.HISTORY == 1
