"""The record of outcomes: what is new, what is gone, what says nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from synthetic import info, row, write_run

from harness.cli import main
from harness.errors import BadInput
from harness.ratchet import compare, expect, faults, record, seen, text
from harness.registry import installed_version
from harness.row import OUT_OF_TIME, Finding, Row

FINDING = Finding("the_mask_is_exact", 3, "it forbids 2 tokens", cause="partial_utf8")


def checked(**fields: Any) -> Row:
    return row(
        **{"mode": "conformance", "instance": None, "valid": None, "accepted": None, "checks": {"the_mask_is_exact": "passed"}} | fields
    )


def stored(folder: Path, *rows: Row, complete: bool = True, **header: Any) -> Path:
    return write_run(folder, [[(each, b"") for each in rows]], info(**header), complete=complete)


@pytest.mark.parametrize(
    ("one", "found"),
    [
        (row(), set()),
        (row(accepted=False), {"over_constrained"}),
        (row(valid=False), {"under_constrained"}),
        (row(valid=None), set()),
        (row(status="crash", signal="SIGSEGV"), {"crash"}),
        (row(status="unsupported", accepted=None), {"declined"}),
        (row(findings=(FINDING, Finding("cannot_terminate", 1, ""))), {"the_mask_is_exact:partial_utf8", "cannot_terminate"}),
        (checked(), set()),
        (checked(findings=(FINDING, Finding("the_mask_is_exact", None, "and 3 more", cause="more"))), {"the_mask_is_exact:partial_utf8"}),
        (checked(status="crash", phase="check"), {"crash_in_a_check"}),
        (checked(status="timeout", phase="check"), {"timeout"}),
        (checked(checks={"the_mask_is_exact": "passed", "a_copy_is_independent": OUT_OF_TIME}), {"timeout"}),
        (checked(status="invalid", phase="compile"), {"declined"}),
    ],
)
def test_the_faults_of_a_row(one: Row, found: set[str]) -> None:
    assert faults(one) == found


def test_the_same_run_is_as_recorded_and_any_difference_is_told_by_name(tmp_path: Path) -> None:
    file = tmp_path / "base.json"
    before = stored(tmp_path / "a", row(), row(instance=1, accepted=False), checked(findings=(FINDING,)))
    assert record(before, file) == 1
    assert expect(before, file).holds
    after = stored(tmp_path / "b", row(valid=False), row(instance=1), checked(findings=(FINDING,)))
    result = expect(after, file)
    (change,) = result.changes
    assert change.new == {"under_constrained"} and change.gone == {"over_constrained"}
    assert "new failures: 1\n  alpha 1.2.3 tiny: a case (first/000000000000): +under_constrained -over_constrained" in text(result)
    fixed = expect(stored(tmp_path / "c", row(), row(instance=1), checked()), file)
    assert not fixed.holds and "fixed, but still recorded as failing: 1" in text(fixed)


def test_a_timeout_fails_nothing_and_our_own_failure_says_nothing() -> None:
    base = seen([row(), row(case_id="1" * 12, accepted=False)]).outcomes
    now = seen([row(status="timeout", accepted=None), row(case_id="1" * 12, status="harness_error", accepted=None)])
    result = compare(base, now)
    assert (result.changes, result.slow, result.compared) == ((), 1, 1)


def test_another_version_is_compared_with_the_newest_recorded_one() -> None:
    old, newer = seen([row(backend_version="1.9.0")]).outcomes, seen([row(backend_version="1.10.0", accepted=False)]).outcomes
    result = compare(old | newer, seen([row(backend_version="1.11.0", accepted=False)]))
    assert result.holds and result.against == {"alpha 1.11.0 tiny": "alpha 1.10.0 tiny"}


def test_nothing_recorded_does_not_hold() -> None:
    result = compare({}, seen([row()]))
    assert not result.holds and result.unrecorded == 1 and "nothing of this run is recorded" in text(result)


def test_other_effort_an_incomplete_run_and_no_record_are_bad_input(tmp_path: Path) -> None:
    file = tmp_path / "base.json"
    record(stored(tmp_path / "a", row(), effort=4), file)
    with pytest.raises(BadInput, match="effort 4, the run has 0"):
        expect(stored(tmp_path / "b", row()), file)
    with pytest.raises(BadInput, match="incomplete"):
        record(stored(tmp_path / "c", row(), complete=False), file)
    (tmp_path / "none.json").write_text("[]")
    for wrong in ("none.json", "missing.json"):
        with pytest.raises(BadInput, match=wrong):
            expect(stored(tmp_path / wrong[:3], row(), effort=4), tmp_path / wrong)


def test_the_command_gates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, file = stored(tmp_path / "a", row()), tmp_path / "base.json"
    assert main(["expect", str(run), str(file), "--record"]) == 0
    assert main(["expect", str(run), str(file)]) == 0
    assert main(["expect", str(stored(tmp_path / "b", row(accepted=False))), str(file)]) == 1
    assert "+over_constrained" in capsys.readouterr().out


@pytest.mark.long
def test_todays_backends_are_as_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The committed record of the default profile, a part of it run again."""
    for name, version in (("llguidance", "1.9.1"), ("xgrammar", "0.2.8")):
        if installed_version(name) != version:
            pytest.skip(f"recorded with {name} {version}, {installed_version(name) or 'no version'} is installed")
    record_file = Path(__file__).parent.parent / "results" / "baseline" / "default.json"
    asked = ["run", "utf8", "choice_and_tags", "--backends", "xgrammar,llguidance", "--vocabularies", "probe", "--jobs", "2"]
    assert main([*asked, "--out", str(tmp_path / "run"), "--expect", str(record_file)]) == 0, capsys.readouterr().out[-2000:]
    assert "48 case(s) compared: as recorded" in capsys.readouterr().out
