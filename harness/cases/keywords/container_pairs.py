"""Pairs of keywords that constrain the same array or the same object at one node."""

from __future__ import annotations

from harness.cases.keywords.spec import Schema

_A: Schema = {"properties": {"a": {"type": "integer"}}}
_AB: Schema = {"properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
_IF_A: Schema = {"if": {"required": ["a"]}, "then": {"properties": {"b": {"minimum": 3}}}}
_NUMBERS: Schema = {"additionalProperties": {"type": "number"}}
_INTEGERS: Schema = {"type": "array", "items": {"type": "integer"}}
_SEVEN: Schema = {"const": 7}

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
