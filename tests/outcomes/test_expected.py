"""The record of outcomes: what is new, what is gone, what says nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from junitparser import JUnitXml
from places import ROOT
from synthetic import ARMS, info, row, write_run

from harness.backend.registry import installed_version
from harness.cli.main import main
from harness.errors import BadInput
from harness.outcomes.expected import (
    RecordedArm,
    changed_faults,
    compare_faults,
    compare_with_record,
    faults_of_row,
    faults_of_rows,
    read_record,
    recorded_faults,
    verdict_text,
    write_record,
)
from harness.outcomes.result import result_of
from harness.rows.row import CHECKS_MODE, OUT_OF_TIME, VERDICT, Finding, Row

FINDING = Finding("the_mask_is_exact", 3, "it forbids 2 tokens", cause="partial_utf8")


def checked(**fields: Any) -> Row:
    return row(
        **{
            "mode": CHECKS_MODE,
            "instance": None,
            "valid": None,
            "accepted": None,
            "checks": {"the_mask_is_exact": "passed"},
        }
        | fields
    )


def stored(folder: Path, *rows: Row, complete: bool = True, **header: Any) -> Path:
    known = {one.backend: one for one in ARMS}
    arms = dict.fromkeys(
        replace(known[each.backend], version=each.backend_version, options=each.options) for each in rows
    )
    return write_run(folder, [[(each, b"") for each in rows]], info(arms, **header), complete=complete)


@pytest.mark.parametrize(
    ("one", "found"),
    [
        (row(), set()),
        (row(accepted=False), {"over_constrained"}),
        (row(valid=False), {"under_constrained"}),
        (row(valid=None), set()),
        (row(status="crash", signal="SIGSEGV"), {"crash"}),
        (row(status="unsupported", accepted=None), {"declined"}),
        (
            row(findings=(FINDING, Finding("cannot_terminate", 1, ""))),
            {"the_mask_is_exact:partial_utf8", "cannot_terminate"},
        ),
        (checked(), set()),
        (
            checked(findings=(FINDING, Finding("the_mask_is_exact", None, "and 3 more", cause="more"))),
            {"the_mask_is_exact:partial_utf8"},
        ),
        (checked(status="crash", phase="check"), {"crash_in_a_check"}),
        (checked(status="timeout", phase="check"), {"timeout"}),
        (checked(checks={"the_mask_is_exact": "passed", "a_copy_is_independent": OUT_OF_TIME}), {"timeout"}),
        (checked(status="invalid", phase="compile"), {"declined"}),
    ],
)
def test_the_faults_of_a_row(one: Row, found: set[str]) -> None:
    assert faults_of_row(one) == found


def test_the_same_run_is_as_recorded_and_any_difference_is_told_by_name(tmp_path: Path) -> None:
    file = tmp_path / "base.json"
    before = stored(tmp_path / "a", row(), row(instance=1, accepted=False), checked(findings=(FINDING,)))
    assert write_record(before, file).outcomes == 1
    assert compare_with_record(before, file).holds
    after = stored(tmp_path / "b", row(valid=False), row(instance=1), checked(findings=(FINDING,)))
    result = compare_with_record(after, file)
    (change,) = result.changes
    assert change.new == {"under_constrained"} and change.gone == {"over_constrained"}
    assert (
        "new failures: 1\n  alpha 1.2.3 tiny: a case (first/000000000000): +under_constrained "
        "-over_constrained"
    ) in verdict_text(result)
    fixed = compare_with_record(stored(tmp_path / "c", row(), row(instance=1), checked()), file)
    assert not fixed.holds and "fixed, but still recorded as failing: 1" in verdict_text(fixed)


def test_a_timeout_fails_nothing_and_our_own_failure_says_nothing() -> None:
    base = faults_of_rows([row(), row(case_id="1" * 12, accepted=False)]).arms
    now = faults_of_rows(
        [row(status="timeout", accepted=None), row(case_id="1" * 12, status="harness_error", accepted=None)]
    )
    result = compare_faults(base, now)
    assert (result.changes, result.slow, result.compared) == ((), 1, 1)


LATE: dict[str, Any] = {"status": "timeout", "accepted": None}
NOT_BEGUN = {"the_mask_is_exact": "failed", "a_copy_is_independent": OUT_OF_TIME}


@pytest.mark.parametrize(
    ("before", "after", "of_record", "of_run"),
    [
        ([row(), row(instance=1)], [row(accepted=False), row(instance=1, **LATE)], 1, 1),
        ([checked()], [checked(findings=(FINDING,), checks=NOT_BEGUN)], 1, 1),
        # A record holds the faults of a case together, and does not say which of its parts was late.
        ([row(**LATE), row(instance=1)], [row(), row(instance=1, accepted=False)], 0, 1),
        ([row(**LATE)], [row(accepted=False)], 0, 0),
        ([row(accepted=False), row(instance=1)], [row(), row(instance=1, **LATE)], 0, 0),
    ],
    ids=["a verdict", "a finding", "late elsewhere before", "late before", "a repair"],
)
def test_a_missed_deadline_hides_nothing_that_was_found_beside_it(
    tmp_path: Path, before: list[Row], after: list[Row], of_record: int, of_run: int
) -> None:
    base, head = stored(tmp_path / "a", *before), stored(tmp_path / "b", *after)
    write_record(base, tmp_path / "base.json")
    assert main(["compare", str(tmp_path / "base.json"), str(head), "--gate"]) == of_record
    assert main(["compare", str(base), str(head), "--gate"]) == of_run


def test_a_case_that_is_late_and_wrong_has_new_faults_and_lost_none(tmp_path: Path) -> None:
    then = faults_of_rows([row(accepted=False), row(instance=1)])
    now = faults_of_rows([row(valid=False), row(instance=1, **LATE)])
    result = compare_faults(then.arms, now)
    (change,) = result.changes
    assert change.new == {"under_constrained"} and not change.gone and result.slow == 0


def test_another_version_is_compared_with_the_newest_recorded_one() -> None:
    old, newer = (
        faults_of_rows([row(backend_version="1.9.0")]).arms,
        faults_of_rows([row(backend_version="1.10.0", accepted=False)]).arms,
    )
    result = compare_faults({**old, **newer}, faults_of_rows([row(backend_version="1.11.0", accepted=False)]))
    assert result.holds and result.against == {
        RecordedArm("alpha", "", "1.11.0", "tiny"): RecordedArm("alpha", "", "1.10.0", "tiny")
    }


def test_nothing_recorded_does_not_hold() -> None:
    result = compare_faults({}, faults_of_rows([row()]))
    assert (
        not result.holds
        and result.unrecorded == 1
        and "nothing of this run is recorded" in verdict_text(result)
    )


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ({"effort": 0}, "recorded with effort 4, walked with 0"),
        ({"effort": -1}, "recorded with effort 4, walked with all"),
        ({"effort": 4, "decode": True}, "recorded with decode false, walked with true"),
        ({"effort": 4, "seed": 7}, "recorded with seed 0, walked with 7"),
        (
            {"effort": 4, "vocabularies": {"other": {"size": 3, "sha256": "ab" * 32}}},
            "recorded on tiny, walked on other",
        ),
    ],
)
def test_a_run_with_other_settings_is_refused_in_one_line(
    tmp_path: Path, header: dict[str, Any], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "my base.json"
    write_record(stored(tmp_path / "a", row(), checked(findings=(FINDING,)), effort=4), file)
    (vocabulary,) = header.get("vocabularies", ["tiny"])
    other = stored(tmp_path / "b", row(vocabulary=vocabulary), **header)
    for words in (
        ["compare", str(file), str(other), "--gate"],
        ["report", str(other), "--against", str(file), "--format", "json"],
    ):
        assert main(words) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert told in line and f"run --expect '{file}'" in line


DOCUMENTED = replace(FINDING, documented=True)
POLICY = Finding("spellings_are_accepted", None, "it refuses a blank in front", cause="leading_space")
"""Which spellings a backend writes is its choice, whether it says so or not."""
AS_DOCUMENTED = row(accepted=False, findings=(Finding(VERDICT, None, "by its dialect", documented=True),))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (checked(), checked(findings=(DOCUMENTED,))),
        (checked(findings=(DOCUMENTED,)), checked()),
        (checked(), checked(findings=(POLICY,))),
        (row(), AS_DOCUMENTED),
        (AS_DOCUMENTED, row()),
    ],
)
def test_documented_policy_fails_no_gate(
    before: Row, after: Row, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither against a record, nor against another run; and JUnit has no failure."""
    file, base, head = tmp_path / "base.json", stored(tmp_path / "a", row(instance=1), before), tmp_path / "b"
    stored(head, row(instance=1), after)
    write_record(base, file)
    assert main(["compare", str(file), str(head), "--gate"]) == 0
    assert main(["compare", str(base), str(head), "--gate"]) == 0
    told = capsys.readouterr().out
    assert "other documented behaviour: 1 case" in told and "new faults" not in told
    for against in (file, base):
        assert (
            main(
                ["report", str(head), "--against", str(against), "--format", "junit", "--out", str(tmp_path)]
            )
            == 0
        )
        junit = JUnitXml.fromfile(str(tmp_path / "junit.xml"))
        assert (junit.failures, junit.errors) == (0, 0)


