"""What CI tools read of the gate, and of failing cases beside documented faults."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from compared import NEW, OLD, write_run
from html_page import page_of
from junitparser import JUnitXml, Skipped

from harness.cli.main import main
from harness.outcomes.gate import NO_BASE, Verdict
from harness.outcomes.result import result_of
from harness.report.export import junit, summary, write
from harness.report.page.inputs import read_inputs
from harness.report.page.verdict import NOT_HELD, verdict
from harness.rows.folder import ROWS
from harness.rows.row import OUT_OF_TIME, Finding
from harness.rows.store import PACKED, packed

DOCUMENTED = Finding("a_documented_check", 1, "this is documented", "known", under=3, documented=True)
FOUND = Finding("another_check", 2, "this is wrong", "unknown", over=1)
POLICY = Finding("spellings_are_accepted", 0, "an escape is refused", "escaped")


def test_checks_that_had_no_time_left_are_no_fault(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {OLD: {"checks": {"another_check": OUT_OF_TIME}}})
    assert result_of(run).failing == ()
    late = write_run(tmp_path / "late", {OLD: {"status": "timeout", "phase": "check"}})
    assert [each.faults for each in result_of(late).failing] == [("timeout",)]


def test_a_failing_case_is_told_by_what_fails_it(tmp_path: Path) -> None:
    """The documented fault is the graver one, and stands first in the row."""
    run = write_run(tmp_path / "run", {OLD: {"findings": (DOCUMENTED, FOUND)}})
    (failing,) = result_of(run).failing
    assert failing.faults == ("another_check:unknown", "a_documented_check:known")
    assert failing.documented == ("a_documented_check:known",) and failing.said == "this is wrong"
    (path,) = write(result_of(run), ["junit"], tmp_path)
    assert 'message="another_check:unknown: this is wrong"' in path.read_text()
    *_, failing_csv = write(result_of(run), ["csv"], tmp_path)
    (line,) = csv.DictReader(failing_csv.open())
    assert line["said"] == "this is wrong" and line["faults"].startswith("another_check")


def test_a_wrong_verdict_without_words_does_not_borrow_a_documented_message(tmp_path: Path) -> None:
    wrong = {"accepted": False, "stopped_at": 1, "findings": (DOCUMENTED,)}
    (failing,) = result_of(write_run(tmp_path / "run", {OLD: wrong})).failing
    assert (failing.faults[0], failing.said) == ("over_constrained", "")


def test_what_is_documented_speaks_where_nothing_else_is_wrong(tmp_path: Path) -> None:
    (failing,) = result_of(write_run(tmp_path / "run", {OLD: {"findings": (DOCUMENTED,)}})).failing
    assert (failing.outcome, failing.said) == ("works", "this is documented")


def test_junit_says_that_what_fails_nothing_may_be_policy(tmp_path: Path) -> None:
    result = result_of(write_run(tmp_path / "run", {OLD: {"findings": (POLICY,)}}))
    (text,) = junit.files(result).values()
    assert "no failures, for the backend documents them or they are policy:" in text


def test_with_nothing_to_hold_a_run_against_no_form_says_that_it_held(tmp_path: Path) -> None:
    run, base = write_run(tmp_path / "run", {OLD: {}}), write_run(tmp_path / "base", {OLD: {}})
    for result, is_held in ((result_of(run), False), (result_of(run, base), True)):
        assert result.gate.verdict == "ok"
        (said,) = summary.files(result).values()
        assert said.startswith(
            "## GrammarBench: ✅ ok against " if is_held else f"## GrammarBench: {NO_BASE}\n"
        )
        (path,) = write(result, ["junit"], tmp_path)
        read = JUnitXml.fromfile(str(path))
        (gate,) = (suite for suite in read if suite.name == "gate")
        (test,) = gate
        told = [(type(one), one.message) for one in test.result]
        assert told == ([] if is_held else [(Skipped, NO_BASE)])
        assert (read.skipped, gate.skipped) == ((0, 0) if is_held else (1, 1))


@pytest.mark.parametrize("verdict_word", ["failed", "incomplete", "unproven"])
def test_a_gate_that_does_not_hold_is_a_failure_with_or_without_a_base(
    tmp_path: Path, verdict_word: Verdict
) -> None:
    result = result_of(write_run(tmp_path / "run", {OLD: {}}))
    gate = replace(result.gate, verdict=verdict_word, reasons=("why",))
    (path,) = write(replace(result, gate=gate), ["junit"], tmp_path)
    (suite,) = (suite for suite in JUnitXml.fromfile(str(path)) if suite.name == "gate")
    assert (suite.failures, suite.skipped) == (1, 0)


def test_a_published_run_may_leave_rows_out_and_no_other_may(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = write_run(tmp_path / "short", {OLD: {}})
    header, kept, _, end = (short / ROWS).read_bytes().splitlines(keepends=True)
    (short / ROWS).write_bytes(header + kept + end)
    (short / "cases.jsonl").touch()
    published = tmp_path / "published"
    published.mkdir()
    (published / PACKED).write_bytes(packed((short / ROWS).read_bytes()))
    asked = ["--format", "html,json,junit,markdown"]
    assert main(["report", str(published), *asked, "--out", str(tmp_path / "of published")]) == 0
    assert "incomplete" not in capsys.readouterr().err
    assert result_of(published).gate.verdict == "ok"
    page = (tmp_path / "of published" / "report.html").read_text("utf-8")
    assert "published with 1 of its 2 rows" in page and "✓ complete" in page and "inconsistent" not in page
    assert main(["report", str(short), *asked, "--out", str(tmp_path / "of short")]) == 3
    said = "its last line speaks of 2 rows, 1 is there"
    assert f"({said})" in capsys.readouterr().err and said in result_of(short).gate.reasons[0]
    page = (tmp_path / "of short" / "report.html").read_text("utf-8")
    assert "This run is inconsistent" in page and "A run here is not whole" in page
    assert "has no end" not in page
    for run, code in ((published, 0), (short, 2)):
        assert main(["history", str(tmp_path / f"history of {run.name}"), "--add", str(run)]) == code


def test_the_page_says_why_two_runs_are_not_held_against_one_another(tmp_path: Path) -> None:
    one = write_run(tmp_path / "one", {OLD: {}}, effort=2)
    other = write_run(tmp_path / "other", {NEW: {}}, effort=1)
    told = verdict(read_inputs([one, other]))
    assert (told.word, told.meaning) == ("NO BASELINE", NOT_HELD)
    assert "cannot be compared" in told.reasons[0] and "effort" in told.reasons[0]
    page = page_of(one, other)
    assert '<section id="verdict"' in page and NOT_HELD in page and "give two runs" not in page
    alone = page_of(one)
    assert '<section id="verdict"' not in alone and "give two runs" in alone


def test_runs_of_the_same_checks_are_gated_though_a_case_has_left_the_suite(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checks: dict[str, Any] = {"checks": ("the_mask_is_exact",), "effort": 1}
    base = write_run(tmp_path / "base", {OLD: {}}, **checks)
    suites = {"first": {"version": "2", "sha256": "1" * 64, "cases": 1, "instances": 1}}
    head = write_run(tmp_path / "head", {OLD: {}}, cases=1, suites=suites, **checks)
    assert main(["compare", str(base), str(head), "--gate"]) == 0
    assert "outcomes the same, of 1 case\n" in " ".join(capsys.readouterr().out.split(" ")).replace("  ", " ")
    sampled = {"first": {**suites["first"], "cases_in_all": 2}}
    part = write_run(tmp_path / "part", {OLD: {}}, cases=1, suites=sampled, **checks)
    assert main(["compare", str(base), str(part), "--gate"]) == 4
    reasons = result_of(part, base).gate.reasons
    assert any(f"{base}: a run of 1 check only" in reason for reason in reasons)
    assert any(reason.endswith("a sample: 1 of 2 cases of first") for reason in reasons)
