"""A schema that no document fits is told as such, and no rewrite of it is looked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.backend.grammar import Grammar
from harness.cases.case import Case, Instance, case_id
from harness.cli.main import main
from harness.diagnose.advise import no_document_sentence, unsatisfiable
from harness.diagnose.advise.unsatisfiable import unsatisfiable_of

EXCLUDED: dict[str, Any] = {
    "type": "object",
    "properties": {"x": {"type": "boolean", "enum": ["True", "False"]}},
    "required": ["x"],
}
NO_END = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}


def case(schema: object, *instances: Instance) -> Case:
    grammar = Grammar("json_schema", json.dumps(schema))
    return Case(case_id(grammar), "c", grammar, instances)


@pytest.mark.parametrize(
    ("one", "is_one"),
    [
        (case(EXCLUDED), True),
        (case(NO_END), True),
        (case(False, Instance("i", b"1", False)), True),
        (case({}), False),
        (case(EXCLUDED, Instance("stated", b'{"x":true}', True)), False),  # the truth is contested
        (case({"$ref": "https://example.com/x.json"}), False),  # there is no automaton
        (case({"const": "\ud800"}), False),  # a document can hold it as an escape
        (case({"type": "string", "pattern": r"^\ud800$"}), False),
        (case({"type": "string", "pattern": r"^\u{d800}$"}), False),
        (case({"type": "string", "pattern": r"^\p{Cs}$"}), False),
        (case({"type": "string", "pattern": r"^\p{General_Category=Surrogate}+$"}), False),
        (case({"type": "string", "pattern": r"^[^\0-\ud7ff\ue000-\u{10ffff}]$"}), False),
        (case({"propertyNames": {"pattern": r"\p{Cs}"}, "minProperties": 1, "type": "object"}), False),
        (case({"type": "string", "pattern": r'^(?=[^"]+$)(?=\S)\D.*$', "enum": ["1", ""]}), True),
        (case({"type": "string", "pattern": r"^[^\s\S]$"}), True),
        (case({"type": "string", "pattern": r"^\ud83d\ude00$", "const": "a"}), True),
        (case({"type": "null", "const": "\U0001f600"}), True),
        (Case("x", "c", Grammar("regex", "a"), ()), False),
    ],
)
def test_the_automaton_says_which_schemas_no_document_fits(one: Case, is_one: bool) -> None:
    assert unsatisfiable_of([("s", one)], print) == [("s", one)] * is_one


def test_it_is_told_what_is_looked_for_and_what_there_was_no_time_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    assert not unsatisfiable_of([("s", case({}, Instance("i", b"1", True)))], said.append)
    assert said == []  # of these a valid document is known
    monkeypatch.setattr(unsatisfiable, "SECONDS", 0.0)
    assert not unsatisfiable_of([("s", case(False)), ("s", case(EXCLUDED))], said.append)
    assert said == [
        "looking for schemas that no document fits, in 2 cases ...",
        "2 more cases not looked at for whether a document fits: the 0 s for this are up",
    ]


def test_a_few_are_named() -> None:
    assert no_document_sentence(()) == ""
    assert no_document_sentence(["a"]).startswith("No document fits a: a backend that refuses it is right")
    many = no_document_sentence([str(number) for number in range(8)])
    assert many.startswith("No document fits 0, 1, 2, 3, 4, 5 and 2 more: a backend that refuses them")


def test_the_answer_says_that_the_schema_is_to_be_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tools = [{"name": "u", "parameters": EXCLUDED}, {"name": "v", "parameters": {"type": "object"}}]
    (tmp_path / "tools.json").write_text(json.dumps(tools))
    words = ["advise", str(tmp_path / "tools.json"), "--backends", "llguidance", "--tokenizer", "bytes"]
    words += ["--out", str(tmp_path / "out")]
    said = "No document fits u: a backend that refuses it is right, so look at the schema itself."
    assert main(words) == 0
    screen = " ".join(capsys.readouterr().out.split())
    assert said in screen and "no rewrite was found that helps" not in screen
    assert said in (tmp_path / "out" / "report" / "report.html").read_text("utf-8")
    assert main([*words, "--resume", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["unsatisfiable"], answer["unchanged"]) == (["u"], [])


def test_who_compiles_what_no_document_fits_and_accepts_no_output_is_not_silently_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "endless.json").write_text(json.dumps(NO_END))
    words = ["advise", str(tmp_path / "endless.json"), "--backends", "llguidance", "--tokenizer", "bytes"]
    assert main([*words, "--out", str(tmp_path / "out"), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    (backend,) = answer["backends"]
    assert [each["state"] for each in backend["cases"]] == ["other_fault"] and answer["unsatisfiable"]
    said = "llguidance cannot be recommended: it does not work on your one schema and has another fault in 1."
    assert answer["sentence"] == said
    assert answer["sentence"] in (tmp_path / "out" / "report" / "report.html").read_text("utf-8")
    (risk,) = answer["risks"]
    assert "silently" not in risk and "it allows 1 token with which no document of the schema goes on" in risk
