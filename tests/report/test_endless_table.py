"""The tables of outputs that never end, and of the tokens that an output takes at least."""

from __future__ import annotations

import json
import runpy
from dataclasses import replace
from pathlib import Path

import pytest
from places import ROOT

from harness.cases.budget import budget_of_case
from harness.cases.case import Instance
from harness.cli.main import main
from harness.diagnose.advise import max_tokens
from harness.diagnose.advise.max_tokens import CaseBudget, largest_budget
from harness.oracle.fewest_tokens import FewestTokens
from harness.outcomes.endless import EndlessCounts, read_endless
from harness.report.advice import budget_lines
from harness.report.tables.budgets import budgets_frame
from harness.report.tables.endless import endless_frame
from harness.rows.store import read_cases

AB = {
    "type": "object",
    "properties": {"a": {"type": "integer", "maximum": 9}, "b": {"type": "string"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
CASES = [
    {"description": "two members", "schema": AB, "tests": [{"text": '{"a":1,"b":"x"}', "valid": True}]},
    {"description": "a constant", "schema": {"const": True}, "tests": [{"data": True, "valid": True}]},
    {"description": "a regex", "regex": "abc|d", "tests": [{"text": "d", "valid": True}]},
    {"description": "no reference", "schema": {"$ref": "http://x/"}, "tests": [{"data": 1}]},
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("endless")
    (folder / "few.json").write_text(json.dumps(CASES))
    backends = "reference,reference:layout=compact"
    asked = ["--backends", backends, "--vocabularies", "bytes", "--effort", "4", "--out", str(folder / "run")]
    assert main(["run", str(folder / "few.json"), *asked]) == 0
    return folder / "run"


def test_cases_without_end_are_counted_by_arm(run: Path) -> None:
    lines = [tuple(line.values())[1:] for line in endless_frame(run).to_dict("records")]
    assert lines == [
        ("reference", "json_schema", "2/2", "", "1/1", 1, "1/1"),
        ("reference:layout=compact", "json_schema", "", "", "0/1", 0, "1/1"),
    ]


def test_the_fewest_tokens_are_told_by_case(run: Path) -> None:
    lines = [tuple(line.values())[2:] for line in budgets_frame(run).to_dict("records")]
    assert lines == [
        ("few: two members", "json_schema", 14, 14),
        ("few: a constant", "json_schema", 4, 4),
        ("few: a regex", "regex", 1, 1),
    ]


def test_the_answer_is_a_sentence_for_each_backend(run: Path) -> None:
    assert list(read_endless(run).sentences()) == [
        "reference: yes, in white space (2 of 2 cases looked at); in the digits of a number (1 of "
        "1 case looked at, though the schema bounds it in 1); in a string (1 of 1 case looked at)",
        "reference:layout=compact: not in white space (0 characters at most); in a string (1 of 1 case "
        "looked at)",
    ]


@pytest.mark.long
def test_the_page_says_the_same(run: Path) -> None:
    assert main(["report", str(run), "--out", str(run / "shown")]) == 0
    page = (run / "shown" / "report.html").read_text("utf-8")
    assert "Outputs that never end" in page and "yes, in white space (2 of 2 cases looked at)" in page


def test_the_longest_of_two_dialects_counts() -> None:
    both, other = EndlessCounts(), EndlessCounts()
    both.add({"white_space_places": 1, "white_space_endless": 0, "white_space_longest": 2})
    other.add({"white_space_places": 3, "white_space_endless": 1, "white_space_longest": 7})
    both.merge(other)
    assert (both.share("white_space"), both.longest_white_space) == ("1/2", 7)


def test_the_largest_budget_counts_the_end_of_sequence(run: Path) -> None:
    cases = [case for _, _, case in read_cases(run)]
    assert largest_budget(cases, "bytes") == CaseBudget("few: two members", 15, 3)
    assert largest_budget(cases[-1:], "bytes") is None


MOST = "; of the 3 cases looked at, this one needs the most tokens"


@pytest.mark.parametrize(
    ("bounds", "instances", "ending", "said"),
    [
        (FewestTokens(4, 4), ["true"], MOST, ""),
        (FewestTokens(4, None), ["true"], MOST, ""),
        (FewestTokens(4, 30), ["true"], MOST, ""),
        (FewestTokens(4, None), [], "", "few: a constant (at least 5)"),
        (FewestTokens(4, 30), [], "", "few: a constant (at least 5; 31 suffice)"),
        (FewestTokens(4, None), ["true" + " " * 20], "", "few: a constant (at least 5; 25 suffice)"),
    ],
)
def test_only_a_number_that_was_found_is_told_as_the_most(
    run: Path,
    monkeypatch: pytest.MonkeyPatch,
    bounds: FewestTokens,
    instances: list[str],
    ending: str,
    said: str,
) -> None:
    """Where the search for the shortest output of a case is ended early it may need more than any other,
    unless a document of it shows that it does not."""
    cases = [case for _, _, case in read_cases(run)]
    written = tuple(Instance("", text.encode(), True) for text in instances)
    cases[1] = replace(cases[1], instances=(Instance("", b"1", False), *written))
    monkeypatch.setattr(
        max_tokens,
        "budget_of_case",
        lambda case, trie: bounds if case is cases[1] else budget_of_case(case, trie),
    )
    budget = largest_budget(cases, "bytes")
    assert budget is not None
    first, *others = budget_lines(budget)
    assert first == f"With a max_tokens below 15 no output of few: two members can be complete{ending}."
    of_this = f"This case may need more, because its fewest tokens were not found: {said}."
    assert others == ([of_this] if said else [])


@pytest.mark.long
def test_the_table_of_the_page_lays_both_runs_beside_each_other(run: Path, tmp_path: Path) -> None:
    asked = ["--backends", "reference:layout=compact", "--vocabularies", "bytes", "--effort", "0"]
    spelled = str(tmp_path / "spelled")
    assert main(["run", str(run.parent / "few.json"), *asked, "--spellings", "--out", spelled]) == 0
    script = runpy.run_path(str(ROOT / "benchmarks" / "endless.py"))
    line = script["table"]([run], [Path(spelled)]).splitlines()[-1]
    assert line.startswith("| reference:layout=compact | 0 |  | 0 of 1 | 1 of 1 | 1 of 1 |")


def test_both_are_tables_of_the_command(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", str(run), "endless"]) == 0
    assert "| bytes | reference | json_schema | 2/2 |" in capsys.readouterr().out
    assert main(["table", str(run), "budgets", "--format", "csv"]) == 0
    assert "few,bytes,few: two members,json_schema,14,14" in capsys.readouterr().out
