"""Finds in spans of OpenTelemetry the requests to models of which they tell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from harness.cases.answer_forms import object_of_text
from harness.cases.case import Literal, json_text
from harness.cases.json_reading import parse_if_text
from harness.errors import BadInput

TOOLS = ("gen_ai.tool.definitions", "ai.prompt.tools")
"""The attributes that have all tools, as a list or as its text: OpenTelemetry's own, and the AI SDK's."""
NUMBERED = re.compile(
    r"(?:llm\.request\.functions|llm\.tools)\.([0-9]{1,4})\.(name|parameters|tool\.json_schema)"
)
"""The attributes that have a part of one tool, or the text of a tool: OpenLLMetry's, and OpenInference's."""
SCHEMAS = ("gen_ai.request.structured_output_schema", "llm.request.structured_output_schema")
"""OpenLLMetry's attribute of the schema of an answer, under its present name and its older one."""
SETTINGS = {"llm.invocation_parameters": "extra_body", "model_request_parameters": "model_request_parameters"}
"""The attributes that have the text of an object with more of a request, each with where a request has such
an object: OpenInference's, and Pydantic AI's."""


def spans_of(value: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the spans of a line or a file as OpenTelemetry's collector writes it (OTLP as JSON); none if it
    is no such file."""
    return [
        {"attributes": [], **span}
        for resource in _objects(value.get("resourceSpans"))
        for scope in _objects(resource.get("scopeSpans"))
        for span in _objects(scope.get("spans"))
    ]


def request_of(span: dict[str, Any], where: str) -> dict[str, Any]:
    """Returns the request of which a span tells; empty if it tells of none. Raises BadInput."""
    held = _attributes(span.get("attributes"), where)
    request: dict[str, Any] = {}
    for key in TOOLS:
        if held.get(key):
            request["tools"] = held[key]
    tools, with_schema = _numbered(held)
    # Parameters are often not recorded, so a name alone says less of a tool than its definition.
    if tools and (with_schema >= tools.keys() or "tools" not in request):
        request["tools"] = [tools[number] for number in sorted(tools)]
    for key in SCHEMAS:
        if held.get(key):
            request["response_format"] = {"type": "json_schema", "schema": held[key]}
    for key, place in SETTINGS.items():
        if held.get(key):
            request[place] = object_of_text(held[key], f'{where}: "{key}"')
    return {"messages": [], **request} if request else {}


def _attributes(given: object, where: str) -> dict[str, Any]:
    """Returns the attributes of a span by name, which OTLP has as a list; of such a list only those that are
    read. Raises BadInput."""
    if isinstance(given, dict):
        return given
    listed = {str(each.get("key")): each.get("value") for each in _objects(given)}
    read = {*TOOLS, *SCHEMAS, *SETTINGS}
    return {
        key: _value(value, f'{where}: "{key}"')
        for key, value in listed.items()
        if key in read or NUMBERED.fullmatch(key)
    }


def _numbered(held: dict[str, Any]) -> tuple[dict[int, Any], set[int]]:
    """Returns the tools whose parts are attributes of their own, by number, and the numbers of those that
    have a schema."""
    tools: dict[int, Any] = {}
    with_schema = set()
    for key, part in held.items():
        if found := NUMBERED.fullmatch(key):
            number, name = int(found[1]), found[2]
            tools[number] = part if "." in name else {"type": "function", **tools.get(number, {}), name: part}
            if name != "name" and part is not None:
                with_schema.add(number)
    return tools, with_schema


def _objects(value: object) -> Iterator[dict[str, Any]]:
    return (each for each in value if isinstance(each, dict)) if isinstance(value, list) else iter(())


def _value(held: object, what: str) -> Any:
    """Returns the value of an attribute in OTLP, or of a part of one; None for an empty one, which is null
    there. Raises BadInput, its text starting with `what`, for a value that JSON does not have."""
    if not isinstance(held, dict) or all(value is None for value in held.values()):
        return None
    if isinstance(several := held.get("arrayValue"), dict):
        return [_value(each, what) for each in _objects(several.get("values"))]
    if isinstance(members := held.get("kvlistValue"), dict):
        pairs = _objects(members.get("values"))
        return {str(each.get("key")): _value(each.get("value"), what) for each in pairs}
    for kind, of_python in (("stringValue", str), ("boolValue", bool)):
        if isinstance(value := held.get(kind), of_python):
            return value
    # An int64 is text in OTLP, and a double may be.
    number = parse_if_text(held.get("intValue", held.get("doubleValue")), what)
    if isinstance(number, int | float | Literal) and not isinstance(number, bool):
        return number
    raise BadInput(f"{what} has {json_text(held)[:60]}, which is no value of JSON; take it out")
