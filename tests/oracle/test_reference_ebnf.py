"""Facts about the judge of the EBNF suite, against a brute-force enumeration and by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from all_texts import all_texts
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_ebnf import EbnfError, accepts, parse, viable_length

LONGEST = 4
ALPHABET = "aé"
RULES = ("root", "x-1", "_y")

Language = frozenset[str]
"""A language's strings over ALPHABET, up to LONGEST characters."""


@dataclass(frozen=True)
class Piece:
    """A part of a grammar as text, and what it derives when each rule derives what the mapping says."""

    text: str
    derive: Callable[[dict[str, Language]], Language]


def cut(strings: set[str]) -> Language:
    return frozenset(string for string in strings if len(string) <= LONGEST)


def literal(spellings: Sequence[tuple[str, str]]) -> Piece:
    string = "".join(character for character, _ in spellings)
    return Piece('"' + "".join(spelling for _, spelling in spellings) + '"', lambda rules: cut({string}))


def character_class(listed: tuple[str, str]) -> Piece:
    text, characters = listed
    return Piece(text, lambda rules: frozenset(characters))


def reference(name: str) -> Piece:
    return Piece(name, lambda rules: rules[name])


def sequence(pieces: Sequence[Piece], layout: str) -> Piece:
    def derive(rules: dict[str, Language]) -> Language:
        strings: Language = frozenset({""})
        for piece in pieces:
            strings = cut({left + right for left in strings for right in piece.derive(rules)})
        return strings

    return Piece(layout.join(piece.text for piece in pieces), derive)


def choice(pieces: Sequence[Piece], layout: str) -> Piece:
    return Piece(
        f"{layout}|{layout}".join(piece.text for piece in pieces),
        lambda rules: frozenset().union(*(piece.derive(rules) for piece in pieces)),
    )


def group(piece: Piece) -> Piece:
    return Piece(f"({piece.text})", piece.derive)


def repeated(piece: Piece, operator: tuple[str, int, int]) -> Piece:
    text, low, high = operator

    def derive(rules: dict[str, Language]) -> Language:
        once, strings = piece.derive(rules), set[str]()
        power: Language = frozenset({""})
        for count in range(high + 1):
            strings |= power if count >= low else frozenset()
            power = cut({left + right for left in power for right in once})
        return frozenset(strings)

    return Piece(piece.text + text, derive)


UNBOUNDED = 2 * LONGEST  # no further repetition adds a string that is short enough
OPERATORS = (
    ("*", 0, UNBOUNDED),
    ("+", 1, UNBOUNDED),
    ("?", 0, 1),
    ("{0}", 0, 0),
    ("{2}", 2, 2),
    ("{ 2 , }", 2, UNBOUNDED),
    ("{1,3}", 1, 3),
)
SPELLINGS = (("a", "a"), ("a", r"\x61"), ("a", r"\u0061"), ("é", "é"), ("é", r"\xE9"), ("é", r"\U000000e9"))
CLASSES = (
    ("[a]", "a"),
    ("[aé]", "aé"),
    ("[^a]", "é"),
    ("[^\\u00e9-\\U0010FFFF]", "a"),
    ("[b-é]", "é"),
    ("[-\\]^]", ""),
    ("[^a-é]", ""),
)
layouts = st.sampled_from((" ", "\n  ", ' # a note | " ::= \n'))
atoms = st.one_of(
    st.lists(st.sampled_from(SPELLINGS), max_size=3).map(literal),
    st.sampled_from(CLASSES).map(character_class),
    st.sampled_from(RULES).map(reference),
    st.sampled_from(RULES).map(reference),
)


def extended(inner: st.SearchStrategy[Piece]) -> st.SearchStrategy[Piece]:
    several = st.lists(inner, min_size=1, max_size=3)
    grouped = st.one_of(st.builds(sequence, several, layouts), st.builds(choice, several, layouts)).map(group)
    return st.one_of(grouped, st.builds(repeated, st.one_of(atoms, grouped), st.sampled_from(OPERATORS)))


items = st.recursive(atoms, extended, max_leaves=5)
bodies = st.builds(
    choice,
    st.lists(st.builds(sequence, st.lists(items, min_size=1, max_size=3), layouts), min_size=1, max_size=3),
    layouts,
)


def enumerate_language(rules: dict[str, Piece]) -> Language:
    """The least fixed point: all that the rules derive, from nothing upwards."""
    derived: dict[str, Language] = {name: frozenset() for name in rules}
    while True:
        after = {name: piece.derive(derived) for name, piece in rules.items()}
        if after == derived:
            return derived["root"]
        derived = after


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(st.fixed_dictionaries({name: bodies for name in RULES}))
def test_random_grammars_accept_exactly_what_enumeration_derives(rules: dict[str, Piece]) -> None:
    grammar = parse("\n".join(f"{name} ::= {piece.text}" for name, piece in rules.items()))
    language = enumerate_language(rules)
    for text in all_texts(ALPHABET, LONGEST):
        assert accepts(grammar, text) == (text in language), text
    for sentence in language:
        assert viable_length(grammar, sentence) == len(sentence)


