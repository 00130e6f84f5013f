"""The template of a JSON Schema: text that every output may have where it stands, and slots for the values
between.

An object whose properties are all required is written out: braces, names, and values that are fixed.
Everything else is a slot. Where a schema allows more properties than it names, the template is one of the
ways to satisfy it, not the only one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness.backend.grammar import Grammar
from harness.cases.case import json_text
from harness.cases.subschemas import pointer

_ANNOTATIONS = frozenset(
    {
        "title",
        "description",
        "default",
        "examples",
        "$comment",
        "$schema",
        "$id",
        "id",
        "$defs",
        "definitions",
    }
)
_OBJECT = _ANNOTATIONS | {"type", "properties", "required", "additionalProperties"}
"""The keywords that an object's schema may have and still be written out; any other keyword makes it a
slot."""
_FIXED = _ANNOTATIONS | {"type", "const", "enum"}


@dataclass(frozen=True)
class Slot:
    """A value that is decoded under the grammar."""

    path: str
    """The place of the value, as a JSON pointer."""
    schema: str
    """The value's schema as JSON text. References in it are to the whole schema."""


@dataclass(frozen=True)
class Template:
    """Text and slots in turn: `blocks[0]`, the value of `slots[0]`, `blocks[1]`, ..., in JSON's usual style
    (`", "`, `": "`). There is one block more than slots."""

    blocks: tuple[bytes, ...]
    slots: tuple[Slot, ...]


def template_of(grammar: Grammar) -> Template | None:
    """Returns the template of a JSON Schema. None for other grammars, where nothing is fixed, and where the
    nesting is deeper than our stack."""
    if grammar.dialect != "json_schema":
        return None
    try:
        parts = list(_parts(json.loads(grammar.text), ""))
    except RecursionError:
        return None
    blocks: list[str] = [""]
    slots: list[Slot] = []
    for part in parts:
        if isinstance(part, Slot):
            slots.append(part)
            blocks.append("")
        else:
            blocks[-1] += part
    return Template(tuple(block.encode() for block in blocks), tuple(slots)) if any(blocks) else None


def _parts(schema: Any, path: str) -> Iterator[str | Slot]:
    if (text := _fixed(schema)) is not None:
        yield text
    elif _is_written_out(schema):
        for number, (name, part) in enumerate(schema["properties"].items()):
            yield f"{', ' if number else '{'}{json_text(name)}: "
            yield from _parts(part, path + pointer((name,)))
        yield "}" if schema["properties"] else "{}"
    else:
        yield Slot(path, json_text(schema))


def _is_written_out(schema: Any) -> bool:
    if not isinstance(schema, dict) or schema.get("type") != "object" or not schema.keys() <= _OBJECT:
        return False
    names, required = schema.get("properties"), schema.get("required", [])
    if not isinstance(names, dict) or not isinstance(required, list):
        return False
    if not all(isinstance(name, str) for name in required) or set(required) != set(names):
        return False
    # An object that names no property and may have any is a slot: its text is not fixed.
    return bool(names) or schema.get("additionalProperties", True) is False


def _fixed(schema: Any) -> str | None:
    """Returns the only value that satisfies the schema, as JSON text, if `const` or an `enum` of one value
    fixes it; else None."""
    if (
        not isinstance(schema, dict)
        or not schema.keys() <= _FIXED
        or ("const" in schema) == ("enum" in schema)
    ):
        return None
    values = [schema["const"]] if "const" in schema else schema["enum"]
    if not isinstance(values, list) or len(values) != 1 or not _is_of_type(values[0], schema.get("type")):
        return None
    return json_text(values[0])


def _is_of_type(value: Any, kind: Any) -> bool:
    kinds = [kind] if isinstance(kind, str) else kind
    if kinds is None:
        return True
    return isinstance(kinds, list) and any(name in _names(value) for name in kinds)


def _names(value: Any) -> tuple[str, ...]:
    """Returns the names that `type` may give the value. Names on which the drafts disagree (1.0 as an
    integer) are left out."""
    if isinstance(value, bool):
        return ("boolean",)
    if isinstance(value, int):
        return ("integer", "number")
    names = {float: "number", str: "string", list: "array", dict: "object", type(None): "null"}
    return (names[type(value)],)
