"""Checks that only one of two sides made are neither faults of the backend nor hidden; records of missed
deadlines say so; the gravest change comes first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from synthetic import ARMS, info, row, write_run

from harness.cli.main import main
from harness.outcomes.expected import compare_with_record, read_record, write_record
from harness.outcomes.expected.arm_faults import state_of_name
from harness.rows.row import CHECKS_MODE, Finding, Row

OLD, NEW = "the_mask_is_exact", "a_draft_ends"
IDS = [f"{number:012x}" for number in range(1, 5)]
FOUND = Finding(NEW, None, "it says that it took all")
KNOWN = Finding(OLD, 3, "it allows 2 tokens", under=2)


def checked(case_id: str, *names: str, **fields: Any) -> Row:
    """Returns the row of a case's checks; those of these names were made, and found what `findings` holds."""
    failed = {finding.check for finding in fields.get("findings", ())}
    return row(
        **{
            "case_id": case_id,
            "mode": CHECKS_MODE,
            "instance": None,
            "valid": None,
            "accepted": None,
            "checks": {name: "failed" if name in failed else "passed" for name in names},
        }
        | fields
    )


def stored(folder: Path, *rows: Row, **header: Any) -> Path:
    """Returns a complete run of the first arm, of these rows."""
    return write_run(folder, [[(each, b"") for each in rows]], info(ARMS[:1], **header))


def recorded(folder: Path, *rows: Row) -> Path:
    """Returns a record of these rows."""
    file = folder / "base.json"
    write_record(stored(folder / "base", *rows), file)
    return file


def walked(case_id: str = IDS[0], **fields: Any) -> Row:
    return row(case_id=case_id, **fields)


BASE = [walk for case_id in IDS[:2] for walk in (walked(case_id), checked(case_id, OLD))]
HEAD = [
    *(walk for case_id in IDS[:2] for walk in (walked(case_id), checked(case_id, OLD, NEW, "another"))),
]
FAILING = [
    *(
        walk
        for case_id in IDS[:2]
        for walk in (walked(case_id), checked(case_id, OLD, NEW, findings=(FOUND,)))
    ),
]
TOLD = (
    "2 checks are new in this GrammarBench since the record was made: not gated until you record anew "
    f"({NEW}, another)"
)
TOLD_OF_FAILING = (
    "1 check is new in this GrammarBench since the record was made: 2 cases fail it, not gated until you "
    f"record anew ({NEW} in 2 cases)"
)


@pytest.mark.parametrize(
    ("head", "notes"),
    [(BASE, ()), (HEAD, (TOLD,)), (FAILING, (TOLD_OF_FAILING,))],
    ids=["same", "right", "wrong"],
)
def test_what_a_new_check_finds_fails_no_record_and_is_told(
    head: list[Row], notes: tuple[str, ...], tmp_path: Path
) -> None:
    file = recorded(tmp_path, *BASE)
    assert read_record(file).checks == frozenset({OLD})
    verdict = compare_with_record(stored(tmp_path / "b", *head), file)
    assert (verdict.changes, verdict.exit_code, verdict.notes) == ((), 0, notes)


def test_the_line_about_new_checks_stands_wherever_the_gate_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, head = recorded(tmp_path, *BASE), stored(tmp_path / "b", *FAILING)
    assert main(["compare", str(file), str(head), "--gate"]) == 0
    assert TOLD_OF_FAILING in " ".join(capsys.readouterr().out.split())
    forms = ["--format", "summary,annotations", "--out", str(tmp_path)]
    assert main(["report", str(head), "--against", str(file), *forms]) == 0
    for name in ("summary.md", "annotations.txt"):
        assert "2 cases fail it, not gated until you record anew" in (tmp_path / name).read_text()


def test_an_old_check_still_fails_beside_a_new_one_and_recording_anew_gates_on_both(tmp_path: Path) -> None:
    file = recorded(tmp_path, *BASE)
    both = [walked(), checked(IDS[0], OLD, NEW, findings=(KNOWN, FOUND)), *FAILING[2:]]
    (change,) = compare_with_record(stored(tmp_path / "b", *both), file).changes
    assert change.new == {f"{OLD}:under"}
    write_record(stored(tmp_path / "right", *HEAD), file)
    assert len(compare_with_record(stored(tmp_path / "c", *FAILING), file).changes) == 2


