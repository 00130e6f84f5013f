"""Cases of each keyword by itself, with as little beside it as it needs, and of the same keyword at other
nodes than the root."""

from __future__ import annotations

from collections.abc import Iterator

from harness.cases.keywords.spec import Schema, Spec

ASSERTED = {"format": "assert"}
DRAFT_7 = {"draft": "draft7"}
_DRAFT_7 = {"$schema": "http://json-schema.org/draft-07/schema#"}
_INTEGER: Schema = {"type": "integer"}
_STRING: Schema = {"type": "string"}
_LETTERS = "^[a-z]+$"

FORMATS = (
    "date",
    "time",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uuid",
    "json-pointer",
    "regex",
)

TYPES: dict[str, str | list[str]] = {
    name: name for name in ("null", "boolean", "integer", "number", "string", "array", "object")
} | {
    "string or null": ["string", "null"],
    "integer or string": ["integer", "string"],
    "array or object": ["array", "object"],
}


def singles() -> Iterator[Spec]:
    """Yields one case or more for every keyword of 2020-12 that constrains, and for those of draft 7 that it
    replaced.
    """
    for name, types in TYPES.items():
        yield Spec({"type": types}, "type", value=name)
    yield Spec({"enum": ["red", "green", "blue"]}, "enum", value="strings")
    yield Spec({"enum": [1, "one", None, [1]]}, "enum", value="mixed")
    yield Spec({"const": "red"}, "const", value="string")
    yield Spec({"const": {"a": [1, 2]}}, "const", value="object")
    yield from _numbers()
    yield from _strings()
    yield from _arrays()
    yield from _objects()
    yield from _logic()
    yield from _references()


def _numbers() -> Iterator[Spec]:
    for kind in ("integer", "number"):
        yield Spec({"type": kind, "minimum": 3}, "minimum", value=kind)
        yield Spec({"type": kind, "maximum": 12}, "maximum", value=kind)
        yield Spec({"type": kind, "exclusiveMinimum": 3}, "exclusiveMinimum", value=kind)
        yield Spec({"type": kind, "exclusiveMaximum": 12}, "exclusiveMaximum", value=kind)
    yield Spec({"type": "integer", "minimum": -7}, "minimum", value="negative")
    yield Spec({"type": "integer", "multipleOf": 5}, "multipleOf", value="integer")
    yield Spec({"type": "number", "multipleOf": 0.5}, "multipleOf", value="fraction")


def _strings() -> Iterator[Spec]:
    yield Spec({"type": "string", "minLength": 3}, "minLength")
    yield Spec({"type": "string", "maxLength": 3}, "maxLength")
    patterns = {
        "anchored": "^[a-z]{2,4}$",
        "start only": "^ab",
        "unanchored": "[0-9]",
        "alternatives": "^(cat|dog)$",
        "alternatives bare": "cat|dog",
    }
    for name, pattern in patterns.items():
        yield Spec({"type": "string", "pattern": pattern}, "pattern", value=name)
    for name in FORMATS:
        yield Spec({"type": "string", "format": name}, "format", value=name, options=ASSERTED)


def _arrays() -> Iterator[Spec]:
    yield Spec({"type": "array", "items": _INTEGER}, "items", value="schema")
    yield Spec({"type": "array", "items": False}, "items", value="false")
    yield Spec({"type": "array", "prefixItems": [_INTEGER, _STRING]}, "prefixItems")
    old: Schema = {**_DRAFT_7, "type": "array", "items": [_INTEGER]}
    yield Spec(
        {**_DRAFT_7, "type": "array", "items": [_INTEGER, _STRING]},
        "items",
        value="tuple of draft 7",
        options=DRAFT_7,
    )
    yield Spec({**old, "additionalItems": False}, "additionalItems", value="false", options=DRAFT_7)
    yield Spec({**old, "additionalItems": _STRING}, "additionalItems", value="schema", options=DRAFT_7)
    strings: Schema = {"type": "array", "items": _STRING}
    yield Spec({**strings, "minItems": 2}, "minItems")
    yield Spec({**strings, "maxItems": 2}, "maxItems")
    yield Spec({**strings, "uniqueItems": True}, "uniqueItems")
    yield Spec({**strings, "contains": {"const": "a"}}, "contains")
    yield Spec({**strings, "contains": {"const": "a"}, "minContains": 2}, "minContains")
    yield Spec({**strings, "contains": {"const": "a"}, "maxContains": 1}, "maxContains")
    yield Spec(
        {"type": "array", "prefixItems": [_INTEGER], "unevaluatedItems": False},
        "unevaluatedItems",
        value="false",
    )
    yield Spec(
        {"type": "array", "prefixItems": [_INTEGER], "unevaluatedItems": _STRING},
        "unevaluatedItems",
        value="schema",
    )


