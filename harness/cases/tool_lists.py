"""Reads lists of tools as requests to model servers hold them: each tool's name, and the JSON Schema of its
arguments or the grammar of its input."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from harness.cases.bare_schema import HOLDING, asks_of_arguments, has_annotations_alone, is_schema
from harness.cases.case import json_text
from harness.cases.json_reading import parse_if_text
from harness.cases.python_types import DEFINITIONS, schema_of_definitions
from harness.errors import BadInput

SCHEMA_AT = (
    *("parameters", "input_schema", "inputSchema", "parametersJsonSchema", "parameters_json_schema"),
    *("params_json_schema", "args_schema"),
)
"""The keys under which a tool keeps the schema of its arguments, in OpenAI's two interfaces, Anthropic's,
MCP, and Gemini's, in OpenAI's Agents SDK, and in LangChain."""
OF_BEDROCK = ("inputSchema", "input_schema")
"""The keys under which Bedrock's tools have an object with their schema under `json`."""
OF_RESULTS = re.compile("output|return|response|result|structured|error|exception", re.IGNORECASE)
"""What is in the name of a key that may hold the schema of what a tool returns or fails with, which is not
read."""

DECLARATIONS = ("functionDeclarations", "function_declarations")
"""The keys under which Gemini's tools hold their functions, several in one tool."""

TOOLS_AT = ("tools", "functions", "function", "function_tools", "output_tools", "tool_definitions")
"""The keys of lists of tools: in requests, in OpenAI's older ones, in the questions of BFCL, in Pydantic AI's
parameters, and in the rows that Azure's evaluations read."""

BUILT_IN = tuple(
    """
    googleSearch googleSearchRetrieval googleMaps codeExecution urlContext computerUse fileSearch
    google_search google_search_retrieval google_maps code_execution url_context computer_use file_search
    enterpriseWebSearch retrieval cachePoint systemTool mcpServers mcp_servers
    """.split()  # noqa: SIM905
)
"""The keys by which tools of Gemini's and Bedrock's own are known, which have no type."""

NO_ARGUMENTS = {"type": "object", "properties": {}}
"""The schema of a tool that names no parameters: the arguments of a call are an object even so."""

NOT_OF_TOOLS = frozenset(("schema", "regex", "ebnf", "lark", "choice", "structural_tag", "tests"))
"""Keys that only our own cases have, and a few requests."""

MARKS = tuple(
    frozenset(keys.split())
    for keys in (
        "messages",
        "contents",
        "sampling_params",
        "model tools",
        "model input",
        "model prompt",
        "model message",
        "message chat_history",
        "inputs parameters",
        "prompt n_predict",
        "jsonrpc",
        "run_type inputs",
        "span_attributes input",
        "traceId spanId attributes",
        "trace_id span_id attributes",
        "name context kind attributes",
    )
)
"""The keys of which a request to a model server, a message of MCP, a span, or what LangSmith and Braintrust
log has all of at least one group, whatever it asks for."""

NEAR = 0.8
"""The likeness (difflib's ratio) to `function` from which on a type is taken for a misspelt one."""

FORMS = (
    '{"type": "function", "function": {"name", "parameters"}}, {"type": "function", "name", "parameters"}, '
    '{"name", "input_schema"} or {"name", "inputSchema"}'
)


def own_keys(value: dict[str, Any]) -> set[str]:
    """Returns the keys of our own cases that the object gives a value. Requests that a program wrote also
    have those that were not chosen, as null or as empty text."""
    return {key for key in NOT_OF_TOOLS if value.get(key) not in (None, "")}


def is_marked(value: object) -> bool:
    """Is this a request to a model server by its keys, even if it has no tools and no format?"""
    return isinstance(value, dict) and not is_schema(value) and any(mark <= value.keys() for mark in MARKS)


def may_be_request(value: dict[str, Any]) -> bool:
    """May this be a request to a model server, by its keys or because it has tools?"""
    return "tools" in value or is_marked(value)


def is_tool(value: object) -> bool:
    """Is this one tool, whole or with mistakes?

    A JSON Schema has no type `function` and none of the keys asked for here.
    """
    if not isinstance(value, dict) or own_keys(value):
        return False
    called = value.get("type") == "function" or isinstance(value.get("function"), dict)
    return (
        called
        or format_of_custom(value) is not None
        or ("name" in value and any(key in value for key in (*SCHEMA_AT, DEFINITIONS)))
        or any(key in value for key in SCHEMA_AT[1:])
    )


