"""What an engine refuses before its library sees a request, held against the engine's own check."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any

import pytest
from adapter_tools import BYTES

from harness import UnsupportedGrammar
from harness.backend.bridge.bare_package import bare_package
from harness.backend.grammar import Grammar
from harness.backend.registry import installed_version, make, parse_spec
from harness.errors import BadInput

checks: Any = import_module("harness.adapters._xgrammar_engines")

BOTH = ("vllm", "sglang")
REFUSED: dict[str, tuple[Any, tuple[str, ...]]] = {
    "unknown format": ({"type": "string", "format": "password"}, BOTH),
    "format that is no text": ({"type": "string", "format": ["date"]}, BOTH),
    "known format": ({"type": "string", "format": "date"}, ()),
    "format without a type": ({"format": "password"}, ("sglang",)),
    "format of a number": ({"type": "integer", "format": "int64"}, ()),
    "uniqueItems": ({"properties": {"a": {"type": ["array", "null"], "uniqueItems": True}}}, BOTH),
    "uniqueItems without a type": ({"items": {"uniqueItems": True}}, ("sglang",)),
    "multipleOf": ({"anyOf": [{"type": "number", "multipleOf": 2}]}, BOTH),
    "not": ({"not": {"const": 1}}, ("sglang",)),
    "not is the name of a property": ({"properties": {"not": {"type": "string"}}}, ()),
    "pattern with a length": ({"$defs": {"a": {"type": "string", "pattern": "a", "maxLength": 3}}}, BOTH),
    "pattern with a format": ({"type": "string", "pattern": "a", "format": "date"}, ("sglang",)),
    "names and patterns": ({"type": "object", "propertyNames": {}, "patternProperties": {}}, ("vllm",)),
    "names with a length": ({"type": "object", "propertyNames": {"pattern": "a", "minLength": 1}}, BOTH),
    "patterns": ({"type": "object", "patternProperties": {"a": {}, "b": {}}}, ("vllm",)),
    "one pattern": ({"type": "object", "patternProperties": {"a": {}}}, ()),
    "allOf": ({"allOf": [{"type": "string"}, {"enum": ["a"]}]}, ("vllm",)),
    "allOf of one": ({"allOf": [{"type": "string"}]}, ()),
    "within a value": ({"const": {"type": "string", "format": "x"}}, ("vllm",)),
    "true": (True, ()),
}  # fmt: skip
"""Schemas, and the engines that refuse them with xgrammar."""


@pytest.mark.parametrize("name", REFUSED)
def test_a_schema_is_refused_by_these_engines(name: str) -> None:
    schema, engines = REFUSED[name]
    said = {"vllm": checks.of_vllm(schema), "sglang": checks.of_sglang(schema)}
    assert {engine for engine, part in said.items() if part} == set(engines)


KEYWORDS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("type", ("string", "array", "object", "number", ["integer", "string"], ["array", "null"], None)),
    ("format", ("date", "uuid", "password", "idn-email", "regex", 3)),
    *((name, (1, 2)) for name in ("minLength", "maxLength", "minContains", "maxContains", "multipleOf")),
    ("pattern", ("a", "b*")),
    ("uniqueItems", (True, False)),
    ("unevaluatedProperties", (True, False)),
    ("dependentRequired", ({"a": ["b"]},)),
    ("const", ("a", {"type": "string", "format": "x"})),
)
HOLDING = (*checks.HOLD_ONE, *checks.HOLD_LIST, *checks.HOLD_MAP, "default", "x-own")


def a_schema(chance: random.Random, depth: int) -> Any:
    """Returns a schema of some keywords, of which some may stand where they mean nothing."""
    if depth and chance.random() < 0.05:
        return chance.choice([True, False])
    made = {name: chance.choice(values) for name, values in chance.sample(KEYWORDS, chance.randint(0, 2))}
    for name in chance.sample(HOLDING, chance.randint(0, 2) if depth < 2 else 0):
        below = [a_schema(chance, depth + 1) for _ in range(chance.randint(1, 2))]
        if name in checks.HOLD_MAP:
            made[name] = dict(zip(("a", "not"), below, strict=False))
        else:
            made[name] = below if name in checks.HOLD_LIST and chance.random() < 0.8 else below[0]
    return made


def schemas() -> Iterator[Any]:
    yield from (schema for schema, _ in REFUSED.values())
    chance = random.Random(7)
    yield from (a_schema(chance, 0) for _ in range(3000))


def vllm_refuses() -> Callable[[Any], bool]:
    bare_package("vllm", "vllm.v1", "vllm.v1.structured_output")
    module = import_module("vllm.v1.structured_output.backend_xgrammar")

    def refuses(schema: Any) -> bool:
        try:
            return bool(module.has_xgrammar_unsupported_json_features(schema))
        except TypeError:  # a format that is a list; whatever is raised there refuses the request
            return True

    return refuses


def sglang_refuses() -> Callable[[Any], bool]:
    bare_package("sglang", "sglang.srt", "sglang.srt.constrained")
    module = import_module("sglang.srt.constrained.json_schema_validation")

    def refuses(schema: Any) -> bool:
        try:
            module.validate_xgrammar_json_schema(schema)
        except module.UnsupportedJSONSchemaFeature:
            return True
        return False

    return refuses


@pytest.mark.parametrize(
    ("engine", "mine", "theirs"),
    [("vllm", checks.of_vllm, vllm_refuses), ("sglang", checks.of_sglang, sglang_refuses)],
)
def test_the_check_is_that_of_the_engine(
    engine: str, mine: Callable[[Any], str], theirs: Callable[[], Callable[[Any], bool]]
) -> None:
    if not installed_version(engine):
        pytest.skip(f"{engine} is not installed")
    assert checks.RELEASES[engine].endswith(f" {installed_version(engine)}")
    refuses = theirs()
    seen = {True: 0, False: 0}
    for schema in schemas():
        assert bool(mine(schema)) is refuses(schema), json.dumps(schema)
        seen[refuses(schema)] += 1
    assert min(seen.values()) > 100


def refusal(backend: str, dialect: Any, text: str) -> str:
    """Returns why the backend refuses the grammar; empty where it takes it. Skips without the library."""
    try:
        adapter = make(parse_spec(backend), BYTES)
    except BadInput as error:
        pytest.skip(str(error))
    with suppress(UnsupportedGrammar):
        adapter.compile(Grammar(dialect, text))
        return ""
    with pytest.raises(UnsupportedGrammar) as refused:
        adapter.compile(Grammar(dialect, text))
    return str(refused.value)


def test_a_library_refuses_as_an_engine_only_where_it_is_told_to() -> None:
    text = json.dumps({"type": "string", "format": "password"})
    assert refusal("xgrammar", "json_schema", text) == ""
    assert refusal("xgrammar:engine=vllm", "json_schema", text) == (
        'vLLM 0.33.0 refuses it: format "password"'
    )
    assert refusal("xgrammar:engine=sglang", "json_schema", text).startswith("SGLang 0.5.23 refuses it")


def test_sglang_has_no_choices() -> None:
    choices = json.dumps(["a", "b"])
    for library in ("xgrammar:engine=vllm", "llguidance"):
        assert refusal(library, "choice", choices) == ""
    for library in ("xgrammar", "llguidance"):
        assert refusal(f"{library}:engine=sglang", "choice", choices).startswith("SGLang 0.5.23 ")


def test_sglang_gives_lark_to_llguidance_alone() -> None:
    lark = 'start: "a"'
    assert refusal("llguidance:engine=sglang", "lark", lark) == ""
    assert "is given no lark" in refusal("xgrammar:engine=sglang", "lark", lark)


def test_the_library_of_an_engine_has_closed_objects() -> None:
    schema = Grammar("json_schema", '{"properties": {"a": {"type": "null"}}}')
    for backend, takes in (
        ("xgrammar", True),
        ("xgrammar:engine=vllm", False),
        ("xgrammar:engine=sglang", False),
    ):
        try:
            adapter = make(parse_spec(backend), BYTES)
        except BadInput as error:
            pytest.skip(str(error))
        walk = adapter.compile(schema).start()
        assert all(map(walk.accept_token, BYTES.encode(b'{"b":1}'))) is takes
    assert make(parse_spec("xgrammar:engine=vllm"), BYTES).loader == "bytes"
