"""A run as data frames: the words and numbers of every other surface, from whatever a folder holds."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import report_folders
import synthetic
from decode_runs import Played, decoding
from report_folders import STEPWISE, TEXTS
from synthetic import ARMS, synthetic_run

import harness
from harness.outcomes.case_state import FAILED
from harness.outcomes.outcome import CaseOutcome, Outcome, faults, outcome, walk_verdict
from harness.outcomes.result import result_of
from harness.outcomes.summary import common_solved, read_arms
from harness.report.frames.load import TABLES
from harness.report.tables.time import time_frame
from harness.rows.folder import ROWS
from harness.rows.row import VERDICT, Finding
from harness.rows.store import PACKED, packed, read_rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with everything that can go wrong, under hostile names."""
    return synthetic_run(tmp_path_factory.mktemp("frames") / "run", cases=40)


@pytest.fixture(scope="module")
def run(folder: Path) -> harness.Run:
    return harness.load(folder)


def published(written: Path, into: Path) -> Path:
    """The run as it is published: packed, without samples and cases."""
    into.mkdir(parents=True)
    (into / PACKED).write_bytes(packed((written / ROWS).read_bytes()))
    return into


def test_cases_count_as_the_result_counts_them(folder: Path, run: harness.Run) -> None:
    counts = result_of(folder).counts
    assert sum(count.cases for count in counts) == len(run.cases) == 40 * len(ARMS)
    for count in counts:
        name = run.cases["arm"] + " " + run.cases["version"] + " " + run.cases["vocabulary"]
        mine = run.cases[(name == count.arm) & (run.cases["suite"] == count.suite)]
        told = Counter(mine["outcome"])
        assert {kind.value: told[kind.value] for kind in CaseOutcome} == {
            kind.value: getattr(count, kind.value) for kind in CaseOutcome
        }
        assert (mine["judged"].sum(), len(mine)) == (count.judged, count.cases)
        states = Counter(mine[mine["outcome"] == "failed"]["state"])
        assert {state: states[state] for state in FAILED} == {
            state: getattr(count, state) for state in FAILED
        }


def test_failing_cases_say_what_the_result_says(folder: Path, run: harness.Run) -> None:
    wrong = run.cases[run.cases["faults"] != ""]
    said = {(line.suite, line.case_id, line.backend): line for line in wrong.itertuples()}
    failing = result_of(folder).failing
    assert len(failing) == len(said) > 10
    for case in failing:
        line = said[case.suite, case.case_id, case.arm.split()[0].partition(":")[0]]
        assert (line.outcome, line.state, line.said, line.repro, line.faults) == (
            case.outcome,
            case.state,
            case.said,
            case.repro,
            " ".join(case.faults),
        )


def test_instances_have_the_outcome_of_their_rows(folder: Path, run: harness.Run) -> None:
    rows = list(read_rows(folder))
    asked = [(outcome(row), walk_verdict(row)) for row in rows]
    words = [word if found == Outcome.DOCUMENTED else found.value for found, word in asked]
    assert run.instances["outcome"].tolist() == words
    assert run.instances["case"].tolist() == [row.case for row in rows]
    compiled = run.instances["compile_us"]
    assert [None if pd.isna(value) else round(value * 1000) for value in compiled] == [
        row.compile_ns for row in rows
    ]


def test_a_walk_with_documented_findings_has_its_verdict(tmp_path: Path) -> None:
    """Its `outcome` is the verdict by which walks are counted everywhere else. `documented` says of a wrong
    walk whether the backend documents it."""
    canonical = Finding("mask_accept_mismatch", 0, "seen", "canonical_only", documented=True)
    dialect = Finding(VERDICT, 0, "right in Rust", "regex_dialect_rust", documented=True)
    walks: list[dict[str, Any]] = [
        {"valid": True, "accepted": True, "findings": (canonical,)},
        {"valid": True, "accepted": False, "findings": (dialect,)},
        {"valid": False, "accepted": True, "findings": (canonical, dialect)},
        {"valid": None, "accepted": True, "findings": (canonical,)},
        {"valid": True, "accepted": True, "findings": (Finding("cannot_terminate", 0, "seen"),)},
    ]
    rows = [(synthetic.row(instance=number, **walk), b"") for number, walk in enumerate(walks)]
    instances = harness.load(synthetic.write_run(tmp_path / "run", [rows], synthetic.info())).instances
    assert list(zip(instances["outcome"], instances["documented"], strict=True)) == [
        ("pass", False),
        ("over_constrained", True),
        ("under_constrained", True),
        ("unjudged", False),
        ("finding", False),
    ]