@pytest.mark.parametrize(
    ("ebnf", "sentences"),
    [
        ('root ::= root "a" | "b"', {"b", "ba", "baa", "baaa"}),
        ('root ::= gap root "a" | "b"\ngap ::= ""', {"b", "ba", "baa", "baaa"}),
        ('root ::= root root | "a" | "" | root', {"", "a", "aa", "aaa", "aaaa"}),
        ('root ::= "a" root "b" | ""', {"", "ab", "aabb"}),
        (
            'root ::= "a" root "a" | "b" root "b" | "a" | "b" | ""',
            {text for text in all_texts("ab", 4) if text == text[::-1]},
        ),
        (
            'root ::= (("a"?)*)+ "b"{0,2}',
            {"a" * n + "b" * m for n in range(5) for m in range(3) if n + m <= 4},
        ),
        ('root ::= "a" | dead\ndead ::= "b" dead', {"a"}),
        ('root ::= "a" [^\\u0000-\\U0010FFFF] | "b"', {"b"}),
        ("root ::= root", set()),
    ],
)
def test_known_grammars_accept_exactly_their_short_sentences(ebnf: str, sentences: set[str]) -> None:
    grammar = parse(ebnf)
    assert {text for text in all_texts("ab", 4) if accepts(grammar, text)} == sentences


def test_what_can_never_finish_is_refused_at_once() -> None:
    grammar = parse('root ::= "ab" | "c" dead | "a" [^\\u0000-\\U0010FFFF]\ndead ::= "b" dead')
    assert viable_length(grammar, "ab") == 2
    assert viable_length(grammar, "cb") == 0
    assert viable_length(grammar, "aa") == 1
    assert viable_length(parse('root ::= "a" root'), "a") == -1


def test_a_negated_class_may_leave_only_some_characters() -> None:
    lowest = parse("root ::= [^\\u0001-\\U0010FFFF]")
    assert accepts(lowest, "\0") and not accepts(lowest, "\1")
    between = parse("root ::= [^\\u0000-a\\u0063-\\U0010FFFF]")
    assert accepts(between, "b") and not accepts(between, "c")
    after_surrogates = parse("root ::= [^\\u0000-\\uD7FF\\uE001-\\U0010FFFF]")
    assert accepts(after_surrogates, "\ue000") and not accepts(after_surrogates, "\ue001")


def test_five_hundred_open_groups_are_read() -> None:
    grammar = parse("root ::= " + "(" * 500 + '"a"' + ")?" * 500)
    assert accepts(grammar, "") and accepts(grammar, "a") and not accepts(grammar, "aa")


def test_infinite_ambiguity_ends() -> None:
    grammar = parse('root ::= root root root | (root*)* | "a" | ""')
    assert accepts(grammar, "a" * 12)
    assert not accepts(grammar, "a" * 12 + "b")


@pytest.mark.parametrize(
    ("ebnf", "line", "says"),
    [
        ("", 1, "no rule root"),
        ("# only a note\n", 2, "no rule root"),
        ('start ::= "a"', 1, "no rule root"),
        ('root ::= "a"\n\n b', 3, "rule b is not defined"),
        ('root ::= "a"\nroot ::= "b"', 2, "defined twice"),
        ('root = "a"', 1, "expected `name ::=`"),
        ('root ::= "a" x ::= "b"', 1, "a line of its own"),
        ("root ::=", 1, "empty"),
        ("root ::=\r\n x |\r\nx ::= ()", 3, "empty"),
        ('root ::= "a" | | "b"', 1, "empty"),
        ('root ::= ("a"\nx ::= "b"', 2, "not closed"),
        ('root ::= "a")', 1, "no group is open"),
        ('root ::= "a"\n "b', 2, "cannot read"),
        ('root ::= "a\nb"', 1, "cannot read"),
        ("root ::= [a", 1, "cannot read"),
        ("root ::= []", 1, "cannot read"),
        ("root ::= [^]", 1, "empty"),
        ("root ::= [z-a]", 1, "wrong way round"),
        ('root ::= "a"{3,2}', 1, "wrong way round"),
        ('root ::= "a"{,2}', 1, "cannot read"),
        ('root ::= "a"*?', 1, "nothing that it can repeat"),
        ("root ::= *", 1, "nothing that it can repeat"),
        (r'root ::= "\q"', 1, r"unknown escape \q"),
        (r'root ::= "\-"', 1, r"unknown escape \-"),
        (r'root ::= "\x4"', 1, r"unknown escape \x"),
        (r'root ::= "\uD800"', 1, "no Unicode scalar value"),
        (r"root ::= [\uDFFF]", 1, "no Unicode scalar value"),
        (r'root ::= "\U00110000"', 1, "no Unicode scalar value"),
        ("root ::= 1a", 1, "cannot read"),
        ("root ::= .", 1, "cannot read"),
    ],
)
def test_a_malformed_grammar_is_refused_with_its_line(ebnf: str, line: int, says: str) -> None:
    with pytest.raises(EbnfError) as caught:
        parse(ebnf)
    assert caught.value.line == line
    assert says in str(caught.value)
