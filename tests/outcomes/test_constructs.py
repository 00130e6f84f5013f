"""What grammars are made of is derived where no tag says it, so that a user's own schemas have a table of
features."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

from harness.backend.grammar import Grammar
from harness.cli.main import main
from harness.outcomes.constructs import constructs, tagged_rows

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "no constraint",
    "type": "object",
    "properties": {"pattern": {"type": "string", "maxLength": 3}, "enum": {"const": {"minimum": 1}}},
    "anyOf": [{"required": ["pattern"]}, {"$ref": "#/$defs/not"}],
    "$defs": {"not": {"minItems": 2}},
}


@pytest.mark.parametrize(
    ("grammar", "found"),
    [
        (
            Grammar("json_schema", json.dumps(SCHEMA)),
            "$defs $ref anyOf const maxLength minItems properties required type",
        ),
        (Grammar("json_schema", "true"), ""),
        (Grammar("regex", r"\[\.a"), ""),
        (Grammar("regex", "20[0-9]{2}|x"), "alternation,class,counted repetition"),
        (
            Grammar("regex", r"^(?:\d+?)\1$"),
            "anchor,back-reference,group,lazy quantifier,shorthand class,star or plus",
        ),
        (
            Grammar("ebnf", 'root ::= "[" term\nterm ::= [a-z]+ | "(" term ")"'),
            "alternation,class,recursion,several rules,star or plus",
        ),
        (
            Grammar("lark", 'start: A~2 | "|x"i\nrest: "a".."b"\nA: /x/+\n%ignore " "'),
            "alternation,counted repetition,expression,ignored text,range,several rules,star or plus",
        ),
        (Grammar("regex", r"[(|*+?.$][^)]{1}\u{41}"), "class,counted repetition,negated class"),
        (Grammar("regex", r"[\d\p{L}|]"), "class,shorthand class,unicode property"),
        (Grammar("ebnf", 'root ::= "a" [|*+(?"#] # b | c*'), "class"),
        (Grammar("ebnf", "root ::= x [^|]\n# y ::= (\nx ::= [a]"), "class,negated class,several rules"),
        (Grammar("lark", 'start: "//" /a|b*/i // c | d?'), "expression"),
        (Grammar("regex", r"[0-9]+\.?(\+?[0-9]+)"), "class,group,optional,star or plus"),
        (Grammar("regex", r"\d*\-?(?<n>a)"), "group,optional,shorthand class,star or plus"),
        (Grammar("regex", r"(?<=a)(?<!b)(?=c)(?!d)[a-z]+\?"), "class,lookaround,star or plus"),
        (Grammar("lark", '?start: "a"\n!?_b: "c"\n'), "several rules"),
        (Grammar("lark", '?start: "a"?\n'), "optional"),
        (Grammar("ebnf", 'root ::= "a"\n  | root "b"\n'), "alternation,recursion"),
        (Grammar("ebnf", 'root ::= "a"\n  | x\nx ::= "b"'), "alternation,several rules"),
        (Grammar("choice", '["a"]'), ""),
    ],
)
def test_constructs_are_named(grammar: Grammar, found: str) -> None:
    wanted = found.split(",") if grammar.dialect != "json_schema" else found.split()
    assert list(constructs(grammar)) == [each for each in wanted if each]


def test_the_table_of_features_is_not_empty_for_one_s_own_schemas(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    case = {"schema": {"type": "string", "maxLength": 2}, "tests": [{"data": "a", "valid": True}]}
    (tmp_path / "mine" / "short.json").write_text(json.dumps(case))
    (tmp_path / "mine" / "tagged.json").write_text(
        json.dumps({**case, "schema": {"type": "boolean"}, "tests": [], "tags": ["my tag", "team:billing"]})
    )
    words = [
        "run",
        str(tmp_path / "mine"),
        "--backends",
        "unconstrained",
        "--vocabularies",
        "bytes",
        "--effort",
        "0",
    ]
    assert (
        main([*words, "--out", str(tmp_path / "run")]) == 0 and main(["report", str(tmp_path / "run")]) == 0
    )
    page = (tmp_path / "run" / "report" / "report.html").read_text("utf-8")
    features = page[page.index('<section id="matrix">') :].partition("</section>")[0]
    assert "JSON Schema: keywords and features" in features
    assert all(f">{name}</th>" in features for name in ("maxLength", "type", "my tag", "team:billing")), (
        features
    )


def test_what_a_suite_of_ours_has_a_case_for_is_no_feature(synthetic: ModuleType, tmp_path: Path) -> None:
    tags = ("team:billing", "plain")
    groups = [
        [(synthetic.row(suite=name, dialect="regex", tags=tags), b"")] for name in ("regex", "my_regex")
    ]
    told = [row.tags for row in tagged_rows(synthetic.write_run(tmp_path / "run", groups))]
    assert told == [("plain",), tags]
