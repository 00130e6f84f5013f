"""How each kind of server is told a grammar, and how it is recognised."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.backend.grammar import DIALECTS as GRAMMARS
from harness.backend.grammar import Grammar
from harness.cases.case import Case, json_text
from harness.oracle.judge import Judge, Unjudgeable
from harness.oracle.judge.membership import membership
from harness.serve.live.asking import unique
from harness.serve.live.dialects import DIALECTS, Endpoint, grammar_fields, model_of, recognise

SCHEMA = {"type": "object", "properties": {"b": {}, "a": {}}}
TAG = {"triggers": ["<f"], "structures": [{"begin": "<f>", "schema": SCHEMA, "end": "</f>"}]}
EXAMPLES = {
    "json_schema": Grammar("json_schema", json.dumps(SCHEMA)),
    "regex": Grammar("regex", "a+"),
    "ebnf": Grammar("ebnf", 'root ::= "a"'),
    "lark": Grammar("lark", 'start: "a"'),
    "choice": Grammar("choice", '["a", "b"]'),
    "structural_tag": Grammar("structural_tag", json.dumps(TAG)),
}
FORMAT = {
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "case", "schema": SCHEMA, "strict": True},
    }
}
TAGGED = {"response_format": {"type": "structural_tag", **TAG}}
STRUCTURED: dict[str, Any] = {
    "json_schema": {"structured_outputs": {"json": SCHEMA}},
    "regex": {"structured_outputs": {"regex": "a+"}},
    "ebnf": {"structured_outputs": {"grammar": 'root ::= "a"'}},
    "lark": {"structured_outputs": {"grammar": 'start: "a"'}},
    "choice": {"structured_outputs": {"choice": ["a", "b"]}},
    "structural_tag": TAGGED,
}
GUIDED: dict[str, Any] = {
    "json_schema": {"guided_json": SCHEMA},
    "regex": {"guided_regex": "a+"},
    "ebnf": {"guided_grammar": 'root ::= "a"'},
    "choice": {"guided_choice": ["a", "b"]},
}
SGLANG: dict[str, Any] = {
    "regex": {"regex": "a+"},
    "ebnf": {"ebnf": 'root ::= "a"'},
    "structural_tag": TAGGED,
}
LLAMA_CPP: dict[str, Any] = {"json_schema": {"json_schema": SCHEMA}, "ebnf": {"grammar": 'root ::= "a"'}}

SENT: dict[tuple[str, Endpoint], dict[str, Any]] = {
    ("openai", "chat"): {"json_schema": FORMAT},
    ("openai", "completions"): {},
    ("vllm", "chat"): STRUCTURED,
    ("vllm", "completions"): STRUCTURED,
    ("vllm-guided", "chat"): GUIDED,
    ("vllm-guided", "completions"): GUIDED,
    ("sglang", "chat"): {"json_schema": FORMAT, **SGLANG},
    ("sglang", "completions"): {"json_schema": {"json_schema": json.dumps(SCHEMA)}, **SGLANG},
    ("llama.cpp", "chat"): LLAMA_CPP,
    ("llama.cpp", "completions"): LLAMA_CPP,
    ("llama-cpp-python", "chat"): {
        "json_schema": {"response_format": {"type": "json_object", "schema": SCHEMA}},
        "ebnf": {"grammar": 'root ::= "a"'},
    },
    ("llama-cpp-python", "completions"): {"ebnf": {"grammar": 'root ::= "a"'}},
}


def test_every_dialect_of_server_is_looked_at() -> None:
    assert {name for name, _ in SENT} == set(DIALECTS)
    assert set(EXAMPLES) == set(GRAMMARS)


@pytest.mark.parametrize(("name", "endpoint"), SENT)
def test_a_grammar_is_said_as_the_server_takes_it(name: str, endpoint: Endpoint) -> None:
    found = {each: grammar_fields(DIALECTS[name], endpoint, grammar) for each, grammar in EXAMPLES.items()}
    assert found == {each: SENT[name, endpoint].get(each) for each in EXAMPLES}


def test_the_order_of_properties_is_kept() -> None:
    found = grammar_fields(DIALECTS["sglang"], "completions", EXAMPLES["json_schema"])
    assert found is not None and found["json_schema"].index('"b"') < found["json_schema"].index('"a"')


def models(owner: Any) -> dict[str, Any]:
    return {"/v1/models": {"data": [{"id": "m", "owned_by": owner}]}}


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ({**models("vllm"), "/version": {"version": "0.12.0"}}, ("vllm", "0.12.0")),
        ({**models("vllm"), "/version": {"version": "0.10.2rc1"}}, ("vllm-guided", "0.10.2rc1")),
        (
            {**models("vllm"), "/version": {"version": "0.10.2.dev5+g6d4f9d3"}},
            ("vllm-guided", "0.10.2.dev5+g6d4f9d3"),
        ),
        # A build from a source without tags says nothing of its age.
        (
            {**models("vllm"), "/version": {"version": "0.1.dev1+g6d4f9d3ad"}},
            ("vllm", "0.1.dev1+g6d4f9d3ad"),
        ),
        ({**models("vllm"), "/version": {"version": "0.10.dev7"}}, ("vllm", "0.10.dev7")),
        (models("vllm"), ("vllm", "")),
        ({"/version": {"version": "0.11.0"}}, ("vllm", "0.11.0")),
        ({**models("sglang"), "/get_server_info": {"version": "0.5.3", "tp_size": 1}}, ("sglang", "0.5.3")),
        ({**models("llamacpp"), "/props": {"build_info": "b8681-x"}}, ("llama.cpp", "b8681-x")),
        (
            {
                **models("me"),
                "/openapi.json": {"info": {"title": "🦙 llama.cpp Python API", "version": "0.3.35"}},
            },
            ("llama-cpp-python", "0.3.35"),
        ),
        (models("me"), None),
        (models("openai-internal"), ("openai", "")),
        (models("somebody"), None),
        ({}, None),
    ],
)
def test_a_server_is_recognised_by_what_it_says(facts: dict[str, Any], found: tuple[str, str] | None) -> None:
    assert recognise(facts) == found


@pytest.mark.parametrize(
    "hostile",
    [None, 1, "x", [], [1], {"data": {}}, {"data": [None]}, {"data": [{"id": 1, "owned_by": ["vllm"]}]}],
)
def test_a_hostile_answer_is_nobody(hostile: Any) -> None:
    facts = {
        path: hostile for path in ("/v1/models", "/version", "/get_server_info", "/props", "/openapi.json")
    }
    assert recognise(facts) is None
    assert model_of(facts) is None


# ------------------------------------------------------------------------------------ made unique, and judged


@pytest.mark.parametrize("schema", ['{"type": "integer"}', '{"description": "a number", "type": "integer"}'])
def test_a_unique_schema_is_another_text_of_the_same_language(schema: str) -> None:
    found = [unique(Grammar("json_schema", schema), salt) for salt in ("1", "2")]
    assert found[0] != found[1]
    assert all(each is not None and json.loads(each.text)["type"] == "integer" for each in found)


def test_numbers_are_sent_as_they_are_judged() -> None:
    """No double is this one: a server that was sent the nearest would be right and be called wrong."""
    text = '{"minimum": 9999999999999999.99}'
    grammar = Grammar("json_schema", text)
    for fields in (
        grammar_fields(DIALECTS["vllm"], "chat", grammar),
        grammar_fields(DIALECTS["sglang"], "completions", grammar),
    ):
        assert "9999999999999999.99" in json_text(fields)
    made = unique(grammar, "salt")
    assert made is not None and '"minimum": 9999999999999999.99' in made.text


def test_what_cannot_be_made_unique_is_said() -> None:
    assert unique(Grammar("json_schema", "true"), "1") is None
    assert unique(EXAMPLES["regex"], "1") is None and unique(EXAMPLES["choice"], "1") is None
    rules = unique(EXAMPLES["ebnf"], "1")
    assert rules is not None
    assert (membership(rules, b"a"), membership(rules, b"b")) == ("sentence", "neither")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "beginning"),
        ('{"a": [1, -0.5e+3, tr', "beginning"),
        ('[{"\\u00e9": "é\\n"}]', "beginning"),
        ("Sure", "neither"),
        ("```json", "neither"),
        ("01", "neither"),
        ('{"a": 1,}', "neither"),
        ('"a\nb', "neither"),
        ("[1] and", "neither"),
    ],
)
def test_a_beginning_of_json(text: str, found: str) -> None:
    assert membership(EXAMPLES["json_schema"], text.encode()) == found


def test_membership_by_the_reference() -> None:
    assert [membership(EXAMPLES["regex"], each) for each in (b"", b"a", b"ab")] == [
        "beginning",
        "sentence",
        "neither",
    ]
    assert [membership(EXAMPLES["choice"], each) for each in (b"", b"b", b"c")] == [
        "beginning",
        "sentence",
        "neither",
    ]
    with pytest.raises(Unjudgeable):
        membership(EXAMPLES["structural_tag"], b"")


def test_the_judge_that_can_be_killed_agrees() -> None:
    case = Case("0" * 12, "rules", Grammar("ebnf", 'root ::= "(" root ")" | "x"'))
    with Judge() as judge:
        assert [judge.membership(case.grammar, each) for each in (b"((x", b"(x)", b"y")] == [
            "beginning",
            "sentence",
            "neither",
        ]
        assert [judge.verdict(case.grammar, each) for each in (b"((x", b"(x)", b"y")] == [False, True, False]
        assert judge.membership(EXAMPLES["structural_tag"], b"") is None and judge.reason
        assert judge.verdict(EXAMPLES["choice"], b"a") is True and judge.reason == ""
