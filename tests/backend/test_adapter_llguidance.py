"""The llguidance adapter, with the library itself."""

from __future__ import annotations

import json
from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from adapter_tools import (
    AB,
    BYTES,
    KANJI,
    POINT,
    SMALL,
    TAG,
    Tools,
    allowed,
    maker,
)

from harness.backend.grammar import (
    Dialect,
    Grammar,
    InvalidGrammar,
    UnsupportedGrammar,
    allocate_bitmask,
)
from harness.backend.vocabulary import Vocabulary

pytest.importorskip("llguidance")

llguidance_forms = import_module("harness.adapters._llguidance_forms")

make = maker("llguidance", "Llguidance")
start, holds = Tools(make).start, Tools(make).holds


@pytest.mark.parametrize(
    ("dialect", "text", "reason"),
    [
        ("json_schema", '{"not": {}}', "Unimplemented keys"),
        ("json_schema", '{"type": "array", "uniqueItems": true}', "Unimplemented keys"),
        ("json_schema", '{"type": "string", "format": "foo"}', "Unknown format"),
        (
            "json_schema",
            '{"oneOf": [{"type": "string"}, {"minLength": 1}]}',
            "oneOf constraints are not supported",
        ),
        ("json_schema", '{"patternProperties": {"a": {}, "b": {}}}', "not disjoint"),
        ("json_schema", '{"$ref": "http://example.org/"}', "does not fetch"),
        ("regex", "(?=a)", "look-around"),
        ("regex", "(a)\\1", "backreferences"),
        ("regex", "\\b", "lookarounds"),
        ("ebnf", 'root ::= start\nstart ::= "a"', "already exists"),
        ("lark", 'start.2: "a"', "priority not supported"),
        (
            "structural_tag",
            '{"triggers": ["<"], "structures": [{"begin": "<", "schema": {"not": {}}, "end": ""}]}',
            "Unimplemented keys",
        ),
        (
            "structural_tag",
            '{"triggers": ["<f", "<g"], "structures": [{"begin": "<f>", "schema": {}, "end": ""}]}',
            "no trigger without a structure, such as '<g'",
        ),
    ],
)
def test_what_the_library_cannot_do_is_unsupported(dialect: Dialect, text: str, reason: str) -> None:
    with pytest.raises(UnsupportedGrammar, match=reason):
        make().compile(Grammar(dialect, text))


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("json_schema", "{"),
        ("json_schema", "1"),
        ("json_schema", '{"type": "foo"}'),
        ("json_schema", '{"properties": 3}'),
        ("json_schema", '{"type": "string", "minLength": 5, "maxLength": 3}'),
        ("json_schema", '{"type": "string", "pattern": "("}'),
        ("json_schema", '{"$ref": "#/missing"}'),
        ("json_schema", "false"),
        ("regex", "("),
        ("regex", "[z-a]"),
        ("regex", "\ud800"),
        ("ebnf", 'root ::= "a'),
        ("ebnf", "root ::= missing"),
        ("ebnf", 'other ::= "a"'),
        ("lark", 'start: "a'),
        ("lark", "start: missing"),
        ("lark", 'other: "a"'),
        ("lark", "{}"),
        ("ebnf", 'root ::= "a"{3,1}'),
        ("choice", "["),
        ("choice", "[1]"),
        ("choice", '{"a": 1}'),
        ("choice", '["\\ud800"]'),
        ("structural_tag", "{"),
        ("structural_tag", "[]"),
        ("structural_tag", '{"triggers": ["<"], "structures": []}'),
        ("structural_tag", '{"triggers": "<", "structures": [{"begin": "<", "schema": {}, "end": ""}]}'),
        ("structural_tag", '{"triggers": ["<x"], "structures": [{"begin": "<f>", "schema": {}, "end": ""}]}'),
        (
            "structural_tag",
            '{"triggers": ["<f"], "structures": [{"begin": "<f>", "schema": {"type": "foo"}, "end": ""}]}',
        ),
        (
            "structural_tag",
            '{"triggers": ["<f"], "structures": [{"begin": "<f>", "schema": false, "end": ""}]}',
        ),
    ],
)
def test_wrong_input_is_invalid(dialect: Dialect, text: str) -> None:
    with pytest.raises(InvalidGrammar):
        make().compile(Grammar(dialect, text))


def test_a_bug_of_the_gbnf_converter_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: str) -> str:
        raise IndexError("string index out of range")

    monkeypatch.setattr(llguidance_forms, "gbnf_to_lark", fail)
    with pytest.raises(IndexError):
        make().compile(Grammar("ebnf", 'root ::= "a"'))


def test_a_panic_that_the_library_caught_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    adapter: Any = make()
    broken = SimpleNamespace(
        is_error=lambda: True, get_error=lambda: "panic: oh\n<backtrace>\n1\n</backtrace>"
    )
    monkeypatch.setattr(adapter, "new_matcher", lambda _: broken)
    with pytest.raises(RuntimeError, match=r"^panic: oh$"):
        adapter.compile(Grammar("regex", "a"))


