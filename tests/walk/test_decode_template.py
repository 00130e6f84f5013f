"""Templates of JSON Schemas: what is fixed, and where an output stands in them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from harness.backend.grammar import Grammar
from harness.cases.case import json_text
from harness.oracle.judge import is_valid
from harness.walk.loop.following import Following
from harness.walk.loop.template import Template, template_of

NAMES = st.text(alphabet='abñ"\\/~ é日', max_size=4)
NUMBERS = st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False, width=32)
TEXTS = st.text(max_size=6)
Pair = tuple[dict[str, Any], Any]
"""A schema and a value that satisfies it."""


@st.composite
def leaves(draw: st.DrawFn) -> Pair:
    value = draw(
        TEXTS
        | NUMBERS
        | st.booleans()
        | st.none()
        | st.lists(TEXTS | NUMBERS, max_size=3)
        | st.dictionaries(NAMES, TEXTS, max_size=2)
    )
    kind = {
        bool: "boolean",
        int: "integer",
        float: "number",
        str: "string",
        list: "array",
        dict: "object",
        type(None): "null",
    }[type(value)]
    return draw(
        st.sampled_from(
            [
                {"type": kind},
                {"const": value},
                {"enum": [value]},
                {"type": kind, "const": value},
                {"enum": [value, "other"]},
            ]
        )
    ), value


def objects(parts: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    def build(named: dict[str, Pair], extra: dict[str, Any], some: bool) -> Pair:
        schema = {"type": "object", "properties": {name: pair[0] for name, pair in named.items()}, **extra}
        return schema | {"required": list(named)[: -1 if some else None]}, {
            name: pair[1] for name, pair in named.items()
        }

    extras = st.sampled_from(
        [
            {},
            {"additionalProperties": False},
            {"additionalProperties": {"type": "null"}},
            {"title": "t"},
            {"maxProperties": 9},
        ]
    )
    return st.builds(build, st.dictionaries(NAMES, parts, max_size=4), extras, st.booleans())


PAIRS = st.recursive(leaves(), objects, max_leaves=12)


def grammar(schema: object) -> Grammar:
    return Grammar("json_schema", json_text(schema))


def at(value: Any, pointer: str) -> Any:
    for name in pointer.split("/")[1:]:
        value = value[name.replace("~1", "/").replace("~0", "~")]
    return value


@settings(max_examples=60, deadline=None)
@given(pair=PAIRS)
def test_blocks_and_values_together_are_the_value_as_json_is_written(pair: Pair) -> None:
    schema, value = pair
    template = template_of(grammar(schema))
    assume(template is not None)
    assert template is not None
    values = [at(value, slot.path) for slot in template.slots]
    for slot, each in zip(template.slots, values, strict=True):
        assert is_valid(Grammar("json_schema", slot.schema), json_text(each).encode())
    text = filled(template, [json_text(each).encode() for each in values])
    assert is_valid(grammar(schema), text)
    assert text == json_text(value).encode()


@settings(max_examples=60, deadline=None)
@given(pair=PAIRS, cuts=st.lists(st.integers(0, 400), max_size=8))
def test_an_output_is_followed_to_its_end_and_the_rest_of_a_block_is_what_comes(
    pair: Pair, cuts: list[int]
) -> None:
    schema, value = pair
    template = template_of(grammar(schema))
    assume(template is not None)
    assert template is not None
    values = [json_text(at(value, slot.path)).encode() for slot in template.slots]
    text = filled(template, values)
    assert follow(template, values, text, cuts) == text


def filled(template: Template, values: list[bytes]) -> bytes:
    """The output with these values in the slots."""
    parts = [part for pair in zip(template.blocks, values, strict=False) for part in pair]
    return b"".join([*parts, template.blocks[len(values)]])


def follow(template: Template, values: list[bytes], text: bytes, cuts: list[int]) -> bytes:
    """The text again, read in pieces; asserts that the rest is said exactly in the blocks, and right."""
    inside = [False] * (len(text) + 1)
    start = 0
    for block, said in zip(template.blocks, values, strict=False):
        start += len(block)
        ended = said[-1:] in (b'"', b"}", b"]") or said in (b"true", b"false", b"null")
        inside[start : start + len(said) + (not ended)] = [True] * (
            len(said) + (not ended)
        )  # a number ends with the byte behind it
        start += len(said)
    following, done = Following(template), 0
    for cut in [*sorted(cut for cut in set(cuts) if 0 < cut < len(text)), len(text)]:
        rest = following.rest()
        assert text[done:].startswith(rest) and bool(rest) != inside[done], (text, done)
        following.read(text[done:cut])
        done = cut
    assert following.is_done and not following.is_lost and following.rest() == b""
    return text[:done]


def test_a_value_that_is_read_carelessly_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from harness.walk.loop import following

    template = Template((b'{"a": ', b"}"), (None,))  # type: ignore[arg-type]
    values, cuts = [b'"\\"}"'], list(range(20))
    assert follow(template, values, filled(template, values), cuts)
    read = following._Value.read

    def blind(self: Any, byte: int) -> Any:
        said = read(self, byte)
        self._is_escaped = False
        return said

    monkeypatch.setattr(following._Value, "read", blind)
    with pytest.raises(AssertionError):
        follow(template, values, filled(template, values), cuts)


CITY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"const": "get_weather"},
        "arguments": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        },
    },
    "required": ["name", "arguments"],
}


def test_a_tool_call() -> None:
    schema = json.loads(json.dumps(CITY))
    template = template_of(grammar(schema))
    assert template is not None
    assert template.blocks == (b'{"name": "get_weather", "arguments": ', b"}")  # its arguments are optional
    schema["properties"]["arguments"]["required"] = ["city", "days"]
    template = template_of(grammar(schema))
    assert template is not None
    assert template.blocks == (b'{"name": "get_weather", "arguments": {"city": ', b', "days": ', b"}}")
    assert [(slot.path, slot.schema) for slot in template.slots] == [
        ("/arguments/city", '{"type": "string"}'), ("/arguments/days", '{"type": "integer"}'),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"type": "object"},
        {"type": "string"},
        {"enum": [1, 2]},
        {"enum": []},
        {"const": "a", "type": "integer"},
        {"const": 1.0, "type": "integer"},
        {"const": "a", "minLength": 3},
        {"const": "a", "enum": ["a"]},
        {"properties": {"a": {"const": 1}}, "required": ["a"]},
        {"type": ["object"], "properties": {"a": {"const": 1}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"const": 1}}},
        {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a", "b"]},
        {"type": "object", "properties": {"a": {"const": 1, "required": True}}},
        {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"], "minProperties": 2},
        {
            "type": "object",
            "properties": {"a": {"const": 1}},
            "required": ["a"],
            "patternProperties": {"a": {"type": "string"}},
        },
        {"type": "object", "properties": {"a": {"const": 1}}, "required": [["a"]]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"const": 1}}},
    ],
    ids=str,
)
def test_where_nothing_is_fixed_there_is_no_template(schema: object) -> None:
    assert template_of(grammar(schema)) is None


def test_other_dialects_and_endless_nesting_have_none() -> None:
    assert template_of(Grammar("regex", "abc")) is None
    assert (
        template_of(
            Grammar(
                "json_schema",
                '{"type": "object", "properties": {"a": ' * 9000 + "{}" + '}, "required": ["a"]}' * 9000,
            )
        )
        is None
    )


def test_what_is_fixed_altogether_has_one_block() -> None:
    assert template_of(grammar({"const": 'é"\ud800'})) == Template((b'"\\u00e9\\"\\ud800"',), ())
    assert template_of(
        grammar({"type": "object", "properties": {}, "additionalProperties": False})
    ) == Template((b"{}",), ())


@pytest.mark.parametrize(
    "output", [b'{"a":1}', b'{ "a": 1}', b'{"b": 1}', b'{"a": 1,', b'{"a": 1 }', b'{"a": 1}}', b'{"a": 1} ']
)
def test_an_output_in_another_style_leaves_the_template(output: bytes) -> None:
    template = template_of(grammar({"type": "object", "properties": {"a": {}}, "required": ["a"]}))
    assert template is not None
    following = Following(template)
    following.read(output)
    assert following.is_lost and following.rest() == b""
    following.read(b"}")
    assert following.is_lost
