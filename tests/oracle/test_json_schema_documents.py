"""The automaton of a JSON Schema against the judge: documents, viable beginnings, and witnesses of what it
allows."""

from __future__ import annotations

import json
from functools import cache
from heapq import heappop, heappush
from random import Random
from typing import Any

import numpy as np
import pytest
from small_schemas import documents, whole_schema

from harness.oracle.automaton import DEAD, Automaton, NoOracle
from harness.oracle.json_schema.automaton import json_schema_automaton
from harness.oracle.judge.schema import document_is_valid
from harness.oracle.judge.unjudgeable import Unjudgeable

DOCUMENTS = tuple(text.encode() for text in documents())
CLOSING = b'}]"'
LIKELY = b'}]"0:, e1a' + bytes(range(256))
"""The bytes that are tried for a completion, the likely ones first."""


@cache
def judged(schema: str, text: bytes) -> bool | None:
    try:
        return document_is_valid(schema, text, None, False)
    except Unjudgeable:
        return None


def completion(automaton: Automaton[Any], state: int, most: int = 1_500) -> bytes | None:
    """A short text that leads from the state to an end; None if it was not found among so many states."""
    behind: dict[int, tuple[int, int] | None] = {state: None}
    waiting = [(0, state)]
    while waiting and len(behind) < most:
        cost, here = heappop(waiting)
        if automaton.accepting(here):
            out = bytearray()
            while (step := behind[here]) is not None:
                here, byte = step
                out.append(byte)
            return bytes(out[::-1])
        automaton.expand(np.array([here], dtype=np.int32))
        row = automaton.table[here]
        for byte in np.flatnonzero(row).tolist():
            after = int(row[byte])
            if after not in behind:
                behind[after] = (here, byte)
                heappush(waiting, (cost + (1 if byte in CLOSING else 3 if byte in LIKELY[:10] else 9), after))
    return None


def differences(number: int) -> list[str]:
    """What is wrong with the automaton of one schema, a line each; nothing where it has none."""
    schema = json.dumps(whole_schema(number))
    try:
        return _differences(number, schema, json_schema_automaton(schema))
    except NoOracle:
        return []  # also where that shows only at a place of a document


def _differences(number: int, schema: str, automaton: Automaton[Any]) -> list[str]:
    random, wrong, valid = Random(number), [], []
    for text in DOCUMENTS:
        truth = judged(schema, text)
        if truth is None:
            continue
        if automaton.accepts(text) != truth:
            wrong.append(f"{number}: {text!r} is {truth} in {schema}, refused from {automaton.viable(text)}")
        elif truth:
            valid.append(text)
    if automaton.start == DEAD:
        return wrong + [
            f"{number}: {text!r} is valid, and the language is said to be empty" for text in valid[:1]
        ]
    tried = [b"", *random.sample(valid, min(4, len(valid)))]
    for text in tried:
        place = random.randint(0, len(text))
        state = automaton.run(automaton.start, text[:place])
        automaton.expand(np.array([state], dtype=np.int32))
        row = automaton.table[state]
        allowed = [byte for byte in dict.fromkeys(LIKELY) if row[byte] != DEAD]
        for byte in [*allowed[:8], *random.sample(allowed, min(3, len(allowed)))]:
            rest = completion(automaton, int(row[byte]))
            document = text[:place] + bytes((byte,)) + (rest or b"")
            if rest is not None and judged(schema, document) is False:
                wrong.append(f"{number}: {document!r} is allowed and not valid in {schema}")
    return wrong


def test_documents_and_beginnings_are_those_of_the_judge() -> None:
    assert [line for number in range(20) for line in differences(number)] == []


@pytest.mark.long
@pytest.mark.parametrize("part", range(6))
def test_documents_and_beginnings_of_many_schemas_are_those_of_the_judge(part: int) -> None:
    numbers = range(20 + part * 40, 60 + part * 40)
    assert [line for number in numbers for line in differences(number)] == []


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"uniqueItems": True}, "uniqueItems"),
        ({"$ref": "other.json"}, "points out"),
        ({"$ref": "#"}, "refers to itself"),
        ({"unevaluatedProperties": False, "$ref": "#"}, "refers to itself"),
        ({"maxLength": 10**9}, "a count"),
        ({"pattern": "(a)\\1"}, "a group"),
        ({"maximum": 10**1000}, "digits"),
    ],
)
def test_what_has_no_automaton_says_why(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(NoOracle) as raised:
        json_schema_automaton(json.dumps(schema))
    assert reason in str(raised.value)


@pytest.mark.parametrize(
    ("schema", "text", "viable"),
    [
        # A dead end is never entered: no integer is above 2 and below 3.
        ({"type": "integer", "exclusiveMinimum": 2, "exclusiveMaximum": 3}, b"2", -1),
        ({"type": "number", "exclusiveMinimum": 2, "exclusiveMaximum": 3}, b"2.5", 3),
        # An exponent can make any digits small, so that only the sign is wrong at once.
        ({"type": "number", "maximum": 5}, b"700e-3", 6),
        ({"type": "number", "minimum": 0}, b"-5", 1),
        ({"type": "integer", "multipleOf": 4}, b"1e0", 3),
        # The member that the schema wants can be spelled with escapes; a listed name is not written twice.
        ({"required": ["a"], "type": "object", "properties": {"a": True}}, b'{"\\u0061":1}', 12),
        ({"type": "object", "properties": {"a": True}}, b'{"a":1,"a":2}', 9),
        # Nothing may come that cannot be completed: three members are wanted and two are there.
        ({"type": "object", "properties": {"a": True, "b": True}, "additionalProperties": False,
          "minProperties": 3}, b"{", -1),
        # A lone surrogate is no character.
        ({"type": "string"}, b'"\\ud800"', 7),
        ({"type": "string", "maxLength": 1}, b'"\\ud83d\\ude00a', 13),
        # Items that go on alike are told apart while one of them is read.
        ({"oneOf": [{"prefixItems": [{"const": "a"}]}, {"prefixItems": [{"const": "b"}]}], "type": "array",
          "minItems": 1, "maxItems": 1}, b'["a"]', 5),
        # What is unevaluated hangs on which branch holds.
        ({"type": "object", "anyOf": [{"required": ["a"], "properties": {"a": {"const": 1}}}, {}],
          "unevaluatedProperties": False}, b'{"a":2', 5),
        ({"type": "array", "contains": {"type": "null"}, "unevaluatedItems": False}, b"[null,1", 6),
        ({"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True}, b"[1,1.0]", 3),
        # Of a oneOf the two branches must not both hold.
        ({"oneOf": [{"type": "integer"}, {"multipleOf": 2, "type": "number"}]}, b"4,", 1),
    ],
)  # fmt: skip
def test_how_far_a_text_is_the_beginning_of_a_document(schema: Any, text: bytes, viable: int) -> None:
    assert json_schema_automaton(json.dumps(schema)).viable(text) == viable
