"""The tables of outputs that never end, and of the tokens that an output takes at least."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.report.tables.budgets import budgets_frame
from harness.report.tables.endless import endless_frame

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


def test_both_are_tables_of_the_command(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", str(run), "endless"]) == 0
    assert "| bytes | reference | json_schema | 2/2 |" in capsys.readouterr().out
    assert main(["table", str(run), "budgets", "--format", "csv"]) == 0
    assert "few,bytes,few: two members,json_schema,14,14" in capsys.readouterr().out
