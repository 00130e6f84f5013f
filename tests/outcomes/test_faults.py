"""The table of faults: each fault once per case, under its category, and a documented divergence marked as
such."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from harness.checks import category, checks
from harness.outcomes.faults import NOT_BEGUN, Fault, fault_frame, faults
from harness.rows.row import CHECKS_MODE, OUT_OF_TIME, Finding


def test_every_check_has_a_category() -> None:
    assert all(category(name) for name in checks()) and category("no_such_check") == ""


def test_a_category_that_is_not_ranked_comes_behind_those_that_are(
    synthetic: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new check may be about something new, and edits no list."""
    monkeypatch.setattr("harness.outcomes.faults.category", {"novel": "a new subject"}.get)
    rows = [
        synthetic.row(mode=CHECKS_MODE, instance=None, findings=(Finding(check, 0, "x"),))
        for check in ("unknown", "novel")
    ]
    rows.append(synthetic.row(valid=True, accepted=False))
    assert [fault.category for fault in faults(iter(rows))] == ["verdicts", "a new subject", ""]


def test_faults_are_counted_by_case(synthetic: ModuleType) -> None:
    over = Finding("the_mask_is_exact", 1, "x", cause="partial_utf8", over=3)
    said = Finding("the_mask_is_exact", 1, "x", cause="canonical_only", documented=True)
    rows = [
        synthetic.row(valid=True, accepted=False),
        synthetic.row(valid=True, accepted=False, instance=1),
        synthetic.row(valid=False, accepted=True, case_id="b" * 12),
        synthetic.row(
            mode=CHECKS_MODE,
            instance=None,
            findings=(over, over, said, Finding("the_mask_is_exact", None, "m", cause="more")),
        ),
        synthetic.row(
            mode=CHECKS_MODE,
            instance=None,
            case_id="b" * 12,
            findings=(said,),
            checks={"the_mask_is_exact": "failed", "a_copy_is_independent": OUT_OF_TIME},
        ),
        synthetic.row(backend="beta", status="timeout", phase="fill", accepted=None),
        synthetic.row(backend="beta", status="harness_error", phase="check", accepted=None, mode=CHECKS_MODE),
        synthetic.row(backend="beta", status="ok", findings=(Finding("mask_accept_mismatch", 2, "y"),)),
    ]
    found = faults(iter(rows))
    alpha, beta = {arm: None for each in found.values() for arm in each}
    table = {fault: (str(each[alpha]), str(each[beta])) for fault, each in found.items()}
    assert table == {
        Fault("breakage", "timeout", "fill"): ("", "1"),
        Fault("verdicts", "a valid instance is refused", "json_schema"): ("1", ""),
        Fault("verdicts", "an instance that is not valid is accepted", "json_schema"): ("1", ""),
        Fault("masks", "mask accept mismatch", ""): ("", "1"),
        Fault("masks", "the mask is exact", "canonical_only"): ("2*", ""),
        Fault("masks", "the mask is exact", "partial_utf8"): ("1", ""),
        NOT_BEGUN: ("1", ""),
    }
    assert [each.category for each in table] == [
        "breakage",
        "verdicts",
        "verdicts",
        "masks",
        "masks",
        "masks",
        "not judged",
    ]


def test_the_frame_has_a_column_for_each_arm(synthetic: ModuleType, tmp_path: Path) -> None:
    hostile = synthetic.row(mode=CHECKS_MODE, findings=(Finding("</td>" * 100, 0, "x", cause="|\n<b>"),))
    path = synthetic.write_run(tmp_path / "run", [[(hostile, b"")]], synthetic.info(synthetic.ARMS[:1]))
    frame = fault_frame(path)
    assert list(frame.columns) == ["category", "fault", "cause", "alpha 1.2.3 tiny"]
    assert frame["alpha 1.2.3 tiny"].tolist() == ["1"] and len(frame["fault"][0]) == 80


def test_what_befalls_a_process_is_no_fault_of_masks(synthetic: ModuleType) -> None:
    """A recursion limit that was raised stood under *masks*."""
    names = ("changed_its_process", "left_process_behind", "lost_after_walk", "mask_accept_mismatch")
    row = synthetic.row(findings=tuple(Finding(name, None, "x") for name in names))
    about = {fault.fault.replace(" ", "_"): fault.category for fault in faults(iter([row]))}
    assert about == dict.fromkeys(names[:3], "life cycle") | {"mask_accept_mismatch": "masks"}
