"""The first release with an outcome: the search alone, and over wheels in a folder."""

from __future__ import annotations

import json
import math
import os
import subprocess
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest
import synthetic
import toy_releases
from hypothesis import given
from hypothesis import strategies as st
from toy_releases import FAULT, RIGHT, SOURCE, wheel

from harness.backend.environments import releases
from harness.backend.environments.releases import between, released, withdrawn
from harness.backend.registry import BackendSpec
from harness.cli.main import main
from harness.diagnose.bisect import outcome as bisect
from harness.diagnose.bisect.outcome import first_bad
from harness.diagnose.bisect.sought import difference_of, shown
from harness.errors import OK, UNPROVEN, BadInput, did_you_mean
from harness.outcomes.difference_lines import difference_lines
from harness.outcomes.differences import differences, outcomes
from harness.rows.row import CHECKS_MODE, OUT_OF_TIME, Finding, Row
from harness.running.session import Request

CASE = {
    "description": "a choice",
    "choice": ["ab", "abc"],
    "tests": [{"text": "ab", "valid": True}, {"text": "a", "valid": False}],
}
OTHER = {"description": "another", "choice": ["x"], "tests": [{"text": "x", "valid": True}]}

Command = Callable[..., subprocess.CompletedProcess[str]]


# ------------------------------------------------------------------------------------------------- the search


@given(st.integers(2, 40), st.data())
def test_the_first_with_it_is_found_in_few_steps(count: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(1, count - 1))
    versions = [str(each) for each in range(count)]
    asked: list[str] = []

    def probe(version: str) -> bool:
        asked.append(version)
        return int(version) >= first

    found = first_bad(versions, probe)
    assert (found.last_good, found.first_bad, found.skipped) == (str(first - 1), str(first), ())
    assert len(asked) == len(set(asked)) <= math.ceil(math.log2(count))
    assert not {"0", versions[-1]} & set(asked), "the ends are known"


@given(st.integers(2, 25), st.data())
def test_what_cannot_be_told_makes_it_a_range(count: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(1, count - 1))
    untold = data.draw(st.sets(st.integers(1, max(1, count - 2))) if count > 2 else st.just(set[int]()))
    found = first_bad(
        [str(each) for each in range(count)], lambda each: None if int(each) in untold else int(each) >= first
    )
    assert int(found.last_good) < first <= int(found.first_bad)
    assert str(first) in found.candidates
    assert set(map(int, found.skipped)) <= untold
    between_them = {each for each in range(int(found.last_good) + 1, int(found.first_bad))}
    assert between_them == set(map(int, found.skipped)), "only what cannot be told lies between"


def test_between_leaves_pre_releases_out_unless_one_is_named() -> None:
    versions = ["1.0", "1.1rc1", "1.1", "1.2.dev3", "1.2", "1.10", "2.0"]
    assert between(lambda: versions, "1.0", "1.10") == ["1.0", "1.1", "1.2", "1.10"]
    assert between(lambda: versions, "1.1rc1", "1.2") == ["1.1rc1", "1.1", "1.2.dev3", "1.2"]
    within = between(lambda: versions, "0.9", "1.1")
    assert within == ["0.9", "1.0", "1.1"], "the ends need not be released"


@pytest.mark.parametrize(("good", "bad"), [("2.0", "1.0"), ("1.0", "1.0"), ("new", "1.0"), ("1.0", "./x")])
def test_ends_that_are_no_range_are_bad_input(good: str, bad: str) -> None:
    with pytest.raises(BadInput, match=r"must come first|is no version"):
        between(lambda: pytest.fail("no index is asked for what is no range"), good, bad)


def test_several_backends_are_bad_input() -> None:
    with pytest.raises(BadInput, match="names 2 backends; one is bisected at a time"):
        bisect.without_version("xgrammar,llguidance")


def test_a_package_on_no_index_is_told_where_its_wheels_may_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(BadInput, match=r"cannot be listed: [^(]*; wheels .*PIP_FIND_LINKS"):
        released("no-such-grammar-library-of-ours")


def test_an_index_without_connection_is_told_apart_from_one_without_the_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {"INDEX_URL": "http://127.0.0.1:1/simple", "RETRIES": "1", "NO_INDEX": ""}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    with pytest.raises(BadInput, match=r"cannot be listed: .* \(a connection to a package index failed\);"):
        released("no-such-grammar-library-of-ours")


