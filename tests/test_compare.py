"""Two arms of a run, or two runs: what is told, what gates, and what is not comparable."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from measured import arm, steady, write_measurement
from synthetic import info, row
from test_report_sections import played, write_decoding

from harness.cli import main
from harness.compare import NO_BASELINE, alone, compare_arms, compare_runs
from harness.report import comparing
from harness.report.inputs import read_inputs
from harness.row import Arm, RunInfo
from harness.store import Writer

OLD = Arm("toy", "1", "", "toy", ("regex",), "bitmask")
NEW = replace(OLD, version="2")
REFERENCE, COPY, HEAD = arm("toy==1", "reference", "toy", "1"), arm("toy==1 (again)", "a/a", "toy", "1"), arm("toy==2", "arm", "toy", "2")


def write_run(folder: Path, arms: dict[Arm, dict[str, Any]], *, finish: bool = True) -> Path:
    """Two cases on every arm, all right but for what is said of an arm's second case."""
    folder.mkdir(parents=True, exist_ok=True)
    header: RunInfo = info(tuple(arms), suites={"first": {"version": "1", "sha256": "0" * 64, "cases": 2, "instances": 2}})
    with Writer(folder, header) as writer:
        for each, changed in arms.items():
            who = {"backend": each.backend, "backend_version": each.version, "options": each.options}
            writer.append([(row(**who, case="one", case_id="0" * 12), b"")])
            writer.append([(row(**who, case="two", case_id="1" * 12, **changed), b"")])
        if finish:
            writer.finish("2026-11-21T12:00:00Z")
    return folder


def measured_run(folder: Path, head: float, changed: dict[str, Any] | None = None, **options: Any) -> Path:
    write_run(folder, {OLD: {}, NEW: changed or {}})
    arms = {REFERENCE: steady(1, seed=1), HEAD: steady(head, seed=2), COPY: steady(options.pop("copy", 1), seed=3)}
    write_measurement(folder, arms, **options)
    return folder


