"""Facts about the reference automata of regular expressions."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
import regex
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from regex_patterns import Pattern, patterns, texts
from suite_files import SUITES, content, lines_of

from harness.backend.vocabulary import byte_vocabulary
from harness.oracle.automaton import DEAD, Automaton, NoOracle
from harness.oracle.judge.pattern import finds, is_pattern
from harness.oracle.regex import automaton as oracle
from harness.oracle.regex import char_classes
from harness.oracle.regex import nfa as regex_nfa
from harness.oracle.regex import syntax as regex_syntax
from harness.oracle.regex import tree as regex_tree
from harness.oracle.regex.automaton import RegexDialect, regex_automaton
from harness.oracle.regex.char_classes import (
    ASCII_WORD,
    EVERY,
    asked,
    complement,
    intersection,
    partition,
    ranges_of,
    unicode_version,
    union,
    with_simple_cases,
)
from harness.oracle.regex.nfa import Nfa
from harness.oracle.utf8 import ByteRange, byte_sequences

TEXTS = texts(4)
REASONS = (
    "lookahead within lookbehind",
    "an atomic group whose first match cannot be told",
    "lookaround with too many ways",
)

patiently = settings(max_examples=100, deadline=None, derandomize=True)


# What the tests compare; the mutants at the end must fail them.


def wrong_verdict(
    automaton: Automaton[Any], matches: Callable[[str], object], subjects: Iterable[str]
) -> str | None:
    """A text about which the two disagree."""
    return next((text for text in subjects if automaton.accepts(text.encode()) != bool(matches(text))), None)


def unfinishable(automaton: Automaton[Any], limit: int = 3000) -> int | None:
    """A state, not DEAD, from which no sentence can be finished; None, too, if there are more than `limit`
    states."""
    following: dict[int, set[int]] = {}
    waiting = [] if automaton.start == DEAD else [automaton.start]
    while waiting:
        state = waiting.pop()
        if state not in following:
            automaton.expand(np.array([state], dtype=np.int32))
            following[state] = {*automaton.table[state].tolist()} - {DEAD}
            waiting += following[state]
        if len(following) > limit:
            return None
    good = {state for state in following if automaton.accepting(state)}
    while fresh := {state for state in following.keys() - good if following[state] & good}:
        good |= fresh
    return min(following.keys() - good, default=None)


def wrong_at_malformed(automaton: Automaton[Any], output: bytes) -> bool:
    """Is the output, where every text is right, not refused at exactly the byte where it can no longer become
    UTF-8?"""
    return automaton.viable(output) != utf8_length(output)


def utf8_length(output: bytes) -> int:
    """How many bytes some well-formed text begins with: by completing, and the standard library's decoder."""
    return max(length for length in range(len(output) + 1) if begins_a_text(output[:length]))


TAILS = [bytes(tail) for length in range(4) for tail in product((0x80, 0x90, 0xA0, 0xBF), repeat=length)]


@cache
def begins_a_text(output: bytes) -> bool:
    def decodes(text: bytes) -> bool:
        try:
            return bool(text.decode()) or not text
        except UnicodeDecodeError:
            return False

    return any(decodes(output + tail) for tail in TAILS)


# Against a definition, and against the library.


def automaton_of(pattern: Pattern) -> Automaton[Any]:
    try:
        return regex_automaton(pattern.text, "python")
    except NoOracle as error:
        assert str(error).startswith(REASONS), pattern.text
        assume(False)
        raise


@pytest.mark.parametrize("lookaround", [False, True])
def test_accepts_what_the_pattern_means(lookaround: bool) -> None:
    @patiently
    @given(patterns(lookaround))
    def check(pattern: Pattern) -> None:
        assert wrong_verdict(automaton_of(pattern), pattern.matches, TEXTS) is None, pattern.text

    check()


@pytest.mark.parametrize("lookaround", [False, True])
def test_a_state_that_is_not_dead_can_be_finished(lookaround: bool) -> None:
    @patiently
    @given(patterns(lookaround))
    def check(pattern: Pattern) -> None:
        assert unfinishable(automaton_of(pattern)) is None, pattern.text

    check()