def test_a_version_is_withdrawn_if_every_file_of_it_is() -> None:
    page = {
        "files": [
            {"filename": "a-1.0-py3-none-any.whl", "yanked": "broken"},
            {"filename": "a-1.0.tar.gz", "yanked": True},
            {"filename": "a-1.1-py3-none-any.whl", "yanked": True},
            {"filename": "a-1.1.tar.gz", "yanked": False},
            {"filename": "a-1.2.tar.gz"},
            {"filename": "a-0.1.egg", "yanked": True},
        ]
    }
    assert {str(each) for each in withdrawn(page)} == {"1.0"}


# -------------------------------------------------------------------------------------------- the differences


def checked(**fields: object) -> Row:
    return synthetic.row(
        **({"mode": CHECKS_MODE, "instance": None, "accepted": None, "valid": None} | fields)
    )


def test_differences_are_told_by_case_and_part() -> None:
    other = "1" * 12
    before = [
        synthetic.row(),
        synthetic.row(instance=1, valid=False),
        synthetic.row(case_id=other, accepted=False),
    ]
    after = [
        synthetic.row(accepted=False),
        synthetic.row(instance=1, valid=False, accepted=False),
        synthetic.row(case_id=other),
    ]
    found = differences([*before[:1], before[1], before[2]], after)
    assert [(each.key[2], each.kind) for each in found.cases] == [("0" * 12, "other"), (other, "better")]
    changed = {part.part: (set(part.before), set(part.after)) for part in found.cases[0].parts}
    assert changed == {
        "instance 0 (test 1)": (set(), {"over_constrained"}),
        "instance 1 (test 1)": ({"under_constrained"}, set()),
    }
    assert found.compared == 2
    assert any("right -> over_constrained" in line.text for line in difference_lines(found))
    assert differences(before, before).cases == ()


def test_times_and_texts_are_no_difference() -> None:
    before = synthetic.row(status="unsupported", accepted=None, text="I cannot", compile_ns=5)
    after = synthetic.row(
        status="invalid", accepted=None, text="you are wrong", compile_ns=9, backend_version="2"
    )
    assert differences([before], [after]).cases == ()


def test_a_check_that_only_one_side_made_says_nothing() -> None:
    found = Finding("going_back", None, "", cause="mask")
    before = checked(checks={"going_back": "failed", "walks": "passed"}, findings=(found,))
    skipped = checked(checks={"going_back": "skipped: not implemented", "walks": "passed"})
    repaired = checked(
        checks={"going_back": "passed", "walks": "failed"}, findings=(Finding("walks", 1, ""),)
    )
    assert differences([before], [skipped]).cases == ()
    (case,) = differences([before], [repaired]).cases
    assert [(set(part.new), set(part.gone)) for part in case.parts] == [({"walks"}, {"going_back:mask"})]


def test_what_we_lost_is_compared_with_nothing() -> None:
    ours = synthetic.row(status="harness_error", accepted=None)
    found = differences(
        [ours, synthetic.row(case_id="1" * 12)],
        [synthetic.row(accepted=False), synthetic.row(case_id="2" * 12)],
    )
    assert (found.cases, found.compared, found.unmeasured, found.only_before, found.only_after) == (
        (),
        0,
        1,
        1,
        1,
    )


def test_a_crash_is_a_difference_though_the_rest_of_the_case_was_not_walked() -> None:
    before = [synthetic.row(), synthetic.row(instance=1)]
    after = [
        synthetic.row(status="crash", accepted=None, phase="fill"),
        synthetic.row(instance=1, status="skipped", accepted=None),
    ]
    (case,) = differences(before, after).cases
    assert [(part.part, set(part.after)) for part in case.parts] == [("instance 0 (test 1)", {"crash"})]
    assert not case.depends_on_the_machine
    assert differences(before, [checked(checks={"walks": OUT_OF_TIME})]).compared == 0


def test_rows_of_two_arms_are_not_folded_into_one() -> None:
    with pytest.raises(ValueError, match="more than one arm"):
        outcomes([synthetic.row(), synthetic.row(backend_version="2")])