def test_whitespace_reaches_into_structural_tags() -> None:
    compact, spaced = '<f>{"a":1}</f>', '<f>{"a": 1}</f>'
    assert [holds("structural_tag", TAG, each) for each in (compact, spaced)] == [True, True]
    assert [holds("structural_tag", TAG, each, whitespace="compact") for each in (compact, spaced)] == [
        True,
        False,
    ]
    assert [holds("structural_tag", TAG, each, whitespace="json_dumps") for each in (compact, spaced)] == [
        False,
        True,
    ]


@pytest.mark.parametrize("whitespace", ["json_dumps", "compact"])
def test_whitespace_is_declined_where_the_library_has_no_such_option(whitespace: str) -> None:
    tag = '{"triggers": ["<"], "structures": [{"begin": "<", "schema": true, "end": ">"}]}'
    assert holds("structural_tag", tag, "<[ 1]>")
    for grammar in (Grammar("json_schema", "true"), Grammar("structural_tag", tag)):
        with pytest.raises(UnsupportedGrammar, match="object schema"):
            make(whitespace=whitespace).compile(grammar)


def test_a_schemas_own_options_give_way_to_ours() -> None:
    schema = '{"type": "array", "x-guidance": {"whitespace_flexible": false}}'
    assert [holds("json_schema", schema, each) for each in ("[1,2]", "[1, 2]")] == [True, False]
    assert [holds("json_schema", schema, each, whitespace="json_dumps") for each in ("[1,2]", "[1, 2]")] == [
        False,
        True,
    ]


@pytest.mark.parametrize("own", ["5", "null", "[]"])
def test_a_schemas_options_that_are_no_object_give_way_to_ours(own: str) -> None:
    schema = f'{{"type": "array", "x-guidance": {own}}}'
    tag = f'{{"triggers": ["<"], "structures": [{{"begin": "<", "schema": {schema}, "end": ">"}}]}}'
    for dialect, text, outputs in (
        ("json_schema", schema, ("[1,2]", "[1, 2]")),
        ("structural_tag", tag, ("<[1,2]>", "<[1, 2]>")),
    ):
        held = [holds(cast(Dialect, dialect), text, each, whitespace="compact") for each in outputs]
        assert held == [True, False]


@pytest.mark.parametrize("triggers", [["<f", "<f="], ["<f=", "<f"], ["<fb", "<f", "<f=", "<f=x"]])
def test_the_order_of_triggers_and_how_many_there_are_change_nothing(triggers: list[str]) -> None:
    parts = [{"begin": begin, "schema": {"type": "integer"}, "end": "</f>"} for begin in ("<f=add>", "<fb>")]
    tag = json.dumps({"triggers": triggers, "structures": parts})
    for output in ("a <f=add>1</f> b", "<fb>1</f>", "<f=add>1</f><fb>2</f>", "<", ""):
        assert holds("structural_tag", tag, output)
    for output in ("<fx", "<f=x", "<fb>x</f>", "<f"):
        assert not holds("structural_tag", tag, output)


def test_a_trigger_is_text_even_if_it_looks_like_a_special_token() -> None:
    tag = (
        '{"triggers": ["<f>"], "structures": [{"begin": "<f>", "schema": {"type": "integer"}, "end": '
        '"</f>"}]}'
    )
    assert holds("structural_tag", tag, "a <f>1</f> b")
    assert not holds("structural_tag", tag, "a <f>x</f> b")


@pytest.mark.parametrize("options", [{"threads": 2}, {"shared_lexer": False}])
def test_threads_and_lexers_do_not_change_the_language(options: dict[str, Any]) -> None:
    assert holds("json_schema", POINT, '{"x": 1}', **options)
    assert not holds("json_schema", POINT, '{"y": 1}', **options)


def test_a_text_without_a_token_for_a_byte_is_no_fault_of_the_library() -> None:
    letters = [bytes([byte]) for byte in range(256) if byte != ord("~")]
    vocabulary = Vocabulary("few", (*letters, b"hello", b""), (256,), {256: "</s>"})
    adapter = make(vocabulary, loader="bytes")
    matcher = adapter.compile(Grammar("choice", '["hello world ~ x", "hello you"]')).start()
    for token in vocabulary.encode(b"hello worl"):
        assert token in allowed(matcher, vocabulary) and matcher.accept_token(token)
    assert allowed(matcher, vocabulary) == {vocabulary.ids_by_bytes[b"d"]}
    form = llguidance_forms.TokenizerForm(vocabulary)
    assert form("hello ~ x") == vocabulary.encode(b"hello  x")
    assert form(b"hello x") == vocabulary.encode(b"hello x")


