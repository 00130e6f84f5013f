"""The fewest tokens to an end: against the enumeration of all sequences, and where the search gives up."""

from __future__ import annotations

import json
import time
from itertools import count, product
from typing import Any

import pytest

from harness.backend.grammar import Dialect, Grammar
from harness.backend.layout import LAYOUTS
from harness.backend.vocabulary import Vocabulary
from harness.cases.budget import WRITTEN, budget_of_case
from harness.cases.case import Case, case_id
from harness.oracle.automaton import DEAD, Automaton
from harness.oracle.fewest_tokens import FewestTokens, fewest_tokens, fewest_tokens_of
from harness.oracle.language import documents_of, language_of
from harness.oracle.repeated_names import has_repeated_a_name, may_repeat_a_name
from harness.oracle.trie import TokenTrie


def vocabulary(*texts: str) -> Vocabulary:
    return Vocabulary("small", (*(text.encode() for text in texts), b""), (len(texts),), {len(texts): "</s>"})


def enumerated(automaton: Automaton[Any], words: Vocabulary) -> int:
    """Returns the fewest tokens by trying every sequence, shorter ones first."""
    texts = [text for text in words.tokens if text]
    for length in count():
        for sequence in product(texts, repeat=length):
            if automaton.accepts(b"".join(sequence)):
                return length
    raise AssertionError


SMALL = vocabulary("a", "b", "ab", "ba", "bb", "aab")


@pytest.mark.parametrize(
    "pattern",
    ["a*", "abab", "(ab|ba){2}a", "a{7}", "b+a+b+", "(aab)+bb", "a?b{5}", "(a|bb){4}b", "aabb(ab)?b"],
)
def test_it_is_what_enumeration_finds(pattern: str) -> None:
    automaton = language_of(Grammar("regex", pattern))
    expected = enumerated(automaton, SMALL)
    assert fewest_tokens(automaton, automaton.start, TokenTrie(SMALL)) == FewestTokens(expected, expected)


def test_the_shortest_text_is_not_always_the_fewest_tokens() -> None:
    automaton = language_of(Grammar("regex", "xyz|longer"))
    words = vocabulary("x", "y", "z", "longer")
    assert fewest_tokens(automaton, automaton.start, TokenTrie(words)) == FewestTokens(1, 1)
    assert fewest_tokens_of(b"xyz", TokenTrie(words)) == 3


def test_inside_of_an_output_it_is_what_is_left() -> None:
    automaton, trie = language_of(Grammar("regex", "a{7}")), TokenTrie(SMALL)
    left = [fewest_tokens(automaton, automaton.run(automaton.start, b"a" * n), trie) for n in range(8)]
    assert left == [FewestTokens(n, n) for n in range(7, -1, -1)]
    assert fewest_tokens(automaton, DEAD, trie) is None


def test_an_end_that_the_vocabulary_cannot_spell_is_none() -> None:
    automaton, trie = language_of(Grammar("regex", "a+c")), TokenTrie(SMALL)
    assert fewest_tokens(automaton, automaton.start, trie) is None
    assert fewest_tokens_of(b"ac", trie) is None


def test_where_the_search_gives_up_there_are_bounds() -> None:
    automaton = language_of(Grammar("regex", "(a|b){40}"))
    bounds = fewest_tokens(automaton, automaton.start, TokenTrie(SMALL), most_states=10)
    assert bounds is not None and bounds.least != bounds.most
    exact = fewest_tokens(automaton, automaton.start, TokenTrie(SMALL))
    assert exact == FewestTokens(14, 14)  # thirteen times "aab" and one more
    assert bounds.least <= exact.least and bounds.most is not None and exact.least <= bounds.most


def of(dialect: Dialect, grammar: Any, words: Vocabulary) -> FewestTokens | None:
    value = Grammar(dialect, grammar if isinstance(grammar, str) else json.dumps(grammar))
    return budget_of_case(Case(case_id(value), "", value, ()), TokenTrie(words))


BYTES_AND = ('{"', '":', '"', "{", "}", ":", ",", "t", "r", "u", "e", "n", "a", "b", "l", '": ', "true", " ")


@pytest.mark.parametrize(
    ("schema", "tokens"),
    [
        ({"type": "object"}, 2),
        ({"type": "object", "properties": {"a": {"const": True}}, "required": ["a"]}, 5),
        ({"type": "object", "properties": {"a": {"const": True}}}, 2),
        ({"const": True}, 1),
        ({"type": "null"}, 4),
        (False, None),
    ],
)
def test_a_schemas_budget(schema: Any, tokens: int | None) -> None:
    expected = None if tokens is None else FewestTokens(tokens, tokens)
    assert of("json_schema", schema, vocabulary(*BYTES_AND)) == expected


ONE = {"const": 1}
ONLY_A = {"patternProperties": {"^a$": {}}, "additionalProperties": False}
SOME, OTHERS = {"additionalProperties": ONE}, {"additionalProperties": {"not": ONE}}


@pytest.mark.parametrize(
    ("schema", "least", "most"),
    [
        ({"minProperties": 2}, 11, 13),  # {"":1,"":1} is not one, and {"":1,"a":1} has an unlisted name
        ({"minProperties": 1}, 6, 6),
        ({"minProperties": 2, "properties": dict.fromkeys("ac", ONE), "additionalProperties": False}, 13, 13),
        ({"not": {"minProperties": 2}, "minProperties": 2}, None, None),
        ({"oneOf": [{"minProperties": 2}, False]}, 11, 13),
        ({"not": {"maxProperties": 1}}, 11, 13),  # the same as `minProperties: 2`
        ({"not": {"maxProperties": 0}}, 6, 6),
        ({**ONLY_A, "not": {"maxProperties": 1}}, 12, None),  # there is none
        ({**ONLY_A, "minProperties": 2}, 12, None),
        ({"propertyNames": {"pattern": "^a$"}, "allOf": [{"not": SOME}, {"not": OTHERS}]}, 12, None),
    ],
)
def test_a_name_is_not_there_twice_to_make_an_output_short(
    schema: dict[str, Any], least: int | None, most: int | None
) -> None:
    words = vocabulary(*map(chr, range(32, 127)))
    expected = None if least is None else FewestTokens(least, most)
    assert of("json_schema", {"type": "object", **schema}, words) == expected