@patiently
@given(patterns(False), st.lists(st.text("ab\né日😀", max_size=6), min_size=1, max_size=8))
def test_accepts_what_the_library_matches(pattern: Pattern, subjects: list[str]) -> None:
    automaton, compiled = automaton_of(pattern), regex.compile(pattern.text)
    wrong = wrong_verdict(automaton, compiled.fullmatch, subjects)
    # Version 2026.11.15 refuses `a` for `[^a]|[^b]`; where `re` contradicts it too, it is not taken at its
    # word.
    assert wrong is None or automaton.accepts(wrong.encode()) == standard_library_matches(
        pattern.text, wrong
    ), pattern.text


def standard_library_matches(pattern: str, text: str) -> bool | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            return re.fullmatch(pattern, text) is not None
    except re.error:
        return None


@patiently
@given(patterns(False), st.text("ab\né日😀", max_size=6))
def test_what_begins_a_sentence_is_a_partial_match_to_the_library(pattern: Pattern, text: str) -> None:
    # The other direction does not hold: the library takes `a` for a beginning of what `ab\bc` matches. It is
    # tested above.
    automaton, compiled = automaton_of(pattern), regex.compile(pattern.text)
    viable = automaton.viable(text.encode())
    begun = text.encode()[: max(viable, 0)].decode(errors="ignore")
    if viable >= 0 and not library_is_wrong(pattern, begun):
        assert compiled.fullmatch(begun, partial=True), (pattern.text, begun)


def library_is_wrong(pattern: Pattern, begun: str) -> bool:
    """Does it refuse something that begins so, against the definition?"""
    longer = [begun + more for more in texts(3)]
    return any(pattern.matches(text) and not regex.fullmatch(pattern.text, text) for text in longer)


# The suites.


def suite_cases() -> list[dict[str, Any]]:
    return [case for name in ("regex", "utf8") for case in lines_of(SUITES[name]) if "regex" in case]


def test_every_instance_of_the_suites_gets_its_validity() -> None:
    without = []
    for case in suite_cases():
        try:
            automaton = regex_automaton(case["regex"], "python")
        except NoOracle as error:
            without.append((case["regex"], str(error)))
            continue
        wrong = [
            test["description"] for test in case["tests"] if automaton.accepts(content(test)) != test["valid"]
        ]
        assert not wrong, case["regex"]
    reasons = {reason for _, reason in without}
    assert len(without) == 4 and reasons == {
        "a backreference has no reference automaton",
        "recursion has no reference automaton",
    }


# Dialects.