def test_one_name_has_one_time(folder: Path, run: harness.Run) -> None:
    """The fill alone is the first fill; the time to the first mask is TTFM, which holds the compile."""
    rows = list(read_rows(folder))
    fills = [None if pd.isna(value) else round(value * 1000) for value in run.instances["first_fill_us"]]
    assert fills == [row.first_fill_ns for row in rows]
    named = [*run.cases, *run.instances, *run.times["figure"]]
    assert not [name for name in named if "first_mask" in name or "first mask" in name]


def test_findings_are_those_that_are_faults(folder: Path, run: harness.Run) -> None:
    found = [fault for row in read_rows(folder) for fault in faults(row) if fault.finding]
    assert len(found) == len(run.findings) > 0
    assert run.findings["check"].tolist() == [fault.finding.check for fault in found if fault.finding]
    assert run.findings["fails"].tolist() == [fault.fails for fault in found]


def test_times_of_walks_are_those_of_the_samples(folder: Path, run: harness.Run) -> None:
    arm = next(arm for arm in read_arms(folder) if arm.backend == "alpha")
    ns = [case.compile_ns for case in arm.cases.values() if case.declared and case.compile_ns is not None]
    own = run.times[(run.times["arm"] == "alpha") & (run.times["cases"] == "own")]
    (line,) = own[own["figure"] == "compile per case"].itertuples()
    assert line.n == len(ns) and line.max_us == max(ns) / 1e3
    assert line.p50_us == np.quantile(ns, 0.5, method="inverted_cdf") / 1e3
    assert line.p50_low_us <= line.p50_us <= line.p50_high_us
    assert pd.isna(line.p99_us), "fewer than ten values lie beyond it"
    (fills,) = own[own["figure"].str.startswith("fill per token")].itertuples()
    walks = [walk for case in arm.cases.values() if case.declared for walk in case.slices]
    assert fills.n == sum(count // 2 for _, count in walks)
    assert not pd.isna(fills.p99_us)


def test_the_common_times_are_of_the_cases_that_all_solve(folder: Path, run: harness.Run) -> None:
    common = common_solved(read_arms(folder))
    lines = run.times[(run.times["cases"] == "common") & (run.times["figure"] == "compile per case")]
    assert 0 < len(common) < 40
    assert lines["n"].tolist() == [len(common)] * len(ARMS)
    assert set(lines["of"]) == {f"{len(common)}/40"}


def test_a_published_run_has_all_but_the_times_of_masks(
    folder: Path, run: harness.Run, tmp_path: Path
) -> None:
    loaded = harness.load(published(folder, tmp_path / "run"))
    without = ["masks", "mask_p50_us", "mask_max_us", "repro"]  # `repro` names the folder
    pd.testing.assert_frame_equal(loaded.cases.drop(columns=without), run.cases.drop(columns=without))
    pd.testing.assert_frame_equal(loaded.instances, run.instances)
    pd.testing.assert_frame_equal(loaded.findings, run.findings)
    assert loaded.cases["masks"].isna().all() and run.cases["masks"].notna().any()
    assert set(loaded.times["figure"]) == {"compile per case", "first fill per case", "ttfm per case"}


def test_a_folder_of_runs_measurements_and_decodings_is_read_whole(tmp_path: Path) -> None:
    report_folders.write_rows(synthetic, tmp_path / "all" / "walked", cases=3)
    report_folders.measured_run(synthetic, tmp_path / "all" / "deep" / "measured", 1.2)
    report_folders.write_decoding(tmp_path / "all" / "decoded", report_folders.played())
    (tmp_path / "all" / "beside").mkdir()
    (tmp_path / "all" / "beside" / "notes.txt").write_text("nothing of ours")
    run = harness.load(str(tmp_path / "all"))
    assert run.names == ("decoded", "deep/measured", "walked") and run.is_complete
    assert set(run.cases["run"]) == {"deep/measured", "walked"}
    by_source = run.times.groupby("source")["run"].unique().map(set).to_dict()
    assert by_source == {
        "walked": {"walked", "deep/measured"},
        "measured": {"deep/measured"},
        "decoded": {"decoded"},
    }
    assert set(run.cases["arm"]) == {"alpha", "beta", "alpha==1", "alpha==2"}, "versions tell arms apart"
    measured = run.times[run.times["source"] == "measured"]
    table = time_frame(tmp_path / "all" / "deep" / "measured")
    assert measured["p50_us"].tolist() == [value / 1e3 for value in table[table["unit"] == "ns"]["p50"]]
    decoded = run.times[run.times["source"] == "decoded"]
    assert set(decoded["figure"]) == {"TTFT", "TTFT from row", "TPOT", "ITL", "end to end"}
    assert set(decoded["strategy"]) == {"none", "stepwise", "jump_forward"}
    tpot = decoded[(decoded["figure"] == "TPOT") & (decoded["strategy"] != "jump_forward")]
    means = tpot.groupby("strategy")["p50_us"].mean()
    assert means["stepwise"] / means["none"] == pytest.approx(1.1, rel=0.02), "masks cost a tenth"


def test_the_times_of_a_decoding_tell_its_settings_apart(tmp_path: Path) -> None:
    settings = (STEPWISE, replace(STEPWISE, kernel="own"), replace(STEPWISE, rate=4.0, cache=False))
    sides = {setting: {"alpha": Played(TEXTS, 11.0, 0.001)} for setting in settings}
    record = decoding(sides, plain=Played(TEXTS, 10.0, 0.001), forks=2)
    run = harness.load(report_folders.write_decoding(tmp_path / "decoded", record))
    lines = run.times[(run.times["figure"] == "TPOT") & (run.times["strategy"] != "none")]
    assert lines["knobs"].tolist() == ["", "kernel=own", "cache=off"]
    assert lines["rate"].fillna(0).tolist() == [0, 0, 4.0]


def test_what_has_no_end_is_told(tmp_path: Path) -> None:
    assert harness.load(synthetic_run(tmp_path / "whole", cases=2)).is_complete
    assert not harness.load(synthetic_run(tmp_path / "torn", cases=2, complete=False)).is_complete
    report_folders.write_decoding(tmp_path / "decoded", report_folders.played(), finish=False)
    assert not harness.load(tmp_path / "decoded").is_complete


def test_a_sample_is_told_first(tmp_path: Path) -> None:
    suites = {"first": {"version": "1", "sha256": "cd", "cases": 1, "instances": 1, "cases_in_all": 407}}
    run = harness.load(
        synthetic.write_run(tmp_path / "run", [[(synthetic.row(), b"")]], synthetic.info(suites=suites))
    )
    assert run.sample == "a sample: 1 of 407 cases of first"
    assert repr(run).endswith(
        "1 cases, 1 instances, 0 findings, 6 times, 0 scores; a sample: 1 of 407 cases of first>"
    )


def test_an_empty_table_has_its_columns_and_types(tmp_path: Path) -> None:
    decoded = harness.load(report_folders.write_decoding(tmp_path / "decoded", report_folders.played()))
    walked = harness.load(synthetic_run(tmp_path / "walked", cases=2))
    for table in TABLES:
        assert dict(getattr(decoded, table).dtypes) == dict(getattr(walked, table).dtypes)
    assert len(decoded.cases) == 0


@pytest.mark.parametrize("where", ["nowhere", "empty", "file"])
def test_where_nothing_is_one_line_says_so(where: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(harness.BadInput) as caught:
        harness.load(tmp_path / where)
    assert "\n" not in str(caught.value) and where in str(caught.value)


def test_a_damaged_run_is_refused(folder: Path, tmp_path: Path) -> None:
    into = published(folder, tmp_path / "run")
    (into / PACKED).write_bytes((into / PACKED).read_bytes()[:-200])
    with pytest.raises(harness.BadInput, match="no whole xz file"):
        harness.load(into)


def test_pandas_is_imported_when_a_run_is_loaded_and_not_before(folder: Path) -> None:
    program = (
        "import sys, harness; print('pandas' in sys.modules, harness.load.__name__); "
        f"print('pandas' in sys.modules); harness.load({str(folder)!r}); print('pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "load", "False", "True"]
