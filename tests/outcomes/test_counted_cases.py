"""What single rows add up to: outcomes, states, the figures of an arm, and what all arms solve. Each test was
seen to fail on a small change of the code that it is about."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from harness.outcomes import metrics, summary
from harness.outcomes.case_state import CaseState, state_of_fault
from harness.outcomes.outcome import CaseRows, Fault, Outcome, faults, telling
from harness.rows.row import CHECKS_MODE, Finding

BARE: dict[str, Any] = {"instance": None, "valid": None, "accepted": None}
CHECKED = BARE | {"mode": CHECKS_MODE}
REFUSED = {"status": "unsupported", "phase": "compile", "accepted": None}
MASKS = "the_mask_is_exact"


def come_to(synthetic: ModuleType, *rows: dict[str, Any]) -> tuple[str, bool]:
    """Returns what the rows of one case come to, and whether it is judged."""
    case = CaseRows()
    for row in rows:
        case.add(synthetic.row(**row))
    return case.outcome.value, case.is_judged


def arm_of(
    synthetic: ModuleType, *rows: dict[str, Any], samples: NDArray[np.int64] | None = None
) -> summary.ArmSummary:
    """Returns the summary of the one arm that has these rows, each of a case of its own."""
    numbered = (synthetic.row(**{"case_id": f"{number:012x}", **row}) for number, row in enumerate(rows))
    (arm,) = summary.summarize(numbered, np.zeros(0, np.int64) if samples is None else samples)
    return arm


@pytest.mark.parametrize("cause", ["invalid", "no_json"])
def test_what_was_written_and_is_wrong_is_silently_wrong(cause: str) -> None:
    written = Finding("walks_end_and_validate", 3, "", cause)
    assert state_of_fault("finding", written) == CaseState.SILENTLY_WRONG


def test_tokens_that_are_no_json_are_no_output() -> None:
    """A mask's finding has the same cause, and its examples are tokens."""
    finding = Finding("every_allowed_token_leads_to_a_document", 3, "", "no_json", under=2, examples=("22",))
    fault = Fault(Outcome.FINDING, "a", finding=finding)
    assert fault.wrote == b"" and fault.state == CaseState.SILENTLY_WRONG
    written = replace(finding, check="walks_end_and_validate", under=0)
    assert replace(fault, finding=written).wrote == b'"'


def test_a_mask_that_differs_as_documented_is_judged(synthetic: ModuleType) -> None:
    regex = {"dialect": "regex"}
    documented = Finding(MASKS, 0, "ECMA", "regex_dialect_ecma", documented=True, over=3)
    checked = CHECKED | regex | {"checks": {MASKS: "failed"}, "findings": (documented,)}
    assert come_to(synthetic, BARE | regex, checked) == ("works", True)


def test_a_refusal_beside_a_failure_of_ours_is_a_refusal(synthetic: ModuleType) -> None:
    ours = {"status": "harness_error", "accepted": None, "instance": 1}
    assert come_to(synthetic, REFUSED, ours) == ("refused", True)


def test_the_fault_of_the_first_instance_is_one_of_an_instance() -> None:
    of_check = Fault(Outcome.CRASH, "crash_in_a_check")
    assert Fault(Outcome.CRASH, "crash", instance=0).order < of_check.order


def test_how_many_more_there_are_is_told_behind_the_findings() -> None:
    more = Finding("a", None, "and 7 more", "more")
    documented = Finding("a", 0, "", "why", documented=True)
    assert sorted([more, documented], key=telling) == [documented, more]


def test_checks_that_were_cut_off_are_one_fault(synthetic: ModuleType) -> None:
    row = synthetic.row(**CHECKED | {"status": "timeout", "phase": "check"})
    assert [fault.name for fault in faults(row)] == ["timeout"]


@pytest.mark.parametrize(("timed", "told"), [(9, 9), (8, 0)])
def test_mask_times_are_told_where_nine_in_ten_walks_have_them(
    synthetic: ModuleType, timed: int, told: int
) -> None:
    rows = ({"samples": (2 * number, 2) if number < timed else None} for number in range(10))
    arm = arm_of(synthetic, *rows, samples=np.array([10, 1] * timed, np.int64))
    assert len(metrics.tbm(arm)) == told


def test_a_crashed_case_withholds_no_times_of_others(synthetic: ModuleType) -> None:
    lost = {"status": "crash", "phase": "fill", "accepted": None}
    lost |= {"matcher_new_ns": None, "first_fill_ns": None}
    arm = arm_of(synthetic, {"samples": (0, 2)}, lost, samples=np.array([10, 1], np.int64))
    assert arm.timed == summary.Timed(1, 1)


def test_a_case_that_did_not_compile_each_time_has_no_time_to_its_first_mask(synthetic: ModuleType) -> None:
    again = {"jump_forward": True, "status": "crash", "phase": "compile", "accepted": None}
    arm = arm_of(synthetic, {"case_id": "a" * 12}, {"case_id": "a" * 12} | again)
    assert len(metrics.ttfm(arm)) == 0 and metrics.declared_coverage(arm) == 0


@pytest.mark.parametrize(
    ("other", "documented"),
    [(Finding("c", None, "7 more", "more"), 1), (Finding("c", 1, "", "other"), 0)],
    ids=["more of it", "another"],
)
def test_a_check_is_documented_where_all_that_it_found_is(
    synthetic: ModuleType, other: Finding, documented: int
) -> None:
    findings = (Finding("c", 0, "", "why", documented=True), other)
    arm = arm_of(synthetic, CHECKED | {"checks": {"c": "failed"}, "findings": findings})
    assert (arm.checks["c"].failed, arm.checks["c"].documented) == (1, documented)


def test_a_check_that_failed_in_itself_is_no_check_without_work(synthetic: ModuleType) -> None:
    arm = arm_of(synthetic, CHECKED | {"checks": {"c": "harness_error"}})
    assert (arm.checks["c"].ours, arm.checks["c"].skipped) == (1, 0)


def test_a_crash_before_the_checks_is_of_no_check(synthetic: ModuleType) -> None:
    assert arm_of(synthetic, CHECKED | {"status": "crash", "phase": "compile"}).checks == {}


@pytest.mark.parametrize("second", [{}, BARE], ids=["judged", "bare"])
def test_an_arm_that_solves_nothing_takes_no_case_from_the_common_ones(
    synthetic: ModuleType, second: dict[str, Any]
) -> None:
    beta = {"backend": "beta"}
    wrong = beta | (second or {"valid": False})
    good = arm_of(synthetic, {}, second)
    none = arm_of(synthetic, beta | {"valid": False}, wrong)
    assert not none.solves_any
    assert summary.common_solved([good, none]) == {("first", f"{number:012x}") for number in range(2)}


def test_the_peak_of_memory_is_the_highest(synthetic: ModuleType) -> None:
    arm = arm_of(synthetic, {"peak_rss_bytes": 200}, {"peak_rss_bytes": 100})
    assert arm.peak_rss_bytes == 200