def test_versions_of_one_run_are_compared_in_outcomes_and_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = measured_run(tmp_path, 1.2, {"accepted": False, "stopped_at": 2})
    (pair,) = compare_arms(folder)
    assert [each.name for each in pair.outcomes.cases] == ["two"] and pair.outcomes.cases[0].kind == "worse"
    assert {each.metric: each.verdict for each in pair.times}["fill"] == "regressed"
    assert main(["compare", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "new faults: 1 case(s)" in shown and "SLOWER" in shown and "toy==1  ->  toy==2" in shown and "proven" in shown


@pytest.mark.parametrize(
    ("head", "changed", "options", "gate", "timed"),
    [
        (1.0, {}, {}, 0, 0),
        (1.2, {}, {}, 0, 1),  # a slowdown gates only when it is asked for
        (1.0, {"accepted": False, "stopped_at": 1}, {}, 1, 1),
        (1.0, {"status": "timeout", "phase": "compile", "accepted": None}, {}, 0, 0),  # depends on the machine
        (1.0, {}, {"copy": 1.4}, 0, 4),
        (1.0, {}, {"counts": {"toy==2": {"masks_sha256": "11", "allowed": 8}}}, 1, 1),
        (1.0, {}, {"counts": {"toy==2": {"forced_bytes": 2}}}, 1, 1),
        (1.0, {}, {"counts": {"toy==2": {"forced_bytes": 4}}}, 0, 0),
        (1.0, {}, {"counts": {"toy==2": {"serialized_bytes": 1040}}}, 0, 0),
        (1.0, {}, {"counts": {"toy==2": {"serialized_bytes": 1100}}}, 1, 1),
    ],
)
def test_the_gate(tmp_path: Path, head: float, changed: dict[str, Any], options: dict[str, Any], gate: int, timed: int) -> None:
    folder = measured_run(tmp_path, head, changed, **options)
    assert main(["compare", str(folder), "--gate"]) == gate
    assert main(["compare", str(folder), "--gate", "--time"]) == timed


def test_two_runs_are_compared_by_backend_and_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = write_run(tmp_path / "base", {OLD: {}})
    head = write_run(tmp_path / "head", {NEW: {"accepted": False, "stopped_at": 0}})
    (pair,) = compare_runs(base, head)
    assert pair.counts_worse and not pair.times
    assert main(["compare", str(base), str(head), "--gate"]) == 1
    assert main(["compare", str(head), str(base), "--gate"]) == 0  # a fault that is gone fails nothing
    capsys.readouterr()
    assert main(["compare", str(base), str(head), "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert told["base"]["version"] == "1" and told["head"]["version"] == "2" and told["worse"]
    assert told["outcomes"][0]["case"] == "two"


@pytest.mark.parametrize(
    ("changed", "why"),
    [({"hardware": "x" * 12}, "hardware"), ({"workload": "x" * 12}, "workload"), ({}, "")],
)
def test_times_of_two_runs_are_told_only_where_they_are_comparable(tmp_path: Path, changed: dict[str, Any], why: str) -> None:
    base = measured_run(tmp_path / "base", 1.0)
    head = measured_run(tmp_path / "head", 1.5, **changed)
    told = compare_runs(base, head)[0].told
    if why:
        assert [NO_BASELINE in each and why in each for each in told] == [True]
    else:
        (line,) = [each for each in told if each.startswith("fill speed")]
        assert "(+4" in line or "(+5" in line
    assert not compare_runs(base, head)[0].times  # told, never judged


def test_a_page_with_a_forest_plot(tmp_path: Path) -> None:
    folder = measured_run(tmp_path / "run", 1.2, {"accepted": False, "stopped_at": 2})
    assert main(["compare", str(folder), "--html", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert page.count("<svg") == 1 and ">▼ slower<" in page and "toy==2" in page
    assert main(["compare", str(folder), "--html", str(tmp_path / "again.html")]) == 0
    assert (tmp_path / "again.html").read_bytes() == (tmp_path / "page.html").read_bytes()


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    hostile = "</script><img src=x onerror=alert(1)>"
    folder = tmp_path / "run"
    write_run(folder, {OLD: {}, NEW: {"accepted": False, "stopped_at": 0, "instance_name": hostile}})
    assert main(["compare", str(folder), "--html", str(tmp_path / "page.html")]) == 0
    assert hostile not in (tmp_path / "page.html").read_text()


def test_what_cannot_be_compared_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = write_run(tmp_path / "whole", {OLD: {}})
    other = write_run(tmp_path / "other", {replace(OLD, backend="else"): {}})
    assert main(["compare", str(whole), str(other)]) == 2
    assert "no backend with the same options in common" in capsys.readouterr().err
    assert main(["compare", str(whole)]) == 0
    assert "nothing to compare" in capsys.readouterr().out
    assert main(["compare", str(whole), "--gate"]) == 4  # a gate that looked at nothing has proven nothing


def test_what_only_one_run_has_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = write_run(tmp_path / "base", {OLD: {}})
    head = write_run(tmp_path / "head", {NEW: {}, replace(OLD, backend="else"): {}})
    assert main(["compare", str(base), str(head)]) == 0
    assert "not compared: else (in" in capsys.readouterr().out and alone(base, base) == ""


def test_other_masks_fail_a_gate_and_nobody_says_which_are_right(tmp_path: Path) -> None:
    folder = measured_run(tmp_path / "run", 1.0, counts={"toy==2": {"masks_sha256": "11", "allowed": 8}})
    (pair,) = compare_arms(folder)
    assert pair.what_is_worse.startswith("other masks (which are right, only a run with checks tells) in ")
    (found,) = comparing.told(read_inputs([folder]))  # versions within one run are listed on the page too
    assert found.title == "toy==1 → toy==2" and found.counted == pair.counted and found.counted


def test_what_has_no_end_is_compared_and_kept_by_nobody_and_the_exit_code_is_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, torn = (str(write_run(tmp_path / name, {OLD: {}}, finish=name == "whole")) for name in ("whole", "torn"))
    half_measured = str(measured_run(tmp_path / "half measured", 1.0, finish=False))
    half_decoded = str(write_decoding(tmp_path / "half decoded", played(), finish=False))
    record, past = str(tmp_path / "record.json"), str(tmp_path / "past")
    assert main(["expect", whole, record, "--record"]) == 0
    for command in (
        ["compare", whole, torn],
        ["compare", torn, whole, "--gate"],
        ["compare", half_measured, "--gate"],
        ["compare", half_decoded],
        ["expect", torn, record],
        ["expect", torn, str(tmp_path / "other.json"), "--record"],
        ["history", past, "--add", torn],
        ["history", past, "--add", half_measured],
        ["export", whole, torn, "--gate", "--out", str(tmp_path / "exported")],
    ):
        capsys.readouterr()
        assert main(command) == 3, command
        said = capsys.readouterr()
        assert ("incomplete" in said.err or "no end" in said.err) and said.err.count("\n") == 1 and not said.out, command
    assert not (tmp_path / "past").exists() and not (tmp_path / "other.json").exists()
