"""Pairs of keywords that constrain the same values at one node, each keyword in both roles where both can
decide."""

from __future__ import annotations

from collections.abc import Iterator

from harness.cases.keywords.container_pairs import ARRAYS, OBJECTS, OLD_ARRAYS, OLD_OBJECTS
from harness.cases.keywords.singles import ASSERTED, DRAFT_7
from harness.cases.keywords.spec import Schema, Spec, last

_ANY_OF_TWO: Schema = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
_ONE_OF_TWO: Schema = {"oneOf": [{"type": "integer"}, {"type": "string"}]}
_LETTERS = "^[a-z]+$"

STRINGS: dict[str, Schema] = {
    "pattern+minLength": {"pattern": _LETTERS, "minLength": 3},
    "pattern+maxLength": {"pattern": _LETTERS, "maxLength": 3},
    "minLength+maxLength": {"minLength": 2, "maxLength": 4},
    "enum+minLength": {"enum": ["a", "abc", "abcd"], "minLength": 2},
    "enum+maxLength": {"enum": ["a", "abc", "abcd"], "maxLength": 3},
    "enum+pattern": {"enum": ["abc", "a1", "ABC"], "pattern": _LETTERS},
    "not+pattern": {"not": {"pattern": "[0-9]"}, "pattern": "^[a-z0-9]+$"},
    "not+minLength": {"not": {"const": "abc"}, "minLength": 2},
    "not+maxLength": {"not": {"pattern": "^a"}, "maxLength": 3},
    "not+enum": {"not": {"const": "abc"}, "enum": ["a", "abc", "b"]},
    "anyOf+minLength": {"anyOf": [{"pattern": "^a"}, {"pattern": "b$"}], "minLength": 3},
    "anyOf+pattern": {"anyOf": [{"maxLength": 1}, {"minLength": 3}], "pattern": _LETTERS},
    "oneOf+pattern": {"oneOf": [{"maxLength": 3}, {"minLength": 3}], "pattern": _LETTERS},
    "allOf+pattern": {"allOf": [{"minLength": 2}, {"maxLength": 4}], "pattern": _LETTERS},
    "allOf+minLength": {"allOf": [{"pattern": _LETTERS}], "minLength": 3},
    "if+maxLength": {"if": {"pattern": "^a"}, "then": {"minLength": 3}, "maxLength": 4},
}
"""The pairs that stand beside `"type": "string"`."""

FORMATTED: dict[str, Schema] = {
    "format+minLength": {"format": "email", "minLength": 8},
    "format+maxLength": {"format": "email", "maxLength": 8},
    "format+pattern": {"format": "date", "pattern": "^2024-"},
    "format+enum": {"format": "date", "enum": ["2024-02-29", "never"]},
    "format+not": {"format": "ipv4", "not": {"pattern": "^127"}},
    "format+anyOf": {"format": "date", "anyOf": [{"pattern": "^20"}, {"pattern": "-01$"}]},
}
"""The pairs that stand beside `"type": "string"`, with formats asserted."""

NUMBERS: dict[str, Schema] = {
    "minimum+maximum": {"minimum": 3, "maximum": 12},
    "minimum+exclusiveMaximum": {"minimum": 3, "exclusiveMaximum": 12},
    "exclusiveMinimum+maximum": {"exclusiveMinimum": 3, "maximum": 12},
    "exclusiveMinimum+exclusiveMaximum": {"exclusiveMinimum": 3, "exclusiveMaximum": 12},
    "minimum+multipleOf": {"minimum": 7, "multipleOf": 5},
    "maximum+multipleOf": {"maximum": 12, "multipleOf": 5},
    "exclusiveMinimum+multipleOf": {"exclusiveMinimum": 10, "multipleOf": 5},
    "exclusiveMaximum+multipleOf": {"exclusiveMaximum": 20, "multipleOf": 5},
    "enum+minimum": {"enum": [1, 5, 9], "minimum": 3},
    "enum+multipleOf": {"enum": [4, 5, 10], "multipleOf": 5},
    "not+minimum": {"not": {"const": 5}, "minimum": 3},
    "not+multipleOf": {"not": {"multipleOf": 10}, "multipleOf": 5},
    "anyOf+minimum": {"anyOf": [{"maximum": 4}, {"multipleOf": 5}], "minimum": 3},
    "anyOf+multipleOf": {"anyOf": [{"maximum": 4}, {"minimum": 10}], "multipleOf": 2},
    "oneOf+maximum": {"oneOf": [{"multipleOf": 2}, {"multipleOf": 5}], "maximum": 8},
    "allOf+minimum": {"allOf": [{"maximum": 12}], "minimum": 3},
    "allOf+multipleOf": {"allOf": [{"multipleOf": 2}], "multipleOf": 5},
    "if+minimum": {"if": {"minimum": 10}, "then": {"multipleOf": 5}, "minimum": 3},
    "if+then": {"if": {"minimum": 5}, "then": {"multipleOf": 5}},
    "if+else": {"if": {"minimum": 10}, "else": {"multipleOf": 2}},
    "then+else": {"if": {"minimum": 10}, "then": {"multipleOf": 5}, "else": {"multipleOf": 2}},
}
"""The pairs that stand beside `"type": "integer"`."""