def tool_list(value: object, where: str) -> list[Any]:
    """Returns the entries of a list of tools, of a request with such lists, or a single tool; none if the
    value is nothing of the kind. Where no key marks a request and no entry is a tool, only the server's own
    tools are returned. Raises BadInput, its text starting with `where`."""
    if is_tool(value):
        return [value]
    if isinstance(value, list):
        entries = list(_declared(value))
        return entries if any(map(is_tool, entries)) else []
    if not isinstance(value, dict):
        return []
    entries = list(_declared([value]))
    if entries in ([value], []):
        entries = list(_declared([entry for key in TOOLS_AT for entry in _list_at(value, key, where)]))
    if is_marked(value):
        return [entry for entry in entries if not _is_empty(entry)]
    has_tools = any(is_tool(entry) or _is_misspelt(entry) for entry in entries)
    return entries if has_tools else list(filter(built_in, entries))


def _is_empty(entry: object) -> bool:
    """Is this null, or an object of which nothing is chosen?"""
    return not entry or (isinstance(entry, dict) and all(value is None for value in entry.values()))


def _list_at(request: dict[str, Any], key: str, where: str) -> list[Any]:
    """Returns a list of a request, which may be text, as each entry may; rows of data sets to train models
    hold it so, and so do spans."""
    value = request.get(key)
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = parse_if_text(value, f'{where}: "{key}"')
    if isinstance(value, list):
        return [_of_text(each, f'{where}: an entry of "{key}"') for each in value]
    if isinstance(value, dict) and value and key != "function" and is_marked(request):
        raise BadInput(f'{where}: "{key}" is {json_text(value)[:60]}, not a list of tools')
    return []


def _of_text(value: Any, what: str) -> Any:
    """Returns the object whose JSON a text is, and every other value as it is. Raises BadInput for a text
    that begins as an object does and is no JSON."""
    is_text = isinstance(value, str) and value.lstrip().startswith("{")
    return parse_if_text(value, what) if is_text else value


def built_in(entry: object) -> str:
    """Returns the type of an entry that is a tool of the server itself, with no schema of arguments; empty
    for every other entry."""
    if not isinstance(entry, dict) or is_tool(entry) or is_schema(entry) or _is_misspelt(entry):
        return ""
    kind = entry.get("type", next((key for key in BUILT_IN if entry.get(key) is not None), None))
    return kind if isinstance(kind, str) else ""


def _is_misspelt(entry: object) -> bool:
    """Is this a function whose type is another word? A tool of the server's own has no schema."""
    if not isinstance(entry, dict) or is_tool(entry) or not isinstance(kind := entry.get("type"), str):
        return False
    is_close = get_close_matches(kind.lower()[:60], ["function"], 1, NEAR) != []
    return is_close or any(key in entry for key in SCHEMA_AT)


def _declared(entries: list[Any]) -> Iterator[Any]:
    """Yields the entries of a list of tools, and in the place of one that holds several those that it holds:
    Gemini's and Bedrock's tools, and OpenAI's namespaces."""
    for entry in entries:
        if not isinstance(entry, dict):
            yield entry
            continue
        lists = (entry[key] for key in DECLARATIONS if isinstance(entry.get(key), list))
        functions: list[Any] | None = next(lists, None)
        if isinstance(of_bedrock := entry.get("toolSpec"), dict):
            yield {"type": "function", **of_bedrock}
        elif entry.get("type") == "namespace" and isinstance(entry.get("tools"), list):
            yield from _declared(entry["tools"])
        elif functions is not None:
            yield from map(_of_gemini, functions)
            yield from ({key: entry[key]} for key in BUILT_IN if entry.get(key) is not None)
        else:
            yield entry


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
    if made.get("type") in ("integer", "number") and isinstance(made.get("enum"), list):
        made["enum"] = list(map(_number_of, made["enum"]))
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


def _number_of(value: Any) -> Any:
    """Returns the number that a text is, as the values of an enum are text there; every other value as it
    is, for the schema's check to name."""
    is_number = isinstance(value, str) and re.fullmatch(r"-?(0|[1-9][0-9]{0,99})(\.[0-9]{1,99})?", value)
    return parse_if_text(value, "a number") if is_number else value


def format_of_custom(tool: dict[str, Any]) -> dict[str, Any] | None:
    """Returns the grammar of a custom tool of OpenAI's, in either of its interfaces; None for any other
    tool, and for one whose input is free text."""
    inner = tool.get("custom", tool) if tool.get("type") == "custom" else None
    form = inner.get("format") if isinstance(inner, dict) else None
    if not isinstance(form, dict) or form.get("type") != "grammar":
        return None
    return form["grammar"] if isinstance(form.get("grammar"), dict) else form


