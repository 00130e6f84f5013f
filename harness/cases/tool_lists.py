"""Reads lists of tools as requests to model servers hold them: each tool's name, and the JSON Schema of its
arguments."""

from __future__ import annotations

import re
from typing import Any

from harness.cases.bare_schema import asks_of_arguments, is_schema
from harness.cases.case import json_text
from harness.errors import BadInput

SCHEMA_AT = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema", "parameters_json_schema")
"""The keys under which a tool keeps the schema of its arguments, in OpenAI's two interfaces, Anthropic's,
MCP, and Gemini's."""

DECLARATIONS = ("functionDeclarations", "function_declarations")
"""The keys under which Gemini's tools hold their functions, several in one tool."""

TOOLS_AT = ("tools", "functions", "function")
"""The keys of lists of tools: in requests, in OpenAI's older ones, and in the questions of BFCL."""

BUILT_IN = tuple(
    """
    googleSearch googleSearchRetrieval googleMaps codeExecution urlContext computerUse fileSearch
    google_search google_search_retrieval google_maps code_execution url_context computer_use file_search
    enterpriseWebSearch retrieval cachePoint systemTool
    """.split()  # noqa: SIM905
)
"""The keys by which tools of Gemini's and Bedrock's own are known, which have no type."""

NO_ARGUMENTS = {"type": "object", "properties": {}}
"""The schema of a tool that names no parameters: the arguments of a call are an object even so."""

NOT_OF_TOOLS = frozenset(("schema", "regex", "ebnf", "lark", "choice", "structural_tag", "tests"))
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


def tool_list(value: object) -> list[Any]:
    """Returns the entries of a list of tools, of a request with such lists, or a single tool; none if the
    value is nothing of the kind."""
    if is_tool(value):
        return [value]
    if isinstance(value, dict):
        lists = [value[key] for key in TOOLS_AT if isinstance(value.get(key), list)]
        value = _declared(value) or [entry for entries in lists for entry in entries]
    if not isinstance(value, list):
        return []
    entries = [tool for entry in value for tool in (_declared(entry) or [entry])]
    return entries if any(map(is_tool, entries)) else []


def built_in(entry: object) -> str:
    """Returns the type of an entry that is a tool of the server itself, with no schema of arguments; empty
    for every other entry."""
    if not isinstance(entry, dict) or is_tool(entry) or is_schema(entry):
        return ""
    kind = entry.get("type", next((key for key in BUILT_IN if key in entry), None))
    return kind if isinstance(kind, str) else ""


def _declared(value: object) -> list[Any]:
    """Returns the functions that a tool of Gemini's or Bedrock's declares; none for any other tool."""
    if not isinstance(value, dict):
        return []
    if isinstance(of_bedrock := value.get("toolSpec"), dict):
        schema = of_bedrock.get("inputSchema")
        inner = schema["json"] if isinstance(schema, dict) and "json" in schema else schema
        return [{"type": "function", **of_bedrock, "inputSchema": inner}]
    functions: list[Any] = next((value[key] for key in DECLARATIONS if isinstance(value.get(key), list)), [])
    return [_of_gemini(function) for function in functions]


def _of_gemini(function: object) -> object:
    """Returns a function of Gemini's with its `parameters` as JSON Schema: there they are a `Schema` of
    OpenAPI, whose types are upper-case words, whose `nullable` adds null, and whose format `enum` only says
    that there is one."""
    if not isinstance(function, dict):
        return function
    tool = {"type": "function", **function}
    if "parameters" in tool:
        tool["parameters"] = of_openapi(tool["parameters"])
    return tool


def of_openapi(schema: Any) -> Any:
    """Returns what OpenAPI's schema means as JSON Schema, for the keywords of Gemini's interface, which its
    SDK for Python spells with `_` (`any_of`)."""
    if not isinstance(schema, dict):
        return schema
    made: dict[str, Any] = {}
    for given, value in schema.items():
        head, *words = given.split("_")
        keyword = head + "".join(map(str.capitalize, words))
        if keyword == "ref" and isinstance(value, str):
            made["$ref"] = re.sub("^#/defs/", "#/$defs/", value)
        elif keyword in ("defs", "$defs") and isinstance(value, dict):
            made["$defs"] = {name: of_openapi(inner) for name, inner in value.items()}
        elif keyword == "type" and isinstance(value, str):
            made[keyword] = value.lower()
        elif keyword in ("items", "additionalProperties"):
            made[keyword] = of_openapi(value)
        elif keyword == "properties" and isinstance(value, dict):
            made[keyword] = {name: of_openapi(inner) for name, inner in value.items()}
        elif keyword in ("anyOf", "prefixItems") and isinstance(value, list):
            made[keyword] = [of_openapi(inner) for inner in value]
        elif keyword in ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"):
            # There an int64 is text; other text is left as it is, for the schema's check to name.
            is_count = isinstance(value, str) and re.fullmatch("[0-9]{1,18}", value)
            made[keyword] = int(value) if is_count else value
        elif keyword not in ("nullable", "propertyOrdering") and (keyword, value) != ("format", "enum"):
            made[keyword] = value
    if made.get("type") == "type_unspecified":
        del made["type"]
    if schema.get("nullable") is not True:
        return made
    if not isinstance(made.get("type"), str):
        return {"anyOf": [made, {"type": "null"}]}
    made["type"] = [made["type"], "null"]
    if isinstance(made.get("enum"), list):
        made["enum"] = [*made["enum"], None]
    return made


def tool_schema(value: object, where: str) -> tuple[str, dict[str, Any]]:
    """Returns the tool's name and the schema of its arguments. Raises BadInput, its text starting with
    `where`."""
    if not isinstance(value, dict):
        raise BadInput(f"{where} is {json_text(value)[:60]}, not a tool; write {FORMS}")
    named = value.get("name")
    if not is_tool(value) and value.get("type") is not None:
        kind = json_text(value["type"])[:60]
        raise BadInput(
            f"{where} is of type {kind}: it has no schema that a grammar could hold; leave it "
            'out, or make it a "function"'
        )
    inner = value.get("function", value)
    if not isinstance(inner, dict):
        raise BadInput(
            f'{where}: "function" is {json_text(inner)[:60]}, not an object with name and parameters'
        )
    name = inner.get("name", named)
    if not (isinstance(name, str) and name.strip()):
        raise BadInput(f"{where} has no name; write {FORMS}")
    given = [key for key in SCHEMA_AT if inner.get(key) is not None]
    if len(given) > 1:
        raise BadInput(f'{where} ("{name}") has {" and ".join(given)}; keep one')
    schema = inner[given[0]] if given else None
    if schema is None or schema == {}:
        return name, NO_ARGUMENTS
    if not isinstance(schema, dict):
        raise BadInput(
            f'{where} ("{name}"): "{given[0]}" is {json_text(schema)[:60]}; a JSON Schema of '
            "arguments is an object"
        )
    if not asks_of_arguments(schema):
        raise BadInput(
            f'{where} ("{name}"): "{given[0]}" has no keyword of JSON Schema about an object; write '
            '{"type": "object", "properties": {...}}'
        )
    return name, schema
