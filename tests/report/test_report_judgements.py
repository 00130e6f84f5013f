"""The lines of a page that say what is right without us: they are there only where they say what the case
says."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import synthetic
from report_schema import SCHEMA

from harness.backend.grammar import Grammar
from harness.cases.case import Case, Instance, case_id
from harness.diagnose.repro import evidence
from harness.report.cases import judgements
from harness.report.cases.data import as_json, explore
from harness.report.cases.judgements import add_judgements
from harness.report.page.inputs import read_inputs

ITEMS = '{"items": [{"type": "integer"}]}'
"""A list of schemas is `prefixItems` up to draft 2019-09, and no schema in 2020-12."""


def made(
    folder: Path, dialect: str, text: str, content: bytes, valid: bool, **options: Any
) -> dict[str, Any]:
    """Returns the details of a case of which an arm says the opposite."""
    grammar = Grammar(dialect, text)  # type: ignore[arg-type]
    case = Case(case_id(grammar), "one", grammar, (Instance("it", content, valid),))
    case = replace(case, options=options)
    row = synthetic.row(case="one", case_id=case.id, dialect=dialect, valid=valid, accepted=not valid)
    run = synthetic.write_run(folder, [[(row, b"")]], synthetic.info(synthetic.ARMS[:1]), [("first", case)])
    inputs = read_inputs([run])
    explored = explore(inputs.cases, inputs.tried)
    add_judgements(explored)
    jsonschema.validate(json.loads(as_json(explored)), SCHEMA)
    (detail,) = explored.details
    return detail


@pytest.mark.parametrize(
    ("dialect", "text", "content", "valid", "options", "names"),
    [
        ("json_schema", '{"type": "string"}', b'"a"', True, {}, "Draft202012Validator"),
        ("json_schema", '{"type": "number"}', b"NaN", False, {}, "json.loads"),
        ("json_schema", ITEMS, b'["x"]', False, {"draft": "draft7"}, "Draft7Validator"),
        ("json_schema", '{"format": "ipv4"}', b'"x"', False, {"format": "assert"}, "FORMAT_CHECKER"),
        # ECMA-262 takes only ASCII digits for \d, and jsonschema takes every digit of Unicode.
        ("json_schema", r'{"pattern": "^\\d$"}', '"\u0663"'.encode(), False, {}, "jsonschema_rs"),
        ("regex", r"\d+", b"12", True, {}, "regex.fullmatch"),
        ("choice", '["a"]', b"b", False, {}, "json.loads"),
    ],
)
def test_the_lines_say_what_the_case_says(
    tmp_path: Path, dialect: str, text: str, content: bytes, valid: bool, options: dict[str, str], names: str
) -> None:
    detail = made(tmp_path / "run", dialect, text, content, valid, **options)
    lines = detail["judgements"]["0"]
    assert names in lines
    script = f"grammar = {text!r}\ninstance = {content!r}\n{lines}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.endswith("the instance is valid\n" if valid else "the instance is not valid\n")
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("dialect", "text", "content", "valid", "options"),
    [
        ("json_schema", ITEMS, b'["x"]', False, {}),
        ("json_schema", '{"type": "nothing"}', b"1", False, {}),
        ("json_schema", "[", b"1", False, {}),
        ("regex", "(", b"1", False, {}),
        ("regex", "a", b"b", True, {}),
        ("ebnf", 'root ::= "a"', b"b", False, {}),
    ],
)
def test_there_are_none_where_they_do_not_say_it(
    tmp_path: Path, dialect: str, text: str, content: bytes, valid: bool, options: dict[str, str]
) -> None:
    assert "judgements" not in made(tmp_path / "run", dialect, text, content, valid, **options)


def test_lines_that_take_too_long_are_left_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judgements, "SECONDS", 0.5)
    sleeps = [("regex.fullmatch", ["import time", "time.sleep(30)", "verdict = True"])]
    monkeypatch.setattr(evidence, "_questions", lambda *_: sleeps)
    assert "judgements" not in made(tmp_path / "run", "regex", "a", b"a", True)
