"""The automaton of a JSON Schema against grammars of its documents that were written by hand: after every
text, the same bytes may come, and the output may end at the same places."""

from __future__ import annotations

import json
from typing import Any

import pytest
from side_by_side import first_difference

from harness.backend.vocabulary import load_vocabulary
from harness.oracle.automaton import Automaton
from harness.oracle.ebnf.automaton import ebnf_automaton
from harness.oracle.json_schema.automaton import json_schema_automaton
from harness.oracle.trie import trie_of

MOST_PAIRS = 1_500
"""Pairs of states that are compared; nested values have no end of them."""

RULES = r"""
ws ::= [ \t\n\r]*
boolean ::= "true" | "false"
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [+\-]? [0-9]+)?
hex ::= [0-9a-fA-F]
plain ::= [^"\\\x00-\x1F] | "\\" ["\\/bfnrt]
unit ::= "\\u" ([0-9a-cA-CefEF] hex hex hex | [dD] [0-7] hex hex) | "\\u" [dD] [89abAB] hex hex "\\u" [dD] [c-fC-F] hex hex
char ::= plain | unit
string ::= "\"" char* "\""
a ::= "a" | "\\u0061"
b ::= "b" | "\\u0062"
array ::= "[" ws (value ws ("," ws value ws)*)? "]"
object ::= "{" ws (member ("," ws member)*)? "}"
member ::= string ws ":" ws value ws
value ::= "null" | boolean | number | string | array | object
"""  # noqa: E501
NAME_A, NAME_B = '"\\"" a "\\"" ws ":" ws', '"\\"" b "\\"" ws ":" ws'

PAIRS: list[tuple[Any, str]] = [
    (True, "value"),
    ({"type": "null"}, '"null"'),
    ({"type": "boolean"}, "boolean"),
    ({"enum": [True, None]}, '"true" | "null"'),
    ({"type": "number"}, "number"),
    ({"type": ["number", "null"]}, 'number | "null"'),
    ({"type": "string"}, "string"),
    ({"type": "string", "minLength": 1, "maxLength": 2}, r'"\"" char char? "\""'),
    ({"const": "a"}, r'"\"" a "\""'),
    ({"enum": ["", "ab", "b"]}, r'"\"" (a b | b)? "\""'),
    ({"type": "string", "pattern": "^[ab]*$"}, r'"\"" (a | b)* "\""'),
    ({"type": "string", "pattern": "^a", "maxLength": 2}, r'"\"" a char? "\""'),
    ({"type": "string", "not": {"maxLength": 0}}, r'"\"" char+ "\""'),
    ({"type": "array"}, "array"),
    ({"type": "array", "items": {"type": "null"}}, '"[" ws ("null" ws ("," ws "null" ws)*)? "]"'),
    ({"type": "array", "prefixItems": [{"type": "boolean"}], "items": False}, '"[" ws (boolean ws)? "]"'),
    ({"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 2},
     '"[" ws boolean ws ("," ws boolean ws)? "]"'),
    ({"type": "array", "items": {"enum": [None, True]}, "contains": {"const": True}, "maxItems": 2},
     '"[" ws ("true" ws ("," ws ("null" | "true") ws)? | "null" ws "," ws "true" ws) "]"'),
    ({"type": "array", "items": {"enum": [None, True]}, "uniqueItems": True},
     '"[" ws ("true" ws ("," ws "null" ws)? | "null" ws ("," ws "true" ws)?)? "]"'),
    ({"type": "object"}, "object"),
    ({"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": False},
     f'"{{" ws ({NAME_A} "null" ws)? "}}"'),
    ({"type": "object", "properties": {"a": {"type": "null"}, "b": {"const": True}}, "required": ["b"],
      "additionalProperties": False},
     f'"{{" ws ({NAME_A} "null" ws "," ws {NAME_B} "true" ws'
     f' | {NAME_B} "true" ws ("," ws {NAME_A} "null" ws)?) "}}"'),
    ({"type": "object", "properties": {"a": True, "b": {"type": "null"}}, "additionalProperties": False,
      "dependentRequired": {"a": ["b"]}, "maxProperties": 2},
     f'"{{" ws ({NAME_A} value ws "," ws {NAME_B} "null" ws'
     f' | {NAME_B} "null" ws ("," ws {NAME_A} value ws)?)? "}}"'),
    ({"oneOf": [{"type": "boolean"}, {"const": True}, {"type": "null"}]}, '"false" | "null"'),
    ({"if": {"type": "array"}, "then": {"maxItems": 0}, "else": {"type": "null"}}, '"[" ws "]" | "null"'),
    ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "array", "items": {"$ref": "#/$defs/x"}, "maxItems": 1}}},
     'nest\nnest ::= "[" ws (nest ws)? "]"'),
]  # fmt: skip


def automata(schema: Any, rule: str) -> tuple[Automaton[Any], Automaton[Any]]:
    grammar = f"root ::= ws document ws\ndocument ::= {rule}\n{RULES}"
    return json_schema_automaton(json.dumps(schema)), ebnf_automaton(grammar)


@pytest.mark.parametrize(("schema", "rule"), PAIRS, ids=[json.dumps(schema)[:60] for schema, _ in PAIRS])
def test_the_same_bytes_may_come_after_every_text(schema: Any, rule: str) -> None:
    assert first_difference(*automata(schema, rule), MOST_PAIRS) is None


@pytest.mark.parametrize("place", [0, 7, 12, 20, 22])
def test_the_masks_are_equal_too(place: int) -> None:
    own, other = automata(*PAIRS[place])
    trie = trie_of(load_vocabulary("probe"))
    for text in (b"", b" ", b"[", b'"', b'"a', b'{"a": null', b'{"', b'{"b" :\n'):
        states = own.run(own.start, text), other.run(other.start, text)
        assert (trie.mask(own, states[0]) == trie.mask(other, states[1])).all(), text
