"""`find_failure` finds the failure that is asked for among all that a run saw of a case, and prefers one that
the backend does not document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import synthetic
from failing import CASES, OUTLINES, find_failure, row

from harness.backend.arm import Arm, arm
from harness.errors import BadInput
from harness.outcomes.answer import read_answer
from harness.outcomes.repro_command import case_word, repro_words
from harness.report.cases.data import explore
from harness.report.page.inputs import read_inputs
from harness.rows.row import CHECKS_MODE, VERDICT, Finding, Row

STAR = "star"


def a_run(folder: Path, rows: Sequence[Row]) -> Path:
    groups = [[(one, b"")] for one in rows]
    return synthetic.write_run(folder, groups, synthetic.info((OUTLINES,)), [("mine", CASES[0])])


def checked(vocabulary: str, *findings: Finding) -> Row:
    """The row of the whole case, in which checks found this."""
    checks = {finding.check: "failed" for finding in findings}
    return row(0, OUTLINES, None, mode=CHECKS_MODE, vocabulary=vocabulary, checks=checks, findings=findings)


WRONG = Finding("the_mask_is_exact", 1, "forbids 3 tokens", "partial_utf8", instance=1, over=3)
STATED = replace(WRONG, text="forbids 9 tokens", cause="property_order", documented=True)


def test_an_instance_that_fails_with_one_vocabulary_is_shown_with_that(tmp_path: Path) -> None:
    rows = [row(0, OUTLINES, 1, vocabulary=name, accepted=name == "probe") for name in ("probe", "bytes")]
    found = find_failure(a_run(tmp_path, rows), STAR, "outlines-core", None, 1)
    assert (found.row.vocabulary, found.row.accepted, found.finding) == ("bytes", False, None)
    asked = find_failure(tmp_path, STAR, "outlines-core", "probe", 1)
    assert (asked.row.vocabulary, asked.row.accepted) == ("probe", True), "it is shown, failing or not"


def test_a_vocabulary_is_named_as_run_takes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "my" / "tokenizer"
    folder.mkdir(parents=True)
    (folder / "tokenizer.json").write_text("{}")
    (tmp_path / "ranks.GGUF").write_text("")
    names = {"probe": "probe", "folder": f"hf:{folder}", "file": f"gguf:{tmp_path / 'ranks.GGUF'}"}
    names["encoding"] = "tiktoken:cl100k_base"
    rows = [row(0, OUTLINES, 1, vocabulary=name) for name in names.values()]
    known = {name: {"size": 300, "sha256": "ab" * 32} for name in names.values()}
    info = replace(synthetic.info((OUTLINES,)), vocabularies=known)
    run = synthetic.write_run(tmp_path / "run", [[(one, b"")] for one in rows], info, [("mine", CASES[0])])
    (tmp_path / "cl100k_base").write_text("a file is no encoding of that name")
    monkeypatch.chdir(tmp_path)
    for given, name in (
        ("PROBE", "probe"),
        ("my/tokenizer", "folder"),
        ("./my/tokenizer", "folder"),
        ("hf:my/tokenizer", "folder"),
        ("my/tokenizer/tokenizer.json", "folder"),
        ("ranks.GGUF", "file"),
        ("tiktoken:CL100K-BASE", "encoding"),
    ):
        found = find_failure(run, STAR, "outlines-core", given, 1)
        assert found.row.vocabulary == names[name], given
    for other in ("bytes", "no/such", "hf:no/such", "my"):
        with pytest.raises(BadInput, match="has no vocabulary"):
            find_failure(run, STAR, "outlines-core", other, 1)


def test_a_finding_of_a_check_is_found_by_its_instance(tmp_path: Path) -> None:
    rows = [row(0, OUTLINES, 0), row(0, OUTLINES, 1), checked("probe", WRONG)]
    run = a_run(tmp_path, rows)
    found = find_failure(run, STAR, "outlines-core", None, 1, "the_mask_is_exact")
    assert found.finding == WRONG and found.instance == CASES[0].instances[1]
    assert find_failure(run, STAR, "outlines-core", None, 1).finding == WRONG, "its walk passes"
    assert find_failure(run, STAR, "outlines-core", None, 0).row.instance == 0
    with pytest.raises(BadInput, match="instance 0 of that case has no finding"):
        find_failure(run, STAR, "outlines-core", None, 0, "the_mask_is_exact")


def test_the_finding_of_a_check_that_is_not_documented_comes_first(tmp_path: Path) -> None:
    """In one row, and where the first vocabulary's row has only what is documented."""
    run = a_run(tmp_path / "two", [checked("probe", STATED), checked("bytes", WRONG)])
    for check in (None, "the_mask_is_exact"):
        found = find_failure(run, STAR, "outlines-core", None, None, check)
        assert (found.row.vocabulary, found.finding) == ("bytes", WRONG)
    one = a_run(tmp_path / "one", [checked("probe", STATED, WRONG)])
    assert find_failure(one, STAR, "outlines-core", None, None, "the_mask_is_exact").finding == WRONG
    other = replace(WRONG, check="cannot_terminate", cause="more")
    last = a_run(tmp_path / "last", [checked("probe", other, STATED, WRONG)])
    assert find_failure(last, STAR, "outlines-core", None, None).finding == WRONG


