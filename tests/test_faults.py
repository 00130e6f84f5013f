"""The table of faults: each fault once per case, under its category, and a documented divergence marked as such."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from harness.checks import category, checks
from harness.faults import CATEGORIES, Fault, fault_frame, faults
from harness.row import CONFORMANCE, Finding


def test_every_check_has_a_category() -> None:
    assert {category(name) for name in checks()} <= set(CATEGORIES) and category("no_such_check") == ""


def test_faults_are_counted_by_case(synthetic: ModuleType) -> None:
    over = Finding("the_mask_is_exact", 1, "x", cause="partial_utf8", over=3)
    said = Finding("the_mask_is_exact", 1, "x", cause="canonical_only", documented=True)
    rows = [
        synthetic.row(valid=True, accepted=False),
        synthetic.row(valid=True, accepted=False, instance=1),
        synthetic.row(valid=False, accepted=True, case_id="b" * 12),
        synthetic.row(mode=CONFORMANCE, instance=None, findings=(over, over, said, Finding("the_mask_is_exact", None, "m", cause="more"))),
        synthetic.row(mode=CONFORMANCE, instance=None, case_id="b" * 12, findings=(said,)),
        synthetic.row(backend="beta", status="timeout", phase="fill", accepted=None),
        synthetic.row(backend="beta", status="harness_error", phase="check", accepted=None, mode=CONFORMANCE),
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
    }
    assert [each.category for each in table] == ["breakage", "verdicts", "verdicts", "masks", "masks", "masks"]


def test_the_frame_has_a_column_for_each_arm(synthetic: ModuleType, tmp_path: Path) -> None:
    hostile = synthetic.row(mode=CONFORMANCE, findings=(Finding("</td>" * 100, 0, "x", cause="|\n<b>"),))
    path = synthetic.write_run(tmp_path / "run", [[(hostile, b"")]], synthetic.info(synthetic.ARMS[:1]))
    frame = fault_frame(path)
    assert list(frame.columns) == ["category", "fault", "cause", "alpha 1.2.3 tiny"]
    assert frame["alpha 1.2.3 tiny"].tolist() == ["1"] and len(frame["fault"][0]) == 80
