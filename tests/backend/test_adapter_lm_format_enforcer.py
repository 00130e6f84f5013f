"""The lm-format-enforcer adapter, with the library itself."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import numpy as np
import pytest
from adapter_tools import BYTES, Tools, maker
from adapter_tools import bits as allowed
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.backend.grammar import Dialect, Grammar, InvalidGrammar, UnsupportedGrammar
from harness.backend.vocabulary import Vocabulary

pytest.importorskip("lmformatenforcer")

EOS, SPECIAL, AB, AB_AGAIN, KANJI, HALF_KANJI = 0, 1, 258, 259, 260, 261
SMALL = Vocabulary(
    name="small",
    tokens=(b"", b"", *BYTES.tokens[:256], b"ab", b"ab", "日".encode(), "日".encode()[:2], *[b""] * 40),
    eos_tokens=(EOS,),
    special_tokens={EOS: "</s>", SPECIAL: "[INST]"},
    padding_tokens=frozenset(range(262, 302)),
)
"""End-of-sequence first, two ids for one text, and padding that begins inside of a word and fills the next
one."""

POINT = (
    '{"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}, "required": '
    '["y", "x"]}'
)
LIST = (
    '{"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": '
    '"boolean"}}]}}'
)


make = cache(maker("lm_format_enforcer", "LMFormatEnforcer"))
start, holds = Tools(make).start, Tools(make).holds


@pytest.mark.parametrize(
    ("dialect", "text", "valid", "not_valid"),
    [
        ("regex", "a{2}b+", "aabb", "ab"),
        ("regex", r"[0-9]+(\.[0-9]+)?", "1.5", "1."),
        ("json_schema", '{"type": "integer"}', "10", "1x"),
        ("json_schema", POINT, '{"x":\n1, "y": 2}', '{"x": 1}'),
        ("json_schema", "true", '{"a": [1, "b", null]}', "{a}"),
        ("json_schema", '{"type": "object"}', '{"a": {"b": 1}}', "[]"),
        ("choice", '["a", "a.c", "[x]"]', "a.c", "abc"),
    ],
)
def test_each_dialect_holds_its_outputs_and_no_others(
    dialect: Dialect, text: str, valid: str, not_valid: str
) -> None:
    assert holds(dialect, text, valid)
    assert not holds(dialect, text, not_valid)


def test_every_id_of_a_text_is_allowed_and_no_special_or_padding_token_is() -> None:
    assert allowed(start("regex", "ab", make(SMALL)), SMALL) == {2 + ord("a"), AB, AB_AGAIN}


def test_the_librarys_treatment_of_utf8_is_left_as_it_is() -> None:
    assert allowed(start("regex", "日", make(SMALL)), SMALL) == {KANJI}  # not the two tokens that begin it
    free = allowed(start("regex", '[^"]', make(SMALL)), SMALL)
    assert {2 + 0xFF, 2 + 0x80, HALF_KANJI} <= free  # 0xFF is in no UTF-8 at all


def test_a_bitmask_that_is_too_long_is_not_filled_though_the_vocabulary_is_one_word() -> None:
    small = Vocabulary("small", (*(bytes([byte]) for byte in b"abcd"), b""), (4,), {4: "</s>"})
    grammar_object = (
        maker("lm_format_enforcer", "LMFormatEnforcer")(small).compile(Grammar("regex", "ab")).start()
    )
    with pytest.raises(ValueError, match="is filled, not one of"):
        grammar_object.fill_bitmask(np.zeros(2, dtype=np.int32))


def test_accepting_without_a_fill_leads_to_the_same_masks() -> None:
    filled, blind = start("json_schema", LIST), start("json_schema", LIST)
    for token in b"[1, [true":
        allowed(filled)
        assert filled.accept_token(token) and blind.accept_token(token)
    assert allowed(filled) == allowed(blind) == {*b", \n\t\r]"}


def test_after_the_end_nothing_is_allowed_and_rollback_counts_end_of_sequence() -> None:
    grammar_object = start("regex", "ab*")
    assert grammar_object.accept_tokens([*b"ab", BYTES.eos_token]) == 3 and grammar_object.is_terminated()
    assert (
        allowed(grammar_object) == set()
        and not grammar_object.accept_token(ord("b"))
        and not grammar_object.is_accepting()
    )
    grammar_object.rollback(1)
    assert allowed(grammar_object) == {ord("b"), BYTES.eos_token} and grammar_object.accept_token(
        BYTES.eos_token
    )
    grammar_object.rollback(3)
    assert allowed(grammar_object) == {ord("a")}


@pytest.mark.parametrize("count", [-1, 3])
def test_rollback_of_more_than_was_accepted_is_an_error_and_does_not_move(count: int) -> None:
    grammar_object = start("regex", "ab*")
    assert grammar_object.accept_tokens([ord("a"), BYTES.eos_token]) == 2
    with pytest.raises(ValueError, match="cannot roll back"):
        grammar_object.rollback(count)
    assert grammar_object.is_terminated()


def test_a_copy_keeps_position_end_and_way_back() -> None:
    grammar_object = start("json_schema", POINT)
    tokens = [*b'{"x": 1, "y": 2}', BYTES.eos_token]
    assert grammar_object.accept_tokens(tokens) == len(tokens)
    clone = grammar_object.copy()
    clone.rollback(len(tokens) - 2)
    assert (
        grammar_object.is_terminated()
        and not clone.is_terminated()
        and allowed(clone) == {ord("x"), ord("y")}
    )


@pytest.mark.parametrize(("whitespace", "longest"), [("any", 40), ("library", 12), ("compact", 0)])
def test_the_whitespace_option_bounds_it_in_a_row(whitespace: str, longest: int) -> None:
    grammar_object = start("json_schema", POINT, make(whitespace=whitespace))
    assert grammar_object.accept_token(ord("{"))
    assert grammar_object.accept_tokens([ord(" ")] * 40) == longest


def test_the_property_order_option_makes_required_properties_come_in_order() -> None:
    out_of_order = '{"x": 1, "y": 2}'
    assert holds("json_schema", POINT, out_of_order)
    assert not holds("json_schema", POINT, out_of_order, property_order=True)
    assert holds("json_schema", POINT, '{"y": 2, "x": 1}', property_order=True)


@pytest.mark.parametrize(
    "schema",
    [
        '{"type": "array", "items": {"type": "integer"}}',
        '{"type": "object", "additionalProperties": {"type": "array"}}',
    ],
)
def test_the_array_option_bounds_arrays_at_any_depth(schema: str) -> None:
    before = "[" if "items" in schema else '{"a":['
    for length, options in ((20, {}), (2, {"max_array_length": 2}), (21, {"max_array_length": 0})):
        grammar_object = start("json_schema", schema, make(**options))
        text = list((before + ",".join("1" * length)).encode())
        assert grammar_object.accept_tokens(text) == len(text)
        assert (ord(",") in allowed(grammar_object)) == (options == {"max_array_length": 0})


@pytest.mark.parametrize(
    "options", [{"max_array_length": 2}, {"max_array_length": 0}, {"whitespace": "compact"}]
)
@pytest.mark.parametrize(
    ("schema", "before"), [('{"type": "array", "items": {"type": "integer"}}', "["), ("true", '[{"a":[')]
)
def test_a_script_has_the_options_from_its_first_token_on(
    schema: str, before: str, options: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    adapter = make(**options)
    walk = list((before + ", ".join("1" * 22)).encode())
    taken = start("json_schema", schema, adapter).accept_tokens(walk)
    given = {"vocabulary": [*BYTES.tokens], "grammar": schema, "walk": walk}
    exec(adapter.script(Grammar("json_schema", schema)), given)
    assert capsys.readouterr().out.count("True True") == taken


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("regex", "^abc$"),
        ("regex", r"\p{L}"),
        ("regex", r"(a)\1"),
        ("json_schema", "false"),
        ("json_schema", '{"not": {}}'),
        ("json_schema", '{"enum": [1, "a"]}'),
        ("json_schema", '{"type": "string", "pattern": "a", "minLength": 1}'),
        ("json_schema", '{"$ref": "#"}'),
        ("ebnf", 'root ::= "a"'),
        ("structural_tag", '{"triggers": [], "structures": []}'),
    ],
)
def test_what_the_library_says_that_it_cannot_do_is_unsupported(dialect: Dialect, text: str) -> None:
    with pytest.raises(UnsupportedGrammar, match=r"."):
        start(dialect, text)


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("regex", "a("),
        ("json_schema", '{"type":'),
        ("json_schema", "[]"),
        ("json_schema", '{"type": 3}'),
        ("json_schema", '{"type": "string", "pattern": "("}'),
        ("choice", "[]"),
        ("choice", '["a", 1]'),
        ("choice", "[a]"),
    ],
)
def test_what_the_library_says_is_wrong_is_invalid(dialect: Dialect, text: str) -> None:
    with pytest.raises(InvalidGrammar, match=r"."):
        start(dialect, text)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"$ref": "#/definitions/x", "definitions": {}}', KeyError),
        ('{"type": "array", "items": [{"type": "string"}]}', AttributeError),
    ],
)
def test_an_error_that_says_neither_escapes_as_the_backends_fault(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        start("json_schema", text)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text("ab.*", max_size=4), min_size=1, max_size=5), st.text("ab.*", max_size=4))
def test_a_choice_is_exactly_its_strings(choices: list[str], other: str) -> None:
    compiled = make().compile(Grammar("choice", json.dumps(choices)))
    for text in {*choices, other}:
        grammar_object = compiled.start()
        tokens = [*text.encode(), BYTES.eos_token]
        assert (grammar_object.accept_tokens(tokens) == len(tokens)) == (text in choices)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["[ab]{0,3}c?", "(ab|ba)+", "a|ab", "(a|ab)(c|bcd)?"]), st.text("abcd", max_size=5))
def test_walking_bytes_agrees_with_pythons_re_on_simple_patterns(pattern: str, text: str) -> None:
    assert holds("regex", pattern, text) == bool(re.fullmatch(pattern, text))
