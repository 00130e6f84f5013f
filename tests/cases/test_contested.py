"""A `valid` that both validators contradict is questioned: said on every surface, marked in the rows, and no
backend's fault."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.cases.case import Case
from harness.cases.case_json import cases_from_json
from harness.cases.case_line import case_from_line, case_to_line
from harness.cases.flags import CONTRADICTED, HIDDEN_DRAFT, UNREADABLE, with_verdicts
from harness.cases.plan import PROFILES, write_plan
from harness.cases.suite import find_suite, suite_names
from harness.cli.main import main
from harness.oracle.judge import Judge
from harness.rows.row import contested_lines, verdict
from harness.rows.store import read_rows

WRONG = "whose `valid` both validators contradict"


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge() as judge:
        yield judge


def case(schema: Any, tests: list[dict[str, Any]], **options: str) -> Case:
    (found,) = cases_from_json(
        {"schema": schema, "tests": tests, "options": options}, "a", "a.json", None, {}
    )
    return found


@pytest.mark.parametrize(
    ("schema", "text", "claimed", "options", "reason"),
    [
        ({"type": "integer"}, '"a"', True, {}, CONTRADICTED),
        ({"type": "integer"}, "1", False, {}, CONTRADICTED),
        ({"type": "integer"}, "1", True, {}, ""),
        ({"type": "integer", "extends": {"minimum": 10}}, "0", True, {"draft": "draft3"}, ""),
        # only one validator reads draft 3
        ({"items": [{"type": "string"}]}, "[1]", True, {"draft": "draft7"}, CONTRADICTED),
        ({"pattern": r"^\d$"}, '"\u0663"', True, {}, CONTRADICTED),
        ({"format": "date"}, '"x"', False, {}, ""),  # an annotation, or a constraint: who knows
        ({"format": "date"}, '"x"', True, {"format": "assert"}, CONTRADICTED),
        ({"$schema": "https://json-schema.org/draft/2019-09/schema", "contains": {},
        "unevaluatedItems": False}, "[1]", True, {}, ""),
        ({}, r'"\ud800"', True, {}, UNREADABLE),
        ({}, r'"\ud800"', False, {}, UNREADABLE),
        (
            {"$schema": "http://localhost/own", "type": "integer"},
            "1",
            True,
            {"draft": "draft7"},
            HIDDEN_DRAFT,
        ),
        ({"$schema": "http://localhost/own", "type": "integer"}, "1", True, {}, ""),
    ],
)  # fmt: skip
def test_what_is_questioned(
    schema: Any, text: str, claimed: bool, options: dict[str, str], reason: str, judge: Judge
) -> None:
    asked = case(schema, [{"description": "it", "text": text, "valid": claimed}], **options)
    found, why = with_verdicts(asked, judge, questioned=True, both=True)
    assert why == ({reason: ["it"]} if reason else {})
    (instance,) = found.instances
    assert (instance.valid, instance.contested) == ((None, claimed) if reason else (claimed, None))
    _, _, again = case_from_line(case_to_line("s", "1", found))
    assert again == found
    assert with_verdicts(asked, judge, questioned=False, both=True) == (asked, {}), (
        "our own suites are held by their tests"
    )


def test_where_the_validators_differ_an_instance_without_a_flag_has_none(judge: Judge) -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2019-09/schema",
        "contains": {},
        "unevaluatedItems": False,
    }
    asked = case(schema, [{"text": "[1]"}, {"text": "{}"}])
    found, _ = with_verdicts(asked, judge, questioned=True, both=True)
    assert [instance.valid for instance in found.instances] == [None, True]
    alone, _ = with_verdicts(asked, judge, questioned=True, both=False)
    assert [instance.valid for instance in alone.instances] == [False, True]


def test_every_surface_says_it_and_nobody_is_blamed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    evil = "<script>alert(1)</script>\x1b[31m"
    tests = [
        {"description": "right", "data": 1, "valid": True},
        {"description": f"a wrong flag {evil}", "data": 2, "valid": False},
        {"description": "another", "data": "x", "valid": True},
    ]
    (tmp_path / "mine.json").write_text(json.dumps({"schema": {"type": "integer"}, "tests": tests}))
    folder = tmp_path / "run"
    asked = [
        "run",
        str(tmp_path / "mine.json"),
        "--backends",
        "unconstrained",
        "--vocabularies",
        "bytes",
        "--effort",
        "0",
        "--jobs",
        "1",
    ]
    assert main([*asked, "--out", str(folder)]) == 0
    printed = capfd.readouterr()
    planned, said = (" ".join(text.split()) for text in (printed.err, printed.out))
    for told in (planned, said):
        assert told.count(f"2 instances {WRONG}: ") == 1, "when it is planned, and in the summary"
    assert "2 instances" in said and "no backend is judged by them" in said and "\x1b[31m" not in said
    rows = sorted(read_rows(folder), key=lambda row: row.instance or 0)
    assert [(row.valid, row.contested) for row in rows] == [(True, None), (None, False), (None, True)]
    assert [verdict(row.status, row.valid, row.accepted) for row in rows] == ["pass", "unjudged", "unjudged"]
    assert main(["report", str(folder), "--out", str(tmp_path / "page")]) == 0
    page = next((tmp_path / "page").glob("*.html")).read_text("utf-8")
    assert f"2 instances {WRONG}: " in page and "<script>alert(1)" not in page


def test_a_sentence_names_a_few() -> None:
    told: dict[str, dict[str, Any]] = {
        "a": {"contested": {"why": [f"{number}" for number in range(5)]}},
        "b": {"contested": {"many": ["8"]}, "contested_more": {"many": 29_999}},
        "c": {"contested": {"why": ["6"], "so": ["7"]}},
    }
    assert contested_lines(told) == [
        "6 instances why: 0; 1; 2 and 3 more; no backend is judged by them",
        "30,000 instances many: 8 and 29,999 more; no backend is judged by them",
        "1 instance so: 7; no backend is judged by it",
    ]
    assert contested_lines({}) == []


@pytest.mark.long
@pytest.mark.parametrize("name", suite_names())
def test_no_flag_of_our_own_suites_would_be_questioned(name: str, judge: Judge) -> None:
    from harness.cases.suite import read_cases

    for each in read_cases(find_suite(name)):
        assert with_verdicts(each, judge, questioned=True, both=False)[1] == {}, each.name


def test_the_first_line_of_a_run_names_a_hundred_and_counts_the_others(tmp_path: Path) -> None:
    wrong: list[dict[str, Any]] = [
        {"description": "い" * 300, "data": number, "valid": False} for number in range(130)
    ]
    right: list[dict[str, Any]] = [{"data": 1, "valid": True}]
    cases = [{"description": name, "schema": {"type": "integer"}, "tests": wrong + right} for name in "ab"]
    (tmp_path / "mine.json").write_text(json.dumps(cases))
    suite = find_suite(str(tmp_path / "mine.json"))
    about = write_plan([suite], PROFILES["default"], 0, tmp_path / "cases.jsonl").suites["mine"]
    ((why, names),) = about["contested"].items()
    assert (why, len(names), about["contested_more"]) == (WRONG, 100, {WRONG: 160})
    (line,) = contested_lines({"mine": about})
    assert line.startswith(f"260 instances {WRONG}: ") and " and 257 more; " in line


def test_a_first_line_that_nobody_could_read_is_refused_before_the_walk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.json").write_text(json.dumps({"schema": {}, "tests": [{"data": 1, "valid": True}]}))
    asked = ["run", str(tmp_path / "mine.json"), "--backends", "unconstrained", "--vocabularies", "bytes"]
    monkeypatch.setattr("harness.rows.writer.LONGEST_LINE", 1000)
    assert main([*asked, "--effort", "0", "--out", str(tmp_path / "run")]) == 2
    assert not (tmp_path / "run" / "rows.jsonl").exists()
