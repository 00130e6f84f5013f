"""The shortest completion of what was begun: it is a document, and nothing shorter or earlier is."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from small_schemas import whole_schema

from harness.oracle.automaton import DEAD, NoOracle
from harness.oracle.completion import shortest_completion, some_completion
from harness.oracle.json_schema.automaton import json_schema_automaton
from harness.oracle.judge.schema import document_is_valid
from harness.oracle.judge.unjudgeable import Unjudgeable
from harness.oracle.regex.automaton import regex_automaton

ALPHABET = b'"0158:[]abtruefalsn{},-.'


@pytest.mark.parametrize(
    ("schema", "begun", "rest"),
    [
        ({"type": "object", "required": ["a"], "properties": {"a": {"const": True}}}, b"{", b'"a":true}'),
        ({"type": "array", "minItems": 2}, b"[", b"0,0]"),
        ({"type": "integer", "minimum": 15}, b"", b"15"),
        ({"type": "integer", "minimum": 1500}, b"", b"1E4"),
        ({"type": "string", "minLength": 2}, b'"', b'  "'),
        ({"type": "string"}, b'"\\ud83d', b'\\uDC00"'),
        ({}, b"[1", b"]"),
        ({}, b"12", b""),
    ],
)
def test_the_shortest_completion_of_a_beginning(schema: Any, begun: bytes, rest: bytes) -> None:
    automaton = json_schema_automaton(json.dumps(schema))
    assert shortest_completion(automaton, automaton.run(automaton.start, begun)) == rest


@pytest.mark.parametrize("number", range(40))
def test_the_judge_accepts_the_completion_and_nothing_shorter(number: int) -> None:
    schema = json.dumps(whole_schema(number))
    try:
        automaton = json_schema_automaton(schema)
        found = shortest_completion(automaton, automaton.start)
    except NoOracle:
        pytest.skip("no automaton")
    if automaton.start == DEAD:
        assert found is None
        return
    assert found is not None and automaton.accepts(found)
    try:
        assert document_is_valid(schema, found, None, False)
        for length in range(min(len(found), 4)):
            for characters in product(ALPHABET, repeat=length):
                assert not document_is_valid(schema, bytes(characters), None, False)
    except Unjudgeable:
        pytest.skip("the judge has no answer")


def test_ties_are_broken_by_the_order_of_bytes() -> None:
    automaton = regex_automaton("x?(ba|ab|c{3})")
    assert shortest_completion(automaton, automaton.start) == b"ab"


def test_a_search_that_is_too_long_has_no_witness() -> None:
    automaton = regex_automaton("a{500}")
    assert shortest_completion(automaton, automaton.start) == b"a" * 500
    assert shortest_completion(automaton, automaton.start, most_states=100) is None
    assert shortest_completion(automaton, DEAD) is None


def test_an_avoided_byte_counts_as_twenty_where_another_can_be() -> None:
    automaton = regex_automaton("(ab|cd)e")
    assert shortest_completion(automaton, automaton.start) == b"abe"
    assert shortest_completion(automaton, automaton.start, avoided=b"ae") == b"cde"
    for expression, text in (("(a{19}|b)c", b"a" * 19 + b"c"), ("(a{21}|b)c", b"bc"), ("a*b", b"b")):
        automaton = regex_automaton(expression)
        assert shortest_completion(automaton, automaton.start, avoided=b"b") == text


def test_a_byte_counts_for_more_where_another_can_be() -> None:
    """Two digits with a choice at each are further than a longer name that is forced once it has begun."""
    automaton = regex_automaton("(1{1,3}2|name)!")
    assert shortest_completion(automaton, automaton.start) == b"12!"
    assert shortest_completion(automaton, automaton.start, choice=4) == b"name!"


def test_some_completion_of_what_is_too_far_for_the_shortest() -> None:
    automaton = regex_automaton("([a-y]{3}x{400})+z")
    assert shortest_completion(automaton, automaton.start, most_states=300) is None
    assert some_completion(automaton, automaton.start, b"zb") == b"bbb" + b"x" * 400 + b"z"
    assert some_completion(automaton, automaton.start, b"zb", most_states=300) is None
    assert some_completion(automaton, DEAD, b"") is None


def test_some_completion_turns_back() -> None:
    """The bytes that come first in the order lead round and round in a string, and never out of it."""
    automaton = json_schema_automaton(json.dumps({"type": "string"}))
    assert some_completion(automaton, automaton.run(automaton.start, b'"'), b"abc\\") == b'"'
