"""The xgrammar adapter, with the library itself."""

from __future__ import annotations

import importlib
import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from adapter_tools import (
    POINT,
    TAG,
    Tools,
    maker,
)

from harness.backend.grammar import (
    Dialect,
    Grammar,
    InvalidGrammar,
    UnsupportedGrammar,
    allocate_bitmask,
)
from harness.backend.layout import STRICT
from harness.backend.vocabulary import Vocabulary
from harness.oracle.language import documents_of

xgrammar = pytest.importorskip("xgrammar")
releases = importlib.import_module("harness.adapters._xgrammar_releases")
ENDS_AT_CHARACTERS, HAS_FORCED_TOKENS = releases.ENDS_AT_CHARACTERS, releases.HAS_FORCED_TOKENS

make = maker("xgrammar", "Xgrammar")
start, holds = Tools(make).start, Tools(make).holds


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("json_schema", '{"type": "string", "pattern": "\\\\p{L}"}'),
        ("regex", "(?=a)"),
        ("regex", "(a)\\1"),
        ("regex", "(?i)a"),
        ("lark", 'start.2: "a"'),
        ("lark", "start: /a/m"),
    ],
)
def test_what_the_library_cannot_do_is_unsupported(dialect: Dialect, text: str) -> None:
    with pytest.raises(UnsupportedGrammar, match="not supported"):
        make().compile(Grammar(dialect, text))


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("json_schema", "{"),
        ("json_schema", "1"),
        ("json_schema", '{"type": "foo"}'),
        ("json_schema", '{"properties": 3}'),
        ("json_schema", '{"type": "string", "minLength": 5, "maxLength": 3}'),
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
        ("choice", "["),
        ("choice", "[]"),
        ("choice", "[1]"),
        ("choice", '{"a": 1}'),
        ("choice", '["\\ud800"]'),
        ("structural_tag", "{"),
        ("structural_tag", "[]"),
        ("structural_tag", '{"triggers": ["<x"], "structures": [{"begin": "<f>", "schema": {}, "end": ""}]}'),
        (
            "structural_tag",
            '{"triggers": ["<f"], "structures": [{"begin": "<f>", "schema": {"type": "foo"}, "end": ""}]}',
        ),
    ],
)
def test_wrong_input_is_invalid(dialect: Dialect, text: str) -> None:
    with pytest.raises(InvalidGrammar) as caught:
        make().compile(Grammar(dialect, text))
    assert "/project/" not in str(caught.value)


def test_an_error_that_gives_no_reason_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    adapter: Any = make()
    place = "[12:00:00] /project/cpp/parser.cc:1:"
    for text in (
        "std::bad_alloc",
        f"{place} Check failed: (a == b) is false: ",
        f"{place} Internal check failed: (a == b) is false: ",
        f"{place} Internal check failed: (a == b) is false: a reason",
    ):

        def fail(_: str, text: str = text) -> None:
            raise RuntimeError(text)

        monkeypatch.setattr(adapter, "_compiler", SimpleNamespace(compile_regex=fail))
        with pytest.raises(RuntimeError):
            adapter.compile(Grammar("regex", "a"))


def test_an_internal_check_that_fails_is_no_refusal() -> None:
    """A trigger of no structure makes one fail in 0.2.8."""
    part = {"begin": "<f>", "schema": {"type": "integer"}, "end": "</f>"}
    with pytest.raises(RuntimeError, match="Internal check failed"):
        start("structural_tag", json.dumps({"triggers": ["<f", "<g"], "structures": [part]}))


def test_whitespace_is_declined_where_the_library_has_no_such_option() -> None:
    with pytest.raises(UnsupportedGrammar):
        make(whitespace="compact").compile(Grammar("structural_tag", TAG))


def test_open_objects_take_properties_that_the_schema_does_not_name() -> None:
    output = '{"x": 1, "other": 2}'
    assert holds("json_schema", POINT, output)
    assert not holds("json_schema", POINT, output, open_objects=False)


INTEGER, OBJECT = {"type": "integer"}, {"type": "object"}
NAMED = {**OBJECT, "properties": {"a": INTEGER}}


@pytest.mark.parametrize(
    ("schema", "text", "is_written"),
    [
        (NAMED, '{"a":1,"x":1}', False),
        (OBJECT, '{"x":1}', None),
        ({**NAMED, "additionalProperties": True}, '{"a":1,"x":"s"}', True),
        ({**NAMED, "additionalProperties": {}}, '{"a":1,"xyz":[1]}', True),
        ({**NAMED, "additionalProperties": INTEGER}, '{"a":1,"xyz":1}', True),
        ({**NAMED, "additionalProperties": False}, '{"a":1,"x":1}', False),
        ({**OBJECT, "additionalProperties": NAMED}, '{"x":{"a":1}}', True),
        ({**OBJECT, "additionalProperties": NAMED}, '{"x":{"b":1}}', False),
        ({**OBJECT, "patternProperties": {"^x$": INTEGER}}, '{"x":1}', True),
        ({**OBJECT, "patternProperties": {"^x$": INTEGER}}, '{"y":1}', False),
        ({**OBJECT, "patternProperties": {"^x-.*$": NAMED}}, '{"x-1":{"a":1}}', True),
        ({**OBJECT, "patternProperties": {"^x-.*$": NAMED}}, '{"x-1":{"b":1}}', False),
        (
            {**NAMED, "patternProperties": {"^x$": INTEGER}, "additionalProperties": False},
            '{"a":1,"x":1}',
            True,
        ),
        (
            {**NAMED, "patternProperties": {"^x$": INTEGER}, "additionalProperties": False},
            '{"x":1,"a":1}',
            False,
        ),
        ({**NAMED, "unevaluatedProperties": INTEGER}, '{"a":1,"x":1}', True),
        ({**NAMED, "unevaluatedProperties": False}, '{"a":1,"x":1}', False),
        ({**NAMED, "propertyNames": {"pattern": "^[ax]$"}}, '{"a":1,"x":1}', False),
        ({**OBJECT, "properties": {"o": NAMED}}, '{"o":{"a":1,"x":1}}', False),
    ],
)
def test_closed_objects_have_the_names_of_which_the_schema_says_something(
    schema: Any, text: str, is_written: bool | None
) -> None:
    """None: the library writes what the layout need not have."""
    layout = make(open_objects=False).layout
    assert layout == STRICT
    assert documents_of(json.dumps(schema), layout=layout).accepts(text.encode()) is bool(is_written)
    assert holds("json_schema", json.dumps(schema), text, open_objects=False) is (is_written is not False)


