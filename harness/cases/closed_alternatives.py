"""Alternatives of a schema that list their own names, each as a library writes it that closes it by itself.

Of `{"oneOf": [CAT, DOG]}` a library that writes no names but listed ones writes a cat with the names that CAT
lists, and not with those of DOG, though the schema lists both.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from harness.cases.subschemas import ALTERNATIVES, MAPS

CLOSED_BELOW = ALTERNATIVES | {"then", "else", "$defs", "definitions"}
"""The keywords below which a subschema that lists names is closed: it is an alternative, or may be one's."""
VALUES = frozenset(("enum", "const", "default", "examples"))
"""The keywords below which there is no schema."""
CLOSING = frozenset(("additionalProperties", "unevaluatedProperties"))
"""The keywords with which a schema says itself whether it has other names than those that it lists."""


@lru_cache(maxsize=4)
def text_with_closed_alternatives(text: str) -> str | None:
    """Returns the text of a schema, or of a structural tag, whose alternatives that list names, and those
    among its definitions, have no other names unless they say so; None where there is none to close."""
    if not any(f'"{keyword}"' in text for keyword in ALTERNATIVES):
        return None
    try:
        schema = json.loads(text)
        closed = json.dumps(_closed(schema, False))
        return None if closed == json.dumps(schema) else closed
    except (ValueError, RecursionError):
        return None


def _closed(value: Any, is_alternative: bool) -> Any:
    """Returns the schema or the list of schemas with each subschema closed that is an alternative, or below
    one."""
    if isinstance(value, list):
        return [_closed(each, is_alternative) for each in value]
    if not isinstance(value, dict):
        return value
    made = {}
    for key, held in value.items():
        below = is_alternative or key in CLOSED_BELOW
        if key in VALUES:
            made[key] = held
        elif key in MAPS and isinstance(held, dict):
            made[key] = {name: _closed(each, below) for name, each in held.items()}
        else:
            made[key] = _closed(held, below)
    if is_alternative and isinstance(value.get("properties"), dict) and CLOSING.isdisjoint(value):
        made["additionalProperties"] = False
    return made
