"""Makes the JSON Schema of a tool's arguments from parameters whose types are named as in Python, as Cohere's
first interface has them."""

from __future__ import annotations

from typing import Any

from harness.cases.bare_schema import TYPES
from harness.cases.case import json_text
from harness.errors import BadInput

DEFINITIONS = "parameter_definitions"
"""The key under which a tool has such parameters."""

SAID = ("type", "description", "required", "default")
"""What such a parameter may say; the last is an annotation, as in JSON Schema."""

ADVICE = 'write "parameters" with a JSON Schema'
TYPE_OF = {
    "str": "string",
    "float": "number",
    "int": "integer",
    "bool": "boolean",
    "dict": "object",
    "list": "array",
} | {name: name for name in TYPES}
"""The words for a type in lower case, each with its name in JSON Schema."""


def schema_of_definitions(definitions: Any, where: str) -> dict[str, Any]:
    """Returns the schema of an object with these parameters. Raises BadInput, its text starting with `where`,
    also for the name of a class, because what that holds is not said."""
    if not isinstance(definitions, dict):
        raise BadInput(f'{where}: "{DEFINITIONS}" is {json_text(definitions)[:60]}, not an object')
    properties = {
        name: _schema_of_parameter(definition, f'{where}: the parameter "{name[:60]}"')
        for name, definition in definitions.items()
    }
    required = [name for name, definition in definitions.items() if definition.get("required") is True]
    return {"type": "object", "properties": properties} | ({"required": required} if required else {})


def _schema_of_parameter(definition: Any, what: str) -> dict[str, Any]:
    """Returns the schema of a parameter. Raises BadInput for a type that is not read, and for what asks for
    more than a type."""
    if not isinstance(definition, dict):
        raise BadInput(f"{what} is {json_text(definition)[:60]}, not an object")
    for key, value in definition.items():
        if key not in SAID and value is not None:
            raise BadInput(f'{what} has "{key[:60]}", which is not read; {ADVICE}')
    schema = _schema_of_type(definition.get("type"))
    if schema is None:
        given = json_text(definition.get("type"))[:60]
        raise BadInput(f"{what} is of type {given}, which is not read; {ADVICE}")
    about = {key: definition[key] for key in ("description", "default") if definition.get(key) is not None}
    return schema | about


def _schema_of_type(written: Any) -> dict[str, Any] | None:
    """Returns the schema of a type such as `int`, `List[str]` or `Dict[str, List[int]]`; None for others."""
    if not isinstance(written, str):
        return None
    word, bracket, rest = written.strip().partition("[")
    kind = TYPE_OF.get(word.strip().lower())
    if kind is None or bool(bracket) != rest.endswith("]"):
        return None
    if not bracket:
        return {"type": kind}
    inner, held = rest[:-1], "items"
    if kind == "object":
        key, _, inner = inner.partition(",")
        held = "additionalProperties"
        if _schema_of_type(key) != {"type": "string"}:
            return None
    elif kind != "array":
        return None
    schema = _schema_of_type(inner)
    return None if schema is None else {"type": kind, held: schema}
