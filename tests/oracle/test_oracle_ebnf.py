"""Facts about the EBNF automaton: against the suites, the code-point judge of
tests/support/reference_ebnf.py, and variants that are wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from random import Random

import pytest
import reference_ebnf as reference
from hypothesis import given, settings
from hypothesis import strategies as st
from places import ROOT
from suite_files import SUITES, content, lines_of

from harness.backend.vocabulary import Vocabulary
from harness.oracle.automaton import DEAD, NoOracle
from harness.oracle.ebnf import automaton as oracle
from harness.oracle.ebnf import rules as ebnf_rules
from harness.oracle.ebnf.automaton import EbnfAutomaton, Group, Key, Waiting, ebnf_automaton
from harness.oracle.ebnf.productions import Builder
from harness.oracle.ebnf.rules import END, Suffixes, useful_rules
from harness.oracle.ebnf.syntax import productions
from harness.oracle.trie import TokenTrie
from harness.oracle.utf8 import byte_sequences

CASES = [case for name in ("ebnf", "utf8") for case in lines_of(SUITES[name]) if "ebnf" in case]
JSON = next(case["ebnf"] for case in CASES if case["description"] == "JSON")

TEXTS = [
    "".join(characters)
    for longest, alphabet in ((2, "abé€"), (5, "ab"))
    for characters in product(alphabet, repeat=longest)
]


def test_the_suites_are_judged_as_they_say() -> None:
    for case in CASES:
        automaton, grammar = ebnf_automaton(case["ebnf"]), reference.parse(case["ebnf"])
        for instance in case["tests"]:
            name, output = (case["description"], instance["description"]), content(instance)
            assert automaton.accepts(output) == instance["valid"], name
            try:
                text = output.decode()
            except UnicodeDecodeError:
                continue
            begun = output[: max(automaton.viable(output), 0)].decode(errors="ignore")
            viable = reference.viable_length(grammar, text)
            assert len(begun) - (automaton.start == DEAD) == viable, name


def disagreement(grammar: reference.Grammar, automaton: EbnfAutomaton) -> str | None:
    """The first short text about which the two differ: whether it is a sentence, or the beginning of one."""
    refused = "-"
    for text in TEXTS:
        if text.startswith(refused):
            continue
        sentences = reference.sentences(grammar, text)
        state = automaton.start
        for position, is_sentence in enumerate(sentences):
            if state == DEAD or automaton.accepting(state) != is_sentence:
                return text[:position]
            state = automaton.run(state, text[position : position + 1].encode())
        if len(sentences) <= len(text):
            refused = text[: len(sentences)]
            if state != DEAD:
                return refused
    return None


ATOMS = (
    '"a"',
    '"b"',
    '"ab"',
    '""',
    '"é"',
    '"€"',
    "[ab]",
    "[^a]",
    "[à-ÿ]",
    "[b€]",
    "[^\\u0000-\\U0010FFFF]",
    "[^\\x00-\\u1FFF]",
)
RULES = ("root", "x", "y")
atoms = st.sampled_from(ATOMS + RULES * 4)
operators = st.sampled_from(("", "", "", "*", "+", "?", "{2}", "{0,2}", "{1,3}", "{2,}"))


def choices(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(st.lists(inner, min_size=1, max_size=3).map(" ".join), min_size=1, max_size=2).map(
        " | ".join
    )


items = st.recursive(
    st.builds(str.__add__, atoms, operators),
    lambda inner: st.builds(lambda body, operator: f"({body}){operator}", choices(inner), operators),
    max_leaves=3,
)


grammars = st.lists(choices(items), min_size=len(RULES), max_size=len(RULES)).map(
    lambda bodies: "\n".join(f"{rule} ::= {body}" for rule, body in zip(RULES, bodies, strict=True))
)


@settings(max_examples=100, deadline=None)
@given(grammars)
def test_random_grammars_have_the_sentences_and_beginnings_that_the_judge_sees(ebnf: str) -> None:
    assert disagreement(reference.parse(ebnf), ebnf_automaton(ebnf)) is None


def can_begin(grammar: reference.Grammar, data: bytes) -> bool:
    """Does a sentence begin with these bytes?

    By the judge, with the last character finished in every way that matters.
    """
    text = data.decode(errors="ignore")
    if not data.startswith(text.encode()):
        return False
    rest = data[len(text.encode()) :]
    if not rest:
        return reference.viable_length(grammar, text) == len(text)
    return any(
        reference.viable_length(grammar, text + character) > len(text)
        for character in beginning_with(rest, grammar)
    )


def beginning_with(rest: bytes, grammar: reference.Grammar) -> set[str]:
    """The lowest character whose bytes begin so, and all at which a class of the grammar begins or has just
    ended."""
    tails = (bytes([second]) + b"\x80" * more for more in range(3) for second in (0x80, 0x90, 0xA0))
    found = {
        text[0]
        for tail in tails
        if len(text := (rest + tail).decode(errors="ignore")) == 1 and text.encode() == rest + tail
    }
    ends = {
        ord(end)
        for body in grammar.bodies
        for symbol in body
        if not isinstance(symbol, int)
        for pair in symbol.ranges
        for end in pair
    }
    return found | {
        chr(end + more)
        for end in ends
        for more in (0, 1)
        if chr(end + more).encode(errors="replace").startswith(rest)
    }


PIECES = ("a", "b", "ab", "ba", "é", "éa", "è", "€", "a€b", "₭", "߿", "😀", "\0")
BYTES = (
    "c3",
    "a9",
    "61c3",
    "a962",
    "e2",
    "82",
    "ac",
    "e282",
    "82ac",
    "f0",
    "9f98",
    "80",
    "f09f98",
    "ff",
    "c0af",
    "eda080",
    "f4908080",
)
TOKENS = ("", *PIECES, "a")
VOCABULARY = Vocabulary(
    "small",
    (*(piece.encode() for piece in TOKENS), *map(bytes.fromhex, BYTES), b""),
    (len(TOKENS) + len(BYTES),),
    {len(TOKENS) + len(BYTES): "</s>"},
)
TRIE = TokenTrie(VOCABULARY)


@settings(max_examples=40, deadline=None)
@given(grammars, st.randoms(use_true_random=False))
def test_masks_of_random_grammars_are_those_of_the_judge(ebnf: str, random: Random) -> None:
    grammar, automaton = reference.parse(ebnf), ebnf_automaton(ebnf)
    state, output = automaton.start, b""
    for _ in range(4):
        mask = TRIE.mask(automaton, state)
        expected = expected_mask(grammar, output)
        assert mask.tolist() == expected, output
        following = [
            token for token, allowed in zip(VOCABULARY.tokens, expected, strict=True) if token and allowed
        ]
        if not following:
            break
        output += random.choice(following)
        state = automaton.run(automaton.start, output)


def expected_mask(grammar: reference.Grammar, output: bytes) -> list[bool]:
    mask = [bool(token) and can_begin(grammar, output + token) for token in VOCABULARY.tokens]
    mask[VOCABULARY.eos_token] = is_sentence(grammar, output)
    return mask


def is_sentence(grammar: reference.Grammar, output: bytes) -> bool:
    try:
        return reference.accepts(grammar, output.decode())
    except UnicodeDecodeError:
        return False


# --- what is refused


MALFORMED = (
    *(
        "",
        "root",
        "root ::=",
        'root\n"a"',
        '::= "a"',
        '"a" root ::= "a"',
        'root = "a"',
        'root ::= "a" ::= "b"',
        "# only a note\n",
    ),
    *(
        'start ::= "a"',
        'root ::= "a"\n\n b',
        'root ::= "a"\nx ::= y',
        "root ::= root-",
        'root ::= "a"\nroot ::= "b"',
    ),
    *(
        'root ::= "a" x ::= "b"',
        'root ::= "a" x\n ::= "b"',
        "root ::=\r\n x |\r\nx ::= ()",
        'root ::= "a" | | "b"',
        "root ::= |",
    ),
    *(
        'root ::= ("a"\nx ::= "b"',
        'root ::= "a")',
        'root ::= (("a")',
        'root ::= "a"\n "b',
        'root ::= "a\nb"',
        'root ::= "a"\f',
    ),
    *(
        "root ::= [a",
        "root ::= []",
        "root ::= [^]",
        "root ::= [z-a]",
        "root ::= [a-\n]",
        "root ::= 1a",
        "root ::= .",
    ),
    *(
        'root ::= "a"{3,2}',
        'root ::= "a"{,2}',
        'root ::= "a"*?',
        'root ::= "a"{1}{2}',
        "root ::= *",
        'root ::= (*"a")',
    ),
    *(
        'root ::= "a"{ 1 # note\n}',
        r'root ::= "\q"',
        r'root ::= "\-"',
        r"root ::= [\q]",
        r'root ::= "a\"',
        r"root ::= [a\]",
    ),
    *(
        r'root ::= "\x4"',
        r'root ::= "\u12"',
        r'root ::= "\uD800"',
        r"root ::= [\uDFFF]",
        r'root ::= "\U00110000"',
        'root ::= "\ud800"',
    ),
)
WELL_FORMED = (
    *(
        'root::="a"',
        '\t root # note ::=\n::="a"',
        'root ::= "a" x\r x ::= "b"',
        'root ::= "a"\n#',
        'root ::= ("a"\n|\n"b"\n)\n*',
    ),
    *(
        'root ::= "a"\nx ::= x',
        "root ::= root",
        '_ ::= "b"\nroot ::= _ A-1_ \nA-1_ ::= "c"',
        'root ::= "#"#',
        'root ::= [#"]',
    ),
    *(
        'root ::= "a" { 1 , 2 }',
        'root ::= "a"{00}',
        'root ::= ""*',
        'root ::= ("" | "a")+',
        'root ::= ""{0,3} ("a"{0}){2,}',
    ),
    *(
        "root ::= [-]",
        "root ::= [a-]",
        "root ::= [-a]",
        "root ::= [^-a]",
        "root ::= [a-b-c]",
        "root ::= [--a]",
        "root ::= [a-b-]",
    ),
    *(
        "root ::= [a^]",
        "root ::= [^^]",
        "root ::= [+--]",
        "root ::= [!--a]",
        r"root ::= [\]\[\-\^]",
        r"root ::= [\\-\]]",
    ),
    *(
        r'root ::= "[\"" "]"',
        r"root ::= [\uD7FF-\uE000]",
        r"root ::= [^\x01-\U0010FFFF]",
        r'root ::= "\x411" '
        r"[\x30-\x3156]",
    ),
)


@pytest.mark.parametrize("ebnf", MALFORMED)
def test_what_is_not_of_the_form_has_no_oracle(ebnf: str) -> None:
    with pytest.raises(reference.EbnfError):
        reference.parse(ebnf)
    with pytest.raises(NoOracle, match=r"^not of the form, line \d+: .*"):
        ebnf_automaton(ebnf)


@pytest.mark.parametrize("ebnf", WELL_FORMED)
def test_spellings_are_read_as_the_judge_reads_them(ebnf: str) -> None:
    grammar, automaton = reference.parse(ebnf), ebnf_automaton(ebnf)
    alphabet = 'abcAB1-^[]\\#"\0!+V0\ud7ff\ue000'
    for text in ("", *alphabet, *map("".join, product("abc", repeat=2)), "abc", "A1", "A10"):
        assert automaton.accepts(text.encode()) == reference.accepts(grammar, text), text


@pytest.mark.parametrize(
    "ebnf",
    [
        'root ::= "a"{100001}',
        'root ::= "a"{' + "9" * 5000 + "}",
        'root ::= ("ab" | "cd"){0,60000}',
        'root ::= ("a"{400} | "b"){0,100000}',
        'root ::= "a"' + ' "a"' * 200_000,
        "root ::= r0\n" + "\n".join(f'r{rule} ::= r{(rule + 1) % 1500} | "a"' for rule in range(1500)),
    ],
    ids=lambda ebnf: str(ebnf[:40]),
)
def test_what_is_too_large_has_no_oracle(ebnf: str) -> None:
    with pytest.raises(NoOracle, match=r"more than|too many"):
        ebnf_automaton(ebnf)


def test_a_grammar_whose_states_grow_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "MAX_ITEMS", 50_000)
    automaton = ebnf_automaton("root ::= word{0,1000}\nword ::= [a-z]+")
    with pytest.raises(NoOracle, match="more than"):
        automaton.run(automaton.start, b"a" * 1000)
    assert automaton.accepts(b"a" * 50)  # what was found before stays right


def test_the_form_is_of_the_form() -> None:
    page = (ROOT / "docs" / "ebnf.md").read_text(encoding="utf-8")
    form = ebnf_automaton(re.findall(r"```ebnf\n(.*?)```", page, re.DOTALL)[1])
    for ebnf in (*WELL_FORMED, *(case["ebnf"] for case in CASES if len(case["ebnf"]) < 500)):
        assert form.accepts(ebnf.encode()), ebnf
    for ebnf in (
        "root ::=",
        'root ::= ("a"',
        'root ::= "a"*?',
        "root ::= []",
        'root ::= "a"{,2}',
        r'root ::= "\q"',
        'root ::= "a" x ::= "b"',
    ):
        assert not form.accepts(ebnf.encode()), ebnf


# --- what is refused at once


def test_a_rule_that_never_ends_is_not_begun() -> None:
    automaton = ebnf_automaton('root ::= "a" | bad\nbad ::= "b" bad')
    assert automaton.viable(b"b") == 0 and automaton.accepts(b"a")
    deep = ebnf_automaton(
        'root ::= "x" (one "y" | two) | "xc" [^\\u0000-\\U0010FFFF]\none ::= "a" one | "b" one\ntwo ::= "d"'
    )
    assert [deep.viable(text) for text in (b"xa", b"xb", b"xc", b"xd")] == [1, 1, 1, 2]


@pytest.mark.parametrize(
    "ebnf",
    [
        "root ::= root",
        'root ::= "a" root | root "b"',
        "root ::= x\nx ::= [^\\x00-\\U0010FFFF]",
        'root ::= "a"+ root',
    ],
)
def test_a_language_without_a_sentence_is_dead_from_the_start(ebnf: str) -> None:
    automaton = ebnf_automaton(ebnf)
    assert automaton.start == DEAD and automaton.viable(b"") == -1 and not automaton.accepts(b"")


@pytest.mark.parametrize(
    "ebnf", ['root ::= ""', 'root ::= x? y{0}\nx ::= x x | "" | never\nnever ::= never\ny ::= "b"']
)
def test_the_empty_sentence_alone(ebnf: str) -> None:
    automaton = ebnf_automaton(ebnf)
    assert automaton.accepts(b"") and automaton.viable(b"a") == 0 and len(automaton) == 2


BROKEN = (
    "80",
    "bf",
    "c0",
    "c1",
    "f5",
    "ff",
    "c220",
    "c2c2",
    "e080",
    "e09f",
    "eda0",
    "edbf",
    "f080",
    "f08f",
    "f490",
    "e282c2",
    "f0908020",
)


@pytest.mark.parametrize("output", BROKEN)
def test_bytes_that_no_character_has_are_refused_at_the_first(output: str) -> None:
    automaton = ebnf_automaton("root ::= any*\nany ::= [^a] | [\\u0000-\\U0010FFFF]")
    wrong = bytes.fromhex(output)
    assert automaton.viable(wrong) == len(wrong) - 1
    assert automaton.viable("é".encode() + wrong) == len(wrong) + 1


@given(st.sets(st.characters(codec="utf-8"), min_size=2, max_size=8), st.characters(codec="utf-8"))
def test_a_class_has_its_characters_and_a_negated_one_the_others(ends: set[str], character: str) -> None:
    points = sorted(map(ord, ends))
    pairs = list(zip(points[::2], points[1::2], strict=False))
    listed = "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in pairs)
    for probe in {character, *map(chr, points)}:
        inside = any(low <= ord(probe) <= high for low, high in pairs)
        assert ebnf_automaton(f"root ::= [{listed}]").accepts(probe.encode()) == inside
        assert ebnf_automaton(f"root ::= [^{listed}]").accepts(probe.encode()) != inside


# --- states come back


@pytest.mark.parametrize(
    ("ebnf", "before", "turn"),
    [
        (JSON, '[{"a": [1, "', "x"),
        (JSON, '{"a": [true, ', '"b", '),
        (JSON, "[", "[1, {}], "),
        (JSON, "[1, ", '{"a": "b", "c": []}, '),
        (JSON, '"', "é\\n"),
        ('root ::= [a-z] root | "x"', "", "a"),
        ('root ::= item | item ", " root\nitem ::= [a-z]+', "", "ab, "),
        ('root ::= root ", " item | item\nitem ::= [a-z] item?', "", "ab, "),
        ('root ::= "" | "a" odd\nodd ::= "b" root', "", "ab"),
        ('root ::= root "+" root | "(" root ")" | [0-9]+', "(1+", "1+(2)+"),
        ('root ::= root root | "a" | ""', "a", "a"),
        ('root ::= "a" root*', "a", "a"),
        ('root ::= (" "? word (" " word)*)*\nword ::= [a-z]+ | [a-z] word', "a ", "ab "),
        ('root ::= ("a"*)* tail\ntail ::= ("b"? tail)?', "a", "b"),
    ],
)
def test_after_the_same_turn_comes_the_same_state(ebnf: str, before: str, turn: str) -> None:
    automaton = ebnf_automaton(ebnf)
    first = automaton.run(automaton.start, (before + turn * 2).encode())
    found = len(automaton)
    assert first != DEAD
    assert automaton.run(automaton.start, (before + turn * 500).encode()) == first
    assert len(automaton) == found


def test_what_was_said_before_does_not_matter() -> None:
    automaton = ebnf_automaton(JSON)
    begun = [
        b'[[1, {"a": "b',
        b'[["", {"a": [], "c": "',
        b'[[[], null, {"x\\n": "abc',
        '[[false, {"é": "€'.encode(),
    ]
    assert len({automaton.run(automaton.start, text) for text in begun}) == 1
    assert automaton.run(automaton.start, b'[{"a": "b') not in (
        DEAD,
        automaton.run(automaton.start, begun[0]),
    )


def test_depth_costs_one_turn_of_states_a_level() -> None:
    automaton = ebnf_automaton(JSON)
    sizes = [
        (automaton.run(automaton.start, b'[{"a": ' * depth), len(automaton))[1] for depth in (10, 20, 30)
    ]
    assert sizes[2] - sizes[1] == sizes[1] - sizes[0]


def test_counts_keep_a_text_at_one_place() -> None:
    automaton = ebnf_automaton('root ::= "<" [^"]{0,5000} ">"{2,3}')
    key = automaton._keys[automaton.run(automaton.start, b"<" + b"x" * 1000)]
    assert key is not None and len(key) == 2  # a character, and `>`


def test_a_loop_of_loops_is_a_loop() -> None:
    automaton = ebnf_automaton("root ::= " + "(" * 5000 + '"a"' + ")*" * 4999 + ')+ ("b"*){0}')
    assert (
        automaton.accepts(b"")
        and automaton.accepts(b"aaa")
        and not automaton.accepts(b"b")
        and len(automaton) == 2
    )


# --- wrong variants, and what they get wrong


class Forgetful(EbnfAutomaton):
    """Takes what may be empty at the end of an alternative for empty."""

    def _waiting(self, after: int, context: int) -> Key:
        suffix = after
        while suffix != END and self._suffixes.split(suffix)[0] in self._nullable:
            suffix = self._suffixes.split(suffix)[1]
        return super()._waiting(suffix, context)


class Hasty(EbnfAutomaton):
    """Takes away what waits in a group without asking what waited when it was entered."""

    def _without_own(self, group: Group, waiting: Waiting) -> Waiting:
        return frozenset((rule, item) for rule, item in waiting if item[1] not in self._entries)


class Alone(EbnfAutomaton):
    """Knows no rule that is the whole of another one of its group."""

    def _recursive_contexts(self, group: Group, waiting: Waiting) -> dict[int, int]:
        group.same.update({rule: {rule} for rule in group.rules})
        return super()._recursive_contexts(group, waiting)


class Rightwards(EbnfAutomaton):
    """Knows no recursion to the left."""

    def _recursive_contexts(self, group: Group, waiting: Waiting) -> dict[int, int]:
        group.inner.update({rule: set() for rule in group.rules})
        return super()._recursive_contexts(group, waiting)


class Once(EbnfAutomaton):
    """Takes every rule that may be empty for one that may be repeated."""

    def _is_repeated(self, suffix: int, waiting: Key) -> bool:
        self._loops = self._nullable
        return super()._is_repeated(suffix, waiting)


class Sparing(EbnfAutomaton):
    """Takes every suffix for one that may be empty, and so those that wait after it for implied."""

    def _may_be_empty(self, suffix: int) -> bool:
        return suffix != END


def right(ebnf: str) -> EbnfAutomaton:
    return ebnf_automaton(ebnf)


def with_useless_rules(ebnf: str) -> EbnfAutomaton:
    grammar = productions(ebnf)
    rules = {
        rule: tuple(body for head, body in grammar.bodies if head == rule and body)
        for rule, _ in grammar.bodies
    }
    return EbnfAutomaton(replace(useful_rules(grammar), bodies=rules), Suffixes(grammar.classes))


def without_empty_texts(ebnf: str) -> EbnfAutomaton:
    grammar = productions(ebnf)
    return EbnfAutomaton(replace(useful_rules(grammar), nullable=frozenset()), Suffixes(grammar.classes))


def built(kind: type[EbnfAutomaton]) -> Callable[[str], EbnfAutomaton]:
    return lambda ebnf: kind(useful_rules(grammar := productions(ebnf)), Suffixes(grammar.classes))


HARD = {
    "useless": 'root ::= "a" | bad\nbad ::= "b" bad',
    "nullable": 'root ::= x "b"\nx ::= "a" | ""',
    "nullable end": 'root ::= "b" | "a" root end\nend ::= "a"?',
    "left": 'root ::= root "b" | "a"',
    "hidden left": 'root ::= x root "b" | "a"\nx ::= "b"?',
    "left in two places": 'root ::= root root "a" | "b" | root "a"',
    "cycle": 'root ::= x\nx ::= "a" | root "b" | root',
    "cycle of three": 'root ::= x | "a" root\nx ::= y "b"? | root root\ny ::= root | "b" y',
    "waits twice": 'root ::= x | x "a" x\nx ::= "b" | "a" x | "a" root "b"',
    "ambiguous": 'root ::= x x | "ab" x\nx ::= "a" x? | x "b" x | ""',
}


@pytest.mark.parametrize("name", HARD)
def test_hard_grammars_are_right(name: str) -> None:
    assert disagreement(reference.parse(HARD[name]), right(HARD[name])) is None


@pytest.mark.parametrize(
    ("variant", "names"),
    [
        (with_useless_rules, {"useless"}),
        (without_empty_texts, {"nullable", "nullable end", "hidden left", "ambiguous"}),
        (built(Forgetful), {"nullable end"}),
        (built(Rightwards), {"left", "hidden left"}),
        (built(Hasty), {"left in two places"}),
        (built(Alone), {"cycle"}),
        (built(Once), {"nullable end"}),
        (built(Sparing), {"waits twice"}),
    ],
)
def test_wrong_variants_are_seen(variant: Callable[[str], EbnfAutomaton], names: set[str]) -> None:
    assert names <= {
        name for name, ebnf in HARD.items() if disagreement(reference.parse(ebnf), variant(ebnf)) is not None
    }


def test_a_count_that_is_off_by_one_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    ebnf = 'root ::= "a"{1,3} "b"?'
    assert disagreement(reference.parse(ebnf), right(ebnf)) is None
    up_to = Builder._up_to
    monkeypatch.setattr(Builder, "_up_to", lambda reader, item, count: up_to(reader, item, count + 1))
    assert disagreement(reference.parse(ebnf), right(ebnf)) == "aaaa"


def test_a_class_that_is_cut_into_bytes_wrongly_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(first: int, last: int) -> tuple[tuple[tuple[int, int], ...], ...]:
        return tuple(
            sequence[:1] + ((0x80, 0xBF),) * (len(sequence) - 1) for sequence in byte_sequences(first, last)
        )

    ebnf = "root ::= [à-ÿ]+"
    grammar = reference.parse(ebnf)
    assert TRIE.mask(right(ebnf), right(ebnf).start).tolist() == expected_mask(grammar, b"")
    monkeypatch.setattr(ebnf_rules, "byte_sequences", careless)
    wrong = right(ebnf)
    state = wrong.run(wrong.start, "é".encode()[:1])
    assert TRIE.mask(wrong, state).tolist() != expected_mask(grammar, "é".encode()[:1])
