"""Checks as part of a run: a row of the whole case, and a backend that is lost in a check loses
nothing else.
"""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from typing import Any

import pytest
from isolated import walk_all

from harness.backend.grammar import Grammar
from harness.backend.vocabulary import byte_vocabulary
from harness.cases.case import Case
from harness.checks import checks
from harness.cli.main import main
from harness.oracle.reference import Reference
from harness.rows.row import CHECKS_MODE, OUT_OF_TIME, TIMINGS, Row
from harness.rows.store import read_rows
from harness.running.limits import Limits
from harness.running.worker import serve_case

pytestmark = pytest.mark.usefixtures("importable_miniatures")

LIMITS = Limits(2.0, 10**9, effort=2, check_timeout_s=30.0)
CASES = [
    {
        "description": "boom",
        "regex": "boom|bet",
        "tests": [{"text": "boom", "valid": True}, {"text": "bo", "valid": False}],
    },
    {"description": "after", "regex": "c+d", "tests": [{"text": "ccd", "valid": True}]},
]


def checked(rows: dict[tuple[str, int | None], Row], case: str) -> Row:
    row = rows[case, None]
    assert row.mode == CHECKS_MODE
    return row


def test_the_perfect_backend_passes_every_check_in_a_run(tmp_path: Path) -> None:
    rows = walk_all(tmp_path, "reference", CASES, LIMITS)
    for case in ("boom", "after"):
        row = checked(rows, case)
        assert row.status == "ok" and row.findings == ()
        assert row.checks["the_mask_is_exact"] == "passed"
        assert {said.split(":")[0] for said in row.checks.values()} == {"passed", "skipped"}
    assert len(rows) == 5


def test_without_effort_there_is_no_row_of_checks(tmp_path: Path) -> None:
    assert set(walk_all(tmp_path, "reference", CASES, Limits(5.0, 10**9))) == {
        ("boom", 0),
        ("boom", 1),
        ("after", 0),
    }


@pytest.mark.parametrize(("name", "status"), [("HangsInCopy", "timeout"), ("SegfaultsInCopy", "crash")])
def test_a_child_lost_in_a_check_costs_the_rest_of_the_checks_of_its_case(
    name: str, status: str, tmp_path: Path
) -> None:
    rows = walk_all(tmp_path, f"miniatures.harmful_in_checks:{name}", CASES, LIMITS)
    row = checked(rows, "boom")
    assert (row.status, row.phase) == (status, "check") and row.checking in checks()
    assert row.checks and not {row.checking, "a_copy_is_independent"} & set(
        row.checks
    )  # what came before is kept
    assert [rows["boom", number].accepted for number in (0, 1)] == [True, False]
    assert checked(rows, "after").status == "ok"


def test_checks_for_which_no_time_is_left_are_skipped() -> None:
    said: list[str] = []
    adapter = Reference(byte_vocabulary())
    case = Case("0" * 12, "a case", Grammar("regex", "ab+"))
    progress = memoryview(bytearray(64)).cast("q")
    for check_seconds in (-1.0, 60.0):
        serve_case(
            adapter,
            case,
            lambda event, *_, **fields: said.append(fields.get("outcome", "")),
            progress,
            Limits(60.0, 10**9, effort=1, check_timeout_s=check_seconds),
        )
    outcomes = [each for each in said if each]
    half = len(outcomes) // 2
    assert (
        set(outcomes[:half]) == {OUT_OF_TIME}
        and OUT_OF_TIME not in outcomes[half:]
        and "passed" in outcomes[half:]
    )


@pytest.mark.parametrize(("seconds", "status"), [(0.0, "timeout"), (60.0, "ok")])
def test_a_compile_that_nobody_killed_in_time_has_missed_its_deadline(seconds: float, status: str) -> None:
    said: list[tuple[str, dict[str, Any]]] = []
    case = Case("0" * 12, "a case", Grammar("regex", "ab+"))
    serve_case(
        Reference(byte_vocabulary()),
        case,
        lambda event, *_, **fields: said.append((event, fields)),
        memoryview(bytearray(64)).cast("q"),
        Limits(seconds, 10**9),
    )
    event, compiled = said[0]
    assert (event, compiled["status"], compiled["compile_ns"] > 0) == ("compiled", status, True)
    assert [event for event, _ in said[1:]] == ([] if status == "timeout" else ["walked"])
    assert ("s to compile, and 0 s are allowed" in compiled["text"]) == (status == "timeout")


def test_what_a_backend_raises_in_a_check_is_its_finding(tmp_path: Path) -> None:
    row = checked(walk_all(tmp_path, "miniatures.harmful_in_checks:ExitsInCopy", CASES, LIMITS), "boom")
    raised = {each.check for each in row.findings if each.cause == "backend_error"}
    assert row.status == "ok" and raised and {row.checks[name] for name in raised} == {"failed"}
    assert (
        row.checks["a_copy_is_independent"] == "skipped: the backend raises what it raised in another check"
    )


def test_the_same_run_twice_finds_the_same(tmp_path: Path) -> None:
    def conformance(folder: Path) -> list[dict[str, Any]]:
        suite = tmp_path / "forced.json"
        suite.write_text(
            json.dumps(
                [
                    *CASES,
                    {
                        "description": "forced",
                        "choice": ["only one", "only two"],
                        "tests": [{"text": "only one"}],
                    },
                ]
            )
        )
        arguments = [
            "run",
            str(suite),
            "--backends",
            "llguidance",
            "--vocabularies",
            "probe",
            "--effort",
            "2",
            "--out",
            str(folder),
        ]
        assert main(arguments) == 0
        rows = deque(read_rows(folder))
        return [{name: value for name, value in vars(row).items() if name not in TIMINGS} for row in rows]

    first, second = conformance(tmp_path / "a"), conformance(tmp_path / "b")
    assert first == second
    assert any(row["mode"] == CHECKS_MODE and row["findings"] for row in first)


@pytest.mark.parametrize("more", [[], ["--check", "the_mask_is_exact"]])
def test_a_finding_in_a_case_without_instances_is_shown_again(
    more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite, out = tmp_path / "none.jsonl", tmp_path / "out"
    suite.write_text('{"description": "no tests", "regex": "[ab][0-9]+"}\n')
    arm = ["--backends", "miniatures.wrong_tokens:AllowsTheTokenX"]
    assert main(["run", str(suite), *arm, "--vocabularies", "bytes", "--effort", "2", "--out", str(out)]) == 0
    (row,) = (row for row in read_rows(out) if row.mode == CHECKS_MODE)
    exact = [each for each in row.findings if each.check == "the_mask_is_exact"]
    assert exact and {each.instance for each in row.findings} == {None}
    capsys.readouterr()
    assert main(["repro", str(out), "no tests", *arm, *more]) == 0
    assert "walked again to the_mask_is_exact" in capsys.readouterr().out