def test_a_matcher_that_fails_says_so() -> None:
    grammar_object = start("regex", "ab")
    with pytest.raises(RuntimeError, match=r"token id 10000 out of range$"):
        grammar_object.accept_token(10_000)
    for again in (
        lambda: allowed(grammar_object),
        grammar_object.jump_forward,
        grammar_object.fast_forward_tokens,
    ):
        with pytest.raises(RuntimeError, match="out of range"):
            again()


def test_a_mask_that_cannot_be_computed_raises() -> None:
    vocabulary = Vocabulary("a", (b"a", b""), eos_tokens=(1,), special_tokens={1: "</s>"})
    adapter = make(vocabulary)
    objects = [start("regex", "ab|ac", adapter), start("regex", "a[bc]", adapter)]
    for grammar_object in objects:
        grammar_object.accept_token(0)
    with pytest.raises(RuntimeError):
        objects[0].fill_bitmask(allocate_bitmask(vocabulary.size))
    with pytest.raises(RuntimeError):
        adapter.fill_bitmasks([objects[1]], np.zeros((1, 1), np.int32))


@pytest.mark.parametrize("text", ["ab*", "ab"])
def test_end_of_sequence_is_accepted_once_alone_or_with_others(text: str) -> None:
    end = BYTES.eos_token
    alone, together = start("regex", text), start("regex", text)
    assert [alone.accept_token(token) for token in (*b"ab", end, end, ord("b"))] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert together.accept_tokens([*b"ab", end, end]) == 3
    assert alone.is_terminated() and together.is_terminated()


@pytest.mark.parametrize("text", ["ab*", "ab"])
def test_rollback_goes_past_the_end_and_to_the_start(text: str) -> None:
    grammar_object = start("regex", text)
    masks = [allowed(grammar_object)]
    for token in b"ab":
        grammar_object.accept_token(token)
        masks.append(allowed(grammar_object))
    assert grammar_object.accept_token(BYTES.eos_token)
    grammar_object.rollback(1)
    assert not grammar_object.is_terminated()
    assert grammar_object.is_accepting()
    assert allowed(grammar_object) == masks[2]
    assert grammar_object.accept_token(BYTES.eos_token)
    grammar_object.rollback(2)
    assert allowed(grammar_object) == masks[1]
    grammar_object.rollback(0)
    grammar_object.rollback(1)
    assert allowed(grammar_object) == masks[0]
    with pytest.raises(RuntimeError):
        grammar_object.rollback(1)


def test_a_copy_of_an_ended_object_goes_back_by_itself() -> None:
    for text in ("ab*", "ab"):
        original = start("regex", text)
        original.accept_tokens([*b"ab", BYTES.eos_token])
        clone = original.copy()
        clone.rollback(2)
        assert (original.is_terminated(), clone.is_terminated()) == (True, False)
        assert clone.accept_tokens([ord("b"), BYTES.eos_token]) == 2


def test_forced_bytes_may_end_inside_a_character() -> None:
    assert start("regex", "(😀|😁)+").jump_forward() == "😀".encode()[:3]


def test_fast_forward_gives_canonical_tokens_without_moving() -> None:
    grammar_object = start("regex", "ab日[0-9]", make(SMALL))
    assert grammar_object.fast_forward_tokens() == [AB, KANJI]
    assert grammar_object.jump_forward() == "ab日".encode()
    assert grammar_object.accept_tokens([AB, KANJI]) == 2
    assert grammar_object.fast_forward_tokens() == []


def test_an_object_of_an_early_release_ends_and_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before 1.1 a matcher that stopped by itself must not be given end-of-sequence; nor is it here."""
    adapter = make()
    module = import_module(type(adapter).__module__)
    objects = import_module(f"{module.__package__}._llguidance_objects")
    monkeypatch.setattr(module, "OBJECT", objects.StoppedObject)
    grammar_object: Any = adapter.compile(Grammar("regex", "ab")).start()
    given: list[list[int]] = []
    consume = grammar_object.matcher.try_consume_tokens

    class Watched:
        def __getattr__(self, name: str) -> Any:
            return getattr(matcher, name)

        def try_consume_tokens(self, tokens: list[int]) -> int:
            given.append(tokens)
            count: int = consume(tokens)
            return count

    matcher, grammar_object.matcher = grammar_object.matcher, Watched()
    end = adapter.vocabulary.eos_token
    text = list(adapter.vocabulary.encode(b"ab"))
    assert grammar_object.accept_tokens([*text, end]) == len(text) + 1
    assert grammar_object.is_terminated() and not grammar_object.accept_token(end)
    grammar_object.rollback(1)
    assert not grammar_object.is_terminated() and grammar_object.is_accepting()
    assert not grammar_object.accept_token(text[0]) and grammar_object.accept_token(end)
    assert given and all(end not in tokens for tokens in given)