def test_the_command_shows_the_worst_new_failure(tmp_path: Path) -> None:
    ids = ["1" * 12, "2" * 12, "3" * 12, "4" * 12]
    then = [row(case_id=case_id) for case_id in ids]
    now = [
        row(case_id=ids[0], status="unsupported", accepted=None),
        row(case_id=ids[1], findings=(FINDING,)),
        row(case_id=ids[2], valid=False),
        row(case_id=ids[3], accepted=False),
    ]
    write_record(stored(tmp_path / "a", *then), tmp_path / "base.json")
    verdict = compare_with_record(stored(tmp_path / "b", *now), tmp_path / "base.json")
    assert len(verdict.changes) == 4 and ids[2] in verdict.to_see_it and "--check" not in verdict.to_see_it
    found = compare_with_record(
        stored(tmp_path / "c", *then[:1], *now[1:2], *then[2:]), tmp_path / "base.json"
    )
    assert ids[1] in found.to_see_it and found.to_see_it[-2:] == ("--check", "the_mask_is_exact")


def test_what_fails_beside_documented_policy_fails_the_gate(tmp_path: Path) -> None:
    file = tmp_path / "base.json"
    write_record(stored(tmp_path / "a", row(), checked()), file)
    both = stored(tmp_path / "b", row(), checked(findings=(DOCUMENTED, replace(FINDING, cause="other"))))
    (change,) = compare_with_record(both, file).changes
    assert change.new == {"the_mask_is_exact:other"}
    assert main(["compare", str(tmp_path / "a"), str(both), "--gate"]) == 1


