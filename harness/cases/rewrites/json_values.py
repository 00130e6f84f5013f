"""JSON values compared as JSON Schema compares them, which is not how Python does: 1 is no `true`."""

from __future__ import annotations

import json
from typing import Any


def canonical(value: Any) -> str:
    """Returns a text that two JSON values share exactly if they are equal: numbers by value, objects whatever
    the order of their members."""
    return json.dumps(_plain(value), sort_keys=True)


def is_same(one: Any, other: Any) -> bool:
    """Are two JSON values equal?"""
    return canonical(one) == canonical(other)


def without_values(values: list[Any], excluded: list[Any]) -> list[Any]:
    """Returns the values that are not among the excluded ones, in their order."""
    texts = set(map(canonical, excluded))
    return [value for value in values if canonical(value) not in texts]


def type_of(value: Any) -> str:
    """Returns the type of a JSON value as a schema names it; that of a whole number is `integer`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if value == int(value) else "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def is_integer(value: Any) -> bool:
    """Is this a whole number?"""
    return isinstance(value, int | float) and type_of(value) == "integer"


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value == value and abs(value) < 1e300 and value == int(value):
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    return value