@pytest.mark.parametrize(
    ("pattern", "text", "python", "ecma", "rust"),
    [
        (r"\d", "٣", True, False, True),
        (r"\w", "é", True, False, True),
        (r"\w", "²", False, False, False),
        (r"\s", "\ufeff", False, True, False),
        (r"\s", "\x85", True, False, True),
        (r"\s", "\x1c", False, False, False),
        (".", "\r", True, False, True),
        (".", "\u2028", True, False, True),
        ("a$\n", "a\n", True, False, False),
        (r"(?m)a$\n^b", "a\nb", True, None, True),
        (r"é\b.", "éx", False, True, False),
        ("[]a]", "]", True, False, True),
        ("[^]", "é", None, True, None),
        ("[a&&b]", "b]", False, False, False),
        ("[a-c&&b]+", "bb", True, True, True),
        ("[a-c&&b]+", "a", True, True, False),
        ("[[:alpha:]]", "é", True, False, False),
        ("[[:alpha:]]", "e", True, False, True),
        (r"\u{e9}", "é", None, True, True),
        (r"\x{e9}", "é", None, None, True),
        (r"\U000000e9", "é", True, None, True),
        (r"\ud83d\ude00", "😀", False, True, None),
        ("(?P<x>a)", "a", True, None, True),
        ("(?<x>a)", "a", True, True, True),
        ("(?i)k", "\u212a", True, None, True),
        ("(?i)[^k]", "\u212a", False, None, False),
        ("(?i)ß", "ẞ", True, None, True),
        ("a++", "aa", True, None, True),
        ("a++a", "aa", False, None, True),
        ("a{,2}", "aa", True, False, None),
        ("{a}", "{a}", True, True, None),
        (r"a\z", "a", True, None, True),
        (r"a\Z", "a", True, None, None),
        ("a(?=b)b", "ab", True, True, None),
        (r"\p{^L}", "1", True, None, None),
        (r"\p{Lu}", "É", True, True, True),
        (r"\pL", "é", True, None, True),
        (r"(?x)a b # c", "ab", True, None, True),
        (r"[\d-a-z]", "m", True, False, None),
        (r"[^\d-a-z]", "m", False, True, None),
        (r"\b{2}a", "a", True, None, True),
        (r"a\b{2}b", "ab", False, None, False),
        (r"a\b{0,1}b", "ab", True, None, True),
        (r"\b{start}a", "a", None, False, True),
        (r"\b{ start}a", "a", False, False, None),
        (r"(?x)\b{ st art }a", "a", None, None, True),
        (r"\b{begin}a", "a", False, False, None),
        (r"\b{start", "a", None, False, None),
        (r"\_", "_", True, True, True),
        (r"(a)\1", "aa", None, None, None),
    ],
)
def test_dialects_differ_where_they_do(
    pattern: str, text: str, python: bool | None, ecma: bool | None, rust: bool | None
) -> None:
    """None: no reference automaton, most often since it is no pattern of that dialect."""
    wanted: dict[RegexDialect, bool | None] = {"python": python, "ecma": ecma, "rust": rust}
    found = {dialect: accepts_or_none(pattern, dialect, text) for dialect in wanted}
    assert found == wanted


def accepts_or_none(pattern: str, dialect: RegexDialect, text: str) -> bool | None:
    try:
        return regex_automaton(pattern, dialect).accepts(text.encode())
    except NoOracle:
        return None


ECMA = [
    r"\d+", r"\w", r"\S", r"[^\s]", ".", r"[]|a", "[^]", r"[^\ud83d]", r"\bé\b|a\b.", r"\B.", "^a$|b$c",
    "(?=a)\\w+", "(?!a)\\w+",
    r"\w+(?<=b)", r"\w+(?<!b)$", r"\P{Lu}", r"\p{Script=Greek}", r"[\p{L}-z]", r"\cA", r"\0", r"\01", "a{,2}",
    "a}", r"\a", r"\Z",
    "(?i)a", "(?i:a)", "a++", "a*?b", "a{2}{2}", "(?P<n>a)", r"[a-\d]", "[z-a]", r"[\b]", r"\u{110000}",
    r"\u12", "[a", "(a", "a)",
    "*", "a|*", "^*", "$+", r"\b{2}", r"\B?", "(?<=a)*", "(?<!a)?b", "a^?", "(?=a)*b", "(?:^)*a", "(*a)",
    "(?<n>a)(?<n>b)", "(?<n>a)|(?<n>b)", "(?>a)", "(?#x)a", "[[:alpha:]]", "[a&&b]+", "a{2,1}", r"\/",
    r"^(?!.*foo)[\w-]{1,5}$", "$^", "x*$", "\\",
]  # fmt: skip


@pytest.mark.parametrize("pattern", ECMA)
def test_ecma_patterns_mean_what_they_mean_to_the_judge_of_json_schema(pattern: str) -> None:
    try:
        automaton = regex_automaton(pattern, "ecma")
    except NoOracle:
        assert not is_pattern(pattern)
        return
    assert is_pattern(pattern)
    alphabet = "abfooKéß1٣日Ω\n -&]{},_\u2028\r\x85\ufeff\x01\x08/😀"
    assert (
        wrong_verdict(automaton, lambda text: finds(f"^(?:{pattern})$", text), sampled(pattern, alphabet))
        is None
    )


@pytest.mark.parametrize(
    "pattern", ["^*", "$+", r"a\b{2}", r"\B??", "(?<=a)*a", "(?<!a){0}", "(?<n>a)(?<n>b)"]
)
def test_what_node_refuses_is_no_pattern_with_the_flag_or_without(pattern: str) -> None:
    for dialect in ("ecma", "javascript"):
        with pytest.raises(NoOracle, match=r"nothing to repeat|twice in one alternative"):
            regex_automaton(pattern, dialect)