def test_recorded_cases_that_are_no_longer_in_the_suites_are_told(tmp_path: Path) -> None:
    file = tmp_path / "base.json"
    write_record(stored(tmp_path / "a", row(), row(case_id="1" * 12), suites=WHOLE), file)
    fewer = {"first": WHOLE["first"] | {"cases": 1, "cases_in_all": 1}}
    result = compare_with_record(stored(tmp_path / "b", row(), suites=fewer), file)
    assert result.holds and result.notes == ("1 recorded case is no longer in the suites",)


BETA: dict[str, Any] = {
    "backend": "beta",
    "backend_version": "0.4",
    "options": "any_whitespace=false",
    "suite": "second",
}
BOTH = {
    name: {"version": "1", "sha256": "cd" * 32, "cases": 1, "instances": 1} for name in ("first", "second")
}


@pytest.mark.parametrize(
    ("walked", "suites", "code", "notes"),
    [
        (
            [row()],
            ["first"],
            0,
            (
                "recorded, and not in this run: arm beta:any_whitespace=false 0.4 tiny",
                "recorded, and not in this run: suite second",
            ),
        ),
        ([row(), row(**BETA | {"backend_version": "9"})], ["first", "second"], 0, ()),
        (
            [row(), row(**BETA, status="harness_error", accepted=None)],
            ["first", "second"],
            4,
            ("nothing of beta:any_whitespace=false 0.4 tiny could be compared, through a failure of ours",),
        ),
    ],
    ids=["left out", "another version", "our failure"],
)
def test_what_of_a_record_was_not_compared_is_named(
    tmp_path: Path, walked: list[Row], suites: list[str], code: int, notes: tuple[str, ...]
) -> None:
    """Who names backends or suites leaves others out; what we failed to walk proves nothing."""
    file = tmp_path / "base.json"
    write_record(stored(tmp_path / "a", row(), row(**BETA), suites=BOTH), file)
    head = stored(tmp_path / "b", *walked, suites={name: BOTH[name] for name in suites})
    result = compare_with_record(head, file)
    assert (result.notes, result.exit_code) == (notes, code)
    assert ("unproven" in verdict_text(result)) == (code == 4)
    assert main(["compare", str(file), str(head), "--gate"]) == code
    words = ["report", str(head), "--against", str(file), "--format", "json", "--out", str(tmp_path)]
    assert main(words) == 0
    gate = json.loads((tmp_path / "result.json").read_text())["gate"]
    assert gate["verdict"] == ("unproven" if code else "ok") and gate["reasons"] == list(notes)