ANYTHING: dict[str, Schema] = {
    "type+enum": {"type": ["string", "null"], "enum": ["a", 1, None]},
    "type+minimum": {"type": ["integer", "string"], "minimum": 3},
    "type+minLength": {"type": ["integer", "string"], "minLength": 2},
    "type+multipleOf": {"type": "integer", "multipleOf": 1.5},
    "type+items": {"type": ["array", "null"], "items": {"type": "integer"}},
    "type+properties": {"type": ["object", "null"], "properties": {"a": {"type": "integer"}}},
    "type+anyOf": {"type": "integer", "anyOf": [{"type": "string"}, {"minimum": 3}]},
    "type+oneOf": {"type": ["integer", "null"], "oneOf": [{"type": "null"}, {"minimum": 3}]},
    "type+allOf": {"type": ["integer", "string"], "allOf": [{"minimum": 3}, {"minLength": 2}]},
    "not+type": {"type": ["integer", "string"], "not": {"const": 5}},
    "minimum+minLength": {"type": ["integer", "string"], "minimum": 3, "minLength": 2},
    "anyOf+enum": {**_ANY_OF_TWO, "enum": ["a", 1, None]},
    "anyOf+oneOf": {
        **_ANY_OF_TWO,
        "oneOf": [{"minimum": 3, "type": "number"}, {"maxLength": 2, "type": "string"}, {"type": "null"}],
    },
    "anyOf+allOf": {**_ANY_OF_TWO, "allOf": [{"minimum": 3}, {"maxLength": 2}]},
    "anyOf+not": {**_ANY_OF_TWO, "not": {"const": "a"}},
    "oneOf+allOf": {**_ONE_OF_TWO, "allOf": [{"minimum": 3}, {"maxLength": 2}]},
    "oneOf+not": {**_ONE_OF_TWO, "not": {"const": 5}},
    "allOf+not": {"allOf": [{"type": "string"}], "not": {"const": "a"}},
    "$ref+anyOf": {"$ref": "#/$defs/n", **_ANY_OF_TWO, "$defs": {"n": {"type": ["string", "null"]}}},
    "$ref+allOf": {"$ref": "#/$defs/n", "allOf": [{"minimum": 3}], "$defs": {"n": {"type": "integer"}}},
    "$ref+oneOf": {
        "$ref": "#/$defs/n",
        "oneOf": [{"type": "integer", "multipleOf": 2}, {"type": "integer", "multipleOf": 3}],
        "$defs": {"n": {"minimum": 3}},
    },
    "$ref+not": {"$ref": "#/$defs/n", "not": {"const": 5}, "$defs": {"n": {"type": "integer"}}},
    "$ref+enum": {"$ref": "#/$defs/n", "enum": ["a", 1], "$defs": {"n": {"type": "string"}}},
    "$ref+type": {"$ref": "#/$defs/n", "type": ["integer", "string"], "$defs": {"n": {"minimum": 3}}},
    "$ref+minimum": {"$ref": "#/$defs/n", "minimum": 3, "$defs": {"n": {"type": "integer"}}},
    "$ref+minLength": {"$ref": "#/$defs/n", "minLength": 2, "$defs": {"n": {"type": "string"}}},
    "$ref+pattern": {
        "$ref": "#/$defs/n",
        "pattern": _LETTERS,
        "$defs": {"n": {"type": "string", "maxLength": 3}},
    },
    "$ref+if": {
        "$ref": "#/$defs/n",
        "if": {"minimum": 10},
        "then": {"multipleOf": 5},
        "$defs": {"n": {"type": "integer"}},
    },
    "$dynamicRef+minimum": {
        "$dynamicRef": "#n",
        "minimum": 3,
        "$defs": {"n": {"$dynamicAnchor": "n", "type": "integer"}},
    },
    "$dynamicRef+properties": {
        "$dynamicRef": "#n",
        "properties": {"a": {"type": "integer"}},
        "$defs": {"n": {"$dynamicAnchor": "n", "type": "object", "required": ["a"]}},
    },
}
"""The pairs that are schemas as they stand, with nothing beside them."""