@pytest.mark.parametrize("pattern", [r"\x\a\a", r"\x4\a", r"\u00\e9", r"\c\A", r"[\c\A]"])
def test_a_letter_behind_a_backslash_completes_no_escape_before_it(pattern: str) -> None:
    """Without the flag an `x`, a `u` or a `c` of which no escape comes is that letter, as node 20 has it."""
    with pytest.raises(NoOracle):
        regex_automaton(pattern, "javascript")


def test_a_letter_behind_a_backslash_is_that_letter_without_the_flag() -> None:
    read = {
        pattern: regex_automaton(pattern, "javascript") for pattern in (r"\a", r"[\z]", r"[\a-\e]", r"\e\z+")
    }
    taken = {
        pattern: [text for text in ("a", "z", "c", "f", "ezz") if automaton.accepts(text.encode())]
        for pattern, automaton in read.items()
    }
    assert taken == {r"\a": ["a"], r"[\z]": ["z"], r"[\a-\e]": ["a", "c"], r"\e\z+": ["ezz"]}


def sampled(seed: str, alphabet: str) -> list[str]:
    chance = random.Random(seed)
    return [
        "",
        *alphabet,
        *(
            "".join(chance.choices(alphabet[:8] if each % 2 else alphabet, k=2 + each % 3))
            for each in range(120)
        ),
    ]


RUST = [
    r"\d+", r"\w", r"[a-z&&[^aeiou]]", "[a-c[x-z]]", "[[:alpha:]]+", "a++b", "a**", "(?i)straße k",
    "(?i)[^k]", r"\p{Greek}", r"\pL",
    r"[\w--a]", "[a-f~~d-z]", "(?x) a b # c", "(?s).", ".", r"\x{e9}\u00e9", "a{2}{2}", "(?<n>a)(?P<m>b)",
    "[]a]", "[^]a]", "[-a]",
    "[a-]", "{a}", "a{,2}", r"\"\-\:", "[[:^digit:]]", r"(?i)\p{Lu}", "(?i:a)b", "(?i)a(?-i)b", r"\p{sc=Han}",
    "[&a]", "[a--]",
    "[---a]", "(?i)ſ", "(?i)İ", "(?i)i", "a}", "a]", r"\8", "(?x)[a b]", "(?x)[ a - c ]", "(a|b", r"\e",
    "a|*", "(?i)*", r"\Z", r"\h",
    r"[\s&&\S]|z", "(?x)a {2}", "(?i)[[:^upper:]]", r"(?i)\P{Lu}", r"\a\f\v", "(?=a)a", "(?>a)",
    r"[\pL--a-z&&é]", r"(?i)[\pL--a]",
    r"[\w-.]", r"[\w-]", r"[\w-\s]", r"[\d-[a]]", r"[a-\w]", "[[:foo:]]", "(?x)a\x1cb", "a{\x1c2}",
    "a{ 2 , 3 }",
    "a{2, }", "(?x)a{2, }", "(?x)a{2 #c\n,3}", "(?x)[a- ]", "(?x)[a - c]", "(?x)[a- - b]", "(?x)[a-#]\nc]",
    "(?x)[a- #b]\nc]", r"(?x)[\w- ]", r"(?x)[\w- .]", r"\b{0}a", "(?i)ﬅ", "(?i)[^ΐ]", "(?i)ı", "(?i)ᲊ",
]  # fmt: skip


@pytest.mark.parametrize("pattern", RUST)
def test_rust_patterns_mean_what_they_mean_to_the_crate(pattern: str) -> None:
    accepts = by_the_crate(pattern)
    try:
        automaton = regex_automaton(pattern, "rust")
    except NoOracle:
        assert accepts is None
        return
    assert accepts is not None
    assert (
        wrong_verdict(
            automaton,
            accepts,
            sampled(pattern, "abckxKéÉßẞſsSiIİı1٣日Ωωµ\n -&][{}_\u0301²\u212a\x07😀#:fo\x1cﬅﬆ\u0390\u1fd3ᲊᲉ"),
        )
        is None
    )


