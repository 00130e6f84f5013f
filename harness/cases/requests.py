"""Finds requests to model servers, also those that something wraps, and says what in them is not read."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from harness.cases.answers import ANSWERING
from harness.cases.bare_schema import is_schema
from harness.cases.case import json_text
from harness.cases.tool_lists import built_in, is_marked, own_keys, tool_list
from harness.errors import BadInput

WRAPPERS = ("body", "params", "request", "session", "extra_body", "nvext", "config", "result", "toolConfig")
"""The keys that hold a request in a line of a batch for OpenAI or vLLM, for Anthropic and for Gemini, in an
event of OpenAI's Realtime, beside what OpenAI's client knows, for NVIDIA's NIM, in the arguments of Google's
SDK, in MCP's answer, and in Bedrock's request."""

OF_SGLANG = frozenset(("regex", "ebnf"))
"""The keys that requests to SGLang share with our own cases."""
OF_REQUESTS = frozenset(("messages", "tools"))
"""The keys by which such a request is known."""

NEAR = 0.85
"""The likeness (difflib's ratio) from which on a key is taken for a misspelt one of a request."""


def requests_in(value: object) -> Iterator[dict[str, Any]]:
    """Yields the object and what it wraps, each of which may be a request; nothing for a case of ours, and
    for what may be a JSON Schema only itself: a list of tools may name its `$schema`."""
    if not isinstance(value, dict):
        return
    own = own_keys(value)
    if own and not (own <= OF_SGLANG and OF_REQUESTS & value.keys()):
        return
    yield value
    if not is_schema(value):
        for wrapper in WRAPPERS:
            yield from requests_in(value.get(wrapper))


def is_request_for_nothing(value: dict[str, Any]) -> bool:
    """Is this a request to SGLang, in which the keys that it shares with our own cases are empty?"""
    return bool(OF_REQUESTS & value.keys()) and not own_keys(value)


def unheld_place(value: object, where: str) -> str:
    """Returns the place of a request to a model server in which no tools and no format were found, with the
    server's own tools that it has; empty for what is no such request. Raises BadInput where something stands
    at the place of a format and is not read, and for a key that may be misspelt."""
    requests = [request for request in requests_in(value) if not is_schema(request)]
    if not any(is_marked(request) or request.get("tools") in ([], "[]") for request in requests):
        return ""
    for request in requests:
        for key, held in request.items():
            if key in ANSWERING and _holds(held):
                raise BadInput(f'{where}: "{key}" is {json_text(held)[:60]}, in which nothing is read')
            if meant := _misspelt(key, held):
                asked = f'is "{key[:60]}" a misspelt "{meant}"?'
                raise BadInput(f"{where}: a request without tools or a format; {asked}")
        if isinstance(request.get("sampling_params"), list):
            raise BadInput(f'{where}: "sampling_params" is a list; write a request for each')
    tools = [built_in(tool) for request in requests for tool in tool_list(request, where)]
    return f"{where} ({', '.join(tools)})" if tools else where


def _misspelt(key: str, value: object) -> str:
    """Returns the key that this one may be meant for; empty if that is none, or if it is that key. Keys with
    a value that can be no format are not compared, because that takes long in a log."""
    if not isinstance(value, dict) and not key.startswith("guided"):
        return ""
    close = get_close_matches(key[:60], (*ANSWERING, "schema"), 1, NEAR)
    return close[0] if close and close[0] != key else ""


def _holds(value: object) -> bool:
    """Does this say something at the place of a format? Text is a mode there, or part of a prompt."""
    if isinstance(value, dict):
        is_free = value.get("type") in ("text", "json_object")
        return not is_free and any(each not in (None, "", [], {}) for each in value.values())
    return not isinstance(value, str) and value not in (None, [], False)