def test_a_version_shows_it_if_it_shows_all_of_it() -> None:
    right = [synthetic.row(), synthetic.row(instance=1, accepted=False)]
    wrong = [synthetic.row(accepted=False), synthetic.row(instance=1)]
    wanted = difference_of(right, wrong)
    assert len(wanted) == 2
    assert shown(wanted, outcomes(wrong)) is True
    assert shown(wanted, outcomes(right)) is False
    assert shown(wanted, outcomes([wrong[0], right[1]])) is False, "half of it"
    assert (
        shown(wanted, outcomes([wrong[0], synthetic.row(instance=1, status="skipped", accepted=None)]))
        is None
    )


RIGHT_ROWS = (synthetic.row(), synthetic.row(instance=1, valid=False, accepted=False))
WRONG_ROWS = (synthetic.row(), synthetic.row(instance=1, valid=False, accepted=True))


def searched(monkeypatch: pytest.MonkeyPatch, wrong: set[str], versions: list[str]) -> bisect.BisectResult:
    """The answer for a backend of which these versions are wrong; nothing is installed or walked."""
    return searched_rows(
        monkeypatch, {version: WRONG_ROWS if version in wrong else RIGHT_ROWS for version in versions}
    )


def searched_rows(
    monkeypatch: pytest.MonkeyPatch, rows: Mapping[str, tuple[Row, ...]]
) -> bisect.BisectResult:
    """The answer for a backend whose versions have these rows; each is walked once at most."""
    versions, walked = list(rows), list[str]()

    def walk(_: object, spec: BackendSpec) -> tuple[Row, ...]:
        walked.append(str(spec.version))
        assert len(set(walked)) == len(walked), "rows are kept by version"
        return rows[str(spec.version)]

    monkeypatch.setattr(bisect, "walked", walk)
    return asked(monkeypatch, versions)


def asked(monkeypatch: pytest.MonkeyPatch, versions: list[str]) -> bisect.BisectResult:
    """The answer for a backend of these versions, which are not installed."""
    monkeypatch.setattr(bisect, "without_version", lambda _: (BackendSpec("toy"), "toy", versions[0]))
    monkeypatch.setattr(bisect, "check_named", lambda *_: None)
    monkeypatch.setattr(bisect, "place", lambda spec, *_: (spec, "python"))
    question = bisect.Question("toy", "a case", ())
    return bisect.bisect(question, versions[0], versions[-1], lambda _: None, lambda _: versions)


def test_a_repair_is_worded_as_one_and_a_fault_as_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    repair = searched(monkeypatch, {"1", "2"}, ["1", "2", "3", "4"])
    assert repair.text("toy").startswith("fixed in toy==3; 2 is the last version with the fault")
    assert repair.to_json()["kind"] == "better"
    assert (repair.to_json()["first_good"], repair.to_json()["last_bad"]) == (
        "3",
        "2",
    ) and "first_bad" not in repair.to_json()
    assert dict(repair.steps) == {
        "1": "still has the fault",
        "2": "still has the fault",
        "3": "has the repair",
        "4": "has the repair",
    }
    fault = searched(monkeypatch, {"3", "4"}, ["1", "2", "3", "4"])
    assert fault.text("toy").startswith("toy==3 is the first version with it; 2 is the last without")
    assert (fault.to_json()["kind"], fault.to_json()["first_bad"]) == (
        "worse",
        "3",
    ) and "fixed" not in fault.text("toy")


def of_two(first: Row, second: Row) -> tuple[Row, Row]:
    return first, replace(second, instance=1, instance_name="test 2")


RIGHT_ROW, ACCEPTS = synthetic.row(valid=False, accepted=False), synthetic.row(valid=False, accepted=True)
LATE = synthetic.row(status="timeout", accepted=None)
BY_CHOICE = synthetic.row(
    valid=False,
    accepted=False,
    findings=(Finding("the_mask_is_exact", 3, "x", cause="whitespace", documented=True),),
)


@pytest.mark.parametrize("later", [BY_CHOICE, LATE])
def test_what_is_documented_or_late_does_not_move_the_answer(
    monkeypatch: pytest.MonkeyPatch, later: Row
) -> None:
    """The fault came with 2; with 4 came what nobody asked for."""
    found = searched_rows(
        monkeypatch,
        {
            str(number): of_two(ACCEPTS if number >= 2 else RIGHT_ROW, later if number >= 4 else RIGHT_ROW)
            for number in range(1, 6)
        },
    )
    assert found.text("toy").startswith("toy==2 is the first version with it; 1 is the last without")
    assert found.to_json()["first_bad"] == "2" and len(found.changes) == 1