def _objects() -> Iterator[Spec]:
    a_and_b: Schema = {"type": "object", "properties": {"a": _INTEGER, "b": _STRING}}
    yield Spec(a_and_b, "properties")
    yield Spec({"type": "object", "properties": {"a": False, "b": _STRING}}, "properties", value="false")
    yield Spec({**a_and_b, "required": ["b"]}, "required", value="declared")
    strings: Schema = {"type": "object", "additionalProperties": _STRING}
    yield Spec({**strings, "required": ["a"]}, "required", value="undeclared")
    yield Spec({**a_and_b, "additionalProperties": False}, "additionalProperties", value="false")
    yield Spec(
        {**a_and_b, "additionalProperties": {"type": "boolean"}}, "additionalProperties", value="schema"
    )
    yield Spec({"type": "object", "additionalProperties": _INTEGER}, "additionalProperties", value="alone")
    yield Spec({**strings, "patternProperties": {"^x-": {"pattern": _LETTERS}}}, "patternProperties")
    yield Spec({**strings, "propertyNames": {"pattern": "^[a-z]$"}}, "propertyNames", value="pattern")
    yield Spec({**strings, "propertyNames": {"enum": ["a", "b"]}}, "propertyNames", value="enum")
    yield Spec({**strings, "minProperties": 2}, "minProperties")
    yield Spec({**strings, "maxProperties": 1}, "maxProperties")
    yield Spec({**strings, "dependentRequired": {"a": ["b"]}}, "dependentRequired")
    yield Spec({**strings, "dependentSchemas": {"a": {"maxProperties": 1}}}, "dependentSchemas")
    yield Spec(
        {**_DRAFT_7, **strings, "dependencies": {"a": ["b"]}}, "dependencies", value="names", options=DRAFT_7
    )
    yield Spec(
        {**_DRAFT_7, **strings, "dependencies": {"a": {"required": ["b"]}}},
        "dependencies",
        value="schema",
        options=DRAFT_7,
    )
    yield Spec({**a_and_b, "unevaluatedProperties": False}, "unevaluatedProperties", value="false")
    yield Spec(
        {**a_and_b, "unevaluatedProperties": {"type": "boolean"}}, "unevaluatedProperties", value="schema"
    )


def _logic() -> Iterator[Spec]:
    conditional: Schema = {"type": "integer", "if": {"minimum": 10}}
    yield Spec({**conditional, "then": {"multipleOf": 5}}, "if")
    yield Spec({**conditional, "then": {"multipleOf": 10}}, "then")
    yield Spec({**conditional, "else": {"minimum": 0}}, "else")
    yield Spec({"allOf": [_INTEGER, {"minimum": 3}]}, "allOf")
    yield Spec({"anyOf": [_INTEGER, _STRING]}, "anyOf")
    yield Spec({"oneOf": [{"type": "null"}, _STRING]}, "oneOf", value="disjoint")
    yield Spec(
        {"oneOf": [{"type": "integer", "minimum": 3}, {"type": "integer", "maximum": 7}]},
        "oneOf",
        value="overlapping",
    )
    yield Spec({"type": "string", "not": {"enum": ["a", "b"]}}, "not", value="values")
    yield Spec({"not": {"type": "string"}}, "not", value="type")