def test_a_loss_in_a_new_check_is_no_new_failure_and_hides_what_was_recorded(tmp_path: Path) -> None:
    """Checks behind the one at which the backend was lost were not made: their findings are not gone."""
    file = recorded(tmp_path, walked(), checked(IDS[0], OLD, findings=(KNOWN,)), *BASE[2:])
    lost: dict[str, Any] = {"status": "crash", "phase": "check", "signal": "SIGSEGV"}
    in_new = checked(IDS[0], checking=NEW, **lost)
    verdict = compare_with_record(stored(tmp_path / "b", walked(), in_new, *BASE[2:]), file)
    assert not verdict.changes and verdict.new_checks.failed == {NEW: 1} and verdict.new_checks.cases == 1
    in_old = checked(IDS[0], checking=OLD, **lost)
    (change,) = compare_with_record(stored(tmp_path / "c", walked(), in_old, *BASE[2:]), file).changes
    assert change.new == {"crash_in_a_check"}


def test_a_recorded_finding_of_a_check_that_is_no_longer_made_is_not_mended(tmp_path: Path) -> None:
    file = recorded(tmp_path, walked(), checked(IDS[0], OLD, "former", findings=(Finding("former", 1, ""),)))
    verdict = compare_with_record(stored(tmp_path / "b", walked(), checked(IDS[0], OLD)), file)
    assert verdict.holds
    assert verdict.notes == ("1 check of the record is not made any more, and not compared: former",)


def test_a_record_that_does_not_say_its_checks_compares_all_and_names_what_may_be_new(tmp_path: Path) -> None:
    file = recorded(tmp_path, walked(), checked(IDS[0], OLD, findings=(KNOWN,)), *BASE[2:])
    value = json.loads(file.read_text())
    del value["checks"]
    file.write_text(json.dumps(value))
    assert compare_with_record(tmp_path / "base", file).notes == ()
    found = [walked(), checked(IDS[0], OLD, NEW, findings=(KNOWN, FOUND)), *BASE[2:]]
    verdict = compare_with_record(stored(tmp_path / "b", *found), file)
    assert verdict.exit_code == 1 and [f"{NEW} in 1 case" in note for note in verdict.notes] == [True]
    known = [*found[:2], walked(IDS[1]), checked(IDS[1], OLD, findings=(KNOWN,))]
    write_record(stored(tmp_path / "c", *found), file)
    (change,) = compare_with_record(stored(tmp_path / "d", *known), file).changes
    assert change.case.endswith(IDS[1])


def test_a_run_that_took_cases_over_records_the_checks_that_all_have(tmp_path: Path) -> None:
    assert read_record(recorded(tmp_path, *BASE[:2], *HEAD[2:])).checks == frozenset({OLD})
    assert read_record(recorded(tmp_path / "none", walked())).checks is None


def both_pages(base: Path, head: Path, out: Path) -> tuple[str, str]:
    """Returns the page and the summary of two runs."""
    assert main(["report", str(base), str(head), "--out", str(out)]) == 0
    return (out / "report.html").read_text(), (out / "summary.md").read_text()


