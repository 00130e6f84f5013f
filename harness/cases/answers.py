"""Reads the schema or the grammar to which a request to a model server holds its answer, in each of the forms
that servers take."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from harness.cases.bare_schema import is_schema, is_type
from harness.cases.case import json_text
from harness.cases.json_reading import parse_if_text
from harness.cases.subschemas import without_keys
from harness.cases.tool_lists import format_of_custom, is_marked, of_openapi
from harness.errors import BadInput

NEAR = 0.85
"""The likeness (difflib's ratio) from which on a key is taken for a misspelt one of a request."""

Answer = tuple[str, str, Any]
"""The name (empty: none), the key of a case that has such a grammar, and the grammar."""


def answers(values: Iterable[object], where: str) -> list[Answer]:
    """Returns what the answer to a request is held to, from the request and what it wraps; a
    `response_format` may stand alone.

    Raises BadInput, its text starting with `where`, also where something stands at the place of a format and
    is not read, and for a key of a request that may be misspelt.
    """
    requests = [
        _unpacked(value, OUTER_TEXTS, f'{where}: "')
        for value in map(_as_request, values)
        if isinstance(value, dict) and not is_schema(value) and format_of_custom(value) is None
    ]
    found = [_answers_of(request, where) for request in requests]
    if any("tools" in request or is_marked(request) for request in requests):
        for request, read in zip(requests, found, strict=True):
            _refuse_unread(request, read, where)
    if any(map(is_known, requests)):
        _refuse_misspelt(requests, where)
    return [answer for read in found for answer in read.values()]


def is_known(request: dict[str, Any]) -> bool:
    """Is this a request to a model server by its keys, or by having no tools where it may have some?"""
    return is_marked(request) or request.get("tools") in ([], "[]")


def _as_request(value: object) -> object:
    """Returns a `response_format` that stands alone as a request with it, and every other value as it is."""
    is_format = isinstance(value, dict) and value.get("type") == "json_schema" and "json_schema" in value
    return {"response_format": value} if is_format else value


def _answers_of(request: dict[str, Any], where: str) -> dict[str, Answer]:
    """Returns what the request says that its answer is held to, each under its place. Raises BadInput."""
    found = {
        place: read(value, f'{where}: "{place}"')
        for place, read in PLACES.items()
        if (value := at_place(request, place)) not in (None, "")
    }
    return {place: answer for place, answer in found.items() if answer is not None}


def _refuse_unread(request: dict[str, Any], read: Iterable[str], where: str) -> None:
    """Raises BadInput for what stands where nothing but a format stands, and is not among the places that
    were read."""
    places = [f"{place}." for place in read]
    for place in ANSWERING:
        held = at_place(request, place)
        if held is None or any(each.startswith(f"{place}.") for each in places):
            continue
        what = f'{where}: "{place}"'
        if _holds(object_of_text(held, what)):
            raise BadInput(f"{what} is {json_text(held)[:60]}, in which nothing is read")


def _holds(value: object) -> bool:
    """Does this say something at the place of a format? Text is part of a prompt there, and a mode of the
    server holds an answer to no schema."""
    if (forms := _forms(value)) != [value]:
        return any(isinstance(each, str) or _holds(each) for each in forms)
    if not isinstance(value, dict):
        return not isinstance(value, str | bool) and value is not None
    if value.get("type") in NO_TEXT:
        return False
    if value.get("type") in MODES or value.get("json_object") is True:
        return any(isinstance(each, dict | list) and _is_chosen(each) for each in value.values())
    return _is_chosen(value)


def _is_chosen(value: object) -> bool:
    """Is this anything but empty, or an object of which nothing is chosen?"""
    if isinstance(value, dict):
        return any(map(_is_chosen, value.values()))
    return value not in (None, "", [], False)


def _refuse_misspelt(requests: Iterable[dict[str, Any]], where: str) -> None:
    """Raises BadInput for a key that may be meant for one that holds a format, or a schema in a case of ours.
    Keys of the request itself with a value that can be no format are not compared."""
    for request in requests:
        for key, value in request.items():
            if isinstance(value, dict) or key.startswith("guided"):
                _refuse_near("", key[:60], where)
        for holder in SETTINGS:
            held = at_place(request, holder)
            for key, value in held.items() if isinstance(held, dict) else ():
                if value not in (None, ""):
                    _refuse_near(f"{holder}.", key[:60], where)


def _refuse_near(before: str, key: str, where: str) -> None:
    if meant := _meant(before, key):
        raise BadInput(f'{where}: a key that is not read; is "{before}{key}" a misspelt "{before}{meant}"?')


@lru_cache(4096)
def _meant(before: str, key: str) -> str:
    """Returns the key that this one may be meant for, of the object whose place is `before` (empty: of the
    request); empty if that is none, or if it is that key."""
    if before:
        known = [place.removeprefix(before).partition(".")[0] for place in PLACES if place.startswith(before)]
    else:
        known = [place for place in (*ANSWERING, "schema") if "." not in place]
    close = get_close_matches(key, known, 1, NEAR)
    return close[0] if close and close[0] != key else ""


def _unpacked(value: Any, keys: Iterable[str], before: str) -> Any:
    """Returns the value with the objects whose JSON stands there as text under these keys, as in the rows of
    tables; `before` is what is said before a key. Raises BadInput."""
    if not isinstance(value, dict):
        return value
    return value | {
        key: _unpacked(object_of_text(value[key], f'{before}{key}"'), TEXTS[key], f"{before}{key}.")
        for key in keys
        if key in value
    }


def at_place(value: Any, place: str) -> Any:
    """Returns what stands at a place of an object; None where nothing does."""
    for key in place.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def object_of_text(value: Any, what: str) -> Any:
    """Returns the object whose JSON a text is, and every other value as it is, such as a template of a
    prompt. Raises BadInput for a text that begins with a brace, speaks of a schema or of tools, and is no
    JSON."""
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return value
    try:
        return parse_if_text(value, what)
    except BadInput:
        if "schema" in value or '"tools"' in value:
            raise
        return value


def _form(value: Any, what: str) -> Answer | None:
    """Reads a `response_format`, or what has its place, which in Ollama's requests is a schema."""
    found = [
        answer
        for each in _forms(object_of_text(value, what))
        if (answer := _one_form(each, what)) is not None
    ]
    if len(found) > 1:
        raise BadInput(f"{what} has {len(found)} schemas; write a request for each")
    return found[0] if found else None


def _forms(value: Any) -> list[Any]:
    """Returns the formats of which a value consists. Gemini has one for each kind of output: in a list, or
    each under the name of its kind."""
    if isinstance(value, list):
        return [form for each in value for form in _forms(each)]
    if isinstance(value, dict) and value and all(_is_output(key, each) for key, each in value.items()):
        return [{"type": key, **each} for key, each in value.items() if each is not None]
    return [value]


def _is_output(key: str, value: object) -> bool:
    """Is this what Gemini's format says of a kind of output?"""
    return key in OUTPUTS and (value is None or (isinstance(value, dict) and "type" not in value))


def _one_form(value: Any, what: str) -> Answer | None:
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "structural_tag":
        return _tag(value, what)
    if kind in ("json_schema", "json_object"):
        return _form_with_schema(value, what)
    if kind in OUTPUTS:
        held = value.get("schema") if kind == "text" else None
        return _schema(held, what) if held else None
    if isinstance(kind, str) and kind in FORMS:
        return _form_of_type(value, what)
    if isinstance(kind, str) and not is_type(kind):
        raise BadInput(
            f"{what} is of type {json_text(kind)[:60]}, which is not read; write a JSON Schema, or one "
            f"of the types json_schema, json_object, structural_tag, {', '.join(FORMS)} and text"
        )
    return _schema(value, what) if is_schema(value) else None


def _form_with_schema(value: dict[str, Any], what: str) -> Answer | None:
    """Reads a format of the type json_schema or json_object, whose schema has a name beside it, or stands
    where both could stand, as Cloudflare has it."""
    beside = value.get("json_schema") or value.get("jsonSchema") or value.get("value")
    inner = parse_if_text(beside or value, what)
    if (named := _named(inner, what)) is not None:
        return named
    if beside and is_schema(inner):
        return _schema(inner, what)
    if value["type"] == "json_object":
        return None
    written = '"json_schema": {"name", "schema"}' if "response_format" in what else '"name", "schema"'
    raise BadInput(f'{what} has no schema; write {{"type": "json_schema", {written}}}, or the schema alone')


def _named(value: Any, what: str) -> Answer | None:
    """Reads a schema, which may be text, with a name beside it; None where there is no schema. Mistral's
    clients call it by another name than their server does."""
    if not isinstance(value, dict):
        return None
    held = next((value[key] for key in SCHEMA_AT if value.get(key) not in (None, "")), None)
    schema = parse_if_text(held, what)
    return (str(value.get("name") or ""), "schema", schema) if isinstance(schema, dict | bool) else None


def _form_of_type(value: dict[str, Any], what: str) -> Answer | None:
    """Reads a format of one of the further types; one of any JSON has no schema."""
    read, places = FORMS[value["type"]]
    for place in places:
        if (held := at_place(value, place)) not in (None, ""):
            name, key, grammar = read(held, f'{what}: "{place}"')
            return name or str(value.get("name") or ""), key, grammar
    if value["type"] in MODES and not _holds(value):
        return None
    raise BadInput(f'{what} is of type {value["type"]} and has no "{places[-1]}"')


def _form_of_converse(value: Any, what: str) -> Answer:
    """Reads what Bedrock's Converse has, where the schema is text."""
    if (named := _named(parse_if_text(value, what), what)) is None:
        raise BadInput(f'{what} has no "schema"')
    return named


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
    """Reads what other files have too, as the name of a language; that is not read. A grammar that is no EBNF
    begins with a directive there."""
    is_grammar = isinstance(value, str) and (_is_ebnf(value) or value.startswith("%"))
    return _grammar(value, what) if is_grammar else None


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
Text Generation Inference, TensorRT-LLM and the AI SDK."""

NO_TEXT = ("image", "audio")
"""The kinds of output of which Gemini's format may speak beside text."""
OUTPUTS = ("text", *NO_TEXT)
"""All of them; text may have a schema."""
MODES = (*OUTPUTS, "json_object", "json")
"""The types of a `response_format` that need no schema."""
SCHEMA_AT = ("schema", "schema_definition", "schemaDefinition")
"""The keys of a schema that has a name beside it, in requests and in Mistral's clients."""

ANSWERING = (
    "response_format",
    "responseFormat",
    "text.format",
    "format",
    "output_format",
    "output_config.format",
    "outputConfig.textFormat",
    "generationConfig.responseFormat",
    "generation_config.response_format",
    "structured_outputs",
    "guided_decoding",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
)
"""The places of a request that hold nothing but what its answer is held to."""
SETTINGS = ("generationConfig", "generation_config", "config", "sampling_params")
"""The keys of objects in which a format stands among other settings."""
TEXTS: dict[str, tuple[str, ...]] = {
    "structured_outputs": (),
    "guided_decoding": (),
    "generationConfig": (),
    "sampling_params": ("structured_outputs", "guided_decoding"),
}
"""The keys whose value may be the text of an object, each with such keys in that object. A prompt may begin
with a brace too, under `text`."""
OUTER_TEXTS = ("structured_outputs", "guided_decoding", "generationConfig", "sampling_params")
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
    "_responseJsonSchema": _schema,
}
"""The keys of Gemini's configuration, and how the value of each is read."""

PLACES: dict[str, Callable[[Any, str], Answer | None]] = {
    # OpenAI's two interfaces, Ollama's, Anthropic's before and after it was renamed, and Bedrock's Converse
    "response_format": _form,
    "text.format": _form,
    "format": _form,
    "output_format": _form,
    "output_config.format": _form,
    "outputConfig.textFormat.structure.jsonSchema": _form_of_converse,
    # what clients in JavaScript write, as the AI SDK for its providers
    "responseFormat": _form,
    # vLLM's, those of its class in Python, and what it had until 0.12
    **{
        f"{holder}.{key}": read
        for holder in (
            "structured_outputs",
            "guided_decoding",
            "sampling_params.structured_outputs",
            "sampling_params.guided_decoding",
        )
        for key, read in OF_VLLM.items()
    },
    **{
        f"{holder}guided_{key}": OF_VLLM[key]
        for holder in ("", "sampling_params.")
        for key in ("json", "regex", "choice", "grammar")
    },
    # Gemini's, and those of its SDKs
    **{
        f"{holder}.{key}": read
        for holder in ("generationConfig", "generation_config", "config")
        for key, read in OF_GEMINI.items()
    },
    "generationConfig.responseFormat": _form,
    "generation_config.response_format": _form,
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
