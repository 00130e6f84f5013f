"""Reads the schema or the grammar to which a request to a model server holds its answer, in each of the forms
that servers take."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from harness.cases.bare_schema import is_schema, is_type
from harness.cases.case import json_text
from harness.cases.json_reading import parse_if_text
from harness.cases.subschemas import without_keys
from harness.cases.tool_lists import format_of_custom, of_openapi
from harness.errors import BadInput

Answer = tuple[str, str, Any]
"""The name (empty: none), the key of a case that has such a grammar, and the grammar."""


def answers(request: object, where: str) -> list[Answer]:
    """Returns what the answer to a request is held to, where it says so; a `response_format` may stand alone.

    Raises BadInput, its text starting with `where`.
    """
    if not isinstance(request, dict) or is_schema(request) or format_of_custom(request) is not None:
        return []
    if request.get("type") == "json_schema" and "json_schema" in request:
        request = {"response_format": request}
    request = _unpacked(request, OUTER_TEXTS, f'{where}: "')
    found = (
        read(value, f'{where}: "{place}"')
        for place, read in PLACES.items()
        if (value := _at(request, place)) not in (None, "")
    )
    return [answer for answer in found if answer is not None]


def _unpacked(value: Any, keys: Iterable[str], before: str) -> Any:
    """Returns the value with the objects whose JSON stands there as text under these keys, as in the rows of
    tables; `before` is what is said before a key. Raises BadInput."""
    if not isinstance(value, dict):
        return value
    return value | {
        key: _unpacked(_object(value[key], f'{before}{key}"'), TEXTS[key], f"{before}{key}.")
        for key in keys
        if key in value
    }


def _at(value: Any, place: str) -> Any:
    """Returns what stands at a place of an object; None where nothing does."""
    for key in place.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _object(value: Any, what: str) -> Any:
    """Returns the object whose JSON a text is, and every other value as it is, such as a template of a
    prompt. Raises BadInput for a text that begins with a brace, has the word `schema`, and is no JSON."""
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return value
    try:
        return parse_if_text(value, what)
    except BadInput:
        if "schema" in value:
            raise
        return value


def _form(value: Any, what: str) -> Answer | None:
    """Reads a `response_format`, or what has its place, which in Ollama's requests is a schema."""
    value = _object(value, what)
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "structural_tag":
        return _tag(value, what)
    if isinstance(kind, str) and kind in FORMS:
        read, places = FORMS[kind]
        for place in places:
            if (held := _at(value, place)) not in (None, ""):
                return read(held, f'{what}: "{place}"')
        raise BadInput(f'{what} is of type {kind} and has no "{places[-1]}"')
    if kind not in ("json_schema", "json_object"):
        if isinstance(kind, str) and kind != "text" and not is_type(kind):
            raise BadInput(
                f"{what} is of type {json_text(kind)[:60]}, which is not read; write a JSON Schema, or one "
                f"of the types json_schema, json_object, structural_tag, {', '.join(FORMS)} and text"
            )
        return _schema(value, what) if is_schema(value) else None
    beside = value.get("json_schema") or value.get("value")
    inner = parse_if_text(beside or value, what)
    schema = inner.get("schema") if isinstance(inner, dict) else None
    schema = parse_if_text(schema, what) if schema != "" else None
    if isinstance(schema, dict | bool):
        return str(inner.get("name") or ""), "schema", schema
    if kind == "json_object":
        return _schema(inner, what) if beside and is_schema(inner) else None
    written = '"json_schema": {"name", "schema"}' if "response_format" in what else '"name", "schema"'
    raise BadInput(f'{what} has no schema; write {{"type": "json_schema", {written}}}, or the schema alone')


def _schema(value: Any, what: str) -> Answer:
    """Reads a JSON Schema, which may be text, or have a name beside it."""
    value = parse_if_text(value, what)
    if isinstance(value, dict) and isinstance(value.get("schema"), dict) and not is_schema(value):
        return str(value.get("name") or ""), "schema", value["schema"]
    if not (isinstance(value, bool) or value == {} or is_schema(value)):
        raise BadInput(f"{what} is {json_text(value)[:60]}, not a JSON Schema")
    return "", "schema", value


def _openapi(value: Any, what: str) -> Answer:
    return _schema(of_openapi(value), what)


def _tag(value: Any, what: str) -> Answer:
    value = parse_if_text(value, what)
    if not isinstance(value, dict):
        raise BadInput(f"{what} is {json_text(value)[:60]}, not an object")
    return "", "structural_tag", without_keys(value, ("type",))


def _choice(value: Any, what: str) -> Answer:
    if not (isinstance(value, list) and value and all(isinstance(choice, str) for choice in value)):
        raise BadInput(f"{what} is {json_text(value)[:60]}, not a non-empty list of strings")
    return "", "choice", value


def _regex(value: Any, what: str) -> Answer:
    return "", "regex", _text(value, what)


