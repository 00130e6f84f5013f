"""Finds requests to model servers, also those that something wraps, and says what in them is not read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from harness.cases.answer_forms import ANSWERING, at_place, holds, object_of_text
from harness.cases.answers import COMMON, answers, is_known
from harness.cases.bare_schema import is_schema
from harness.cases.spans import request_of, spans_of
from harness.cases.tool_lists import TOOLS_AT, built_in, is_marked, may_be_request, own_keys, tool_list
from harness.errors import BadInput

BODIES = (
    *("body", "request", "request_body", "requestBody", "postData.text", "proxy_server_request"),
    *("raw_request_body", "captureData.endpointInput.data", "full_request"),
)
"""The places of a request in a line of a batch for OpenAI, vLLM and Gemini, and in records of HTTP traffic:
those of gateways, of a browser (HAR), of LiteLLM, of SageMaker and of Vertex. There it may be text."""
LOOSE = ("metadata", "inputs", "kwargs", "parameters", "setup")
"""The places of a request, or of a part of one, in what Langfuse, Braintrust, Opik, LangSmith and DSPy log,
in requests to DashScope, and in the first message of Gemini's Live. Other files have them too: what stands
there is looked at only where it has a key of a request."""
WRAPPERS = (
    *BODIES,
    *("params", "session", "extra_body", "nvext", "config", "result"),
    *("toolConfig", "additionalModelRequestFields", "modelInput", "input", "inputBodyJson"),
    *("model_parameters", "optional_params", "guided_options_request"),
    *("standard_logging_object", "additional_args.complete_input_dict"),
    *("modelParameters", "extra.invocation_params", "model_request_parameters"),
    *LOOSE,
)
"""All places of a request, or of a part of one, in another object: also in Anthropic's batches, in an event
of OpenAI's Realtime, beside what OpenAI's client knows, for NVIDIA's NIM, in the arguments of Google's SDK,
and in MCP's answer; in Bedrock's requests, batches and logs (whose `input` is also Langfuse's); in
LiteLLM's logs and vLLM's older class; and in Langfuse's, LangSmith's and Pydantic AI's."""
PARTS = tuple(place for place in (*TOOLS_AT, *ANSWERING) if place not in (*COMMON, "function"))
"""The places of tools and of a format by which a part of a request is known."""
DEEPEST_WRAPPER = 50
"""How many objects may wrap a request."""

OF_BODIES = ("messages", "contents", "tools", "response_format")
"""Words by which the text of a request to a model server is known, if it is no JSON because it was cut."""
OF_HTTP = ("headers", "body", "postData", "response")
"""What a request over HTTP has that is read, or that asks for nothing."""
LISTS = ("requests", "data", "log.entries", "interactions")
"""The places of lists of requests: in Anthropic's batches, in what servers answer with a list of stored
requests, and in records of HTTP traffic: a browser's (HAR), and a cassette of VCR."""

OF_SGLANG = frozenset(("regex", "ebnf"))
"""The keys that requests to SGLang share with our own cases."""


def requests_in(value: object, where: str, wrapped: int = 0) -> Iterator[dict[str, Any]]:
    """Yields the object and what it wraps, each of which may be a request; nothing for a case of ours, and
    for what may be a JSON Schema only itself: a list of tools may name its `$schema`. `wrapped` is how many
    objects are around it. Raises BadInput."""
    if not isinstance(value, dict):
        return
    if wrapped > DEEPEST_WRAPPER:
        raise BadInput(f"{where}: a request that more than {DEEPEST_WRAPPER} objects wrap is not read")
    own = own_keys(value)
    if own and not (own <= OF_SGLANG and may_be_request(value)):
        _refuse_both(value, own, where)
        return
    yield value
    if is_schema(value):
        return
    for place in WRAPPERS:
        inner = at_place(value, place)
        if place in BODIES:
            inner = object_of_text(inner, f'{where}: "{place}"')
        part = _part_of(inner, place) if place in LOOSE else inner
        yield from requests_in(part, where, wrapped + 1)
    yield from requests_in(request_of(value, where) or None, where, wrapped + 1)
    if isinstance(several := value.get("sampling_params"), list):  # SGLang's, one for each text
        yield from ({"sampling_params": each} for each in several)


def _refuse_both(value: dict[str, Any], own: set[str], where: str) -> None:
    """Raises BadInput for a case of ours that is a whole request too, of which the tools and the format would
    be lost. A list of tools may stand beside a case."""
    if not is_marked(value) or value.get("tests"):
        return
    for place in (*TOOLS_AT, *ANSWERING):
        held = at_place(value, place)
        if isinstance(held, dict | list) and holds(held):
            key = min(own)
            raise BadInput(
                f'{where} has "{key}", as a case of ours has, and "{place}" of a request; keep one'
            )


def _part_of(value: object, place: str) -> object:
    """Returns what stands at a place that other files have too, if it is a request or a part of one, and None
    otherwise. By the model and the names of tools among metadata it is none."""
    if not isinstance(value, dict):
        return None
    part = {key: held for key, held in value.items() if key != "model"} if place == "metadata" else value
    is_part = is_marked(part) or any(isinstance(at_place(part, key), dict | list) for key in PARTS)
    return part if is_part else None


def refuse_wrapping_schema(value: dict[str, Any], where: str) -> None:
    """Raises BadInput for what reads as a JSON Schema and has a request to a model server at the place of a
    body: a line of a log may have a `type` or a `pattern` too."""
    for place in BODIES if is_schema(value) and not own_keys(value) else ():
        if is_marked(object_of_text(at_place(value, place), f'{where}: "{place}"')):
            raise BadInput(
                f'{where} is a JSON Schema by its keywords, and has a request at "{place}"; keep one of them'
            )


def is_request_for_nothing(value: dict[str, Any]) -> bool:
    """Is this a request to SGLang, in which the keys that it shares with our own cases are empty?"""
    return may_be_request(value) and not own_keys(value)


def listed_requests(value: object, where: str) -> list[Any]:
    """Returns the entries of a list of requests that the object has in place of a request; none if it has
    none. Raises BadInput."""
    if not isinstance(value, dict) or own_keys(value):
        return []
    if spans := spans_of(value):
        return spans
    if is_schema(value):
        return _items(value, where)
    for place in LISTS:
        entries = at_place(value, place)
        if isinstance(entries, list) and any(_is_read(entry, where) for entry in entries):
            return [] if is_of_request(value, where) else entries
    return []


def _items(value: dict[str, Any], where: str) -> list[Any]:
    """Returns the requests that a page of a log has as `items`, which is also a keyword of schemas; none
    where another keyword stands beside it, or a schema in it. Raises BadInput."""
    entries = value.get("items")
    beside = {key: held for key, held in value.items() if key != "items"}
    if not isinstance(entries, list) or is_schema(beside) or any(map(is_schema, entries)):
        return []
    return entries if any(_is_read(entry, where) for entry in entries) else []


def _is_read(entry: object, where: str) -> bool:
    """Is this entry of a list a request to a model server? Raises BadInput, but not for other servers."""
    try:
        return is_of_request(entry, where)
    except BadInput:
        if is_of_another_server(entry):
            return False
        raise


def is_of_another_server(entry: object) -> bool:
    """Is this an entry of a record of HTTP traffic, such as a browser's, of which no body is a request to a
    model server by its keys? A body that is cut may be one by the words in it."""
    if not isinstance(at_place(entry, "request.method"), str):
        return False
    bodies = [at_place(entry, f"request.{place}") for place in BODIES]
    return not any(map(_may_be_marked, bodies))


def _may_be_marked(body: object) -> bool:
    if not isinstance(body, str):
        return is_marked(body)
    try:
        return is_marked(json.loads(body))
    except ValueError:
        return any(f'"{word}"' in body for word in OF_BODIES)


def is_of_request(value: object, where: str) -> bool:
    """Is this a request to a model server, or what wraps one? Raises BadInput."""
    requests = list(requests_in(value, where))
    return bool(
        any(is_marked(request) or tool_list(request, where) for request in requests)
        or answers(requests, where)
    )


def unheld_place(value: object, where: str) -> str:
    """Returns the place of a request to a model server in which no tools and no format were found, with the
    server's own tools that it has; empty for what is no such request. Raises BadInput."""
    requests = [request for request in requests_in(value, where) if not is_schema(request)]
    if not any(is_known(request) or _is_of_http(request) for request in requests):
        return ""
    tools = [built_in(tool) for request in requests for tool in tool_list(request, where)]
    return f"{where} ({', '.join(tools)})" if tools else where


def _is_of_http(request: dict[str, Any]) -> bool:
    """Is this a request over HTTP without a further object, in which a request to a model server may lie?"""
    others = [value for key, value in request.items() if key not in OF_HTTP]
    is_sent = "method" in request and not {"url", "uri"}.isdisjoint(request)
    return is_sent and not any(
        isinstance(value, dict) or (isinstance(value, str) and value.lstrip().startswith("{"))
        for value in others
    )
