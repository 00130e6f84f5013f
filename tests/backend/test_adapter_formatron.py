"""The formatron adapter, with the library itself: the contract, what each dialect holds, and the library's
faults left as they are."""

from __future__ import annotations

import json
from functools import cache

import pytest
from adapter_tools import AB, AB_AGAIN, BYTES, EOS, SMALL, Tools, maker
from adapter_tools import bits as allowed

from harness.backend.grammar import Adapter, Dialect, Grammar, InvalidGrammar, UnsupportedGrammar
from harness.backend.vocabulary import Vocabulary

pytest.importorskip("formatron", reason="formatron is not installed: pip install 'grammarbench[more]'")

POINT = (
    '{"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}, "required": '
    '["x", "y"]}'
)

make = cache(maker("formatron", "Formatron"))
start, holds = Tools(make).start, Tools(make).holds


@pytest.mark.parametrize(
    ("dialect", "text", "valid", "not_valid"),
    [
        ("regex", "a{2}b", "aab", "ab"),
        ("regex", r"[0-9]{2}\.[0-9]", "10.5", "1.55"),
        ("regex", "'\"日本\"'", "'\"日本\"'", "'日本'"),
        ("json_schema", POINT, '{"x":\n1, "y": 2}', '{"x": 1}'),
        ("json_schema", '{"type": "array", "items": {"type": "boolean"}}', "[true, false]", "[1]"),
        ("choice", '["a", "b.c", "[x]"]', "b.c", "bbc"),
    ],
)
def test_each_dialect_holds_its_outputs_and_no_others(
    dialect: Dialect, text: str, valid: str, not_valid: str
) -> None:
    assert holds(dialect, text, valid)
    assert not holds(dialect, text, not_valid)


def test_every_id_of_a_text_is_allowed_and_no_special_or_padding_token_is() -> None:
    assert allowed(start("regex", "ab", make(SMALL)), SMALL) == {ord("a"), AB, AB_AGAIN}


def test_no_bit_is_set_behind_a_vocabulary_that_fills_half_of_its_last_word() -> None:
    odd = Vocabulary("odd", (*BYTES.tokens[:256], b"ab", b""), (257,), {257: "</s>"})
    grammar_object = start("regex", "(?s:.)", make(odd))
    bits = allowed(grammar_object, odd)
    assert bits and max(bits) < 257
    assert grammar_object.accept_token(ord("a")) and allowed(grammar_object, odd) == {257}


def test_the_end_may_be_written_once_it_has_finished_and_after_it_nothing() -> None:
    grammar_object = start("regex", "ab")
    assert not grammar_object.accept_token(BYTES.eos_token) and grammar_object.accept_tokens([*b"ab"]) == 2
    assert (
        grammar_object.is_accepting()
        and not grammar_object.is_terminated()
        and allowed(grammar_object) == {BYTES.eos_token}
    )
    assert (
        grammar_object.accept_token(BYTES.eos_token)
        and grammar_object.is_terminated()
        and not grammar_object.is_accepting()
    )
    assert allowed(grammar_object) == set() and not grammar_object.accept_token(BYTES.eos_token)


@pytest.mark.parametrize(
    ("dialect", "text", "error"),
    [
        ("ebnf", 'root ::= "a"', UnsupportedGrammar),
        ("structural_tag", "{}", UnsupportedGrammar),
        ("json_schema", "true", UnsupportedGrammar),
        ("json_schema", '{"type": "string"}', UnsupportedGrammar),
        (
            "json_schema",
            '{"type": "object", "properties": {"a": {"$ref": "http://elsewhere/a.json"}}}',
            UnsupportedGrammar,
        ),
        (
            "json_schema",
            '{"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}}',
            UnsupportedGrammar,
        ),
        ("json_schema", '{"type": "object", "properties": 1}', InvalidGrammar),
        ("json_schema", "[]", InvalidGrammar),
        ("json_schema", "{", InvalidGrammar),
        ("regex", "(a", InvalidGrammar),
        ("choice", '["a", 1]', InvalidGrammar),
        ("choice", "[]", InvalidGrammar),
    ],
)
def test_what_it_cannot_do_is_told_apart_from_what_is_wrong(
    dialect: Dialect, text: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        make().compile(Grammar(dialect, text))


def test_a_schema_of_an_older_draft_is_taken_too() -> None:
    schema = json.dumps(
        {"$schema": "http://json-schema.org/draft-04/schema#", "id": "http://x/y", **json.loads(POINT)}
    )
    assert holds("json_schema", schema, '{"x": 1, "y": 2}')


def test_the_script_shows_a_walk_without_us(capsys: pytest.CaptureFixture[str]) -> None:
    adapter: Adapter = make()
    vocabulary = [*BYTES.tokens[:256], b""]
    for dialect, text, walk in (
        ("regex", "ab", b"ab"),
        ("choice", '["ab"]', b"ab"),
        ("json_schema", POINT, b'{"x'),
    ):
        grammar = Grammar(dialect, text)  # type: ignore[arg-type]
        exec(adapter.script(grammar), {"vocabulary": vocabulary, "grammar": text, "walk": [*walk, ord("!")]})
        said = capsys.readouterr().out.splitlines()
        assert (
            said[:-1] == [f"{bytes([byte])!r} True True" for byte in walk] and said[-1] == "b'!' False False"
        )


# --------------------------------------------------- faults of the library, as docs/more_backends.md has them


def test_it_ends_as_soon_as_it_can() -> None:
    grammar_object = start("regex", "a+")
    assert grammar_object.accept_token(ord("a")) and allowed(grammar_object) == {BYTES.eos_token}


def test_a_token_that_goes_on_after_an_end_is_taken_for_one() -> None:
    adapter = make(SMALL)
    grammar_object = start("regex", "a(bc)?", adapter)
    assert grammar_object.accept_token(AB) and grammar_object.is_accepting(), (
        "ab, which the pattern does not match"
    )
    assert EOS in allowed(grammar_object, SMALL)


def test_texts_of_an_enum_are_regular_expressions_to_it() -> None:
    schema = json.dumps({"type": "object", "properties": {"a": {"enum": ["b.c"]}}, "required": ["a"]})
    assert holds("json_schema", schema, '{"a": "b.c"}') and holds("json_schema", schema, '{"a": "bxc"}')


def test_an_optional_property_may_be_a_name_without_a_value() -> None:
    schema = json.dumps({"type": "object", "properties": {"a": {"type": "integer"}}})
    assert holds("json_schema", schema, '{"a": }') and not holds("json_schema", schema, "{}")


def test_a_refused_token_of_several_bytes_moves_it() -> None:
    grammar_object = start("regex", "cac", make(SMALL))
    assert grammar_object.accept_token(ord("c")) and allowed(grammar_object, SMALL) == {ord("a")}
    assert not grammar_object.accept_token(AB) and allowed(grammar_object, SMALL) == {ord("c")}, (
        "where an `a` must come"
    )