WHOLE = {"first": {"version": "1", "sha256": "cd" * 32, "cases": 2, "cases_in_all": 2, "instances": 2}}
SAMPLE = {"first": WHOLE["first"] | {"cases": 1}}


def test_a_sample_of_what_is_recorded_proves_nothing_and_a_record_of_a_sample_says_so(tmp_path: Path) -> None:
    file, cases = tmp_path / "base.json", (row(), row(case_id="1" * 12, accepted=False))
    write_record(stored(tmp_path / "a", *cases, suites=WHOLE), file)
    sampled = stored(tmp_path / "b", row(), suites=SAMPLE)
    result = compare_with_record(sampled, file)
    assert (result.word, result.exit_code, result.not_walked) == ("unproven", 4, 1)
    assert verdict_text(result).startswith("a sample: 1 of 2 cases of first\n1 recorded case was not walked")
    assert compare_with_record(stored(tmp_path / "c", *cases, suites=WHOLE), file).holds
    of_sample = tmp_path / "sampled.json"
    write_record(sampled, of_sample)
    assert compare_with_record(sampled, of_sample).exit_code == 0
    whole = compare_with_record(tmp_path / "a", of_sample)
    assert whole.holds and verdict_text(whole).startswith(
        "the record is of a sample: 1 of 2 cases of first\n1 case is not recorded"
    )


def test_a_case_that_was_left_out_is_counted_once_whatever_it_lacks(tmp_path: Path) -> None:
    """It lacks a row on each arm and on each vocabulary."""
    both = {name: {"size": 300, "sha256": "ab" * 32} for name in ("tiny", "other")}
    arms: tuple[dict[str, str], ...] = {}, {"backend": "beta", "backend_version": "0.4"}
    base, head = (
        stored(
            tmp_path / f"{cases} cases",
            *(
                row(case_id=f"{number:012x}", vocabulary=name, **arm)
                for number in range(cases)
                for name in both
                for arm in arms
            ),
            vocabularies=both,
            suites={"first": WHOLE["first"] | {"cases": cases, "cases_in_all": 3}},
        )
        for cases in (3, 1)
    )
    write_record(base, tmp_path / "base.json")
    verdict = compare_with_record(head, tmp_path / "base.json")
    assert verdict.not_walked == 2 and verdict.notes[1].startswith("2 recorded cases were not walked")
    (_, reason) = result_of(head, base).gate.reasons
    assert reason.startswith("2 cases of") and reason.endswith("a sample: 1 of 3 cases of first")


def test_an_incomplete_run_and_no_record_are_bad_input(tmp_path: Path) -> None:
    file = tmp_path / "base.json"
    write_record(stored(tmp_path / "a", row(), effort=4), file)
    with pytest.raises(BadInput, match="incomplete"):
        write_record(stored(tmp_path / "c", row(), complete=False), file)
    (tmp_path / "none.json").write_text("[]")
    for wrong in ("none.json", "missing.json"):
        with pytest.raises(BadInput, match=wrong):
            compare_with_record(stored(tmp_path / wrong[:3], row(), effort=4), tmp_path / wrong)


