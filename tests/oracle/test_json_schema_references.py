"""References, identifiers and drafts within a JSON Schema: the automaton and the judge agree on them, or say
that they have no answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.oracle.automaton import NoOracle
from harness.oracle.json_schema.automaton import json_schema_automaton
from harness.oracle.judge.schema import document_is_valid
from harness.oracle.judge.unjudgeable import Unjudgeable

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
A, B = {"properties": {"a": True}}, {"properties": {"b": True}}
SUB = {"$id": "http://x/sub", "$defs": {"p": A}, "$ref": "#/$defs/p"}
"""A subschema with an identifier, of which `#` in it is the beginning."""
INTEGER = {"$id": "http://x/sub", "$defs": {"p": {"type": "integer"}}, "$ref": "#/$defs/p"}
TREE = {
    "type": "object",
    "properties": {"a": {"$ref": "#", "unevaluatedProperties": False}},
    "required": ["a"],
}


def closed(**keywords: Any) -> dict[str, Any]:
    return {"$id": "http://x/root", "$defs": {"p": B}, **keywords, "unevaluatedProperties": False}


@pytest.mark.parametrize(
    ("schema", "draft", "valid", "invalid"),
    [
        # What is unevaluated is looked up within the identifier of the branch.
        *((closed(**branch), draft, ['{"a":1}'], ['{"b":1}'])
          for draft in ("draft2019-09", "draft2020-12")
          for branch in ({"allOf": [SUB]}, {"anyOf": [SUB, False]}, {"if": SUB}, {"if": False, "else": SUB},
                         {"dependentSchemas": {"a": SUB}})),
        ({"$id": "http://x/root", "$defs": {"p": {"prefixItems": [True, True]}}, "unevaluatedItems": False,
          "allOf": [SUB | {"$defs": {"p": {"prefixItems": [True]}}}]}, None, ["[1]"], ["[1,2]"]),
        ({"allOf": [{"contains": {"const": 2}}, {"prefixItems": [True]}], "unevaluatedItems": False}, None,
         ["[1,2]"], ["[1,2,1]"]),
        # A draft has its own keywords for references only.
        ({"allOf": [{"$recursiveRef": "#/$defs/p"}], "$defs": {"p": B}, **A, "unevaluatedProperties": False},
         "draft2020-12", ['{"a":1}'], ['{"b":1}']),
        ({"$dynamicRef": "#/$defs/p", "$defs": {"p": A}, "unevaluatedProperties": False}, "draft2019-09",
         ["{}"], ['{"a":1}']),
        # A relative identifier counts once.
        ({"$id": "http://x/r", "properties": {"a": {"$ref": "s/a"}},
          "$defs": {"i": {"$id": "s/a", "$ref": "#/$defs/x", "$defs": {"x": {"type": "integer"}}}}}, None,
         ['{"a":1}'], ['{"a":""}']),
        # So does one below `not`, `if`, `contains` and `oneOf`.
        *(({"$id": "http://x/root", "$defs": {"p": True}, **keyword}, draft, valid, invalid)
          for draft in ("draft2019-09", "draft2020-12")
          for keyword, valid, invalid in (({"not": INTEGER}, ['"a"'], ["1"]),
                                          ({"if": INTEGER, "then": False}, ['"a"'], ["1"]),
                                          ({"contains": INTEGER}, ['["a",1]'], ['["a"]']),
                                          ({"oneOf": [True, INTEGER]}, ['"a"'], ["1"]))),
        ({"definitions": {"p": True}, "contains": {"$id": "http://x/i", "items": {"$ref": "#/definitions/p"},
          "definitions": {"p": {"type": "integer"}}}}, "draft7", ["[[1]]"], ['[["a"]]']),
        # A mere name is looked up in a schema without an identifier, or with one that has no path.
        *(({**identifier, "$defs": {"n": {"$dynamicAnchor": "node", "type": "integer"}},
            "properties": {"a": {"$ref": "#node"}}}, None, ['{"a":1}'], ['{"a":""}'])
          for identifier in ({}, {"$id": "urn:x:y"})),
        # `additionalItems` says nothing beside an `items` that is no list.
        *(({"type": "array", "items": items, "additionalItems": False}, draft, ["[]", "[1]"], invalid)
          for draft in ("draft6", "draft2019-09")
          for items, invalid in ((True, ["1"]), ({"type": "integer"}, ['[""]']))),
        ({"type": "array", "items": False, "additionalItems": True}, "draft2019-09", ["[]"], ["[1]"]),
        ({"type": "array", "items": [True], "additionalItems": {"type": "integer"}}, "draft2019-09",
         ["[]", '["",1]'], ['["",""]']),
        # Draft 4 has no `const`, beside `uniqueItems` neither.
        ({"type": "array", "items": {"const": 1, "enum": [1, 2]}, "uniqueItems": True}, "draft4", ["[2,1]"],
         ["[2,2]"]),
        # A tree whose branches are closed asks for itself while it is read.
        ({"anyOf": [{"type": "integer"}, TREE]}, None, ['{"a":1}', '{"a":{"a":1},"b":2}'],
         ['{"a":{"a":1,"b":1}}']),
        # No document has a name with a lone surrogate.
        ({"type": "object", "properties": {"\ud83d": {}}, "propertyNames": {"maxLength": 3}}, None,
         ['{"abc":1}'], ['{"abcd":1}']),
        ({"dependentRequired": {"\ud83d": ["a"], "b": ["\ud83d"]}, "propertyNames": {"maxLength": 3}}, None,
         ['{"c":1}'], ['{"b":1}']),
        ({"type": "object", "properties": {"\ud83d": {}}, "patternProperties": {"^x": {"type": "null"}},
          "unevaluatedProperties": False}, None, ['{"x":null}'], ['{"x":1}', '{"a":1}']),
    ],
)  # fmt: skip
def test_the_automaton_and_the_judge_agree(
    schema: Any, draft: str | None, valid: list[str], invalid: list[str]
) -> None:
    text = json.dumps(schema)
    automaton = json_schema_automaton(text, draft)
    for document in (*valid, *invalid):
        assert document_is_valid(text, document.encode(), draft, False) is (document in valid), document
        assert automaton.accepts(document.encode()) is (document in valid), document


@pytest.mark.parametrize(
    "schema",
    [
        # A draft of its own, in what is no resource of its own.
        {"properties": {"a": {"$schema": DRAFT_7, "prefixItems": [{"type": "integer"}]}}},
        {"properties": {"a": {"$schema": DRAFT_7, "$id": "x", "$ref": "#/$defs/i"}}, "$defs": {"i": True}},
        # Libraries follow a `$ref` to a dynamic anchor as if it were a `$dynamicRef`.
        {
            "$id": "http://x/outer",
            "$dynamicAnchor": "node",
            "properties": {"a": {"$ref": "inner"}},
            "$defs": {
                "i": {"$id": "inner", "$dynamicAnchor": "node", "type": "array", "items": {"$ref": "#node"}}
            },
        },
    ],
)
def test_where_validators_read_a_schema_in_two_ways_there_is_no_verdict(schema: Any) -> None:
    text = json.dumps(schema)
    with pytest.raises(Unjudgeable):
        document_is_valid(text, b'{"a":[[]]}', None, False)
    with pytest.raises(NoOracle):
        json_schema_automaton(text).accepts(b'{"a":[[]]}')


def test_a_resource_of_another_draft_is_judged_and_has_no_automaton() -> None:
    inner = {"$id": "http://x/i", "$schema": DRAFT_7, "prefixItems": [{"type": "integer"}]}
    text = json.dumps({"properties": {"a": inner}})
    assert document_is_valid(text, b'{"a":["x"]}', None, False)
    with pytest.raises(NoOracle, match="another draft"):
        json_schema_automaton(text).accepts(b'{"a":["x"]}')


@pytest.mark.parametrize("identifier", [{}, {"$id": "http://x/r"}])
@pytest.mark.parametrize(
    ("draft", "anchor", "reference"),
    [
        ("draft2020-12", {"$dynamicAnchor": "n"}, {"$dynamicRef": "#n"}),
        ("draft2019-09", {"$recursiveAnchor": True}, {"$recursiveRef": "#"}),
    ],
)
def test_a_schema_without_identifier_is_in_the_scope_of_dynamic_references(
    identifier: dict[str, str], draft: str, anchor: dict[str, Any], reference: dict[str, str]
) -> None:
    inner = {"$id": "http://x/inner", **anchor, "type": "array", "items": reference}
    # Between the two, one that has no such anchor.
    between = {"$id": "http://x/between", "$ref": "inner"}
    schema = {
        "anyOf": [{"type": "integer"}, {"$ref": "http://x/between"}],
        "$defs": {"i": inner, "b": between},
    }
    text = json.dumps({**identifier, **anchor, **schema})
    assert document_is_valid(text, b"[1,[1]]", draft, False)
    assert not document_is_valid(text, b'[1,[""]]', draft, False)


@pytest.mark.parametrize(
    ("schema", "draft", "valid", "invalid"),
    [
        # The root is on the way to `r2`, though no reference leads there.
        ({"$id": "http://x/root", "$recursiveAnchor": True, "unevaluatedProperties": False, "properties":
          {"a": {"$id": "r2", "$recursiveAnchor": True, "properties": {"b": {"$recursiveRef": "#"}}}}},
         "draft2019-09", '{"a":{"b":{"a":{}}}}', '{"a":{"b":{"z":1}}}'),
        ({"$id": "http://x/root", "$defs": {"y": {"$dynamicAnchor": "n", "type": "string"}},
          "prefixItems": [{"$id": "r2", "$defs": {"x": {"$dynamicAnchor": "n"}}, "$dynamicRef": "#n"}]},
         "draft2020-12", '[""]', "[[]]"),
        # What a dynamic reference finds is read within its own resource.
        ({"$id": "http://x/root", "$ref": "list", "$defs": {
            "foo": {"$dynamicAnchor": "n", "$ref": "#/$defs/bar"}, "bar": {"type": "string"},
            "list": {"$id": "list", "type": "array", "items": {"$dynamicRef": "#n"}, "$defs": {
                "n": {"$dynamicAnchor": "n"}, "bar": {"type": "integer"}}}}},
         "draft2020-12", '["a"]', "[1]"),
        ({"$id": "http://x/a/", "$ref": "b/#n", "$defs": {"i": {
            "$id": "b/", "$dynamicAnchor": "n", "$ref": "#/$defs/s", "$defs": {"s": {"type": "integer"}}}}},
         "draft2020-12", "1", '"a"'),
    ],
)  # fmt: skip
def test_a_dynamic_reference_knows_the_resources_around_it(
    schema: Any, draft: str, valid: str, invalid: str
) -> None:
    text = json.dumps(schema)
    assert document_is_valid(text, valid.encode(), draft, False)
    assert not document_is_valid(text, invalid.encode(), draft, False)


def test_what_a_reference_finds_where_no_schema_stands_may_be_none() -> None:
    for keyword, value in (("properties", []), ("required", "ab"), ("multipleOf", -1)):
        schema = {"properties": {"a": {"$ref": "#/x/y"}}, "x": {"y": {keyword: value}}}
        with pytest.raises(NoOracle, match="points to what is no schema"):
            json_schema_automaton(json.dumps(schema))


def test_an_identifier_that_cannot_be_read_has_no_automaton() -> None:
    with pytest.raises(NoOracle, match="identifier"):
        json_schema_automaton('{"$id": "http://x/", "allOf": [{"$id": "http://[::1"}]}')


def test_no_depth_of_calls_is_a_panic() -> None:
    """The library that follows references calls Rust, out of which a RecursionError comes as a panic."""

    def deeper(calls: int, text: str) -> str:
        if calls:
            return deeper(calls - 1, text)
        try:
            json_schema_automaton(text)
        except NoOracle as why:
            return str(why)
        return ""

    texts = list[str]()
    schema: Any = {}
    while not texts or not deeper(0, texts[-1]):
        schema = {"properties": {"a": schema, "b": {"$ref": "#/$defs/x"}}}
        texts.append(json.dumps({**schema, "$defs": {"x": {}}}))
    assert {deeper(calls, texts[-2]) for calls in range(30)} == {"", "the schema nests too deeply"}


DEPENDENCIES = {"a": {"anyOf": [{"required": ["b"]}]}, "c": ["b"]}
"""A schema first, and then a list of names."""


@pytest.mark.parametrize(
    ("reference", "target"),
    [
        ("#/definitions/s", {}),
        ("#s", {"$id": "#s"}),
        ("http://x/s", {"$id": "http://x/s"}),
    ],
)
def test_dependencies_of_both_kinds_hide_no_reference(reference: str, target: dict[str, str]) -> None:
    """The `referencing` library takes all for schemas where the first one is one."""
    definitions = {"s": {"type": "string", **target}}
    schema = {
        "properties": {"a": {"$ref": reference}}, "dependencies": DEPENDENCIES, "definitions": definitions
    }  # fmt: skip
    text = json.dumps(schema)
    automaton = json_schema_automaton(text, "draft7")
    for document in ('{"a":"","b":1}', '{"a":""}', '{"b":1,"c":1}', '{"c":1}', '{"a":1,"b":1}'):
        valid = '"b"' in document and '"a":1' not in document
        assert document_is_valid(text, document.encode(), "draft7", False) is valid, document
        assert automaton.accepts(document.encode()) is valid, document


def test_keywords_are_left_out_wherever_they_stand() -> None:
    def accepts(schema: Any, keyword: str, document: bytes, draft: str | None = None) -> bool:
        return json_schema_automaton(json.dumps(schema), draft, without=frozenset((keyword,))).accepts(
            document
        )

    branch = {"allOf": [A], "unevaluatedProperties": False}
    assert not accepts(branch, "properties", b'{"a":1}')
    assert accepts(branch, "minimum", b'{"a":1}')
    reference = {"items": {"$ref": "#/definitions/x"}, "definitions": {"x": {"type": "integer"}}}
    for draft in ("draft7", "draft2019-09"):
        assert accepts(reference, "$ref", b'[""]', draft) and not accepts(
            reference, "minimum", b'[""]', draft
        )