@pytest.mark.parametrize("later", [BY_CHOICE, LATE])
def test_what_is_documented_or_late_is_found_where_nothing_else_differs(
    monkeypatch: pytest.MonkeyPatch, later: Row
) -> None:
    rows: dict[str, tuple[Row, ...]] = {
        str(number): (later if number >= 4 else RIGHT_ROW,) for number in range(1, 6)
    }
    assert searched_rows(monkeypatch, rows).to_json()["first_bad"] == "4"


DOCUMENTED = checked(checks={"walks": "failed"}, findings=(Finding("walks", 1, "", documented=True),))
UNDOCUMENTED = checked(checks={"walks": "failed"}, findings=(Finding("walks", 1, ""),))


@pytest.mark.parametrize(
    ("early", "late", "kind"), [(DOCUMENTED, UNDOCUMENTED, "worse"), (UNDOCUMENTED, DOCUMENTED, "better")]
)
def test_a_version_that_documents_a_fault_is_one_without_it(
    monkeypatch: pytest.MonkeyPatch, early: Row, late: Row, kind: str
) -> None:
    rows = {str(number): (late if number >= 4 else early,) for number in range(1, 6)}
    found = searched_rows(monkeypatch, rows)
    assert (found.kind, found.main.search.last_good, found.main.search.first_bad) == (kind, "3", "4")


def test_a_version_that_missed_the_deadline_tells_nothing_of_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: dict[str, tuple[Row, ...]] = {"1": (RIGHT_ROW,), "2": (LATE,), "3": (ACCEPTS,), "4": (ACCEPTS,)}
    found = searched_rows(monkeypatch, rows)
    assert found.to_json()["candidates"] == ["2", "3"] and dict(found.steps)["2"].startswith("skipped")


@pytest.mark.parametrize("status", ["backend_error", "crash", "oom"])
@pytest.mark.parametrize("is_repair", [False, True])
def test_a_version_that_breaks_tells_nothing_of_another_fault(
    monkeypatch: pytest.MonkeyPatch, status: str, is_repair: bool
) -> None:
    """The fault comes with 2, or goes with 4, and 3 breaks."""
    broken = synthetic.row(valid=False, status=status, accepted=None, phase="load", text="x")
    rows: dict[str, tuple[Row, ...]] = {
        "1": (RIGHT_ROW,),
        "2": (ACCEPTS,),
        "3": (broken,),
        "4": (ACCEPTS,),
        "5": (ACCEPTS,),
    }
    if is_repair:
        rows |= {"1": (ACCEPTS,), "4": (RIGHT_ROW,), "5": (RIGHT_ROW,)}
    found = searched_rows(monkeypatch, rows)
    assert found.to_json()["candidates"] == (["3", "4"] if is_repair else ["2"])
    assert dict(found.steps)["3"].startswith("skipped: ")


def test_a_version_that_breaks_shows_that_it_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = synthetic.row(valid=False, status="crash", accepted=None, phase="fill")
    late = {"1": (RIGHT_ROW,), "2": (broken,), "3": (broken,)}
    assert searched_rows(monkeypatch, late).to_json()["candidates"] == ["2"]
    mended = {"1": (broken,), "2": (broken,), "3": (broken,), "4": (ACCEPTS,)}
    assert searched_rows(monkeypatch, mended).to_json()["candidates"] == ["4"]


@pytest.mark.parametrize(("version", "code"), [("3", UNPROVEN), ("2", OK)])
def test_an_answer_that_is_one_of_several_is_unproven(
    monkeypatch: pytest.MonkeyPatch, version: str, code: int
) -> None:
    """The fault comes with 4, and this version breaks; where 3 is without the fault, 2 is not asked."""
    broken = synthetic.row(valid=False, status="crash", accepted=None, phase="load", text="x")
    rows = {str(number): (ACCEPTS if number >= 4 else RIGHT_ROW,) for number in range(1, 6)}
    found = searched_rows(monkeypatch, rows | {version: (broken,)})
    monkeypatch.setattr(bisect, "bisect", lambda *_: found)
    assert main(["bisect", "toy", "1..5", "--case", "a case"]) == code


