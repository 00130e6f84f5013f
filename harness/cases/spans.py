"""Finds in spans of OpenTelemetry the requests to models of which they tell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from harness.cases.answer_forms import object_of_text

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
    held = span.get("attributes")
    if isinstance(held, list):
        held = {str(each.get("key")): _value(each.get("value")) for each in _objects(held)}
    if not isinstance(held, dict):
        return {}
    request: dict[str, Any] = {}
    for key in TOOLS:
        if held.get(key):
            request["tools"] = held[key]
    tools: dict[int, Any] = {}
    for key, part in held.items():
        if found := NUMBERED.fullmatch(key):
            number, name = int(found[1]), found[2]
            tools[number] = part if "." in name else {"type": "function", **tools.get(number, {}), name: part}
    if tools:
        request["tools"] = [tools[number] for number in sorted(tools)]
    for key in SCHEMAS:
        if held.get(key):
            request["response_format"] = {"type": "json_schema", "schema": held[key]}
    for key, place in SETTINGS.items():
        if held.get(key):
            request[place] = object_of_text(held[key], f'{where}: "{key}"')
    return {"messages": [], **request} if request else {}


def _objects(value: object) -> Iterator[dict[str, Any]]:
    return (each for each in value if isinstance(each, dict)) if isinstance(value, list) else iter(())


def _value(held: object) -> Any:
    """Returns the value of an attribute in OTLP; None for one that is no text and holds none."""
    if not isinstance(held, dict):
        return None
    if isinstance(several := held.get("arrayValue"), dict):
        return [_value(each) for each in _objects(several.get("values"))]
    if isinstance(members := held.get("kvlistValue"), dict):
        return {str(each.get("key")): _value(each.get("value")) for each in _objects(members.get("values"))}
    return held.get("stringValue", held.get("boolValue"))
