"""Reads lists of tools in the forms of model servers' interfaces: each tool's name and the JSON Schema of its
arguments."""

from __future__ import annotations

import json
from typing import Any

from harness.errors import BadInput

SCHEMA_AT = ("parameters", "input_schema", "inputSchema")
"""The keys under which a tool keeps the schema of its arguments, in OpenAI's two interfaces, Anthropic's, and
MCP."""

NO_ARGUMENTS = {"type": "object", "properties": {}}
"""The schema of a tool that names no parameters: the arguments of a call are an object even so."""

NOT_OF_TOOLS = frozenset(("schema", "regex", "ebnf", "choice", "structural_tag", "tests"))
"""Keys that only our own cases have."""

FORMS = (
    '{"type": "function", "function": {"name", "parameters"}}, {"type": "function", "name", "parameters"}, '
    '{"name", "input_schema"} or {"name", "inputSchema"}'
)


def is_tool(value: object) -> bool:
    """Is this one tool, whole or with mistakes?

    A JSON Schema has no type `function` and none of the keys asked for here.
    """
    if not isinstance(value, dict) or NOT_OF_TOOLS & value.keys():
        return False
    called = value.get("type") == "function" or isinstance(value.get("function"), dict)
    return (
        called
        or ("name" in value and any(key in value for key in SCHEMA_AT))
        or any(key in value for key in SCHEMA_AT[1:])
    )


def tool_list(value: object) -> list[Any] | None:
    """Returns the entries of a list of tools, of an object with one (`{"tools": [...]}`, as a request or
    MCP's answer), or a single tool.

    None if the value is nothing of the kind.
    """
    if is_tool(value):
        return [value]
    if isinstance(value, dict):
        inner = value.get("tools")
        if inner is None and isinstance(value.get("result"), dict):
            inner = value["result"].get("tools")
        return inner if isinstance(inner, list) and any(map(is_tool, inner)) else None
    return value if isinstance(value, list) and any(map(is_tool, value)) else None


def tool_schema(value: object, where: str) -> tuple[str, dict[str, Any]]:
    """Returns the tool's name and the schema of its arguments. Raises BadInput, its text starting with
    `where`."""
    if not isinstance(value, dict):
        raise BadInput(f"{where} is {json.dumps(value)[:60]}, not a tool; write {FORMS}")
    named = value.get("name")
    if not is_tool(value) and value.get("type") is not None:
        kind = json.dumps(value["type"])[:60]
        raise BadInput(
            f"{where} is of type {kind}: it has no schema that a grammar could hold; leave it "
            'out, or make it a "function"'
        )
    inner = value.get("function", value)
    if not isinstance(inner, dict):
        raise BadInput(
            f'{where}: "function" is {json.dumps(inner)[:60]}, not an object with name and parameters'
        )
    name = inner.get("name", named)
    if not (isinstance(name, str) and name.strip()):
        raise BadInput(f"{where} has no name; write {FORMS}")
    given = [key for key in SCHEMA_AT if key in inner]
    if len(given) > 1:
        raise BadInput(f'{where} ("{name}") has {" and ".join(given)}; keep one')
    schema = inner[given[0]] if given else None
    if schema is None or schema == {}:
        return name, NO_ARGUMENTS
    if not isinstance(schema, dict):
        raise BadInput(
            f'{where} ("{name}"): "{given[0]}" is {json.dumps(schema)[:60]}; a JSON Schema of '
            "arguments is an object"
        )
    return name, schema
