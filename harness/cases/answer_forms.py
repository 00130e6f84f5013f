"""Reads the forms in which servers take a schema or a grammar for an answer, and names the places of a
request at which they stand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from harness.cases.bare_schema import is_schema, is_type
from harness.cases.case import json_text
from harness.cases.json_reading import parse_if_text
from harness.cases.subschemas import without_keys
from harness.cases.tool_lists import of_openapi
from harness.errors import BadInput

Answer = tuple[str, str, Any]
"""The name (empty: none), the key of a case that has such a grammar, and the grammar."""


def unpacked(value: Any, keys: Iterable[str], before: str) -> Any:
    """Returns the value with the objects whose JSON stands there as text under these keys, as in the rows of
    tables; `before` is what is said before a key. Raises BadInput."""
    if not isinstance(value, dict):
        return value
    return value | {
        key: unpacked(object_of_text(value[key], f'{before}{key}"'), TEXTS[key], f"{before}{key}.")
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


def holds(value: object) -> bool:
    """Does this say something at the place of a format? Text is part of a prompt there, and a mode of the
    server holds an answer to no schema."""
    if (forms := _forms(value)) != [value]:
        return any(isinstance(each, str) or holds(each) for each in forms)
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
    if value["type"] in MODES and not holds(value):
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


def _object_of_pydantic_ai(value: Any, what: str) -> Answer | None:
    """Reads the object of which an answer's text is the JSON there, with its name beside it."""
    is_object = isinstance(value, dict) and isinstance(value.get("json_schema"), dict)
    return (str(value.get("name") or ""), "schema", value["json_schema"]) if is_object else None


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
"""The keys of a request whose value may be the text of an object, each with such keys in that object. A
prompt may begin with a brace too, under `text`."""

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
    # Pydantic AI's
    "output_object": _object_of_pydantic_ai,
}
"""The places of a request at which it says what its answer is held to, and how each is read."""
