"""Half a surrogate pair, which the automaton never reads, tells apart no schemas that are called the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.backend.grammar import Grammar
from harness.cases.case import Case
from harness.cases.rewrites.candidates import candidates
from harness.cases.rewrites.equivalence import is_equivalent
from harness.cases.rewrites.half_pairs import half_a_pair_matters
from harness.oracle.judge import Unjudgeable, is_valid

HALF_IN_A_NAME: dict[str, Any] = {"properties": {"a": {}}, "patternProperties": {r"^[\ud800-\udfff]$": {}}}


def verdict(schema: str, document: bytes) -> bool | None:
    try:
        return is_valid(Grammar("json_schema", schema), document)
    except Unjudgeable:
        return None


@pytest.mark.parametrize(
    ("schema", "document"),
    [
        ({"type": "string", "pattern": r"^[^\ud800-\udfff]*$"}, b'"\\ud800"'),
        ({"type": "string", "not": {"const": "\ud800"}}, b'"\\ud800"'),
        ({"type": "object", **HALF_IN_A_NAME, "additionalProperties": False}, b'{"\\ud800":1}'),
    ],
)
def test_no_rewrite_is_offered_that_half_a_pair_tells_apart(schema: Any, document: bytes) -> None:
    text = json.dumps(schema)
    offered = [each.case.grammar.text for each in candidates(Case("x", "x", Grammar("json_schema", text)))]
    expected = verdict(text, document)
    assert [each for each in offered if verdict(each, document) is not expected] == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"pattern": r"^\P{Cs}*$"}, {}),
        ({"pattern": r"^[\0-\ud7ff\ue000-\u{10ffff}]*$"}, {}),
        ({"pattern": r"\u{dfff}"}, {"not": {"type": "string"}}),
        ({"pattern": r"^(?!.*\uD800)[\s\S]*$"}, {}),
        ({"properties": {"\udc00": False}}, {}),
    ],
)
def test_what_only_half_a_pair_tells_apart_is_not_proven(one: Any, other: Any) -> None:
    assert is_equivalent(one, other, "draft2020-12", False) is None
    within = [{"properties": {"a": each}} for each in (one, other)]
    assert is_equivalent(within[0], within[1], "draft2020-12", False, ("properties", "a")) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"pattern": r"^[\s\S]*$"}, {}),
        ({"pattern": r'^[^"]*$'}, {"not": {"pattern": '"'}}),
        ({"pattern": r"^\D+$"}, {"pattern": r"^[^0-9]+$"}),
        ({"pattern": r"^(?:.|[\n\r\u2028\u2029])$"}, {"minLength": 1, "maxLength": 1, "pattern": r"\b|\B"}),
        ({"pattern": r"^\ud83d\ude00$"}, {"pattern": "^\U0001f600$"}),
        ({"pattern": r"\p{L}"}, {"not": {"pattern": r"^\P{L}*$"}}),
    ],
)
def test_ordinary_patterns_are_still_compared(one: Any, other: Any) -> None:
    assert (
        is_equivalent({"type": "string", **one}, {"type": "string", **other}, "draft2020-12", False) is True
    )


HALF: Any = {"const": "\ud800"}
REFERENCE = {"$ref": "#/properties/b"}


@pytest.mark.parametrize(
    ("one", "other", "beside", "is_proven"),
    [
        ({"not": {"not": {}}}, {}, HALF, True),
        (REFERENCE, False, False, True),
        (REFERENCE, HALF, HALF, None),
    ],
)
def test_only_what_differs_is_looked_at(one: Any, other: Any, beside: Any, is_proven: bool | None) -> None:
    schemas = [{"properties": {"a": each, "b": beside}} for each in (one, other)]
    place = ("properties", "a")
    assert is_equivalent(schemas[0], schemas[1], "draft2020-12", False, place) is is_proven


@pytest.mark.parametrize(
    ("pattern", "matters"),
    [
        (r"[\0-\uffff]", False),
        (r"[\u{10000}-\u{10ffff}]", False),
        (r"[ -\ud7ff\ue000-\ufffd]", False),
        (r"[ -\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]", True),
        (r"[\u{d800}]", True),
        (r"\p{General_Category=Surrogate}", True),
        (r"\p{Co}\p{C}", False),
        (r"\p{Assigned}\p{Cn}", False),
        (r"(?<a>x)\k<a>", True),  # nobody knows
        (r"(", False),  # no pattern, of which there is no automaton either
    ],
)
def test_a_pattern_may_take_the_halves_as_it_takes_others(pattern: str, matters: bool) -> None:
    assert half_a_pair_matters({"patternProperties": {pattern: {}}}) == matters
    assert half_a_pair_matters([{"properties": {"a": {"pattern": pattern}}}]) == matters
    assert not half_a_pair_matters({"const": pattern})