def by_the_crate(pattern: str) -> Callable[[str], bool] | None:
    """outlines-core hands patterns to the crate as they are."""
    library = pytest.importorskip("outlines_core")
    vocabulary = byte_vocabulary()
    tokens = {text: [token] for token, text in enumerate(vocabulary.tokens) if text}
    try:
        index = library.Index(pattern, library.Vocabulary(vocabulary.eos_token, tokens))
    except ValueError:
        return None

    def accepts(text: str) -> bool:
        guide = library.Guide(index)
        for byte in text.encode():
            if byte not in guide.get_tokens():
                return False
            guide.advance(byte, False)
        return vocabulary.eos_token in guide.get_tokens()

    return accepts


# Characters and bytes.

CLASSES = [
    r"\w", r"\W", r"[\W\d]", r"[^\s,]", r"\p{L}", r"\P{Lu}", "[[:^alpha:]x]", "(?i:[^a-z])",
    r"(?i:[\P{Lu}\n])", r"(?i:[^\p{Lu}1])",
    "(?i:k)", "(?i:[^ß])", "(?i:[é-ü])", r"\p{sc=Han}", r"\p{^Greek}", r"\h", r"[a-\d]", "[\\ud7fe-\\ue001]",
    r"[^\x80-\uffff]", ".",
]  # fmt: skip