def test_a_version_that_cannot_be_loaded_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The run refuses 3, in which the backend has no such option; the fault comes with 4."""

    def refused_or_run(request: Request, *_: object) -> SimpleNamespace:
        version = request.backends.partition("==")[2]
        if version == "3":
            raise BadInput('"toy" has no option "x"')
        return SimpleNamespace(folder=version)

    monkeypatch.setattr(bisect, "run_session", refused_or_run)
    monkeypatch.setattr(bisect, "read_rows", lambda version: WRONG_ROWS if version >= "4" else RIGHT_ROWS)
    found = asked(monkeypatch, ["1", "2", "3", "4", "5"])
    assert found.to_json()["candidates"] == ["3", "4"]
    assert dict(found.steps)["3"] == 'skipped: "toy" has no option "x"'
    with pytest.raises(BadInput, match=r'toy 3 cannot be judged, .*: "toy" has no option "x"'):
        asked(monkeypatch, ["1", "2", "3"])


PARTIAL = synthetic.row(
    mode=CHECKS_MODE,
    instance=None,
    instance_name="",
    valid=None,
    accepted=None,
    findings=(Finding("every_allowed_token_leads_to_a_document", 0, "x", cause="partial_utf8"),),
    checks={"every_allowed_token_leads_to_a_document": "failed", "the_mask_is_exact": OUT_OF_TIME},
)
IN_TIME = replace(PARTIAL, checks=PARTIAL.checks | {"the_mask_is_exact": "passed"})


def without_fault(row: Row) -> Row:
    checks = row.checks | {"every_allowed_token_leads_to_a_document": "passed"}
    return replace(row, findings=(), checks=checks)


def test_a_fault_is_found_where_every_version_misses_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: dict[str, tuple[Row, ...]] = {
        str(number): (PARTIAL if number >= 4 else without_fault(PARTIAL),) for number in range(1, 8)
    }
    found = searched_rows(monkeypatch, rows)
    assert found.to_json()["first_bad"] == "4" and found.to_json()["candidates"] == ["4"]


def test_a_fault_that_was_seen_is_sought_and_not_the_deadline_missed_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The fault comes with 3, and from 5 on a deadline is missed too."""
    rows: dict[str, tuple[Row, ...]] = {
        str(number): (without_fault(IN_TIME) if number < 3 else IN_TIME if number < 5 else PARTIAL,)
        for number in range(1, 8)
    }
    assert searched_rows(monkeypatch, rows).to_json()["first_bad"] == "3"


def test_each_fault_has_its_own_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """One comes with 2 and one with 4: no release has brought both."""
    rows: dict[str, tuple[Row, ...]] = {
        str(number): of_two(ACCEPTS if number >= 2 else RIGHT_ROW, ACCEPTS if number >= 4 else RIGHT_ROW)
        for number in range(1, 6)
    }
    found = searched_rows(monkeypatch, rows)
    assert found.text("toy").splitlines() == [
        "it did not change at once, but in 2 steps:",
        "toy==2 is the first version with it; 1 is the last without",
        "  a case (first/000000000000, tiny)",
        "    instance 0 (test 1): right -> under_constrained",
        "toy==4 is the first version with it; 3 is the last without",
        "  a case (first/000000000000, tiny)",
        "    instance 1 (test 2): right -> under_constrained",
    ]
    said = found.to_json()
    assert (said["first_bad"], [each["first_bad"] for each in said["changes"]]) == ("2", ["2", "4"])
    assert dict(found.steps)["3"] == "agrees with the last version in 1 of 2 faults"
    repair = searched_rows(monkeypatch, dict(zip(rows, list(rows.values())[::-1], strict=True)))
    assert (repair.to_json()["kind"], repair.to_json()["first_good"]) == ("better", "5")
    assert [each.search.first_bad for each in repair.changes] == ["3", "5"]


def test_a_fault_that_came_and_one_that_went_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    found = searched_rows(
        monkeypatch,
        {
            str(number): of_two(ACCEPTS if number < 3 else RIGHT_ROW, ACCEPTS if number >= 4 else RIGHT_ROW)
            for number in range(1, 6)
        },
    )
    said = found.to_json()
    assert [each["kind"] for each in said["changes"]] == ["better", "worse"]
    assert (said["kind"], said["first_bad"], said["changes"][0]["first_good"]) == ("other", "4", "3")
    assert "fixed in toy==3" in found.text("toy") and "toy==4 is the first version with it" in found.text(
        "toy"
    )


