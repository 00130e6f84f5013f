"""How servers take a grammar: one small table for each dialect of server, and how a server is recognised."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.backend.grammar import Dialect, Grammar
from harness.cases.case import as_written, json_text

Endpoint = Literal["chat", "completions"]
Fields = Callable[[Any], dict[str, Any]]
"""Makes the fields that are added to the request's body, from the grammar (a schema, a list of choices, a
pattern, rules)."""

PATHS: dict[Endpoint, str] = {"chat": "/v1/chat/completions", "completions": "/v1/completions"}


@dataclass(frozen=True)
class ServerDialect:
    """A kind of server. A grammar that its table lacks cannot be expressed, and is declined without being
    sent."""

    name: str
    chat: Mapping[Dialect, Fields]
    completions: Mapping[Dialect, Fields] = field(default_factory=dict)
    refuses_in_stream: bool = False
    """Whether the server answers a grammar that it cannot compile with status 200, and says within the stream
    that the request is bad."""
    fields_differ: bool = False
    """Whether one model takes fields of sampling that another refuses."""

    def fields(self, endpoint: Endpoint) -> Mapping[Dialect, Fields]:
        """Returns the table of the endpoint."""
        return self.chat if endpoint == "chat" else self.completions


def _field(name: str, *, text: bool = False) -> Fields:
    """Puts the grammar into one field of the body; as JSON text if `text`, for servers that want a string."""
    return lambda value: {name: json_text(value) if text else value}


def _structured_output(name: str) -> Fields:
    return lambda value: {"structured_outputs": {name: value}}


def _response_format(schema: Any) -> dict[str, Any]:
    return {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "case", "schema": schema, "strict": True},
        }
    }


def _json_object(schema: Any) -> dict[str, Any]:
    return {"response_format": {"type": "json_object", "schema": schema}}


def _structural_tag(tag: Any) -> dict[str, Any]:
    return {"response_format": {"type": "structural_tag", **tag}}


_STRUCTURED: dict[Dialect, Fields] = {
    "json_schema": _structured_output("json"),
    "regex": _structured_output("regex"),
    "choice": _structured_output("choice"),
    "ebnf": _structured_output("grammar"),
    "lark": _structured_output("grammar"),
    "structural_tag": _structural_tag,
}
_GUIDED: dict[Dialect, Fields] = {
    "json_schema": _field("guided_json"),
    "regex": _field("guided_regex"),
    "choice": _field("guided_choice"),
    "ebnf": _field("guided_grammar"),
}
_SGLANG: dict[Dialect, Fields] = {
    "regex": _field("regex"),
    "ebnf": _field("ebnf"),
    "structural_tag": _structural_tag,
}
_LLAMA_CPP: dict[Dialect, Fields] = {"json_schema": _field("json_schema"), "ebnf": _field("grammar")}

DIALECTS: dict[str, ServerDialect] = {
    dialect.name: dialect
    for dialect in (
        ServerDialect("openai", {"json_schema": _response_format}, fields_differ=True),
        ServerDialect("vllm", _STRUCTURED, _STRUCTURED),
        ServerDialect("vllm-guided", _GUIDED, _GUIDED),
        ServerDialect(
            "sglang",
            {"json_schema": _response_format, **_SGLANG},
            {"json_schema": _field("json_schema", text=True), **_SGLANG},
            refuses_in_stream=True,
        ),
        ServerDialect("llama.cpp", _LLAMA_CPP, _LLAMA_CPP),
        ServerDialect(
            "llama-cpp-python",
            {"json_schema": _json_object, "ebnf": _field("grammar")},
            {"ebnf": _field("grammar")},
        ),
    )
}
"""The dialects of servers. Sources: docs.vllm.ai (structured_outputs; guided_* went with 0.12), sglang's
openai/protocol.py, llama.cpp's tools/server/README.md, llama_cpp/server/types.py, platform.openai.com."""


def grammar_fields(dialect: ServerDialect, endpoint: Endpoint, grammar: Grammar) -> dict[str, Any] | None:
    """Returns the fields that are added to the body for this grammar; None if the dialect has no way to
    express it."""
    make = dialect.fields(endpoint).get(grammar.dialect)
    if make is None:
        return None
    if grammar.dialect in ("regex", "ebnf", "lark"):
        return make(grammar.text)
    # Numbers as they stand there: the judge reads them so.
    return make(json.loads(grammar.text, parse_float=as_written))


# -------------------------------------------------------------------------------------------- recognising one

FACTS = ("/version", "/get_server_info", "/props", "/openapi.json")
"""The paths that are asked besides `/v1/models`, in this order, until the server is recognised."""


def recognise(facts: Mapping[str, Any]) -> tuple[str, str] | None:
    """Returns dialect and version, from the paths' answers (parsed JSON by path; absent without an answer).
    None if the server is unknown."""
    owner = _first_model(facts).get("owned_by")
    api = _object(_object(facts.get("/openapi.json")).get("info"))
    if owner == "vllm" or (owner is None and "version" in _object(facts.get("/version"))):
        version = _text(_object(facts.get("/version")).get("version"))
        return ("vllm-guided" if _before(version, (0, 11)) else "vllm"), version
    if owner == "sglang" or "tp_size" in _object(facts.get("/get_server_info")):
        return "sglang", _text(_object(facts.get("/get_server_info")).get("version"))
    if owner == "llamacpp" or "build_info" in _object(facts.get("/props")):
        return "llama.cpp", _text(_object(facts.get("/props")).get("build_info"))
    if "llama.cpp Python" in _text(api.get("title")):
        return "llama-cpp-python", _text(api.get("version"))
    if isinstance(owner, str) and (owner in ("openai", "system") or owner.startswith("openai-")):
        return "openai", ""
    return None


def model_of(facts: Mapping[str, Any]) -> str | None:
    """Returns the name of the first model that the server lists."""
    name = _first_model(facts).get("id")
    return name if isinstance(name, str) and name else None


def _first_model(facts: Mapping[str, Any]) -> dict[str, Any]:
    listed = _object(facts.get("/v1/models")).get("data")
    return _object(listed[0]) if isinstance(listed, list) and listed else {}


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _before(version: str, bound: tuple[int, int]) -> bool:
    """Returns whether the version is an older one. A build from a source without tags calls itself
    `0.1.dev1+g…`, whatever its age: that says nothing."""
    match = re.match(r"(\d+)\.(\d+)(?!\d|\.dev)", version)
    return match is not None and (int(match[1]), int(match[2])) < bound