def test_any_order_lets_properties_change_places() -> None:
    output = '{"y": 2, "x": 1}'
    assert not holds("json_schema", POINT, output, open_objects=False)
    assert holds("json_schema", POINT, output, open_objects=False, any_order=True)


DYNAMIC = pytest.param(
    {"dynamic": True},
    marks=pytest.mark.skipif(not HAS_FORCED_TOKENS, reason="xgrammar has it since 0.2.9"),
)


@pytest.mark.parametrize("options", [{"threads": 2}, {"cache": True}, DYNAMIC])
def test_how_it_compiles_does_not_change_the_language(options: dict[str, Any]) -> None:
    assert holds("json_schema", POINT, '{"x": 1}', **options)
    assert not holds("json_schema", POINT, '{"y": 1}', **options)


def test_forced_text_ends_before_a_character_or_raises_where_the_release_does_not_say_so() -> None:
    smiling = start("regex", "a(😀|😁)+")
    if ENDS_AT_CHARACTERS:
        assert smiling.jump_forward() == b"a"
        assert make().documents("inside_a_character+starts_inside_a_character")
        return
    assert not make().documents("inside_a_character")
    with pytest.raises(UnicodeDecodeError):
        smiling.jump_forward()


@pytest.mark.skipif(not HAS_FORCED_TOKENS, reason="xgrammar has it since 0.2.9")
def test_forced_tokens_are_the_longest_but_the_last_which_another_may_go_on_from() -> None:
    tokens = (b"a", b"ab", b"c", b"cd", b"d", b"")
    vocabulary = Vocabulary("few", tokens, (5,), {5: "</s>"})
    grammar_object = make(vocabulary).compile(Grammar("regex", "abc[de]")).start()
    assert grammar_object.fast_forward_tokens() == [1]
    assert grammar_object.accept_tokens([1]) == 1
    assert grammar_object.fast_forward_tokens() == []


def test_dynamic_compilation_is_in_the_script_and_refused_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grammar = Grammar("regex", "a")
    assert "GrammarCompiler(info).compile_regex" in make().script(grammar)
    if HAS_FORCED_TOKENS:
        script = make(dynamic=True).script(grammar)
        assert "GrammarCompiler(info, enable_dynamic_compilation=True).compile_regex" in script
    monkeypatch.setattr(xgrammar.GrammarCompiler, "__init__", lambda self, tokenizer_info: None)
    with pytest.raises(ValueError, match="leave `dynamic` out"):
        releases.compiler_options(dynamic=True)
    assert releases.compiler_options(dynamic=False) == {}


def test_what_a_release_has_not_is_not_had_and_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = make()
    compiled = adapter.compile(Grammar("regex", "ab"))
    one, other = compiled.start(), compiled.start()
    assert one.accept_token(adapter.vocabulary.encode(b"a")[0])
    masks = np.stack([allocate_bitmask(adapter.vocabulary.size)] * 2)
    adapter.fill_bitmasks([one, other], masks)
    filled = masks.copy()
    for name in ("HAS_FORK", "HAS_JSON", "HAS_BATCHES"):
        monkeypatch.setattr(f"{type(adapter).__module__}.{name}", False)
    with pytest.raises(NotImplementedError):
        one.copy()
    with pytest.raises(NotImplementedError):
        compiled.serialize()
    masks[:] = 0
    adapter.fill_bitmasks([one, other], masks)
    assert (masks == filled).all()


def test_a_release_that_does_not_tell_completion_is_asked_by_its_mask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    adapter = make()
    for text, schema in ((b'{"a": 1}', '{"type": "object"}'), (b"12", '{"type": "integer"}')):
        grammar_object = adapter.compile(Grammar("json_schema", schema)).start()
        for token in [*adapter.vocabulary.encode(text), adapter.vocabulary.eos_token]:
            told = grammar_object.is_accepting()
            with monkeypatch.context() as patch:
                patch.setattr(f"{type(adapter).__module__}.TELLS_COMPLETION", False)
                assert grammar_object.is_accepting() == told
            assert grammar_object.accept_token(token)
        with monkeypatch.context() as patch:
            patch.setattr(f"{type(adapter).__module__}.TELLS_COMPLETION", False)
            assert grammar_object.is_accepting()
