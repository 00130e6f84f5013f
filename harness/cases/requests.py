"""Where a request to a model server holds the schema or the grammar of its answer, and in what a request may
be wrapped."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from harness.cases.bare_schema import is_schema
from harness.cases.case import as_written, json_text
from harness.cases.subschemas import without_keys
from harness.cases.tool_lists import NOT_OF_TOOLS, of_openapi
from harness.errors import BadInput

WRAPPERS = ("body", "params", "request", "session", "extra_body", "result", "toolConfig")
"""The keys that hold a request in a line of a batch for OpenAI or vLLM, for Anthropic and for Gemini, in an
event of OpenAI's Realtime, beside what OpenAI's client knows, in MCP's answer, and in Bedrock's request."""

Answer = tuple[str, str, Any]
"""The name (empty: none), the key of a case that has such a grammar, and the grammar."""


def requests_in(value: object) -> Iterator[dict[str, Any]]:
    """Yields the object and what it wraps, each of which may be a request; nothing for a case of ours, and
    for what may be a JSON Schema only itself: a list of tools may name its `$schema`."""
    if not isinstance(value, dict) or NOT_OF_TOOLS & value.keys():
        return
    yield value
    if not is_schema(value):
        for wrapper in WRAPPERS:
            yield from requests_in(value.get(wrapper))


def answers(request: object, where: str) -> list[Answer]:
    """Returns what the answer to a request is held to, where it says so; a `response_format` may stand alone.

    Raises BadInput, its text starting with `where`.
    """
    if not isinstance(request, dict) or is_schema(request):
        return []
    if request.get("type") == "json_schema" and "json_schema" in request:
        request = {"response_format": request}
    found = (
        read(value, f'{where}: "{place}"')
        for place, read in PLACES.items()
        if (value := _at(request, place)) is not None
    )
    return [answer for answer in found if answer is not None]


def _at(request: dict[str, Any], place: str) -> Any:
    value: Any = request
    for key in place.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _form(value: Any, what: str) -> Answer | None:
    """Reads a `response_format`, or what has its place, which in Ollama's requests is a schema."""
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "structural_tag":
        return _tag(value, what)
    if kind not in ("json_schema", "json_object"):
        return _schema(value, what) if is_schema(value) else None
    inner = value.get("json_schema", value)
    if isinstance(inner, dict) and isinstance(inner.get("schema"), dict | bool):
        return str(inner.get("name") or ""), "schema", inner["schema"]
    if kind == "json_object":
        return None
    written = '"json_schema": {"name", "schema"}' if "response_format" in what else '"name", "schema"'
    raise BadInput(f'{what} has no schema; write {{"type": "json_schema", {written}}}, or the schema alone')


def _schema(value: Any, what: str) -> Answer:
    """Reads a JSON Schema, which may be text, or have a name beside it."""
    value = _parsed(value, what)
    if isinstance(value, dict) and isinstance(value.get("schema"), dict) and not is_schema(value):
        return str(value.get("name") or ""), "schema", value["schema"]
    if not (isinstance(value, bool) or value == {} or is_schema(value)):
        raise BadInput(f"{what} is {json_text(value)[:60]}, not a JSON Schema")
    return "", "schema", value


def _openapi(value: Any, what: str) -> Answer:
    return _schema(of_openapi(value), what)


def _tag(value: Any, what: str) -> Answer:
    value = _parsed(value, what)
    return "", "structural_tag", without_keys(value, ("type",)) if isinstance(value, dict) else value


def _grammar(value: Any, what: str) -> Answer:
    """Reads a grammar as vLLM does: it is EBNF if it has `::=`, and Lark otherwise."""
    return "", "ebnf" if "::=" in str(value) else "lark", value


def _as(key: str) -> Callable[[Any, str], Answer]:
    return lambda value, what: ("", key, value)


def _parsed(value: Any, what: str) -> Any:
    """Returns the value of JSON text, and any other value as it is."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value, parse_float=as_written)
    except ValueError as error:
        raise BadInput(f"{what} is text that is no JSON ({error})") from error


PLACES: dict[str, Callable[[Any, str], Answer | None]] = {
    # OpenAI's two interfaces, Ollama's, and Anthropic's before and after it was renamed
    "response_format": _form,
    "text.format": _form,
    "format": _form,
    "output_format": _form,
    "output_config.format": _form,
    # vLLM's, and what it had until 0.12
    "structured_outputs.json": _schema,
    "structured_outputs.regex": _as("regex"),
    "structured_outputs.choice": _as("choice"),
    "structured_outputs.grammar": _grammar,
    "structured_outputs.structural_tag": _tag,
    "guided_json": _schema,
    "guided_regex": _as("regex"),
    "guided_choice": _as("choice"),
    "guided_grammar": _grammar,
    # Gemini's
    "generationConfig.responseSchema": _openapi,
    "generationConfig.responseJsonSchema": _schema,
    "generation_config.response_schema": _openapi,
    "generation_config.response_json_schema": _schema,
    # SGLang's
    "sampling_params.json_schema": _schema,
    "sampling_params.regex": _as("regex"),
    "sampling_params.ebnf": _as("ebnf"),
    "sampling_params.structural_tag": _tag,
    "extra_body.regex": _as("regex"),
    "extra_body.ebnf": _as("ebnf"),
    # llama.cpp's
    "json_schema": _schema,
    "grammar": _as("ebnf"),
}
"""The places of a request at which it says what its answer is held to, and how each is read."""