ONE_ROLE: list[tuple[str, str, Schema]] = [
    ("const+type", "const", {"type": "integer", "const": 5}),
    ("const+anyOf", "const", {**_ANY_OF_TWO, "const": 5}),
    ("const+minimum", "const", {"type": "integer", "minimum": 3, "const": 5}),
    ("const+pattern", "const", {"type": "string", "pattern": _LETTERS, "const": "abc"}),
    ("const+enum", "const", {"enum": ["a", "b"], "const": "a"}),
    ("const+not", "const", {"not": {"const": "a"}, "const": "b"}),
    (
        "minimum+exclusiveMinimum",
        "exclusiveMinimum",
        {"type": "integer", "minimum": 3, "exclusiveMinimum": 3},
    ),
    ("minimum+exclusiveMinimum", "minimum", {"type": "integer", "minimum": 5, "exclusiveMinimum": 3}),
    (
        "maximum+exclusiveMaximum",
        "exclusiveMaximum",
        {"type": "integer", "maximum": 9, "exclusiveMaximum": 9},
    ),
    ("maximum+exclusiveMaximum", "maximum", {"type": "integer", "maximum": 7, "exclusiveMaximum": 9}),
    (
        "anyOf+unevaluatedItems false",
        "unevaluatedItems",
        {
            "anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "array", "minItems": 2}],
            "unevaluatedItems": False,
        },
    ),
]
"""Pairs of which one keyword cannot decide, because what it forbids is forbidden anyway: the pair, the
keyword that decides, and the schema."""


def pairs() -> Iterator[Spec]:
    """Yields two cases for every pair, each with the keyword that decides written last; so each pair is tried
    in both orders.
    """
    draft_7 = {"$schema": "http://json-schema.org/draft-07/schema#"}
    yield from _roles(STRINGS, {"type": "string"}, {})
    yield from _roles(FORMATTED, {"type": "string"}, ASSERTED)
    yield from _roles(NUMBERS, {"type": "integer"}, {})
    yield from _roles(ANYTHING, {}, {})
    yield from _roles(ARRAYS, {"type": "array"}, {})
    yield from _roles(OLD_ARRAYS, {**draft_7, "type": "array"}, DRAFT_7)
    yield from _roles(OBJECTS, {"type": "object"}, {})
    yield from _roles(OLD_OBJECTS, {**draft_7, "type": "object"}, DRAFT_7)
    for pair, decides, schema in ONE_ROLE:
        first, second = _keywords(pair)
        yield Spec(last(schema, decides), decides, beside=second if decides == first else first, pair=pair)


def _roles(schemas: dict[str, Schema], base: Schema, options: dict[str, str]) -> Iterator[Spec]:
    for pair, beside in schemas.items():
        schema = {**base, **beside}
        first, second = _keywords(pair)
        yield Spec(last(schema, second), second, beside=first, pair=pair, options=options)
        yield Spec(last(schema, first), first, beside=second, pair=pair, options=options)


def _keywords(pair: str) -> tuple[str, str]:
    """Returns the two keywords of `first+second`, or of `first+second, and in which way they meet`."""
    first, _, second = pair.partition(" ")[0].partition("+")
    return first, second
