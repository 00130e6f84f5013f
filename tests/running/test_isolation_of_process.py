"""A backend that closes pipes, has a program of its own, or fails where Python collects its cycles: each
costs its own case, is told as what it is, and never holds up the run."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from isolated import CASES, GIGABYTE, SHORT, others_are_right, walk_all

from harness.rows.row import CHECKS_MODE
from harness.running.limits import Limits

pytestmark = pytest.mark.usefixtures("importable_miniatures")

PATIENT = Limits(30.0, GIGABYTE)
OF_A_PROCESS = "miniatures.of_a_process"


def test_a_worker_that_closes_its_pipes_and_goes_on_is_ended(tmp_path: Path) -> None:
    """A closed pipe is no ended process: to wait for the end of this one would be to wait for ever."""
    began = time.monotonic()
    rows = walk_all(tmp_path, f"{OF_A_PROCESS}:ClosesAllAndWaits", limits=PATIENT)
    assert (rows["boom", 0].status, rows["boom", 0].phase) == ("crash", "compile"), rows["boom", 0]
    assert "closed the pipe on which it answers" in rows["boom", 0].text
    assert others_are_right(rows) and time.monotonic() - began < 60


def test_a_worker_that_closes_its_pipes_while_it_loads_is_ended(tmp_path: Path) -> None:
    rows = walk_all(tmp_path, f"{OF_A_PROCESS}:ClosesAllWhileLoading", limits=PATIENT)
    assert {(row.status, row.phase) for row in rows.values()} == {("crash", "load")}
    assert all("closed the pipe on which it answers while it loaded" in row.text for row in rows.values())


def test_a_child_that_closes_its_pipes_is_not_said_to_have_ended_well(tmp_path: Path) -> None:
    rows = walk_all(tmp_path, f"{OF_A_PROCESS}:ClosesPipes", limits=PATIENT)
    assert rows["boom", 0].status == "crash"
    assert "exit code 0" not in rows["boom", 0].text
    assert "it cannot be asked or answer any more: OSError: [Errno 9]" in rows["boom", 0].text
    assert others_are_right(rows)


@pytest.mark.parametrize("name", ["ClosesPipesInACheck", "ClosesPipesInACheckOnThreads"])
def test_pipes_that_are_closed_in_a_check_are_no_failure_of_ours(name: str, tmp_path: Path) -> None:
    """It shows where the check answers, when code of ours is at work."""
    checked = Limits(30.0, GIGABYTE, effort=1, check_timeout_s=20.0)
    rows = walk_all(tmp_path, f"{OF_A_PROCESS}:{name}", limits=checked)
    (lost,) = (row for row in rows.values() if row.status != "ok")
    assert (lost.status, lost.mode) == ("crash", CHECKS_MODE), lost
    assert "closed the pipe" in lost.text and "exit code" not in lost.text
    assert others_are_right(rows)


def test_a_program_that_a_backend_has_besides_it_is_its_own(tmp_path: Path) -> None:
    rows = walk_all(tmp_path, f"{OF_A_PROCESS}:HasAHelper", limits=PATIENT)
    assert len(rows) == 6 and all(
        (row.status, row.accepted, row.findings) == ("ok", row.valid, ()) and not row.delayed
        for row in rows.values()
    )


def test_what_a_lost_case_had_asked_of_the_program_is_no_answer_to_the_next(tmp_path: Path) -> None:
    rows = walk_all(tmp_path, f"{OF_A_PROCESS}:HasAHelperAndHangs", limits=SHORT)
    assert (rows["boom", 0].status, rows["boom", 0].phase) == ("timeout", "compile")
    assert others_are_right(rows)


def test_what_is_left_behind_besides_the_program_is_found(tmp_path: Path) -> None:
    rows = walk_all(tmp_path, f"{OF_A_PROCESS}:HasAHelperAndLeavesAnother", limits=PATIENT)
    (found,) = (finding for row in rows.values() for finding in row.findings)
    assert found.check == "left_process_behind" and found.text.startswith("1 process(es)")
    assert others_are_right(rows)


@pytest.mark.parametrize(
    ("name", "status", "limits"), [("DiesInACycle", "crash", PATIENT), ("HangsInACycle", "timeout", SHORT)]
)
def test_what_happens_where_python_collects_the_backends_cycles_is_the_backends(
    name: str, status: str, limits: Limits, tmp_path: Path
) -> None:
    """Python collects wherever it is at work, mostly in checks of ours."""
    cases = [case for case in CASES if case["description"] == "boom"]
    checked = Limits(limits.timeout_s, GIGABYTE, effort=-1, check_timeout_s=20.0)
    rows = walk_all(tmp_path, f"{OF_A_PROCESS}:{name}", cases, checked)
    (lost,) = (row for row in rows.values() if row.mode == CHECKS_MODE)
    assert (lost.status, lost.phase) == (status, "check"), lost


def test_a_worker_looks_for_no_name_and_listens_nowhere(tmp_path: Path) -> None:
    rows = walk_all(tmp_path, f"{OF_A_PROCESS}:Listens", limits=PATIENT)
    assert rows["boom", 0].status == "ok", rows["boom", 0].text
