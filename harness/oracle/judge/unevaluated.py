"""`unevaluatedProperties` and `unevaluatedItems` for the judge: what the keywords beside them leave over.

Those of the jsonschema library do not see the identifiers of subschemas, and in 2019-09 both libraries let
`contains` evaluate items.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.oracle.judge.pattern import finds
from harness.oracle.judge.references import REFERENCES, behind, inside


def unevaluated_properties(validator: Any, subschema: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """Yields the errors of the members that no keyword beside it has evaluated."""
    if isinstance(instance, dict):
        others = {name: keyword for name, keyword in schema.items() if name != "unevaluatedProperties"}
        evaluated = _evaluated_names(validator, instance, others)
        for name, value in instance.items():
            if name not in evaluated:
                yield from validator.descend(value, subschema, path=name)


def unevaluated_items(validator: Any, subschema: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """Yields the errors of the items that no keyword beside it has evaluated."""
    if isinstance(instance, list):
        others = {name: keyword for name, keyword in schema.items() if name != "unevaluatedItems"}
        evaluated = _evaluated_items(validator, instance, others)
        for index, item in enumerate(instance):
            if index not in evaluated:
                yield from validator.descend(item, subschema, path=index)


def accepts(validator: Any, subschema: Any, instance: Any) -> bool:
    """Returns whether a subschema of the validator's schema accepts the instance."""
    return next(iter(validator.descend(instance, subschema)), None) is None


def _evaluated_names(validator: Any, instance: dict[str, Any], schema: Any) -> set[str]:
    """Returns the names that a schema which accepts `instance` has applied some subschema to."""
    if isinstance(schema, bool):
        return set()
    if "additionalProperties" in schema or "unevaluatedProperties" in schema:
        return set(instance)
    names = {name for name in instance if name in schema.get("properties", {})}
    names |= {
        name
        for name in instance
        if any(finds(pattern, name) for pattern in schema.get("patternProperties", {}))
    }
    for applied in _applied(validator, instance, schema):
        names |= _evaluated_names(applied, instance, applied.schema)
    return names


def _evaluated_items(validator: Any, instance: list[Any], schema: Any) -> set[int]:
    """Returns the places of the items that a schema which accepts `instance` has applied some subschema to.
    In draft 2019-09 `contains` evaluates no item."""
    if isinstance(schema, bool):
        return set()
    is_new = "prefixItems" in validator.VALIDATORS
    items = schema.get("items", [])
    if (
        "unevaluatedItems" in schema
        or ("items" in schema and (is_new or not isinstance(items, list)))
        or ("items" in schema and "additionalItems" in schema)
    ):
        return set(range(len(instance)))
    places = set(range(len(schema.get("prefixItems", ()) if is_new else items)))
    if is_new and "contains" in schema:
        places |= {at for at, item in enumerate(instance) if accepts(validator, schema["contains"], item)}
    for applied in _applied(validator, instance, schema):
        places |= _evaluated_items(applied, instance, applied.schema)
    return places


def _applied(validator: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """Yields the validators of the subschemas that are applied to the instance itself and accept it."""
    for keyword in REFERENCES:
        if keyword in schema and keyword in validator.VALIDATORS:
            yield behind(validator, keyword, schema[keyword])
    branches = [branch for keyword in ("allOf", "anyOf", "oneOf") for branch in schema.get(keyword, [])]
    if isinstance(instance, dict):
        branches += [
            branch for name, branch in schema.get("dependentSchemas", {}).items() if name in instance
        ]
    if "if" in schema:
        holds = accepts(validator, schema["if"], instance)
        branches += [schema["if"], schema.get("then", True)] if holds else [schema.get("else", True)]
    for branch in branches:
        if accepts(validator, branch, instance):
            yield inside(validator, branch)
