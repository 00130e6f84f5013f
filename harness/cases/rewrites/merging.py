"""Subschemas put together: what asks all that two others ask, and what a schema asks of an object without a
name."""

from __future__ import annotations

from typing import Any

from harness.cases.rewrites.json_values import canonical, is_same, type_of, without_values
from harness.cases.subschemas import Schema

Body = dict[str, Any]


class Collides(Exception):
    """The two cannot be put together without a further keyword."""


_HIGHER = frozenset(("minimum", "minLength", "minItems", "minProperties"))
_LOWER = frozenset(("maximum", "maxLength", "maxItems", "maxProperties"))
_TOGETHER = (
    frozenset(("if", "then", "else")),
    frozenset(("contains", "minContains", "maxContains")),
    frozenset(("items", "additionalItems", "prefixItems", "unevaluatedItems")),
    frozenset(("minimum", "exclusiveMinimum")),
    frozenset(("maximum", "exclusiveMaximum")),
)
"""Keywords that are read together: those of one side and of the other do not mix, but for equal ones."""
_NAMES = frozenset(("properties", "patternProperties", "additionalProperties"))


def merged(*schemas: Schema) -> Schema:
    """Returns a schema that asks what all of these ask. Raises Collides. What it returns is meant so and has
    to be proven."""
    result: Schema = {}
    for schema in schemas:
        result = _merged_two(result, schema)
    return result


def _merged_two(one: Schema, other: Schema) -> Schema:
    if isinstance(one, bool) or isinstance(other, bool):
        return False if one is False or other is False else other if one is True else one
    if not one or not other:
        return one or other
    if "$ref" in one or "$ref" in other or "unevaluatedProperties" in one or "unevaluatedProperties" in other:
        raise Collides
    result: Body = {}
    for group in _TOGETHER:
        mine, others = group & one.keys(), group & other.keys()
        if mine and others and not _mix(one, other, mine, others):
            raise Collides
    for keyword in dict.fromkeys((*one, *other)):
        if keyword in _NAMES:
            continue
        if keyword not in one or keyword not in other or is_same(one[keyword], other[keyword]):
            result[keyword] = one.get(keyword, other.get(keyword))
        else:
            result[keyword] = _of_keyword(keyword, one[keyword], other[keyword])
    if _NAMES & one.keys() or _NAMES & other.keys():
        result |= _of_names(one, other)
    return _with_fitting_values(result)


def _mix(one: Body, other: Body, mine: frozenset[str], others: frozenset[str]) -> bool:
    """May keywords of one group meet? Equal ones may, and one bound on each side."""
    if mine == others and (len(mine) == 1 or all(is_same(one[keyword], other[keyword]) for keyword in mine)):
        return True
    return mine | others <= {"minimum", "exclusiveMinimum"} or mine | others <= {
        "maximum",
        "exclusiveMaximum",
    }


def _of_keyword(keyword: str, one: Any, other: Any) -> Any:
    if keyword in _HIGHER:
        return max(one, other)
    if keyword in _LOWER:
        return min(one, other)
    match keyword:
        case "required":
            return list(dict.fromkeys([*one, *other]))
        case "enum":
            return [value for value in one if canonical(value) in set(map(canonical, other))]
        case "type":
            return _common_types(one, other)
        case "uniqueItems":
            return True
        case "allOf":
            return [*one, *other]
        case "not":
            return {"anyOf": [one, other]}
        case "items" | "additionalItems" if not isinstance(one, list) and not isinstance(other, list):
            return _merged_two(one, other)
        case "dependentRequired":
            return {
                name: list(dict.fromkeys([*one.get(name, ()), *other.get(name, ())]))
                for name in {**one, **other}
            }
    raise Collides


def _common_types(one: Any, other: Any) -> Any:
    ones = [one] if isinstance(one, str) else one
    others = [other] if isinstance(other, str) else other
    common = [
        kind
        for kind in ("null", "boolean", "object", "array", "string", "number", "integer")
        if _has_type(ones, kind) and _has_type(others, kind)
    ]
    if "number" in common:
        common.remove("integer")
    if not common:
        raise Collides
    return common[0] if len(common) == 1 else common


def _has_type(kinds: list[str], kind: str) -> bool:
    return kind in kinds or (kind == "integer" and "number" in kinds)