@pytest.mark.parametrize("pattern", CLASSES)
def test_a_class_is_exactly_the_characters_that_the_library_matches(pattern: str) -> None:
    wanted = asked(pattern)
    automaton = regex_automaton(pattern, "python")
    chance = random.Random(pattern)
    edges = {point + step for pair in wanted for point in pair for step in (-1, 0, 1)}
    points = sorted(edges)[:: len(edges) // 800 + 1] + [chance.randrange(0x110000) for _ in range(400)]
    inside = {point for point in points if any(first <= point <= last for first, last in wanted)}
    scalar = [point for point in points if point in range(0x110000) and not 0xD800 <= point <= 0xDFFF]
    assert wrong_verdict(automaton, lambda text: ord(text) in inside, map(chr, scalar)) is None
    assert unfinishable(automaton) is None


def test_the_contradiction_that_the_library_takes_for_every_character_is_none() -> None:
    assert regex.fullmatch(r"[^\s\S]", "a"), "mended: _without_contradiction can go"
    for pattern in (r"[^\s\S]", r"a[^\W\w]", r"[^\n\d\D]+", r"(?s)[^]\s\S]"):
        assert regex_automaton(pattern, "python").start == DEAD
    assert regex_automaton(r"\[^\s\S]", "python").accepts(b"[" + b"^ x]") is False
    assert regex_automaton(r"[^\s\S]?.", "python").accepts(b"x")
    assert regex_automaton(r"(?s)[^>\d].[\s\S]", "python").accepts(b"x\n\n")
    for pattern in (
        "[^^0-9]",
        "[^^]",
        r"[^^\d]",
        "[^^-a]",
    ):  # no contradiction: the second `^` is a character
        assert regex_automaton(pattern, "python").accepts(b"b")
        assert not regex_automaton(pattern, "python").accepts(b"^")


@pytest.mark.parametrize("pattern", ["(?P<n>a)(?<n>b)", "(?<>a)", "(?<1>a)", "(?<=a>)b"])
def test_a_group_that_the_crate_does_not_name_is_no_pattern_of_rust(pattern: str) -> None:
    assert regex_automaton("(?P<n>a)(?<_m.0[1]>b)", "rust").accepts(b"ab")
    with pytest.raises(NoOracle, match="a group's name"):
        regex_automaton(pattern, "rust")


@given(
    st.lists(st.tuples(st.integers(0, 0x10FFFF), st.integers(0, 300))),
    st.lists(st.tuples(st.integers(0, 0x10FFFF), st.integers(0, 300))),
)
@patiently
def test_sets_of_characters_are_sets(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
    def points(ranges: Iterable[tuple[int, int]]) -> set[int]:
        return {
            point
            for first, last in ranges
            for point in range(first, min(last, 0x10FFFF) + 1)
            if not 0xD800 <= point <= 0xDFFF
        }

    a, b = (ranges_of((first, min(first + more, 0x10FFFF)) for first, more in each) for each in (left, right))
    assert points(a) == points((first, first + more) for first, more in left)
    assert points(union(a, b)) == points(a) | points(b)
    assert points(intersection(a, b)) == points(a) & points(b)
    assert (
        complement(complement(a)) == a
        and union(a, complement(a)) == EVERY
        and not intersection(a, complement(a))
    )
    parts = {names: points(ranges) for ranges, names in partition({1: a, 2: b})}
    assert parts.get(frozenset({1}), set()) == points(a) - points(b) and parts.get(
        frozenset({1, 2}), set()
    ) == points(a) & points(b)


def test_simple_cases_are_one_to_one() -> None:
    assert with_simple_cases(ranges_of([(ord("k"), ord("k"))])) == ranges_of(
        (ord(each), ord(each)) for each in "kK\u212a"
    )
    with unicode_version("16.0"):  # since 18.0 there is one more
        assert with_simple_cases(ranges_of([(ord("ß"), ord("ß"))])) == ranges_of(
            (ord(each), ord(each)) for each in "ßẞ"
        )
    assert with_simple_cases(ranges_of([(ord("İ"), ord("İ"))])) == ((0x130, 0x130),)


@pytest.mark.parametrize(
    "alike", ["ﬅﬆ", "\u0390\u1fd3", "ᲊᲉ", "iI", "ı", "ꟻ", "\U00010d50\U00010d70", "Ꭰꭰ", "ßẞ\U0001df95"]
)
def test_simple_cases_are_those_of_the_newest_unicode(alike: str) -> None:
    """Not those of this Python, whose `str.casefold` folds fully and by older tables."""
    wanted = ranges_of((ord(each), ord(each)) for each in alike)
    assert [with_simple_cases(ranges_of([(ord(each), ord(each))])) for each in alike] == [wanted] * len(alike)


def test_a_character_is_in_one_group_of_cases() -> None:
    points = [point for group in char_classes._case_groups() for point in group]
    assert len(points) == len({*points}) > 2800


@patiently
@given(st.integers(0, 0x10FFFF), st.one_of(st.integers(0, 0x10FFFF), st.integers(0, 300)), st.booleans())
def test_byte_sequences_are_the_encodings_of_a_range(first: int, size: int, edge: bool) -> None:
    if edge:
        first = min(
            (0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF),
            key=lambda point: abs(point - first),
        )
        first = max(0, first - size % 5)
    last = min(first + size, 0x10FFFF)
    sequences = byte_sequences(first, last)
    scalars = last - first + 1 - len(range(max(first, 0xD800), min(last, 0xDFFF) + 1))
    assert sum(combinations(each) for each in sequences) == scalars
    chance = random.Random(f"{first} {last}")
    for point in {first, last, *(chance.randint(first, last) for _ in range(50))}:
        if not 0xD800 <= point <= 0xDFFF:
            assert sum(spells(each, chr(point).encode()) for each in sequences) == 1


def combinations(sequence: tuple[ByteRange, ...]) -> int:
    return int(np.prod([last - first + 1 for first, last in sequence]))


def spells(sequence: tuple[ByteRange, ...], encoded: bytes) -> bool:
    return len(sequence) == len(encoded) and all(
        first <= byte <= last for (first, last), byte in zip(sequence, encoded, strict=True)
    )


MALFORMED = [
    bytes([first, second])
    for first in range(0x80, 0x100)
    for second in (0, 0x7F, *range(0x80, 0xC1, 8), 0x9F, 0xBF, 0xC0, 0xFF)
] + [
    bytes.fromhex(each)
    for each in (
        "e08080",
        "e09fbf",
        "e0a080",
        "eda080",
        "ed9fbf",
        "f0808080",
        "f08fbfbf",
        "f0908080",
        "f48fbfbf",
        "f4908080",
        "f09f98",
        "c0ae",
    )
]


@pytest.mark.parametrize(
    "pattern", [r"[\s\S]*", "(?s).*", r"[\x00-\U0010ffff]{0,9}", r"(?s:.)*\b(?s:.)*|\W*"]
)
def test_bytes_that_are_no_utf8_are_refused_at_the_first_impossible_one(pattern: str) -> None:
    automaton = regex_automaton(pattern, "python")
    assert [
        output
        for each in MALFORMED
        for output in (each, b"a" + each)
        if wrong_at_malformed(automaton, output)
    ] == []


def test_a_condition_on_what_follows_has_the_texts_of_the_library() -> None:
    """A negative one has no reference: the library does not always try the other branches of a choice."""
    assert not regex.fullmatch("(?(?!a)(?:b|)|a)", ""), "mended: a negative condition may have a reference"
    for pattern in ("(?(?=a)(?:a|ab)|c)c?", "(?(?=ab)(?:b|ab)|a)", "a?(?(?<=a)(?:b|)|c)"):
        automaton, matches = regex_automaton(pattern, "python"), regex.compile(pattern).fullmatch
        assert wrong_verdict(automaton, matches, texts(3, "abc")) is None


def test_a_text_may_not_end_inside_a_character() -> None:
    automaton = regex_automaton("é*", "python")
    assert automaton.accepts("éé".encode()) and not automaton.accepts("éé".encode()[:-1])
    assert regex_automaton("(?:😀|😁)+", "python").forced(1) == "😀".encode()[:3]


# Limits.


@pytest.mark.parametrize(
    ("pattern", "dialect"),
    [
        (r"(a|b)\1", "python"), ("(?P<a>x)(?P=a)", "python"), ("(?R)?x", "python"), ("(a)(?(1)b|c)",
        "python"), (r"\X", "python"),
        ("(?(?!a)(?:b|)|a)", "python"), ("a?(?(?<!a)b|c)", "python"),
        (r"(?:a*b)++c", "python"), ("(?:abc){e<=1}", "python"), (r"(?a)\w", "python"), (r"(?a:\w)", "python"),
        ("(?V1)[a--b]", "python"),
        ("(?if)ß", "python"), ("(?r)ab", "python"), (r"(?w).", "python"), (r"a\Kb", "python"),
        ("x?(?<=x(?=b))b", "python"),
        ("(a", "python"), ("a)", "python"), ("*a", "python"), ("[a", "python"), ("a**", "python"), ("[b-a]",
        "python"), ("\\", "python"),
        (r"\p{Nonsense}", "python"), (r"\p{Nonsense}", "ecma"), (r"\p{Nonsense}", "rust"), (r"\k<a>", "ecma"),
        ("(?-u)a", "rust"), (r"\p{gc!=Lu}", "rust"), (r"[\P{sc!=Greek}]", "rust"),
        ("(?:a{1,1000}){1,1000}", "python"), ("a{1000000000}", "rust"), ("a" * 200_001, "python"),
        ("(" * 3000 + ")" * 3000, "python"),
        (f"(?:{'|'.join(f'(?=.{{{n}}}x)' for n in range(12))})" * 12 + ".*", "python"),
        ("(?=.*a)(?=.*b)(?=.*c)(?=.*d).{0,5000}(?!x{9}).{9}", "python"),
    ],
)  # fmt: skip
def test_what_has_no_reference_automaton_says_so(pattern: str, dialect: RegexDialect) -> None:
    with pytest.raises(NoOracle) as caught:
        regex_automaton(pattern, dialect)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 250


@pytest.mark.parametrize(
    ("pattern", "right", "wrong"),
    [
        ("(?:ab){1000}", "ab" * 1000, "ab" * 999),
        ("[a-z]{1,1000}x{500}", "x" * 1500, "x" * 1501),
        (r"(?:[^,]{0,100},){20}", "a," * 20, "a," * 21),
        ("(?:(?:a{2}b){2}c){2}", "aabaabc" * 2, "aabaabc"),
        ("[ab]*a[ab]{40}", "a" * 41, "b" * 41),
        (r"[a-z]{200}\b", "a" * 200, "a" * 199),
        ("a" * 5000, "a" * 5000, "a" * 4999),
        ("(?:(?:(?:a*)*)*)*b", "aaab", "aaa"),
    ],
)
def test_counts_do_not_explode(pattern: str, right: str, wrong: str) -> None:
    automaton = regex_automaton(pattern, "python")
    assert automaton.accepts(right.encode()) and not automaton.accepts(wrong.encode())
    assert len(automaton) < 10_000


def test_a_language_that_outgrows_memory_says_so_while_it_is_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "MAX_MEMBERS", 50_000)
    automaton = regex_automaton("(?:a?){500}", "python")
    with pytest.raises(NoOracle, match="too large"):
        automaton.run(automaton.start, b"a" * 500)


def test_an_empty_language_is_dead_from_the_start() -> None:
    for pattern in ("a$b", "a^b", r"[^\x00-\U0010ffff]", r"\bé\b\w", "(?!)", "(?=a)b"):
        assert regex_automaton(pattern, "python").start == DEAD
    assert regex_automaton("a^b|c", "python").viable(b"a") == 0


# Automata that are wrong in one way: each is caught by a comparison above.


def test_without_pruning_a_state_cannot_be_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Nfa, "hopeful", lambda nfa: set(range(len(nfa.arcs))))
    caught = [unfinishable(regex_automaton(pattern, "python")) for pattern in ("ab(?!.)c|d", "a(?=bc)b|d")]
    assert None not in caught