def test_the_command_gates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, file = stored(tmp_path / "a", row()), tmp_path / "base.json"
    assert main(["compare", str(run), "--record", str(file)]) == 0
    assert main(["compare", str(file), str(run), "--gate"]) == 0
    worse = str(stored(tmp_path / "b", row(accepted=False)))
    assert main(["compare", str(file), worse, "--gate"]) == 1
    assert "+over_constrained" in capsys.readouterr().out


@pytest.mark.long
def test_todays_backends_are_as_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The committed record, a part of it run again as it was made."""
    for name, version in (("llguidance", "1.9.1"), ("xgrammar", "0.2.9")):
        if installed_version(name) != version:
            pytest.skip(
                f"recorded with {name} {version}, {installed_version(name) or 'no version'} is installed"
            )
    record_file = ROOT / "results" / "baseline" / "default.json"
    asked = ["run", "utf8", "choice_and_tags", "--backends", "xgrammar,llguidance", "--jobs", "2"]
    assert main([*asked, "--out", str(tmp_path / "run"), "--expect", str(record_file)]) == 0, (
        capsys.readouterr().out[-2000:]
    )
    assert "378 cases compared: as recorded" in capsys.readouterr().out


def test_a_release_is_newer_than_its_candidates() -> None:
    faults = {"s/1": frozenset({"declined"})}
    arms = [RecordedArm("toy", "", version, "tiny") for version in ("1.0.0", "1.0.0rc1", "0.9.10")]
    asked = RecordedArm("toy", "", "1.1", "tiny")
    assert recorded_faults(asked, dict.fromkeys(arms, faults)) == (faults, arms[0])


def test_names_with_blanks_keep_their_fields(tmp_path: Path) -> None:
    fields = {"options": "path=a folder", "vocabulary": "hf:my tokenizer 2", "backend_version": ""}
    vocabularies = {"hf:my tokenizer 2": {"size": 3, "sha256": "ab" * 32}}
    run, file = stored(tmp_path / "a", row(**fields), vocabularies=vocabularies), tmp_path / "base.json"
    write_record(run, file)
    assert list(read_record(file).arms) == [RecordedArm("alpha", "path=a folder", "", "hf:my tokenizer 2")]
    assert read_record(file).vocabularies == ("hf:my tokenizer 2",)
    assert compare_with_record(run, file).holds


def test_a_record_of_another_format_says_how_to_write_it_again(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text(json.dumps({"format": 1, "effort": 1, "seed": 0, "outcomes": {}}))
    with pytest.raises(BadInput, match=r"written in format 1, .* compare RUN --record FILE"):
        read_record(tmp_path / "old.json")


# ----------------------------------------------------------------- what a gate must not lose, and not invent

OURS: dict[str, Any] = {"status": "harness_error", "accepted": None}
OTHER_CASE = row(case_id="1" * 12)


def gates(tmp_path: Path, before: list[Row], after: list[Row], **header: Any) -> list[int]:
    """Returns the exit codes of both gates: against a record of the first rows, and against their run."""
    base, head = stored(tmp_path / "a", *before), stored(tmp_path / "b", *after, **header)
    write_record(base, tmp_path / "base.json")
    return [
        main(["compare", str(against), str(head), "--gate"]) for against in (tmp_path / "base.json", base)
    ]


def changed(then: str, now: str) -> tuple[str, str]:
    """The faults that are new and those that are gone, by name, with spaces between them."""
    new, gone = changed_faults(frozenset(then.split()), frozenset(now.split()))
    return " ".join(sorted(new)), " ".join(sorted(gone))


@pytest.mark.parametrize(
    ("then", "now", "new", "gone"),
    [
        ("wrong", "timeout", "", ""),
        ("timeout", "wrong", "", ""),
        ("wrong timeout", "", "", "wrong"),
        ("", "wrong timeout", "wrong", ""),
        ("wrong timeout", "other", "", "wrong"),
        ("other", "wrong timeout", "wrong", ""),
    ],
)
def test_a_fault_that_was_seen_beside_a_missed_deadline_may_go_as_it_may_come(
    then: str, now: str, new: str, gone: str
) -> None:
    assert changed(then, now) == (new, gone)


@pytest.mark.parametrize(
    ("then", "now", "new", "gone"),
    [
        ("a:backend_error", "b:backend_error", "", ""),
        ("a:backend_error c", "b:backend_error d", "d", "c"),
        ("a:backend_error", "a:backend_error b:backend_error", "b:backend_error", ""),
        ("a:backend_error", "b:backend_error c:backend_error", "b:backend_error c:backend_error", ""),
        ("a:backend_error b:backend_error", "c:backend_error", "", "a:backend_error b:backend_error"),
        ("", "b:backend_error", "b:backend_error", ""),
        ("a:backend_error", "", "", "a:backend_error"),
        ("backend_error", "b:backend_error", "b:backend_error", "backend_error"),
    ],
)
def test_an_error_that_another_check_meets_first_is_neither_new_nor_gone(
    then: str, now: str, new: str, gone: str
) -> None:
    assert changed(then, now) == (new, gone)


def test_what_was_found_beside_a_failure_of_ours_fails_and_the_rest_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = [row(), checked(findings=(FINDING,)), OTHER_CASE]
    lost = checked(**OURS, phase="check", checks={})
    assert gates(tmp_path, before, [row(accepted=False), lost, OTHER_CASE]) == [1, 1]
    shown = capsys.readouterr().out
    assert "+over_constrained" in shown and "-the_mask_is_exact" not in shown
    assert gates(tmp_path / "right", before, [row(), lost, OTHER_CASE]) == [0, 0]
    shown = capsys.readouterr().out
    assert shown.count("not measured in full, through our own failure: 1 case") == 2


def test_a_verdict_that_nobody_knows_is_neither_right_nor_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong, unknown = row(accepted=False), row(accepted=False, valid=None)
    assert gates(tmp_path, [wrong, OTHER_CASE], [unknown, OTHER_CASE]) == [0, 0]
    shown = capsys.readouterr().out
    assert "faults that are gone" not in shown and "fixed" not in shown
    assert "with a verdict on one side only, so not compared: 1 instance" in shown
    crash = row(valid=None, status="crash", accepted=None)
    assert gates(tmp_path / "crash", [unknown, OTHER_CASE], [crash, OTHER_CASE]) == [1, 1]


@pytest.mark.parametrize("cause", ["", "partial_utf8"])
def test_a_check_that_turns_from_too_strict_to_too_lax_fails(tmp_path: Path, cause: str) -> None:
    finding = replace(FINDING, cause=cause)
    over, under = (
        checked(findings=(each,)) for each in (replace(finding, over=3), replace(finding, under=3))
    )
    assert gates(tmp_path, [row(), over], [row(), under]) == [1, 1]
    assert gates(tmp_path / "same", [row(), over], [row(), over]) == [0, 0]


def test_an_arm_that_missed_a_deadline_in_every_case_proves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    late = [row(**LATE), row(**LATE, case_id="1" * 12)]
    assert gates(tmp_path, [row(), OTHER_CASE], late) == [4, 4]
    assert " ".join(capsys.readouterr().out.split()).count("the walks or the checks missed a deadline") == 2
    assert gates(tmp_path / "one", [row(), OTHER_CASE], [late[0], OTHER_CASE]) == [0, 0]


def test_checks_that_were_cut_off_in_every_case_prove_nothing(tmp_path: Path) -> None:
    """A rollback that hangs lets every walk pass."""
    looked = [row(), checked()]
    hung = [row(), checked(status="timeout", phase="check")]
    assert gates(tmp_path / "new", looked, hung) == [4, 4]
    assert gates(tmp_path / "as before", hung, hung) == [0, 0]
    assert gates(tmp_path / "one", [*looked, OTHER_CASE], [*hung, OTHER_CASE]) == [0, 0]
    ran_out = checked(checks={"the_mask_is_exact": "passed", "a_copy_is_independent": OUT_OF_TIME})
    assert gates(tmp_path / "some", looked, [row(), ran_out]) == [0, 0], "the time of the machine was up"


def test_a_missed_deadline_that_fails_nothing_is_told_wherever_the_gate_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = stored(tmp_path / "a", row(), OTHER_CASE)
    head = stored(tmp_path / "b", row(**LATE), OTHER_CASE)
    file, out = tmp_path / "base.json", tmp_path / "out"
    write_record(base, file)
    assert main(["compare", str(file), str(head), "--gate"]) == 0
    first, *_, last = capsys.readouterr().out.splitlines()
    said = "1 case differs by a missed deadline"
    assert first.startswith(said) and last.endswith("as recorded, but for 1 that missed a deadline")
    forms = ["--format", "summary,annotations", "--out", str(out)]
    assert main(["report", str(head), "--against", str(file), *forms]) == 0
    assert all(said in (out / name).read_text() for name in ("summary.md", "annotations.txt"))
    assert main(["compare", str(base), str(head), "--gate"]) == 0
    assert "OK: no outcome and no count is worse, but for 1 case that" in capsys.readouterr().out


def test_a_backend_of_which_nothing_is_recorded_is_named_and_proves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "base.json"
    write_record(stored(tmp_path / "a", row()), file)
    wrong = row(backend="beta", backend_version="0.4", accepted=False)
    result = compare_with_record(stored(tmp_path / "b", row(), wrong), file)
    assert (result.exit_code, result.unknown) == (4, (RecordedArm("beta", "", "0.4", "tiny"),))
    assert "nothing is recorded of beta 0.4 tiny: nothing is proven of it" in verdict_text(result)


def test_what_is_recorded_is_what_was_measured(tmp_path: Path) -> None:
    run = stored(tmp_path / "a", row(**OURS), OTHER_CASE)
    assert write_record(run, tmp_path / "base.json").outcomes == 1


@pytest.mark.parametrize(
    "before",
    [
        [row(), checked(findings=(DOCUMENTED,))],
        [AS_DOCUMENTED, checked()],
    ],
    ids=["a finding", "a verdict"],
)
def test_what_is_no_longer_documented_fails(tmp_path: Path, before: list[Row]) -> None:
    after = [
        replace(one, findings=tuple(replace(f, documented=False) for f in one.findings)) for one in before
    ]
    assert gates(tmp_path, before, after) == [1, 1]


def test_another_vocabulary_of_the_same_name_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = {"tiny": {"size": 301, "sha256": "ef" * 32}}
    assert gates(tmp_path, [row()], [row(accepted=False)], vocabularies=other) == [2, 2]
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and all("tiny is another vocabulary in" in line for line in lines)


def test_other_suites_and_another_memory_limit_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suites = {"first": info().suites["first"] | {"sha256": "ef" * 32}}
    assert gates(tmp_path, [row()], [row()], suites=suites, memory_bytes=1_000_000_000) == [0, 0]
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.count("first has other cases or instances in") == 2
    assert shown.count("was walked with a memory limit of 4.29497 GB") == 2


def test_a_tokenizer_in_a_folder_is_found_beside_a_record_that_was_moved(tmp_path: Path) -> None:
    for checkout in ("here", "there"):
        (tmp_path / checkout / "tok").mkdir(parents=True)
    names = [f"hf:{tmp_path}/{checkout}/tok" for checkout in ("here", "there")]
    runs = [
        stored(tmp_path / f"run {n}", row(vocabulary=name), vocabularies={name: {"size": 3, "sha256": "ab"}})
        for n, name in enumerate(names)
    ]
    file, moved = (tmp_path / checkout / "base.json" for checkout in ("here", "there"))
    write_record(runs[0], file)
    moved.write_bytes(file.read_bytes())
    assert [read_record(path).vocabularies for path in (file, moved)] == [(name,) for name in names]
    assert compare_with_record(runs[1], moved).holds
    by_another_way = f"hf:{tmp_path}/here/../here/tok"
    its_run = stored(
        tmp_path / "c",
        row(vocabulary=by_another_way),
        vocabularies={by_another_way: {"size": 3, "sha256": "ab"}},
    )
    write_record(its_run, tmp_path / "here" / "other.json")
    assert compare_with_record(its_run, tmp_path / "here" / "other.json").holds
    (tmp_path / "there" / "tok").rmdir()
    assert read_record(moved).vocabularies == (names[0],), "what does not lie there stays as it is named"
