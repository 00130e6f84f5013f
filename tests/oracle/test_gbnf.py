"""Grammars written in GBNF mean the same: GBNF is part of our EBNF form, so our own automata can compare."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from regex_patterns import texts

from harness.backend.grammar import Grammar
from harness.cases.suite import find_suite, read_cases
from harness.oracle.automaton import Automaton, NoOracle
from harness.oracle.ebnf.gbnf import gbnf_of_choice, gbnf_of_ebnf, gbnf_of_regex
from harness.oracle.language import language_of

SUBJECTS = texts(4)


def same(left: Automaton[Any], right: Automaton[Any], samples: list[bytes]) -> bool:
    """Do they take the same samples, and the same beginnings of them?"""
    return all(
        left.accepts(text) == right.accepts(text) and left.viable(text) == right.viable(text)
        for text in samples
    )


def meaning(gbnf: str) -> Automaton[Any]:
    return language_of(Grammar("ebnf", gbnf))


@pytest.mark.parametrize(
    ("pattern", "gbnf"),
    [
        ("abc", '"abc"'),
        ("a|bc|", '"a" | "bc" | ""'),
        ("[a-c]+x?", '[a-c]+ "x"?'),
        ("(ab){2,}c{3}d{0,4}", '("ab"){2,} "c"{3} "d"{0,4}'),
        ("(?:a+)*", '("a"+)*'),
        ('["\\\\\n]é', '[\\x0A\\x22\\x5C] "é"'),
        ("^a$", None),
    ],
)
def test_a_pattern_is_written_as_a_person_would(pattern: str, gbnf: str | None) -> None:
    written = gbnf_of_regex(pattern)
    assert gbnf is None or written == f"root ::= {gbnf}\n"
    assert same(
        meaning(written), language_of(Grammar("regex", pattern)), [text.encode() for text in SUBJECTS]
    )


def test_every_pattern_of_the_suite_means_the_same_or_is_declined() -> None:
    compared = 0
    for case in read_cases(find_suite("regex")):
        try:
            expected = language_of(case.grammar)
            written = gbnf_of_regex(case.grammar.text)
        except NoOracle:
            continue
        samples = [instance.content for instance in case.instances]
        assert same(meaning(written), expected, samples), case.grammar.text
        compared += 1
    assert compared > 100


def test_every_grammar_of_the_suite_means_the_same_and_has_no_underscore_in_a_name() -> None:
    compared = 0
    for case in read_cases(find_suite("ebnf")):
        try:
            expected = language_of(case.grammar)
        except NoOracle:
            continue
        written = gbnf_of_ebnf(case.grammar.text)
        assert all("_" not in line.partition("::=")[0] for line in written.splitlines())
        assert same(meaning(written), expected, [instance.content for instance in case.instances]), (
            case.grammar.text
        )
        compared += 1
    assert compared > 100


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), min_size=1, max_size=4))
def test_a_choice_is_exactly_its_strings(choices: list[str]) -> None:
    language = meaning(gbnf_of_choice(json.dumps(choices)))
    samples = [*choices, *(choice + "z" for choice in choices), *(choice[:-1] for choice in choices)]
    assert all(language.accepts(text.encode()) == (text in choices) for text in samples)


def test_names_stay_apart_when_they_are_respelled() -> None:
    written = gbnf_of_ebnf('root ::= a_b a-b _a_b a__b\na_b ::= "1"\na-b ::= "2"\n_a_b ::= "3"\na__b ::= "4"')
    assert language_of(Grammar("ebnf", written)).accepts(b"1234")
    assert "_" not in written


@pytest.mark.parametrize("pattern", ["(?=a)b|c", r"a\b", "(a", r"(a)\1", "[^\\x00-\U0010ffff]"])
def test_what_gbnf_cannot_say_is_declined(pattern: str) -> None:
    with pytest.raises(NoOracle, match=r"."):
        gbnf_of_regex(pattern)


@pytest.mark.parametrize("text", ["[]", '"a"', '["a", 1]', "["])
def test_what_is_no_choice_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        gbnf_of_choice(text)