def _references() -> Iterator[Spec]:
    yield Spec({"$ref": "#/$defs/n", "$defs": {"n": _INTEGER}}, "$ref", value="pointer")
    yield Spec(
        {"type": "array", "items": {"$ref": "#"}, "maxItems": 2}, "$ref", value="root", path=("items",)
    )
    yield Spec(
        {"$ref": "#/$defs/m", "$defs": {"m": {"$ref": "#/$defs/n"}, "n": _STRING}}, "$ref", keyword="$defs"
    )
    yield Spec(
        {**_DRAFT_7, "$ref": "#/definitions/n", "definitions": {"n": _INTEGER}},
        "$ref",
        keyword="definitions",
        options=DRAFT_7,
    )
    yield Spec(
        {"$ref": "#number", "$defs": {"n": {"$anchor": "number", "type": "integer"}}},
        "$ref",
        keyword="$anchor",
    )
    item: Schema = {"$id": "https://example.org/n", "type": "integer"}
    yield Spec({"$id": "https://example.org/root", "$ref": "n", "$defs": {"n": item}}, "$ref", keyword="$id")
    anchored: Schema = {"$dynamicAnchor": "n", "type": "integer"}
    yield Spec(
        {"type": "array", "items": {"$dynamicRef": "#n"}, "$defs": {"n": anchored}},
        "$dynamicRef",
        value="one anchor",
        path=("items",),
    )
    generic: Schema = {
        "$id": "https://example.org/list",
        "type": "array",
        "items": {"$dynamicRef": "#item"},
        "$defs": {"any": {"$dynamicAnchor": "item"}},
    }
    schema: Schema = {
        "$id": "https://example.org/strings",
        "$ref": "list",
        "$defs": {"strings": {"$dynamicAnchor": "item", "type": "string"}, "list": generic},
    }
    yield Spec(schema, "$dynamicRef", value="outermost anchor", path=("$defs", "list", "items"))


# --------------------------------------------------------------------------------------------- at other nodes

NODES: dict[str, Schema] = {
    "enum": {"enum": ["red", "green"]},
    "const": {"const": "red"},
    "minimum": {"type": "integer", "minimum": 3},
    "multipleOf": {"type": "integer", "multipleOf": 5},
    "minLength": {"type": "string", "minLength": 3},
    "maxLength": {"type": "string", "maxLength": 3},
    "pattern": {"type": "string", "pattern": _LETTERS},
    "items": {"type": "array", "items": {"type": "integer"}},
    "minItems": {"type": "array", "items": {"type": "integer"}, "minItems": 2},
    "uniqueItems": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
    "required": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    "additionalProperties": {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "additionalProperties": False,
    },
    "propertyNames": {
        "type": "object",
        "additionalProperties": {"type": "integer"},
        "propertyNames": {"pattern": "^[a-z]$"},
    },
    "not": {"type": "string", "not": {"const": "red"}},
}
"""A node with each keyword."""


SHAPELESS: dict[str, Schema] = {
    "minItems": {"type": "array", "minItems": 2},
    "uniqueItems": {"type": "array", "uniqueItems": True},
    "contains": {"type": "array", "contains": {"const": 7}},
    "required": {"type": "object", "required": ["a"]},
    "propertyNames": {"type": "object", "propertyNames": {"pattern": "^[a-z]$"}},
    "minProperties": {"type": "object", "minProperties": 2},
    "maxProperties": {"type": "object", "maxProperties": 1},
    "patternProperties": {"type": "object", "patternProperties": {"^x-": {"type": "integer"}}},
    "dependentRequired": {"type": "object", "dependentRequired": {"a": ["b"]}},
}
"""An array or object with each keyword and nothing else, so that its items or properties may be anything."""


def places() -> Iterator[Spec]:
    """Yields each of NODES in the places where a backend may treat a keyword otherwise than at the root."""
    for keyword, node in NODES.items():
        property_of: Schema = {
            "type": "object",
            "properties": {"v": node},
            "required": ["v"],
            "additionalProperties": False,
        }
        alternative: Schema = {"type": "boolean"}
        yield Spec(property_of, keyword, place="properties", path=("properties", "v"))
        yield Spec({"type": "array", "items": node}, keyword, place="items", path=("items",))
        yield Spec(
            {"type": "array", "prefixItems": [node], "items": False},
            keyword,
            place="prefixItems",
            path=("prefixItems", 0),
        )
        yield Spec(
            {"type": "object", "additionalProperties": node},
            keyword,
            place="additionalProperties",
            path=("additionalProperties",),
        )
        yield Spec({"anyOf": [node, alternative]}, keyword, place="anyOf", path=("anyOf", 0))
        yield Spec({"oneOf": [alternative, node]}, keyword, place="oneOf", path=("oneOf", 1))
        yield Spec({"allOf": [node]}, keyword, place="allOf", path=("allOf", 0))
        yield Spec({"$ref": "#/$defs/n", "$defs": {"n": node}}, keyword, place="$ref", path=("$defs", "n"))
        untyped = {name: value for name, value in node.items() if name != "type"}
        if untyped != node:
            yield Spec(untyped, keyword, place="no type")
    for keyword, node in SHAPELESS.items():
        yield Spec(node, keyword, place="no shape")
