"""What a difference between two runs is, and what it is not. Each test was seen to fail on a small change of
the code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import synthetic
from compared import NEW, OLD, write_run

from harness.checks import WRITES
from harness.outcomes.compare import compare_arms
from harness.outcomes.differences import differences
from harness.rows.row import CHECKS_MODE, Finding, Row

CHECKED: dict[str, Any] = {"instance": None, "valid": None, "accepted": None, "mode": CHECKS_MODE}
SECOND: dict[str, Any] = {"instance": 1, "instance_name": "2"}
WRONG: dict[str, Any] = {"accepted": False, "stopped_at": 1}


def rows(*fields: dict[str, Any]) -> list[Row]:
    return [synthetic.row(**each) for each in fields]


def found(*, documented: bool) -> list[Row]:
    """Returns a case with one finding."""
    finding = Finding("c", 0, "", "why", documented=documented)
    return rows({}, CHECKED | {"checks": {"c": "failed"}, "findings": (finding,)})


RIGHT = rows({}, CHECKED | {"checks": {"c": "passed"}})


def kinds(before: list[Row], after: list[Row]) -> list[str]:
    return [each.kind for each in differences(before, after).cases]


def test_a_case_that_is_late_along_one_instance_is_compared_by_the_others() -> None:
    late = SECOND | {"status": "timeout", "phase": "fill", "accepted": None}
    assert differences(rows({}, SECOND), rows({}, late)).late == ()


def test_what_one_run_did_not_judge_is_no_difference() -> None:
    unjudged = rows({"valid": None} | WRONG)
    for before, after in ((rows(WRONG), unjudged), (unjudged, rows(WRONG))):
        seen = differences(before, after)
        assert (seen.cases, seen.half_judged) == ((), 1)


def test_a_check_that_only_one_run_made_says_nothing() -> None:
    without = rows({}, CHECKED)
    assert kinds(without, found(documented=False)) == kinds(found(documented=False), without) == []


def test_what_a_backend_documents_is_policy() -> None:
    assert kinds(RIGHT, found(documented=True)) == kinds(found(documented=True), RIGHT) == ["policy"]
    assert kinds(found(documented=True), found(documented=True)) == []


def test_what_is_no_longer_documented_is_worse() -> None:
    assert kinds(found(documented=True), found(documented=False)) == ["worse"]
    assert kinds(found(documented=False), found(documented=True)) == ["better"]


def test_what_was_not_measured_is_not_compared() -> None:
    seen = differences(rows(WRONG), rows({"status": "skipped", "accepted": None}))
    assert (seen.cases, seen.unmeasured, seen.compared) == ((), 1, 0)


def test_checks_that_are_late_in_one_run_only_are_told() -> None:
    late = rows({}, CHECKED | {"status": "timeout", "phase": "check"})
    assert differences(late, late).late == ()
    assert differences(RIGHT, late).late == ("tiny",)


def test_a_case_on_another_vocabulary_is_another() -> None:
    both = rows({"case_id": "a" * 12}, {"case_id": "a" * 12, "vocabulary": "other"})
    assert differences(both, rows({})).only_before == 1


def test_a_case_with_more_passes_by_several_strategies_is_one_case(tmp_path: Path) -> None:
    before, after = (
        {"counted": {f"{strategy}{WRITES}": {"passes": passes} for strategy in ("plain", "draft")}}
        for passes in (5, 6)
    )
    (pair,) = compare_arms(write_run(tmp_path / "run", {OLD: before, NEW: after}, decode=True))
    assert len(pair.counted) == 2 and pair.what_is_worse == "more passes in 1 case"
