"""What was not done does not look good: no rows, no checks, nothing judged; policy is no failing check."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from compared import NEW, OLD, write_run
from html_page import page_of
from synthetic import info, row
from synthetic import write_run as write_groups

from harness.cli.main import main
from harness.outcomes.answer import read_answer
from harness.outcomes.result import result_of
from harness.outcomes.summary import CheckSummary, read_arms
from harness.report.page.sections.checks import check_lines
from harness.report.run_summary import read_summary, summary_text
from harness.report.tables.instances import check_cell, terminal_text
from harness.rows.row import CHECKS_MODE, Finding
from harness.text import Console

POLICY = "spellings_are_accepted"
UNJUDGED: dict[str, Any] = {"valid": None, "accepted": None, "instance": None}
DECLINED: dict[str, Any] = {"status": "unsupported", "phase": "compile", "accepted": None}


def section(page: str, name: str) -> str:
    found = re.search(rf'<section id="{name}">.*?</section>', page, flags=re.DOTALL)
    assert found
    return " ".join(re.sub(r"<[^>]*>", " ", found[0]).split())


def empty(folder: Path) -> Path:
    return write_groups(folder, [], info([OLD]))


def checked(folder: Path, result: str, **fields: Any) -> Path:
    """Returns a run of one case, with one check that passed or failed."""
    walks = [(row(backend="toy", backend_version="1"), b"")]
    about = {"instance": None, "valid": None, "accepted": None, "mode": CHECKS_MODE}
    looked = row(backend="toy", backend_version="1", **about, checks={fields.pop("check"): result}, **fields)
    return write_groups(folder, [[*walks, (looked, b"")]], info([OLD], effort=1))


def test_without_rows_no_section_says_that_nothing_was_found(tmp_path: Path) -> None:
    run = empty(tmp_path / "run")
    page = page_of(run)
    assert "No case was walked." in section(page, "failing")
    assert "No case was walked." in section(page, "disagreements")
    assert "are under Figures" not in page and "is under Figures" not in page
    assert result_of(run).figures == ()
    assert [one.vocabulary for one in read_answer(run).backends] == ["tiny"]
    assert "no case was walked" in summary_text(read_summary(run), Console(80)).splitlines()


def test_without_checks_no_check_is_said_to_have_seen_nothing(tmp_path: Path) -> None:
    without = section(page_of(write_run(tmp_path / "without", {OLD: {}})), "failing")
    assert "None: no case fails or is refused, and no checks were made." in without
    run = checked(tmp_path / "with", "passed", check="a_check")
    assert "None: no case fails or is refused, and no check saw anything." in section(page_of(run), "failing")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "no failure"),
        (UNJUDGED, "no failure, but nothing was judged"),
        (DECLINED, "no failure, but no case works"),
    ],
)
def test_no_failure_is_good_news_only_where_something_works(
    tmp_path: Path, fields: dict[str, Any], said: str
) -> None:
    run = write_run(tmp_path / "run", {OLD: fields}, cases=1)
    summary = read_summary(run)
    assert said in summary_text(summary, Console(80)).splitlines()
    good = Console(80, styled=True).paint("no failure", "good")
    assert (good in summary_text(summary, Console(80, styled=True))) == (said == "no failure")


def test_policy_is_marked_and_is_no_failing_check(tmp_path: Path) -> None:
    found = (Finding(POLICY, 0, "an escape is refused", "escaped"),)
    run = checked(tmp_path / "run", "failed", check=POLICY, findings=found)
    (line,) = check_lines(read_arms(run))
    assert line.cells[0].is_policy and line.cells[0].shade == 3
    table = " ".join(terminal_text(run).split())
    assert "1/1°" in table and "° policy, no fault" in table
    page = section(page_of(run), "checks")
    assert (
        "1 /1 °" in page and "° policy, no fault" in page and "documented" not in page.partition("Check ")[2]
    )
    assert "Checks failing" not in summary_text(read_summary(run), Console(80))


def test_a_check_of_faults_is_counted_and_marked_as_before() -> None:
    assert check_cell("a_check", CheckSummary(failed=2, passed=1)) == "2/3"
    assert check_cell("a_check", CheckSummary(failed=2, documented=2)) == "2/2*"
    assert check_cell(POLICY, CheckSummary(failed=2, documented=2)) == "2/2°"
    assert check_cell(POLICY, CheckSummary(passed=2)) == "0/2"


def test_groups_of_cases_are_called_what_they_are(tmp_path: Path) -> None:
    """The cases are refused: none fails."""
    alone = section(page_of(write_run(tmp_path / "alone", {OLD: DECLINED})), "disagreements")
    assert "Cases, in groups: 1" in alone and "Cases, in groups." in alone
    both = section(page_of(write_run(tmp_path / "both", {OLD: DECLINED, NEW: DECLINED})), "disagreements")
    assert "Cases in which the arms do not differ." in both
    for said in (alone, both):
        assert said.startswith(
            "Disagreements These groups hold the cases that fail, are refused or diverge as documented"
        )
        assert "Cases that fail alike" not in said and "every case that fails" not in said


@pytest.mark.parametrize("form", [[], ["--format", "markdown"], ["--json"]])
def test_a_run_without_keywords_has_no_table_of_them(
    tmp_path: Path, form: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run", {OLD: {}})
    assert main(["table", str(run), "keywords", *form]) == 2
    said = capsys.readouterr()
    assert not said.out and said.err.count("\n") == 1
    assert "has no cases of keywords; make some with grammarbench run keywords --profile full" in said.err