def _ebnf(value: Any, what: str) -> Answer:
    return "", "ebnf", _text(value, what)


def _grammar(value: Any, what: str) -> Answer:
    """Reads a grammar as vLLM does: it is EBNF if it has `::=` outside comments, and Lark otherwise."""
    return "", "ebnf" if _is_ebnf(_text(value, what)) else "lark", value


def _is_ebnf(text: str) -> bool:
    return "::=" in re.sub("(#|//).*", "", text)


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise BadInput(f"{what} is {json_text(value)[:60]}, not a string")
    return value


def _form_of_tgi(value: Any, what: str) -> Answer | None:
    """Reads the `grammar` of Text Generation Inference, which has a `value`. A parameter of a tool may have
    that name too, and is not read."""
    return _form(value, what) if isinstance(value, dict) and "value" in value else None


def _schema_of_llama_cpp(value: Any, what: str) -> Answer | None:
    """Reads what other files have too, as the name of a file; that is not read."""
    is_other = isinstance(value, str) and not value.lstrip().startswith("{")
    return None if is_other else _schema(value, what)


def _grammar_of_llama_cpp(value: Any, what: str) -> Answer | None:
    """Reads what other files have too, as the name of a language; that is not read."""
    return _ebnf(value, what) if isinstance(value, str) and _is_ebnf(value) else None


FORMS: dict[str, tuple[Callable[[Any, str], Answer], tuple[str, ...]]] = {
    "regex": (_regex, ("regex.regex", "pattern", "value", "regex")),
    "regex_schema": (_regex, ("regex_schema",)),
    "ebnf": (_ebnf, ("ebnf",)),
    "grammar": (_grammar, ("grammar",)),
    "json": (_schema, ("value", "schema")),
}
"""The further types of a `response_format`, each with what reads its value and the places at which that may
stand, the first one first. `regex` is for Perplexity, Together, Text Generation Inference and TensorRT-LLM,
`regex_schema` for LMDeploy, `ebnf` for TensorRT-LLM, `grammar` for OpenAI, Fireworks and MLC, and `json` for
Text Generation Inference and TensorRT-LLM."""

ANSWERING = (
    "response_format",
    "output_format",
    "format",
    "structured_outputs",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
)
"""The keys of a request that hold nothing but what its answer is held to."""
TEXTS: dict[str, tuple[str, ...]] = {
    "structured_outputs": (),
    "guided_decoding": (),
    "generationConfig": (),
    "sampling_params": ("structured_outputs", "guided_decoding"),
}
"""The keys whose value may be the text of an object, each with such keys in that object. A prompt may begin
with a brace too, under `text`."""
OUTER_TEXTS = ("structured_outputs", "generationConfig", "sampling_params")
"""The keys of `TEXTS` that stand in the request itself, and not in another object of it."""

OF_VLLM: dict[str, Callable[[Any, str], Answer]] = {
    "json": _schema,
    "regex": _regex,
    "choice": _choice,
    "grammar": _grammar,
    "structural_tag": _tag,
}
"""The keys of vLLM's structured outputs, and how the value of each is read."""
OF_GEMINI: dict[str, Callable[[Any, str], Answer]] = {
    "responseSchema": _openapi,
    "responseJsonSchema": _schema,
    "response_schema": _openapi,
    "response_json_schema": _schema,
}
"""The keys of Gemini's configuration, and how the value of each is read."""

PLACES: dict[str, Callable[[Any, str], Answer | None]] = {
    # OpenAI's two interfaces, Ollama's, and Anthropic's before and after it was renamed
    "response_format": _form,
    "text.format": _form,
    "format": _form,
    "output_format": _form,
    "output_config.format": _form,
    # vLLM's, those of its class in Python, and what it had until 0.12
    **{
        f"{holder}.{key}": read
        for holder in (
            "structured_outputs",
            "sampling_params.structured_outputs",
            "sampling_params.guided_decoding",
        )
        for key, read in OF_VLLM.items()
    },
    "guided_json": _schema,
    "guided_regex": _regex,
    "guided_choice": _choice,
    "guided_grammar": _grammar,
    # Gemini's, and those of its SDKs
    **{
        f"{holder}.{key}": read
        for holder in ("generationConfig", "generation_config", "config")
        for key, read in OF_GEMINI.items()
    },
    # SGLang's
    "sampling_params.json_schema": _schema,
    "sampling_params.regex": _regex,
    "sampling_params.ebnf": _ebnf,
    "sampling_params.structural_tag": _tag,
    "regex": _regex,
    "ebnf": _ebnf,
    "extra_body.regex": _regex,
    "extra_body.ebnf": _ebnf,
    # that of Text Generation Inference
    "parameters.grammar": _form_of_tgi,
    # llama.cpp's
    "json_schema": _schema_of_llama_cpp,
    "grammar": _grammar_of_llama_cpp,
}
"""The places of a request at which it says what its answer is held to, and how each is read."""