@pytest.mark.parametrize(
    ("style", "schema", "is_known"),
    [
        (None, {"not": {"maxProperties": 1}}, False),
        (None, {"minProperties": 1}, True),
        ("qwen_xml", {"not": {"maxProperties": 1}}, False),
        ("qwen_xml", {"minProperties": 1}, True),
        ("gemma", {"not": {"maxProperties": 1}}, False),
        ("gemma", {"minProperties": 1}, True),
    ],
)
def test_nor_in_a_structural_tag(style: str | None, schema: dict[str, Any], is_known: bool) -> None:
    words = vocabulary("<parameter=", ">", "</parameter>", "{", "}", ":", '"', ",", "a", "1")
    members = {"type": "object", "additionalProperties": ONE}
    content = {"type": "json_schema", "json_schema": {**members, **schema}}
    tag = {"format": content if style is None else {**content, "style": style}}
    budget = of("structural_tag", tag, words)
    assert budget is not None and budget.least > 2 and (budget.most is not None) == is_known


@pytest.mark.parametrize(
    ("text", "is_repeated"),
    [
        ('{"a":1,"a":2}', True),
        ('[{"a":1},{"a":{"a":"{"}}]', False),
        ('{"b":{"a":1,"\\u0061":1e999}}', True),
        ('<f>{"a":1}</f><f>{"a":1}</f>', False),
        ('{<f>{"a":1,"a":1}</f>', True),
        ("<parameter=a>1</parameter><parameter=b>a</parameter>", False),
        ("<parameter=a>1</parameter><parameter=a>2</parameter>", True),
        ('{a:<|"|>,b:<|"|>,b:1}', False),
        ('{a:<|"|>,b<|"|>, a:1}', True),
        ("[" * 9000 + "{" * 900, False),
        ('{"a":' * 9000, True),  # nobody knows
    ],
)
def test_a_repeated_name_is_seen_in_every_style(text: str, is_repeated: bool) -> None:
    assert may_repeat_a_name("structural_tag", text.encode()) == is_repeated
    assert not may_repeat_a_name("regex", text.encode())


@pytest.mark.parametrize(
    ("text", "is_repeated"),
    [
        ('["{",":1,",":2}", 1]', False),
        ('["{\\"a\\":1,\\"a\\":2}"]', False),
        (' [{"b":{"a":1,"\\u0061":1e999}}, "{"]\n', True),
        ('[{"a":{"b":1}},{"a":{"b":{}}}]', False),
        ("9" * 9000, False),
        ('{"a":' * 200_000 + "1" + "}" * 200_000, True),  # nobody knows
        ('{"a":', True),
    ],
)
def test_a_repeated_name_is_seen_in_a_document(text: str, is_repeated: bool) -> None:
    assert may_repeat_a_name("json_schema", text.encode()) == is_repeated


def test_braces_of_free_text_take_no_time() -> None:
    text = b"{" * 100_000
    before = time.process_time()
    assert not may_repeat_a_name("structural_tag", text)
    assert time.process_time() - before < 1


@pytest.mark.parametrize(
    ("text", "is_repeated"),
    [
        ('{"a":1,"a"', True),
        ('{"a":1,"a', False),  # it may become another name
        ('{"a":"a"', False),
        ('{"a":["a","a"],"b":{"a":{"a":1},"c":"{', False),
        ('[{"a":1},{"a":1', False),
        ('[{"b" : {"c":[]} , "a":1,\n"\\u0061":', True),
        ('{"\\"":1,"\\\\":2,"\\"":', True),
        ('["{",":1,",":2}"', False),
        ("", False),
    ],
)
def test_a_name_is_repeated_before_the_text_is_complete(text: str, is_repeated: bool) -> None:
    assert has_repeated_a_name(text.encode()) == is_repeated


def test_white_space_inside_of_a_token_counts_as_none() -> None:
    """Where a vocabulary has a colon with a blank only, the shortest text is not the one of fewest tokens."""
    words = vocabulary('{"a', '": ', '"', ":", "true", "}")
    schema = {"type": "object", "properties": {"a": {"const": True}}, "required": ["a"]}
    assert of("json_schema", schema, words) == FewestTokens(4, 4)
    compact = documents_of(json.dumps(schema), layout=LAYOUTS["compact"])
    assert fewest_tokens(compact, compact.start, TokenTrie(words)) == FewestTokens(5, 5)
    assert WRITTEN.separators is None


def test_other_dialects_have_a_budget_and_meant_ids_have_none() -> None:
    assert of("choice", ["ab", "aaab"], SMALL) == FewestTokens(1, 1)
    tag = {"format": {"type": "token", "token": 1}}
    assert of("structural_tag", tag, SMALL) is None
    later = [{"type": "const_string", "value": "b"}, {"type": "token", "token": 1}]
    assert of("structural_tag", {"format": {"type": "sequence", "elements": later}}, SMALL) is None
    assert of("regex", "(a)\\1", SMALL) is None, "a backreference has no reference"