def _with_fitting_values(body: Body) -> Schema:
    """Returns the body with only those values of `enum` that `const` and `type` leave."""
    if "enum" in body and isinstance(body["enum"], list):
        values = body["enum"]
        if "const" in body:
            values = [value for value in values if is_same(value, body["const"])]
        if "type" in body:
            kinds = [body["type"]] if isinstance(body["type"], str) else body["type"]
            values = [value for value in values if _has_type(kinds, type_of(value))]
        if not values:
            return False
        if "const" in body:
            body = {keyword: value for keyword, value in body.items() if keyword != "enum"}
        else:
            body = {**body, "enum": values}
    elif "const" in body and "type" in body:
        kinds = [body["type"]] if isinstance(body["type"], str) else body["type"]
        if not _has_type(kinds, type_of(body["const"])):
            return False
    return body


def _of_names(one: Body, other: Body) -> Body:
    """Returns what both ask of the members of an object."""
    if ("patternProperties" in one or "patternProperties" in other) and (
        _NAMES & one.keys() and _NAMES & other.keys()
    ):
        raise Collides
    result: Body = {}
    mine, others = one.get("properties", {}), other.get("properties", {})
    rest, others_rest = one.get("additionalProperties", True), other.get("additionalProperties", True)
    names: Body = {}
    for name in {**mine, **others}:
        asked = _merged_two(mine.get(name, rest), others.get(name, others_rest))
        if asked is not False or (rest is not False and others_rest is not False):
            names[name] = asked
    if names or "properties" in one or "properties" in other:
        result["properties"] = names
    if "patternProperties" in one or "patternProperties" in other:
        result["patternProperties"] = one.get("patternProperties", other.get("patternProperties"))
    if "additionalProperties" in one or "additionalProperties" in other:
        result["additionalProperties"] = _merged_two(rest, others_rest)
    return result


def without_name(body: Body, name: str) -> Body | None:
    """Returns what a schema asks of an object that lacks a name; None where the name is required."""
    if name in body.get("required", ()):
        return None
    names = {key: value for key, value in body.get("properties", {}).items() if key != name}
    if body.get("additionalProperties") is not False or "patternProperties" in body:
        names = {**body.get("properties", {}), name: False}
    return {**body, "properties": names}


def with_names(body: Body, *names: str) -> Body:
    """Returns the schema with further required names."""
    return {**body, "required": list(dict.fromkeys([*body.get("required", ()), *names]))}


def negations(condition: Schema, body: Body) -> list[Schema]:
    """Returns schemas of which a value that satisfies the body satisfies one exactly if it does not satisfy
    the condition: each asks all that the body asks, too. Raises Collides.

    The condition is about an object: which names it has, and what their values are.
    """
    if isinstance(condition, bool):
        return [] if condition else [body]
    if not condition.keys() <= {"properties", "required", "type", "title", "description", "$comment"} or (
        condition.get("type", "object") != "object"
    ):
        raise Collides
    required = condition.get("required", [])
    found: list[Schema] = [without_name(body, name) or False for name in required]
    for name, wanted in condition.get("properties", {}).items():
        value = body.get("properties", {}).get(name, body.get("additionalProperties", {}))
        other = _excluded(wanted, value)
        if other is not False:
            names = {**body.get("properties", {}), name: other}
            found.append(with_names({**body, "properties": names}, name))
    return [schema for schema in found if schema is not False]


def _excluded(wanted: Schema, value: Schema) -> Schema:
    """Returns what asks of a value all that `value` asks, and that it does not satisfy `wanted`."""
    if isinstance(wanted, bool):
        return value if not wanted else False
    if wanted.keys() <= {"enum", "const", "type", "title", "description"} and wanted.keys() & {
        "enum",
        "const",
    }:
        refused = [wanted["const"]] if "const" in wanted else wanted["enum"]
        if not refused:  # nothing satisfies it
            return value
        values = values_of(value)
        if values is not None:
            left = without_values(values, refused)
            return {**_annotations(value), "enum": left} if left else False
        return merged(value, {"not": {"enum": refused} if len(refused) > 1 else {"const": refused[0]}})
    return merged(value, {"not": wanted})


def _annotations(schema: Schema) -> Body:
    return {key: schema[key] for key in ("type", "title", "description") if key in schema}


def values_of(schema: Schema) -> list[Any] | None:
    """Returns the values that a schema lists; None where it has others, or asks more."""
    if not isinstance(schema, dict):
        return None
    if "const" in schema:
        return [schema["const"]]
    if isinstance(schema.get("enum"), list):
        return list(schema["enum"])
    if schema.get("type") == "boolean":
        return [True, False]
    if schema.get("type") == "null":
        return [None]
    return None