def test_two_runs_tell_of_the_checks_that_only_one_of_them_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, head = stored(tmp_path / "a", *BASE), stored(tmp_path / "b", *FAILING)
    assert main(["compare", str(base), str(head), "--gate"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    alone = (
        f"1 check is made on the newer side only: 2 cases fail it, and they are compared with nothing ({NEW}"
    )
    assert f"of alpha 1.2.3, {alone} in 2 cases)" in told and told.count("on the newer side only") == 2
    page = both_pages(base, head, tmp_path / "page")[0]
    assert page.count(alone) == 2 and "Times of two runs" not in page, "on top, and under Changes"
    assert main(["compare", str(head), str(base), "--gate"]) == 0
    assert "1 check is made on the older side only: 2 cases fail it" in " ".join(
        capsys.readouterr().out.split()
    )
    assert main(["compare", str(head), str(head), "--gate"]) == 0
    assert "side only" not in capsys.readouterr().out
    assert "side only" not in both_pages(head, head, tmp_path / "same")[0]
    forms = ["--format", "summary", "--out", str(tmp_path)]
    assert main(["report", str(head), "--against", str(base), *forms]) == 0
    assert "2 cases fail it, and they are compared with nothing" in (tmp_path / "summary.md").read_text()


def test_a_loss_in_a_check_that_the_older_run_did_not_make_is_told_and_is_no_new_fault(
    tmp_path: Path,
) -> None:
    lost: dict[str, Any] = {
        "status": "crash",
        "phase": "check",
        "signal": "SIGSEGV",
        "checks": {OLD: "passed"},
    }
    base = stored(tmp_path / "a", *BASE)
    for checking, code in ((NEW, 0), (OLD, 1)):
        head = stored(tmp_path / checking, walked(), checked(IDS[0], checking=checking, **lost), *BASE[2:])
        assert main(["compare", str(base), str(head), "--gate"]) == code


LATE: dict[str, Any] = {"status": "timeout", "accepted": None}


def test_a_record_says_how_many_of_its_outcomes_missed_a_deadline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, right = tmp_path / "base.json", [walked(case_id) for case_id in IDS]
    late = stored(tmp_path / "late", walked(**LATE), walked(IDS[1], **LATE), *right[2:])
    assert main(["compare", str(late), "--record", str(file)]) == 0
    assert "2 of the 4 outcomes missed a deadline" in capsys.readouterr().err
    wrong = [walked(accepted=False), *right[1:]]
    verdict = compare_with_record(stored(tmp_path / "b", *wrong), file)
    assert (verdict.slow, verdict.late_in_record, verdict.exit_code) == (0, 2, 0)
    assert [note.partition(",")[0] for note in verdict.notes] == ["2 cases missed a deadline when recorded"]
    assert main(["compare", str(stored(tmp_path / "c", *right)), "--record", str(file)]) == 0
    assert capsys.readouterr().err == ""
    verdict = compare_with_record(late, file)
    assert (verdict.slow, verdict.late_in_record) == (2, 0)


def test_the_gravest_new_failures_come_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ids = [f"{number:012x}" for number in range(1, 61)]
    file = recorded(tmp_path, *map(walked, ids))
    of: dict[str, dict[str, Any]] = {
        ids[57]: {"valid": False},
        ids[58]: {"status": "crash", "accepted": None},
    }
    refused: dict[str, Any] = {"status": "unsupported", "accepted": None}
    head = stored(tmp_path / "b", *(walked(case_id, **of.get(case_id, refused)) for case_id in ids))
    changes = compare_with_record(head, file).changes
    assert [change.case[-12:] for change in changes[:3]] == [ids[58], ids[57], ids[0]]
    counts = "(breaks: 1, silently wrong: 1, refused: 58)"
    assert main(["compare", str(file), str(head)]) == 0
    told = capsys.readouterr().out
    assert f"new failures: 60 {counts}" in told and told.index("+crash") < told.index("+under_constrained")
    assert main(["compare", str(tmp_path / "base"), str(head)]) == 0
    told = capsys.readouterr().out
    assert f"alpha 1.2.3 has new faults in 60 cases {counts}" in " ".join(told.split())
    assert "crash" in told and told.index("-> crash") < told.index("-> under") < told.index("-> declined")
    for base in (file, tmp_path / "base"):
        forms = ["--format", "summary,annotations", "--out", str(tmp_path)]
        assert main(["report", str(head), "--against", str(base), *forms]) == 0
        summary, lines = (tmp_path / "summary.md").read_text(), (tmp_path / "annotations.txt").read_text()
        first, worst, next_one, *_ = lines.splitlines()
        assert "crash" in worst and "under_constrained" in next_one
        assert summary.index("crash") < summary.index("under") < summary.index("declined")
        assert counts in first


def test_a_crash_of_one_backend_is_told_before_the_refusals_of_another(tmp_path: Path) -> None:
    of_beta = {"backend": "beta", "backend_version": "0.4", "options": "any_whitespace=false"}
    refused: dict[str, Any] = {"status": "unsupported", "accepted": None}
    crashed: dict[str, Any] = {"status": "crash", "accepted": None}
    folders = []
    for name, alpha, beta in (("a", {}, {}), ("b", refused, crashed)):
        rows = [*(walked(each, **alpha) for each in IDS), walked(**of_beta | beta)]
        folders.append(write_run(tmp_path / name, [[(each, b"")] for each in rows], info(ARMS[:2])))
    write_record(folders[0], tmp_path / "base.json")
    for base in (folders[0], tmp_path / "base.json"):
        forms = ["--format", "json", "--out", str(tmp_path)]
        assert main(["report", str(folders[1]), "--against", str(base), *forms]) == 0
        changes = json.loads((tmp_path / "result.json").read_text())["changes"]
        assert len(changes) == 5 and "beta" in changes[0]["arm"] and "crash" in changes[0]["what"]


@pytest.mark.parametrize(
    ("fault", "state"),
    [
        ("crash_in_a_check", "breaks"),
        ("under_constrained", "silently_wrong"),
        ("the_mask_is_exact:partial_utf8:under", "silently_wrong"),
        ("the_mask_is_exact:partial_utf8:over", "valid_refused"),
        ("the_mask_is_exact:over", "valid_refused"),
        ("a_rollback_restores:backend_error", "breaks"),
        ("a_rollback_restores", "other_fault"),
        ("timeout", "too_slow"),
        ("declined", "refused"),
    ],
)
def test_the_name_of_a_fault_tells_the_state_of_its_case(fault: str, state: str) -> None:
    assert state_of_name(fault).value == state