def test_what_speaks_against_an_answer_is_told_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second fault is in 3 too, where the search for the first one looked, and then from 7 on."""
    numbers = range(1, 10)
    faulty = {
        str(number): of_two(
            ACCEPTS if number >= 3 else RIGHT_ROW, ACCEPTS if number in (3, 7, 8, 9) else RIGHT_ROW
        )
        for number in numbers
    }
    found = searched_rows(monkeypatch, faulty)
    lines = found.text("toy").splitlines()
    place = lines.index("toy==7 is the first version with it; 6 is the last without")
    assert lines[place + 1] == "yet 3 shows it: the outcome changed more than once"
    assert found.text("toy").count("yet ") == 1
    said = [(each["also_in"], each["not_in"]) for each in found.to_json()["changes"]]
    assert said == [([], []), (["3"], [])]
    mended = dict(zip(faulty, list(faulty.values())[::-1], strict=True))
    found = searched_rows(monkeypatch, mended)
    assert "yet 7 still has the fault: the outcome changed more than once" in found.text("toy").splitlines()
    assert [each["not_in"] for each in found.to_json()["changes"]] == [["7"], []]


def test_an_unknown_case_is_one_short_line_before_anything_is_installed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Suites may stand before the options or behind them, as in `run`."""
    many = tmp_path / "many.jsonl"
    many.write_text(
        "".join(
            json.dumps({**CASE, "description": f"case number {each} {'x' * 200}"}) + "\n"
            for each in range(500)
        )
    )
    for words in (
        ["--case", "TYPO"],
        [str(many), "--case", "TYPO"],
        ["--case", "case number 17", str(many)],
        [str(many), "--case", "TYPO" * 1000, "--slower", "compile"],
    ):
        assert main(["bisect", "xgrammar", "0.1.0..0.2.0", *words]) == 2
        said = capsys.readouterr()
        (line,) = said.err.splitlines()
        assert 'no case "' in line and len(line) < 1000 and not said.out, line
        assert "many" in line or "json_schema" in line


def test_words_that_are_no_suites_are_usage_errors(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["table", "run", "more"], ["bisect", "xgrammar", "1..2", "--case", "x", "--sweet", "y"]):
        with pytest.raises(SystemExit) as end:
            main(words)
        said = capsys.readouterr().err
        assert end.value.code == 2 and (
            "unrecognized arguments" in said or "is none of" in said or "there is no option" in said
        )


def test_near_names_are_a_handful() -> None:
    known = [f"tool call {each}" for each in range(1000)]
    assert did_you_mean("tool cal", known).count("tool call") == 3 and did_you_mean(
        "tool cal", known
    ).startswith("; did you mean ")
    assert len(did_you_mean("nothing like it", [f"{'y' * 300}{each}" for each in range(1000)])) < 1000
    assert did_you_mean("mnth", ["integer", "month", "sum"]) == '; did you mean "month"?'
    assert did_you_mean("x", ["aaa", "bbb"]) == "; known: aaa, bbb" and did_you_mean("x", []) == ""


# ----------------------------------------------------------------------------------------- over real releases