def tool_grammar(value: object, where: str) -> tuple[str, str, Any]:
    """Returns the tool's name, and the key and the grammar of a case for its input: the JSON Schema of its
    arguments, or the grammar that a custom tool has. Raises BadInput, its text starting with `where`."""
    if not isinstance(value, dict):
        raise BadInput(f"{where} is {json_text(value)[:60]}, not a tool; write {FORMS}")
    named = value.get("name")
    if not is_tool(value) and value.get("type") is not None:
        kind = json_text(value["type"])[:60]
        raise BadInput(f'{where} is of type {kind}, which is not read; leave it out, or make it a "function"')
    custom = format_of_custom(value)
    inner = value.get("function", value) if custom is None else value.get("custom", value)
    if not isinstance(inner, dict):
        raise BadInput(
            f'{where}: "function" is {json_text(inner)[:60]}, not an object with name and parameters'
        )
    name = inner.get("name", named)
    if not (isinstance(name, str) and name.strip()):
        raise BadInput(f"{where} has no name; write {FORMS}")
    if custom is None:
        beside = {key: held for key, held in value.items() if key != "function"} if inner is not value else {}
        return name, "schema", _schema_of_arguments(inner, beside, f'{where} ("{name}")')
    syntax, definition = custom.get("syntax"), custom.get("definition")
    if syntax not in ("lark", "regex") or not isinstance(definition, str):
        raise BadInput(
            f'{where} ("{name}"): its grammar is not read; write {{"syntax": "lark" or "regex", '
            '"definition": TEXT}'
        )
    return name, syntax, definition


def _schema_of_arguments(function: dict[str, Any], beside: dict[str, Any], where: str) -> dict[str, Any]:
    """Returns the schema of a tool's arguments; `beside` is what stands beside its `function`. Raises
    BadInput."""
    if function.get(DEFINITIONS) and not any(map(function.get, SCHEMA_AT)):
        return schema_of_definitions(function[DEFINITIONS], where)
    given = [key for key in SCHEMA_AT if function.get(key) is not None]
    read = [_of_text(function[key], f'{where}: "{key}"') for key in given]
    if len(read) > 1 and len(set(map(json_text, read))) > 1:
        raise BadInput(f"{where} has {' and '.join(given)}, which differ; keep one")
    schema = read[0] if read else {}
    if given and given[0] in OF_BEDROCK and isinstance(schema, dict) and schema.keys() == {"json"}:
        held = {} if schema["json"] is None else schema["json"]
        # One argument may be called `json`, in a map from names to what each may be.
        schema = schema if isinstance(held, dict) and held.get("type", "object") != "object" else held
    if not isinstance(schema, dict):
        raise BadInput(
            f'{where}: "{given[0]}" is {json_text(schema)[:60]}; a JSON Schema of arguments is an object'
        )
    if has_annotations_alone(schema):
        _refuse_lost_schema(function, beside, where)
        return schema | NO_ARGUMENTS
    if not asks_of_arguments(schema):
        raise BadInput(
            f'{where}: "{given[0]}" does not keep its properties in "properties"; write '
            '{"type": "object", "properties": {...}}'
        )
    return schema


def _refuse_lost_schema(function: dict[str, Any], beside: dict[str, Any], where: str) -> None:
    """Raises BadInput where a tool without a schema of its arguments has one at a key that is not read."""
    for key in SCHEMA_AT:
        if beside.get(key):
            raise BadInput(f'{where} has "{key}" beside "function", where it is not read; put it inside')
    for key, held in [*function.items(), *beside.items()]:
        if key not in SCHEMA_AT and not OF_RESULTS.search(key) and _may_be_of_arguments(held):
            raise BadInput(
                f'{where} has "{key[:60]}", which is not read; write "parameters" with a JSON Schema '
                '({"type": "object", "properties": {...}})'
            )
    if function.get("arguments"):
        raise BadInput(f'{where} has "arguments", so it is a call, not a tool; write "parameters"')


def _may_be_of_arguments(held: object) -> bool:
    """May this be a schema of arguments, a map from their names to what each may be, or a list of them?"""
    if isinstance(held, list):
        return held != [] and all(is_schema(each) and {"name", "type"} <= each.keys() for each in held)
    if not isinstance(held, dict) or not held:
        return False
    if "type" in held and is_schema({"type": held["type"]}):
        return True
    return (is_schema(held) and not HOLDING.isdisjoint(held)) or all(map(is_schema, held.values()))