def test_a_finding_comes_before_a_verdict_that_is_documented(tmp_path: Path) -> None:
    stated = Finding(VERDICT, 3, "right by another reading", "regex_dialect_rust", documented=True)
    mismatch = Finding("mask_accept_mismatch", 2, "token 3")
    refused = row(0, OUTLINES, 1, accepted=False)
    run = a_run(tmp_path / "both", [replace(refused, findings=(stated, mismatch))])
    assert find_failure(run, STAR, "outlines-core", None, None).finding == mismatch
    run = a_run(tmp_path / "stated", [replace(refused, findings=(stated,))])
    assert find_failure(run, STAR, "outlines-core", None, None).finding is None
    run = a_run(tmp_path / "wrong", [replace(refused, findings=(mismatch,))])
    assert find_failure(run, STAR, "outlines-core", None, None).finding is None, "the verdict comes first"


def test_the_worst_failure_is_shown_which_an_answer_and_a_page_tell_first(tmp_path: Path) -> None:
    """A refused valid output comes before it in the run, in another row and in the same one."""
    escapes = replace(WRONG, cause="escape", text="forbids an escape")
    allowed = replace(WRONG, cause="control_character", text="allows a raw tab", over=0, under=2)
    run = a_run(tmp_path, [row(0, OUTLINES, 1, accepted=False), checked("probe", escapes, WRONG, allowed)])
    for check in (None, "the_mask_is_exact"):
        assert find_failure(run, STAR, "outlines-core", None, None, check).finding == allowed
    (backend,) = read_answer(run).backends
    proof = backend.cases[0].proof
    assert proof is not None and proof.said == allowed.text
    inputs = read_inputs([run])
    (detail,) = explore(inputs.cases, inputs.tried).details
    assert detail["notes"][0]["findings"][0]["text"] == allowed.text


def test_of_equally_bad_failures_the_one_that_an_output_shows_is_the_worst(tmp_path: Path) -> None:
    accepted = row(0, OUTLINES, 1, valid=False, accepted=True)
    allowed = replace(WRONG, over=0, under=2)
    wrote = replace(WRONG, over=0, cause="invalid", text="violates it", examples=(b"zz".hex(),))
    by_check = [checked("probe", allowed, wrote)]
    for name, rows, finding in (
        ("walk", [*by_check, accepted], None),
        ("written", by_check, wrote),
    ):
        run = a_run(tmp_path / name, rows)
        assert find_failure(run, STAR, "outlines-core", None, None).finding == finding
        (backend,) = read_answer(run).backends
        proof = backend.cases[0].proof
        assert proof is not None and proof.said == (finding.text if finding else "")


def test_a_walk_that_a_check_made_is_not_that_of_an_instance(tmp_path: Path) -> None:
    own = replace(WRONG, instance=None, walk=(3,))
    assert not find_failure(
        a_run(tmp_path / "own", [checked("probe", own)]), STAR, "outlines-core", None, None
    ).is_of_instance
    along = a_run(tmp_path / "along", [checked("probe", replace(own, instance=0))])
    assert find_failure(along, STAR, "outlines-core", None, None).is_of_instance


# ------------------------------------------------------------ the backend that is named

COMPACT, LOOSE = (replace(OUTLINES, options=f"layout={name}") for name in ("compact", "loose"))


def a_run_of(folder: Path, *arms: Arm) -> Path:
    """A run in which every arm but the first refuses a valid instance."""
    rows = [row(0, one, 1, options=one.options, accepted=one is arms[0]) for one in dict.fromkeys(arms)]
    groups = [[(one, b"")] for one in rows]
    return synthetic.write_run(folder, groups, synthetic.info(arms), [("mine", CASES[0])])


def test_a_backend_is_the_one_with_the_options_that_are_named(tmp_path: Path) -> None:
    run = a_run_of(tmp_path, OUTLINES, COMPACT, LOOSE)
    for one in (OUTLINES, COMPACT, LOOSE):
        assert find_failure(run, STAR, arm(one), None, None).row.options == one.options


def test_a_name_without_options_stands_for_the_only_one_of_that_name(tmp_path: Path) -> None:
    run = a_run_of(tmp_path / "one", COMPACT)
    assert find_failure(run, STAR, "outlines-core", None, None).row.options == COMPACT.options
    run = a_run_of(tmp_path / "two", COMPACT, LOOSE)
    with pytest.raises(BadInput, match=r"compact and outlines-core:layout=loose, and .* may be any of them"):
        find_failure(run, STAR, "outlines-core", None, None)
    with pytest.raises(BadInput, match='no backend "outlines-core:layout=x"; did you mean "outlines'):
        find_failure(run, STAR, "outlines-core:layout=x", None, None)


def test_a_header_may_name_a_backend_twice(tmp_path: Path) -> None:
    run = a_run_of(tmp_path, OUTLINES, COMPACT, COMPACT)
    assert find_failure(run, STAR, arm(COMPACT), None, None).row.options == COMPACT.options


# ------------------------------------------------------------ the word that names a case of several suites

SIZE = {"version": "1", "sha256": "cd" * 32, "cases": 2, "instances": 2}


def test_a_case_that_several_suites_have_is_named_with_its_suite(tmp_path: Path) -> None:
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


def test_a_run_without_its_cases_is_named_by_ids(tmp_path: Path) -> None:
    info = synthetic.info(synthetic.ARMS[:1], suites={"first": SIZE, "second": SIZE})
    run = synthetic.write_run(tmp_path / "run", [[(synthetic.row(), b"")]], info)
    (run / "cases.jsonl").unlink()
    assert case_word(run, "second", "abc") == "abc"
