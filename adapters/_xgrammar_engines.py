"""What a serving engine refuses before xgrammar sees the request.

These checks ask nothing but the grammar. They are told here in our own words, as the releases in `RELEASES`
have them; tests/backend/test_xgrammar_engines.py compares them with the engines' own where these are
installed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

from harness import Grammar, UnsupportedGrammar

Engine = Literal["none", "vllm", "sglang"]
"""The engine whose check comes before the library."""
RELEASES = {"vllm": "vLLM 0.33.0", "sglang": "SGLang 0.5.23"}

NOT_OF_SGLANG = ("choice", "lark")
"""The dialects that the library has, and SGLang does not hand to it."""

FORMATS = (
    *("date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "json-pointer", "time", "uri"),
    *("relative-json-pointer", "uri-reference", "uri-template", "uuid"),
)
"""The formats of a string that both engines know of xgrammar; with any other a schema is refused."""
OF_ARRAYS = ("uniqueItems", "contains", "minContains", "maxContains")
"""The keywords with which vLLM refuses an array (`has_xgrammar_unsupported_json_features`)."""
OF_SGLANG = (
    *("contains", "dependentRequired", "dependentSchemas", "else", "if", "maxContains", "minContains"),
    *("multipleOf", "not", "then", "uniqueItems"),
)
"""The keywords with which SGLang refuses a schema (`validate_xgrammar_json_schema`)."""

HOLD_ONE = (
    *("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"),
    *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
)
HOLD_LIST = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
HOLD_MAP = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties", "dependencies")
"""The keywords below which SGLang looks for schemas; vLLM looks into every object."""


def refuse_as(engine: Engine, grammar: Grammar) -> None:
    """Raises UnsupportedGrammar for a grammar that the engine does not hand to the library."""
    refused = ""
    if engine == "sglang" and grammar.dialect in NOT_OF_SGLANG:
        refused = f"xgrammar is given no {grammar.dialect}"
    elif engine != "none" and grammar.dialect == "json_schema":
        refused = (of_vllm if engine == "vllm" else of_sglang)(_read(grammar.text))
    if refused:
        raise UnsupportedGrammar(f"{RELEASES[engine]} refuses it: {refused}")


def of_vllm(schema: Any) -> str:
    """Returns the part of a schema for which vLLM refuses it with xgrammar; empty where it does not."""
    return next(filter(None, map(_of_vllm, _objects(schema))), "")


def of_sglang(schema: Any) -> str:
    """Returns the part of a schema for which SGLang refuses it with xgrammar; empty where it does not."""
    return next(filter(None, map(_of_sglang, _schemas(schema))), "")


def _of_vllm(one: dict[str, Any]) -> str:
    types = _types(one)
    if types & {"integer", "number"} and "multipleOf" in one:
        return "multipleOf"
    if "array" in types and (found := [key for key in OF_ARRAYS if key in one]):
        return found[0]
    if "string" in types and (found := [*_unknown_format(one), *_bounded(one)]):
        return found[0]
    names, patterns = one.get("propertyNames"), one.get("patternProperties")
    if "object" in types and "propertyNames" in one:
        if isinstance(names, dict) and (found := _bounded(names)):
            return f"propertyNames with {found[0]}"
        if found := [key for key in ("patternProperties", "properties") if key in one]:
            return f"propertyNames beside {found[0]}"
        if one.get("unevaluatedProperties", True) is not True:
            return "propertyNames beside unevaluatedProperties"
    if "object" in types and isinstance(patterns, dict) and ("properties" in one or len(patterns) > 1):
        return "patternProperties beside properties" if "properties" in one else "several patternProperties"
    every = one.get("allOf")
    return "allOf of several" if isinstance(every, list) and len(every) > 1 else ""


def _of_sglang(one: dict[str, Any]) -> str:
    if found := [key for key in OF_SGLANG if key in one]:
        return found[0]
    if "type" in one and one["type"] is not None and "string" not in _types(one):
        return ""
    if found := _unknown_format(one):
        return found[0]
    lengths = [key for key in ("minLength", "maxLength") if key in one]
    together = [*(key for key in ("format", "pattern") if key in one), *lengths[:1]]
    return " beside ".join(together) if len(together) > 1 else ""


def _types(one: dict[str, Any]) -> set[str]:
    named = one.get("type")
    return {each for each in (named if isinstance(named, list) else [named]) if isinstance(each, str)}


def _unknown_format(one: dict[str, Any]) -> list[str]:
    named = one.get("format")
    is_known = "format" not in one or (isinstance(named, str) and named in FORMATS)
    return [] if is_known else [f"format {json.dumps(named)}"]


def _bounded(one: dict[str, Any]) -> list[str]:
    """Returns the pattern or the format of a string with a length, which vLLM refuses; none elsewhere."""
    shapes = [key for key in ("pattern", "format") if key in one]
    lengths = [key for key in ("minLength", "maxLength") if key in one]
    return [f"{shape} beside {length}" for shape in shapes for length in lengths]


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yields the object and all below it, those that are no schemas too; not those in lists of lists."""
    stack = [value]
    while stack:
        if isinstance(one := stack.pop(), dict):
            yield one
            for held in one.values():
                stack += held if isinstance(held, list) else [held]


def _schemas(schema: Any) -> Iterator[dict[str, Any]]:
    """Yields the schema and all schemas in it, those behind a `$ref` where they are defined."""
    stack = [schema]
    while stack:
        if isinstance(one := stack.pop(), dict):
            yield one
            stack += [one.get(key) for key in HOLD_ONE]
            stack += [each for key in HOLD_LIST if isinstance(one.get(key), list) for each in one[key]]
            stack += [
                each for key in HOLD_MAP if isinstance(one.get(key), dict) for each in one[key].values()
            ]


def _read(text: str) -> Any:
    """Returns what the JSON says; None where it is none, which the library is left to say."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
