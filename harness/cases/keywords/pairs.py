"""Pairs of keywords that constrain the same values at one node, each keyword in both roles where both can
decide."""

from __future__ import annotations

from collections.abc import Iterator

from harness.cases.keywords.singles import ASSERTED, DRAFT_7
from harness.cases.keywords.spec import Schema, Spec, last

_ANY_OF_TWO: Schema = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
_ONE_OF_TWO: Schema = {"oneOf": [{"type": "integer"}, {"type": "string"}]}
_A: Schema = {"properties": {"a": {"type": "integer"}}}
_AB: Schema = {"properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
_IF_A: Schema = {"if": {"required": ["a"]}, "then": {"properties": {"b": {"minimum": 3}}}}
_NUMBERS: Schema = {"additionalProperties": {"type": "number"}}
_LETTERS = "^[a-z]+$"
_INTEGERS: Schema = {"type": "array", "items": {"type": "integer"}}
_SEVEN: Schema = {"const": 7}

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
    "type+properties": {"type": ["object", "null"], **_A},
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
        **_A,
        "$defs": {"n": {"$dynamicAnchor": "n", "type": "object", "required": ["a"]}},
    },
}
"""The pairs that are schemas as they stand, with nothing beside them."""

ARRAYS: dict[str, Schema] = {
    "minItems+maxItems": {**_INTEGERS, "minItems": 1, "maxItems": 2},
    "minItems+uniqueItems": {**_INTEGERS, "minItems": 2, "uniqueItems": True},
    "maxItems+uniqueItems": {**_INTEGERS, "maxItems": 2, "uniqueItems": True},
    "items+minItems": {**_INTEGERS, "minItems": 2},
    "items+maxItems": {**_INTEGERS, "maxItems": 2},
    "items+uniqueItems": {**_INTEGERS, "uniqueItems": True},
    "items+contains": {**_INTEGERS, "contains": _SEVEN},
    "items+enum": {**_INTEGERS, "enum": [[], [1], ["a"]]},
    "items+not": {**_INTEGERS, "not": {"contains": _SEVEN}},
    "items+anyOf": {**_INTEGERS, "anyOf": [{"maxItems": 1}, {"minItems": 3}]},
    "items+oneOf": {**_INTEGERS, "oneOf": [{"maxItems": 1}, {"contains": _SEVEN}]},
    "items+allOf": {**_INTEGERS, "allOf": [{"minItems": 1}, {"maxItems": 2}]},
    "items+$ref": {**_INTEGERS, "$ref": "#/$defs/n", "$defs": {"n": {"minItems": 2}}},
    "items+if": {**_INTEGERS, "if": {"minItems": 2}, "then": {"contains": _SEVEN}},
    "prefixItems+items": {"prefixItems": [{"type": "integer"}], "items": {"type": "string"}},
    "prefixItems+minItems": {"prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 1},
    "prefixItems+maxItems": {"prefixItems": [{"type": "integer"}, {"type": "string"}], "maxItems": 2},
    "prefixItems+uniqueItems": {"prefixItems": [{"type": "integer"}], "uniqueItems": True},
    "prefixItems+contains": {"prefixItems": [{"type": "string"}], "contains": _SEVEN},
    "prefixItems+unevaluatedItems": {
        "prefixItems": [{"type": "integer"}],
        "unevaluatedItems": {"type": "boolean"},
    },
    "contains+minItems": {**_INTEGERS, "contains": _SEVEN, "minItems": 2},
    "contains+maxItems": {**_INTEGERS, "contains": _SEVEN, "maxItems": 2},
    "contains+uniqueItems": {**_INTEGERS, "contains": _SEVEN, "uniqueItems": True},
    "contains+minContains": {**_INTEGERS, "contains": {"const": 5}, "minContains": 2},
    "contains+maxContains": {**_INTEGERS, "contains": {"const": 5}, "maxContains": 1},
    "minContains+maxContains": {**_INTEGERS, "contains": _SEVEN, "minContains": 2, "maxContains": 2},
    "contains+unevaluatedItems": {"contains": _SEVEN, "unevaluatedItems": {"type": "string"}},
    "minItems+not": {**_INTEGERS, "minItems": 1, "not": {"contains": _SEVEN}},
    "anyOf+minItems": {**_INTEGERS, "anyOf": [{"maxItems": 1}, {"contains": _SEVEN}], "minItems": 1},
    "anyOf+unevaluatedItems": {
        "anyOf": [{"prefixItems": [{"const": 7}]}, {"maxItems": 1}],
        "unevaluatedItems": {"type": "string"},
    },
    "allOf+unevaluatedItems": {
        "allOf": [{"prefixItems": [{"type": "integer"}]}],
        "unevaluatedItems": {"type": "string"},
    },
    "if+unevaluatedItems": {
        "if": {"minItems": 2},
        "then": {"prefixItems": [{"type": "integer"}]},
        "unevaluatedItems": {"type": "string"},
    },
    "$ref+unevaluatedItems": {
        "$ref": "#/$defs/n",
        "unevaluatedItems": {"type": "string"},
        "$defs": {"n": {"prefixItems": [{"type": "integer"}]}},
    },
    "$ref+maxItems": {"$ref": "#/$defs/n", "maxItems": 2, "$defs": {"n": {"items": {"type": "integer"}}}},
}
"""The pairs that stand beside `"type": "array"`."""

OLD_ARRAYS: dict[str, Schema] = {
    "items+additionalItems": {"items": [{"type": "integer"}], "additionalItems": {"type": "boolean"}},
    "additionalItems+minItems": {
        "items": [{"type": "integer"}],
        "additionalItems": {"type": "string"},
        "minItems": 2,
    },
    "additionalItems+maxItems": {
        "items": [{"type": "integer"}],
        "additionalItems": {"type": "string"},
        "maxItems": 2,
    },
    "additionalItems+uniqueItems": {
        "items": [{"type": "integer"}],
        "additionalItems": {"type": "string"},
        "uniqueItems": True,
    },
}
"""The pairs of draft 7 that stand beside `"type": "array"`."""

OBJECTS: dict[str, Schema] = {
    "properties+required": {**_AB, "required": ["a"]},
    "properties+additionalProperties": {**_A, "additionalProperties": {"type": "string"}},
    "properties+patternProperties": {**_A, "patternProperties": {"^x-": {"type": "string"}}},
    "properties+patternProperties on one name": {
        "properties": {"x-a": {"minimum": 3}},
        "patternProperties": {"^x-": {"type": "integer"}},
    },
    "properties+propertyNames": {**_A, "propertyNames": {"pattern": "^[a-z]$"}},
    "properties+minProperties": {**_AB, "minProperties": 1},
    "properties+maxProperties": {**_AB, "maxProperties": 1},
    "properties+dependentRequired": {**_AB, "dependentRequired": {"a": ["b"]}},
    "properties+dependentSchemas": {
        **_AB,
        "dependentSchemas": {"a": {"properties": {"b": {"minLength": 2}}}},
    },
    "properties+unevaluatedProperties": {**_A, "unevaluatedProperties": {"type": "string"}},
    "properties+anyOf": {**_AB, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
    "properties+oneOf": {**_AB, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    "properties+allOf": {**_A, "allOf": [{"properties": {"b": {"type": "string"}}}]},
    "properties+allOf on one name": {**_A, "allOf": [{"properties": {"a": {"minimum": 3}}}]},
    "properties+not": {**_A, "not": {"required": ["b"]}},
    "properties+$ref": {**_A, "$ref": "#/$defs/n", "$defs": {"n": {"properties": {"b": {"type": "string"}}}}},
    "properties+if": {**_AB, "if": {"required": ["a"]}, "then": {"required": ["b"]}},
    "properties+enum": {**_A, "enum": [{}, {"a": 1}, {"a": "x"}]},
    "required+additionalProperties": {"required": ["a"], "additionalProperties": {"type": "integer"}},
    "required+patternProperties": {
        **_NUMBERS,
        "required": ["x-a"],
        "patternProperties": {"^x-": {"type": "integer"}},
    },
    "required+propertyNames": {**_NUMBERS, "required": ["a"], "propertyNames": {"pattern": "^[a-z]$"}},
    "required+minProperties": {**_NUMBERS, "required": ["a"], "minProperties": 2},
    "required+maxProperties": {**_NUMBERS, "required": ["a"], "maxProperties": 1},
    "required+dependentRequired": {**_NUMBERS, "required": ["b"], "dependentRequired": {"a": ["c"]}},
    "required+unevaluatedProperties": {"required": ["a"], "unevaluatedProperties": {"type": "integer"}},
    "required+anyOf": {
        **_AB,
        "required": ["b"],
        "anyOf": [{"required": ["a"]}, {"properties": {"b": {"maxLength": 1}}}],
    },
    "required+oneOf": {**_NUMBERS, "required": ["c"], "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    "required+allOf": {**_AB, "required": ["a"], "allOf": [{"required": ["b"]}]},
    "required+not": {**_NUMBERS, "required": ["a"], "not": {"required": ["b"]}},
    "required+if": {**_NUMBERS, "required": ["b"], **_IF_A},
    "required+$ref": {
        **_NUMBERS,
        "required": ["a"],
        "$ref": "#/$defs/n",
        "$defs": {"n": {"properties": {"a": {"minimum": 3}}}},
    },
    "additionalProperties+patternProperties": {
        "patternProperties": {"^x-": {"type": "integer"}},
        "additionalProperties": {"type": "string"},
    },
    "additionalProperties+propertyNames": {
        "additionalProperties": {"type": "integer"},
        "propertyNames": {"pattern": "^[a-z]$"},
    },
    "additionalProperties+minProperties": {"additionalProperties": {"type": "integer"}, "minProperties": 2},
    "additionalProperties+maxProperties": {"additionalProperties": {"type": "integer"}, "maxProperties": 1},
    "additionalProperties+dependentRequired": {
        "additionalProperties": {"type": "integer"},
        "dependentRequired": {"a": ["b"]},
    },
    "additionalProperties+anyOf": {
        **_AB,
        "additionalProperties": False,
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "additionalProperties+allOf": {**_AB, "additionalProperties": False, "allOf": [{"required": ["a"]}]},
    "additionalProperties+$ref": {
        "additionalProperties": {"type": "integer"},
        "$ref": "#/$defs/n",
        "$defs": {"n": {"required": ["a"]}},
    },
    "additionalProperties+if": {
        **_AB,
        "additionalProperties": False,
        "if": {"required": ["a"]},
        "then": {"required": ["b"]},
    },
    "additionalProperties+not": {"additionalProperties": {"type": "integer"}, "not": {"required": ["a"]}},
    "patternProperties+propertyNames": {
        **_NUMBERS,
        "patternProperties": {"^x-": {"type": "integer"}},
        "propertyNames": {"maxLength": 3},
    },
    "patternProperties+minProperties": {
        **_NUMBERS,
        "patternProperties": {"^x-": {"type": "integer"}},
        "minProperties": 1,
    },
    "patternProperties+maxProperties": {
        **_NUMBERS,
        "patternProperties": {"^x-": {"type": "integer"}},
        "maxProperties": 1,
    },
    "patternProperties+unevaluatedProperties": {
        "patternProperties": {"^x-": {"type": "integer"}},
        "unevaluatedProperties": {"type": "string"},
    },
    "patternProperties+allOf": {
        **_NUMBERS,
        "patternProperties": {"^x-": {"type": "integer"}},
        "allOf": [{"patternProperties": {"a$": {"minimum": 3}}}],
    },
    "propertyNames+minProperties": {**_NUMBERS, "propertyNames": {"pattern": "^[a-z]$"}, "minProperties": 2},
    "propertyNames+maxProperties": {**_NUMBERS, "propertyNames": {"pattern": "^[a-z]$"}, "maxProperties": 1},
    "propertyNames+unevaluatedProperties": {
        "propertyNames": {"pattern": "^[a-z]$"},
        "unevaluatedProperties": {"type": "integer"},
    },
    "minProperties+maxProperties": {**_NUMBERS, "minProperties": 1, "maxProperties": 2},
    "minProperties+not": {**_NUMBERS, "minProperties": 1, "not": {"required": ["b"]}},
    "dependentRequired+minProperties": {**_NUMBERS, "dependentRequired": {"a": ["b"]}, "minProperties": 1},
    "dependentRequired+maxProperties": {**_NUMBERS, "dependentRequired": {"a": ["b"]}, "maxProperties": 2},
    "dependentRequired+dependentSchemas": {
        **_NUMBERS,
        "dependentRequired": {"a": ["b"]},
        "dependentSchemas": {"b": {"maxProperties": 2}},
    },
    "allOf+unevaluatedProperties": {"allOf": [_A], "unevaluatedProperties": {"type": "string"}},
    "anyOf+unevaluatedProperties": {
        "anyOf": [{**_A, "required": ["a"]}, {"properties": {"b": {"type": "boolean"}}, "required": ["b"]}],
        "unevaluatedProperties": {"type": "string"},
    },
    "oneOf+unevaluatedProperties": {
        "oneOf": [{**_A, "required": ["a"]}, {"properties": {"b": {"type": "boolean"}}, "required": ["b"]}],
        "unevaluatedProperties": {"type": "string"},
    },
    "if+unevaluatedProperties": {
        "if": {"required": ["a"]},
        "then": {"properties": {"a": {"type": "integer"}}},
        "unevaluatedProperties": {"type": "string"},
    },
    "dependentSchemas+unevaluatedProperties": {
        "dependentSchemas": {"a": {"properties": {"a": {"type": "integer"}}}},
        "unevaluatedProperties": {"type": "string"},
    },
    "$ref+unevaluatedProperties": {
        "$ref": "#/$defs/n",
        "unevaluatedProperties": {"type": "string"},
        "$defs": {"n": _A},
    },
}
"""The pairs that stand beside `"type": "object"`."""

OLD_OBJECTS: dict[str, Schema] = {
    "dependencies+properties": {**_AB, "dependencies": {"a": ["b"]}},
    "dependencies+required": {**_NUMBERS, "required": ["a"], "dependencies": {"b": ["c"]}},
    "dependencies+additionalProperties": {
        "additionalProperties": {"type": "integer"},
        "dependencies": {"a": {"required": ["b"]}},
    },
}
"""The pairs of draft 7 that stand beside `"type": "object"`."""

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
        {"anyOf": [_INTEGERS, {"type": "array", "minItems": 2}], "unevaluatedItems": False},
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
