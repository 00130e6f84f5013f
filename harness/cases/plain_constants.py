"""Constants of a schema whose number can be written in several ways, of which nobody says which is right.

`{"const": 1.0}` is JSON's number one: a library may write `1.0`, as the schema has it, or `1`, and 1e30 in
digits or with an exponent."""

from __future__ import annotations

import json
from functools import lru_cache
from operator import is_
from typing import Any

from harness.cases.subschemas import MAPS

LARGEST = 2**63
"""From here on integers are floats to most libraries, which write them with an exponent."""


def with_plain_constants(schema: Any) -> Any:
    """Returns the schema, parsed JSON, without those values of `enum` and `const` that have such a number; a
    subschema that has no others takes nothing. Returns the same object where there are none."""
    if isinstance(schema, list):
        parts = [with_plain_constants(part) for part in schema]
        return schema if all(map(is_, parts, schema)) else parts
    if not isinstance(schema, dict):
        return schema
    made = {
        key: _each(value) if key in MAPS and isinstance(value, dict) else with_plain_constants(value)
        for key, value in schema.items()
    }
    if "const" in schema and _is_odd(schema["const"]):
        made["not"] = {}
    if isinstance(values := schema.get("enum"), list) and any(map(_is_odd, values)):
        plain = [value for value in values if not _is_odd(value)]
        if plain:
            made["enum"] = plain
        else:
            made["not"] = {}
    return _same_or(schema, made)


def _each(schemas: dict[str, Any]) -> dict[str, Any]:
    """Returns what `with_plain_constants` makes of each of these, whose names are no keywords."""
    return _same_or(schemas, {name: with_plain_constants(schema) for name, schema in schemas.items()})


def _same_or(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    return old if new.keys() == old.keys() and all(new[key] is old[key] for key in new) else new


@lru_cache(maxsize=4)
def text_with_plain_constants(text: str) -> str | None:
    """Returns the text of a schema, or of a structural tag, without such constants; None where it has
    none."""
    try:
        schema = json.loads(text)
        plain = with_plain_constants(schema)
        return None if plain is schema else json.dumps(plain)
    except (ValueError, RecursionError):
        return None


def _is_odd(value: Any) -> bool:
    """Is there such a number in the value?"""
    if isinstance(value, dict):
        return any(map(_is_odd, value.values()))
    if isinstance(value, list):
        return any(map(_is_odd, value))
    if isinstance(value, float):
        return value.is_integer() or "e" in repr(value)
    return isinstance(value, int) and abs(value) >= LARGEST
