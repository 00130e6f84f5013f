"""Finds requests to model servers, also those that something wraps, and says what in them is not read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.cases.answers import is_known
from harness.cases.bare_schema import is_schema
from harness.cases.tool_lists import built_in, own_keys, tool_list
from harness.errors import BadInput

WRAPPERS = ("body", "params", "request", "session", "extra_body", "nvext", "config", "result", "toolConfig")
"""The keys that hold a request in a line of a batch for OpenAI or vLLM, for Anthropic and for Gemini, in an
event of OpenAI's Realtime, beside what OpenAI's client knows, for NVIDIA's NIM, in the arguments of Google's
SDK, in MCP's answer, and in Bedrock's request."""

OF_SGLANG = frozenset(("regex", "ebnf"))
"""The keys that requests to SGLang share with our own cases."""
OF_REQUESTS = frozenset(("messages", "tools"))
"""The keys by which such a request is known."""


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
    server's own tools that it has; empty for what is no such request. Raises BadInput."""
    requests = [request for request in requests_in(value) if not is_schema(request)]
    if not any(map(is_known, requests)):
        return ""
    for request in requests:
        if isinstance(request.get("sampling_params"), list):
            raise BadInput(f'{where}: "sampling_params" is a list; write a request for each')
    tools = [built_in(tool) for request in requests for tool in tool_list(request, where)]
    return f"{where} ({', '.join(tools)})" if tools else where
