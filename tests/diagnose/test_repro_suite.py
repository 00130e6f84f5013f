"""Which case of a run a command shows where several suites of the run have a case with the same grammar."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType

from harness.diagnose.repro.find import find_failure
from harness.outcomes.repro_command import case_word, repro_words

SIZE = {"version": "1", "sha256": "cd" * 32, "cases": 2, "instances": 2}


def test_a_case_that_several_suites_have_is_named_with_its_suite(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    one, other = (synthetic.case(number, [("x", b"1", True)]) for number in range(2))
    cases = [("first", one), ("second", replace(one, name="the second's")), ("second", other)]
    rows = [
        synthetic.row(suite=suite, case=case.name, case_id=case.id, accepted=False, stopped_at=0)
        for suite, case in cases
    ]
    info = synthetic.info(synthetic.ARMS[:1], suites={"first": SIZE, "second": SIZE})
    run = synthetic.write_run(tmp_path / "run", [[(row, b"")] for row in rows], info, cases)
    assert case_word(run, "second", other.id) == other.id
    for suite, case in cases[:2]:
        words = repro_words(run, suite, case.id, "alpha", "tiny")
        assert words[3] == f"{suite}/{case.id}"
        failure = find_failure(run, words[3], "alpha", None, None)
        assert (failure.row.suite, failure.case.name) == (suite, case.name)
    assert find_failure(run, one.id, "alpha", None, None).row.suite == "first", "as before"


def test_a_run_without_its_cases_is_named_by_ids(synthetic: ModuleType, tmp_path: Path) -> None:
    info = synthetic.info(synthetic.ARMS[:1], suites={"first": SIZE, "second": SIZE})
    run = synthetic.write_run(tmp_path / "run", [[(synthetic.row(), b"")]], info)
    (run / "cases.jsonl").unlink()
    assert case_word(run, "second", "abc") == "abc"