def test_ascii_classes_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        regex_syntax, "asked", lambda text: ASCII_WORD if text.startswith(r"\p{WORD") else asked(text)
    )
    assert wrong_verdict(regex_automaton(r"\w+", "python"), regex.compile(r"\w+").fullmatch, TEXTS) == "é"


def test_a_count_off_by_one_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    built = regex_nfa._repeated
    for high in (True, False):
        monkeypatch.setattr(
            regex_nfa,
            "_repeated",
            lambda graph, node, at, high=high: built(
                graph,
                regex_tree.Repeat(
                    node.body, node.low + (not high), node.high + 1 if high and node.high else node.high
                ),
                at,
            ),
        )
        assert wrong_verdict(
            regex_automaton("a{2,3}", "python"), regex.compile("a{2,3}").fullmatch, TEXTS
        ) in ("aa", "aaaa")


def test_overlong_forms_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def lax(first: int, last: int) -> tuple[tuple[ByteRange, ...], ...]:
        """An automaton by lengths only, as a table of lead bytes suggests it."""
        lengths = (
            ((0, 0x7F),),
            ((0xC0, 0xDF), (0x80, 0xBF)),
            ((0xE0, 0xEF), *((0x80, 0xBF),) * 2),
            ((0xF0, 0xF7), *((0x80, 0xBF),) * 3),
        )
        return lengths if first == 0 else ()

    monkeypatch.setattr(oracle, "byte_sequences", lax)
    automaton = regex_automaton(r"[\s\S]*", "python")
    caught = {output.hex() for output in MALFORMED if wrong_at_malformed(automaton, output)}
    assert {"c080", "e08080", "eda080", "f0808080", "f4908080"} <= caught


def test_lookaround_that_is_not_looked_at_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "without_looks", lambda graph: graph)
    for pattern in ("(?!a)[ab]b", "[ab](?<=a)b", r"\w\b.", r"(?m)[^a]^a"):
        assert (
            wrong_verdict(regex_automaton(pattern, "python"), regex.compile(pattern).fullmatch, TEXTS)
            is not None
        )


def test_anchors_that_are_settled_too_eagerly_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    settled = regex_nfa.settled
    monkeypatch.setattr(oracle, "settled", lambda tree: settled(tree, True, True))
    monkeypatch.setattr(
        regex_nfa, "_beside", lambda node, empty: empty
    )  # as if no neighbour took a character
    assert wrong_verdict(regex_automaton("a^b", "python"), regex.compile("a^b").fullmatch, TEXTS) == "ab"