@pytest.fixture(scope="module")
def grammarbench(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """The command in an environment with version 1.0, and an index where 1.4 brings a fault and 1.3 does not
    install."""
    pytest.importorskip("pip")
    index, cache = tmp_path_factory.mktemp("index"), tmp_path_factory.mktemp("cache")
    first = wheel(index, "1.0")
    for version in ("1.1", "1.2"):
        wheel(index, version)
    wheel(index, "1.3", "raise ImportError('not for this machine')")
    wheel(index, "1.4rc1", "raise ImportError('a pre-release')")
    for version in ("1.4", "1.5", "2.0"):
        wheel(index, version, SOURCE.replace(RIGHT, FAULT))
    wheel(index, "2.1")
    python = toy_releases.environment(tmp_path_factory.mktemp("parent") / "env", first)
    (index / "cases.jsonl").write_text(f"{json.dumps(CASE)}\n{json.dumps(OTHER)}\n")

    def command(versions: str, case: str, *more: str) -> subprocess.CompletedProcess[str]:
        asked = [
            "bisect",
            "toy-choice",
            versions,
            "--case",
            case,
            str(index / "cases.jsonl"),
            "--vocabularies",
            "bytes",
            "--effort",
            "0",
        ]
        return toy_releases.grammarbench(python, *asked, *more, index=index, cache=cache)

    return command


@pytest.mark.long
def test_the_release_that_brought_a_fault_is_found(grammarbench: Command) -> None:
    done = grammarbench("1.0..2.0", "a choice", "--json")
    assert done.returncode == UNPROVEN, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert (answer["first_bad"], answer["candidates"], answer["last_good"]) == (None, ["1.3", "1.4"], "1.2")
    (difference,) = answer["differences"]
    assert difference["parts"] == [
        {"part": "instance 1 (test 2)", "before": [], "after": ["under_constrained"]}
    ]
    tried = {each["version"]: each["outcome"] for each in answer["steps"]}
    assert tried["1.0"] == tried["1.2"] == "does not show it" and tried["2.0"] == tried["1.4"] == "shows it"
    assert "not for this machine" in tried["1.3"]
    assert "1.4rc1" not in tried and "1.5" not in tried


@pytest.mark.long
def test_the_release_that_mended_a_fault_is_told_as_a_repair(grammarbench: Command) -> None:
    done = grammarbench("1.5..2.1", "a choice")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fixed in toy-choice==2.1; 2.0 is the last version with the fault" in " ".join(done.stdout.split())
    assert "2.1: has the repair" in done.stderr and "1.5: still has the fault" in done.stderr
    assert "is the first version with it" not in done.stdout


@pytest.mark.long
def test_the_answer_is_exact_where_nothing_was_skipped(grammarbench: Command) -> None:
    done = grammarbench("1.4..1.5", "a choice")
    assert done.returncode == 2 and "have the same outcome in this case" in done.stderr


@pytest.mark.long
def test_questions_without_an_answer_are_one_line(grammarbench: Command) -> None:
    for versions, case, said in (
        ("1.0", "a choice", '"1.0" cannot be read; write GOOD..BAD'),
        ("1.0..1.3", "a choice", "toy-backend 1.3 cannot be judged"),
        ("1.0..9.9", "a choice", "toy-backend 9.9 cannot be judged"),
        ("1.0..2.0", "a chiose", 'did you mean "a choice"?'),
    ):
        done = grammarbench(versions, case)
        assert done.returncode == 2, done.stdout + done.stderr
        *progress, line = done.stderr.splitlines()
        assert said in line and "Traceback" not in done.stderr and not done.stdout
        assert all(told.startswith(("building ", "1.0: walking")) for told in progress)


@pytest.mark.parametrize(
    "index", ["https://user:s3cret@127.0.0.1/simple", "../simple", "http://127.0.0.1:1/simple", "x"]
)
def test_an_index_that_cannot_be_asked_withdraws_nothing(index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A private index has a password in its address, which no message may show."""
    monkeypatch.delenv("PIP_NO_INDEX", raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", index)
    assert releases._yanked("x") == set()


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        ("[global]\nindex-url = https://private.example/simple/\n", ["https://private.example/simple/x/"]),
        (
            "[index]\nindex-url = https://own.example/\n[global]\nindex-url = https://private.example/\n",
            ["https://own.example/x/"],
        ),
        ("[global]\nno-index = true\n", []),
        ("no settings", []),
        ("", ["https://pypi.org/simple/x/"]),
    ],
    ids=["global", "of the command", "none", "unreadable", "default"],
)
def test_a_private_name_is_asked_of_the_index_in_the_file_of_pip_alone(
    settings: str, asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pip")
    for name in ("PIP_NO_INDEX", "PIP_INDEX_URL", "UV_DEFAULT_INDEX"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "pip.conf"
    file.write_text(settings)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file) if settings else os.devnull)
    pages: list[str] = []

    def refused(request: urllib.request.Request, **_: object) -> NoReturn:
        pages.append(request.full_url)
        raise OSError

    monkeypatch.setattr("urllib.request.urlopen", refused)
    assert releases._yanked("x") == set()
    assert pages == asked
