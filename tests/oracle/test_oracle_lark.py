"""The reference of Lark grammars against their definition: every text of a tiny alphabet, in random grammars,
in both readings; against Lark itself; and variants that are wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any, get_args

import pytest
import reference_lark as reference
from reference_lark import Made, random_grammar

from harness.backend.grammar import Grammar
from harness.backend.registry import make, parse_specs
from harness.backend.vocabulary import byte_vocabulary
from harness.oracle.automaton import DEAD, Automaton, NoOracle
from harness.oracle.ebnf.productions import Builder
from harness.oracle.lark import automaton as automata
from harness.oracle.lark import lexemes, syntax
from harness.oracle.lark.automaton import lark_automaton
from harness.oracle.lark.common import COMMON
from harness.oracle.lark.lexer import LexerAutomaton
from harness.oracle.lark.plain import are_read_alike
from harness.oracle.lark.tree import Either, Every, LarkGrammar, Literal, Times
from harness.oracle.readings import readings_against
from harness.oracle.regex.automaton import RegexDialect

EVERY = reference.texts(reference.LONGEST)
COUNT = 150


def grammars(count: int = COUNT, seed: int = 0) -> Iterable[Made]:
    random = Random(seed)
    return (random_grammar(random) for _ in range(count))


def differs(made: Made, lexer: bool) -> str:
    """Returns a text on which the reference and the definition differ, with the grammar; empty if there is
    none, and where both say that there is no reference."""
    try:
        language = lark_automaton(made.text, lexer=lexer)
    except NoOracle as why:
        return "" if made.has_no_reference else f"{why}:\n{made.text}"
    if made.has_no_reference:
        return f"there should be no reference of\n{made.text}"
    expected = reference.by_lexer(made) if lexer else reference.by_any_split(made)
    begun = None if lexer else reference.beginnings_by_any_split(made)
    for text in EVERY:
        state = language.run(language.start, text.encode())
        if language.accepting(state) != (text in expected):
            return f"{text!r} is {'a' if text in expected else 'no'} sentence of\n{made.text}"
        if begun is not None and (state != DEAD) != (text in begun):
            return f"{text!r} is {'a' if text in begun else 'no'} beginning of a sentence of\n{made.text}"
    return ""


@pytest.mark.parametrize("lexer", [False, True])
def test_the_reference_has_the_texts_of_the_definition(lexer: bool) -> None:
    for made in grammars():
        assert not differs(made, lexer)


def test_the_two_readings_differ_in_some_of_these_grammars() -> None:
    unequal = [made for made in grammars(60) if reference.by_lexer(made) != reference.by_any_split(made)]
    assert 15 < len(unequal) < 45


def test_the_reference_agrees_with_lark() -> None:
    """Lark's own parser with every split, `lexer="dynamic_complete"`. It ignores at the start too."""
    lark = pytest.importorskip("lark")
    random, sentences = Random(1), 0
    for made in [random_grammar(random, for_lark=True) for _ in range(COUNT // 8)]:
        parser = lark.Lark(made.text, parser="earley", lexer="dynamic_complete")
        language = lark_automaton(made.text)
        for text in reference.texts(3):
            if text[:1] in made.ignored:
                continue
            try:
                parser.parse(text)
                is_sentence = True
            except lark.exceptions.UnexpectedInput:
                is_sentence = False
            except RuntimeError as error:  # a rule that is itself: Lark asks for a report of its bug
                assert "Please report this bug" in str(error)
                continue
            sentences += is_sentence
            assert language.accepts(text.encode()) == is_sentence, (text, made.text)
    assert sentences > 40


Patch = Callable[[pytest.MonkeyPatch], None]


def forgets_what_is_ignored(patch: pytest.MonkeyPatch) -> None:
    read = syntax.read_lark
    patch.setattr(
        automata, "read_lark", lambda text: LarkGrammar((g := read(text)).rules, g.terminals, ignored=())
    )


def ignores_before_a_lexeme(patch: pytest.MonkeyPatch) -> None:
    body_of_tree = automata._body_of_tree
    rule = Builder.rule

    def rule_with_the_lexeme_last(self: Builder, key: Any, *bodies: tuple[int, ...]) -> int:
        if key[0] == "lexeme" and len(bodies[0]) > 1:
            bodies = ((bodies[0][-1], *bodies[0][:-1]),)
        return rule(self, key, *bodies)

    patch.setattr(Builder, "rule", rule_with_the_lexeme_last)
    patch.setattr(
        automata, "_body_of_tree", lambda node, builder: builder.choice([body_of_tree(node, builder)] * 2)
    )


def miscounts_after_a_tilde(patch: pytest.MonkeyPatch) -> None:
    count = syntax._Reader.count
    patch.setattr(syntax._Reader, "count", lambda reader: count(reader) + 1)


def takes_a_least_count_for_the_only_one(patch: pytest.MonkeyPatch) -> None:
    counts = syntax._Reader.counts_in_braces
    patch.setattr(syntax._Reader, "counts_in_braces", lambda reader: (counts(reader)[0],) * 2)


def loses_an_alternative(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(syntax, "Either", lambda branches: Either(branches[:-1]))


def reads_no_escapes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(syntax, "_literal", lambda token: Literal(token.text.strip('i"')))


def forgets_the_case(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lexemes.Lexemes, "_with_cases", lambda _, ranges: ranges)


def takes_brackets_for_parentheses(patch: pytest.MonkeyPatch) -> None:
    item = syntax._Reader.item

    def required(reader: syntax._Reader) -> Any:
        is_bracket, found = reader.here.text == "[", item(reader)
        return found.body if is_bracket and isinstance(found, Times) else found

    patch.setattr(syntax._Reader, "item", required)


def takes_a_dot_for_a_line_end_too(patch: pytest.MonkeyPatch) -> None:
    right = lexemes._with_its_dots
    patch.setattr(lexemes, "_with_its_dots", lambda pattern, _, dialect: right(pattern, True, dialect))


def takes_an_empty_alternative_for_none(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        syntax, "Either", lambda branches: Either(tuple(each for each in branches if each != Every(())))
    )


def ignores_at_the_start(patch: pytest.MonkeyPatch) -> None:
    beginning = LexerAutomaton._beginning
    patch.setattr(
        LexerAutomaton, "_beginning", lambda self, parsers, at_start: beginning(self, parsers, False)
    )


def ends_a_lexeme_early(patch: pytest.MonkeyPatch) -> None:
    """Each of the lexemes that are being read ends as soon as it can."""

    def begin_again(self: LexerAutomaton, key: Any) -> Any:
        ended = self._ended(key)
        yield from successors(self, (ended, ()) if ended and key[1] else key)

    successors = LexerAutomaton._successors
    patch.setattr(LexerAutomaton, "_successors", begin_again)


def looks_for_every_lexeme(patch: pytest.MonkeyPatch) -> None:
    """Those too that the parser cannot go on with."""
    beginning = LexerAutomaton._beginning

    def every(self: LexerAutomaton, parsers: frozenset[int], at_start: bool) -> list[tuple[int, int]]:
        found = beginning(self, parsers, at_start)
        others = [(number, self._automata[number].start) for number in range(self._ignored)]
        return sorted({*found, *(pair for pair in others if found and pair[1] != DEAD)})

    patch.setattr(LexerAutomaton, "_beginning", every)


WRONG: dict[Patch, bool] = {
    forgets_what_is_ignored: False,
    ignores_before_a_lexeme: False,
    miscounts_after_a_tilde: False,
    takes_a_least_count_for_the_only_one: False,
    loses_an_alternative: False,
    reads_no_escapes: False,
    forgets_the_case: False,
    takes_brackets_for_parentheses: False,
    takes_a_dot_for_a_line_end_too: False,
    takes_an_empty_alternative_for_none: False,
    ignores_at_the_start: True,
    ends_a_lexeme_early: True,
    looks_for_every_lexeme: True,
}
"""What is wrong, and whether it is wrong in the reading with a lexer."""


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_reference_is_found(wrong: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong(monkeypatch)
    assert any(differs(made, WRONG[wrong]) for made in grammars())


WITHOUT = {
    "an attribute": ("start[lazy]: /a/", "an attribute of start"),
    "a priority": ("start: A\nA.2: /a/", "a priority of A"),
    "a template": ('start: x{"a"}\nx{y}: y', "a template"),
    "a special token": ("start: <|end|>", "a special token"),
    "a named grammar": ("start: @x", "a named grammar"),
    "an intersection": ("start: A\nA: /a/ & /b/", "an intersection of terminals"),
    "a complement": ("start: A\nA: ~/a/", "the complement of a terminal"),
    "a schema": ("start: %json {}", "%json"),
    "options": ("%llguidance {}\nstart: /a/", "%llguidance"),
    "another library": ("%import python.NAME\nstart: NAME", "an import from elsewhere"),
    "a flag": ("start: /a/m", "the flag m"),
    "a flag inside": ("start: /(?i:a)/", "(?i"),
    "a flag behind a class": ("start: /[[:alpha:]](?i:a)/", "(?i"),
    "what never matches": ("start: /a|(*FAIL)/", "what never matches"),
    "a group that ends first": ("start: /a)(?:b/is", "unbalanced parenthesis"),
    "a lookahead": ("start: /a(?=b)/", "(?="),
    "an anchor": ("start: /^a/", "an anchor"),
    "a boundary": (r"start: /a\b/", "a word boundary"),
    "a lazy quantifier": ("start: /a+?/", "a lazy quantifier"),
    "a back-reference": (r"start: /(a)\1/", "a backreference"),
    "an empty lexeme": ('start: /a*/\n%ignore " "', "a lexeme that may be empty"),
    "too many": ('start: ("a" | "b")~60000 "c"~60000', "symbols"),
    "a big count": ('start: "a"~1..999999999', "a count is more than"),
    "nested": ("start: " + "(" * 20_000, "nested too deeply"),
    "an escape of Python": (r'start: "\x41"', "no string of JSON"),
    "a surrogate": (r'start: "\ud800"', "no string of JSON"),
    "two operators": ('start: "a"*?', "two operators"),
    "a count in disorder": ('start: "a"~3..2', "the wrong way round"),
    "a range in disorder": ('start: "b".."a"', "a range is from"),
    "no start": ('other: "a"', "there is no rule start"),
    "an unknown name": ("start: x", "line 1: x is not defined"),
    "a name twice": ('start: "a"\nstart: "b"', "line 2: start is defined twice"),
    "an import twice": ("start: INT\n%import common (INT, INT)", "INT is defined twice"),
    "a name that common has not": ("start: X\n%import common.X", "common has no X"),
    "a circle": ("start: A\nA: B\nB: A?", "leads back to itself"),
    "a rule in a terminal": ('start: A\nA: b\nb: "x"', "A uses the rule b"),
    "a rule that is ignored": ('start: "a"\n%ignore start', "uses the rule start"),
    "an open group": ('start: ("a"', "the line's end"),
    "a name in both cases": ("aB: /a/", "cannot read"),
    "nothing": ("", "there is no rule start"),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_what_has_no_reference_says_why(name: str) -> None:
    text, reason = WITHOUT[name]
    for lexer in (False, True):
        with pytest.raises(NoOracle) as caught:
            lark_automaton(text, lexer=lexer)
        assert reason in str(caught.value) and "\n" not in str(caught.value)


def test_any_text_has_a_reference_or_a_reason() -> None:
    """Pieces of grammars, put together at random; what else is raised fails the test."""
    random, read = Random(5), 0
    pieces = [
        "start: ",
        '"a"',
        "/b+/",
        '"a".."c"',
        '"A"i',
        "\n%ignore ",
        "\n%import common.WS",
        "\nA: ",
        "\nx: ",
        "~2..3",
    ]
    pieces += ["{1,}", "[", "]", "(", ")", "*", "?", "\n", "->", "// c", " A", " x", "|", "\n|"]
    for _ in range(400):
        text = "start: " + "".join(random.choices(pieces, k=random.randrange(1, 9)))
        for lexer in (False, True):
            try:
                lark_automaton(text, "rust", lexer=lexer).accepts(b"ab")
                read += 1
            except NoOracle:
                pass
    assert read > 20


@pytest.mark.parametrize(
    ("expression", "dialect", "taken"),
    [
        ('"i"i', "python", "iI"),
        ("/i/i", "python", "iI"),
        ("/[h-j]/i", "python", "iIhH"),
        ("/[^i]/i", "python", "kK\u212ahHİı1"),
        ('"k"i', "python", "kK\u212a"),
        ("/k/i", "python", "kK\u212a"),
        (r"/[^k\n]/i", "python", "iIhHİı1"),
        ("/[ik]/i", "rust", "iIkK\u212a"),
        ("/[ik]/i", "javascript", "iIkK"),
        ('"k"i', "javascript", "kK"),
    ],
)
def test_either_case_is_the_same_of_literals_and_of_expressions(
    expression: str, dialect: RegexDialect, taken: str
) -> None:
    """Simple case folding, which leaves İ and ı alone, though the `regex` library takes them for an i."""
    language = lark_automaton(f"start: {expression}", dialect)
    assert "".join(each for each in "iIkK\u212ahHİı1" if language.accepts(each.encode())) == "".join(
        each for each in "iIkK\u212ahHİı1" if each in taken
    )


@pytest.mark.parametrize(
    ("expression", "dialect", "taken", "refused"),
    [
        ("/[[:alnum:]_.]+/", "python", ["a.b", "."], ["a]", "-"]),
        ("/[[:^alpha:].]./s", "python", [".]", "1\n"], ["ab", "1"]),
        ("/[[:alpha:].]/s", "python", [".", "a"], ["a]", "]"]),
        ("/[^]a.]./", "python", ["[.", "\n\r"], ["].", "..", "[\n"]),
        ("/[[(?=]+./", "python", ["((", "=b", "[."], ["b=", "(\n"]),
        ("/[a[.]b.]/", "rust", [".", "a", "b"], ["[", "]", "a]"]),
        ("/[a[.]].|b/is", "rust", ["A\n", ".]", "B"], ["[]", "a"]),
        ("/[].]|./", "ecma", [".", "]", "\r", "\u2028"], ["\n", ".]"]),
        ("/[^]./s", "javascript", ["a]", "\n\n"], ["a", "."]),
        ("/[[.]./", "ecma", [".]", "[\r"], ["a.", ".\n"]),
    ],
)
def test_a_dot_is_every_character_but_a_line_feed_and_in_a_class_itself(
    expression: str, dialect: RegexDialect, taken: list[str], refused: list[str]
) -> None:
    language = lark_automaton(f"start: {expression}", dialect)
    assert [text for text in [*taken, *refused] if language.accepts(text.encode())] == taken


@pytest.mark.parametrize("terminal", ["A{0} A{0}", "A{0} | A{0}", "A{0}? A{0}?", "A{0}~2 A{0}*"])
@pytest.mark.parametrize("last", ['""', "/(?:)/", "/a{0}|/", '"a"'])
def test_terminals_that_name_each_other_twice_end_in_time(terminal: str, last: str) -> None:
    lines = [f"A{number}: {terminal.format(number + 1)}" for number in range(60)]
    grammar = "\n".join(["start: A0", *lines, f"A60: {last}"])
    for lexer in (False, True):
        if last == '"a"':
            with pytest.raises(NoOracle, match=r"symbols|positions"):
                lark_automaton(grammar, lexer=lexer)
        else:
            language = lark_automaton(grammar, lexer=lexer)
            assert language.accepts(b"") and not language.accepts(b"a")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("[a[b]]", "a"), ("[a-d&&b-z]", "a"), ("[a~~b]", "~"), ("[a-z--m]", "m"), ("a{ 2 }", "aa")],
)
def test_other_dialects_are_tried_where_they_read_an_expression_otherwise(pattern: str, text: str) -> None:
    grammar = Grammar("lark", f'start: "x/" /{pattern}/  // y/z')
    valid = lark_automaton(grammar.text).accepts(b"x/" + text.encode())
    against = [*readings_against(grammar, b"x/" + text.encode(), valid, [])]
    assert {"rust", "rust lexer"} <= {*against} <= {"rust", "rust lexer", "python lexer"}


def test_an_expression_that_is_plain_is_read_alike_in_every_dialect() -> None:
    random, plain = Random(8), 0
    pieces = [
        *"ab][{}()|*+?.-^&~# ,:",
        "(?:",
        "{2}",
        "{1,2}",
        "--",
        "&&",
        "~~",
        "[a-c]",
        "[^b]",
        "[]",
        "[^]",
        "é",
    ]
    pieces += [
        r"\-",
        r"\]",
        r"\.",
        r"\<",
        r"\n",
        r"\x41",
        r"\u0062",
        r"\ud83d",
        r"\_",
        r"\ ",
        r"\0",
        r"\/",
        "[:",
        ":]",
    ]
    for _ in range(1500):
        text = f"start: /{''.join(random.choices(pieces, k=random.randint(1, 5)))}/"
        if are_read_alike(text):
            languages = [language_or_none(text, dialect) for dialect in get_args(RegexDialect)]
            subjects = ["".join(random.choices("ab]-[&~{}cA^é ", k=random.randint(0, 3))) for _ in range(30)]
            verdicts = {
                language and tuple(language.accepts(each.encode()) for each in subjects)
                for language in languages
            }
            assert len(verdicts) == 1, text
            plain += None not in verdicts
    assert plain > 300


def language_or_none(text: str, dialect: RegexDialect) -> Automaton[Any] | None:
    try:
        return lark_automaton(text, dialect)
    except NoOracle:
        return None


COMMON_TEXTS = (
    "INT 12|-1",
    "SIGNED_INT -12,+1|--1",
    "DECIMAL 1.,.5,1.5|1",
    "FLOAT 1e5,1.5E-3,.5|1",
    "NUMBER 1,1.,2e3|-1",
    "SIGNED_NUMBER -1,+.5,1|1-",
    "HEXDIGIT f,A,0|g",
    "LETTER a,Z|1",
    "WORD ab|a1",
    "CNAME _a1|1a",
    "CR \r|\n",
    "LF \n|\r",
    "NEWLINE \n,\r\n\n|\r",
    "WS \t,\n\x0c|x",
    "WS_INLINE \t|\n",
    "SH_COMMENT #a|a",
    "CPP_COMMENT //a|/a",
    "SQL_COMMENT --a|-a",
    "C_COMMENT /* * */,/***/|/* */ */",
    'ESCAPED_STRING "a\\"","\n"|"a',
    "DIGIT 7|77",
    "LCASE_LETTER a|A",
    "UCASE_LETTER A|a",
    "_EXP e5,E-5|5",
    "SIGNED_FLOAT -1.5|1",
)


@pytest.mark.parametrize("line", COMMON_TEXTS)
def test_the_terminals_of_the_common_library(line: str) -> None:
    name, _, rest = line.partition(" ")
    matching, _, others = rest.partition("|")
    language = lark_automaton(f"start: X\n%import common.{name} -> X")
    assert all(language.accepts(text.encode()) for text in matching.split(","))
    assert not any(language.accepts(text.encode()) for text in [*others.split(","), ""])


def test_every_terminal_of_the_common_library_is_tried() -> None:
    assert sorted(line.partition(" ")[0] for line in COMMON_TEXTS) == sorted(COMMON)


def test_the_common_library_is_that_of_the_real_backends() -> None:
    """Each matches the texts above, and not the others."""
    for spec in ("xgrammar", "llguidance"):
        (parsed,) = parse_specs(spec)
        adapter = make(parsed, byte_vocabulary())
        for line in COMMON_TEXTS:
            name, _, rest = line.partition(" ")
            matching, _, others = rest.partition("|")
            compiled = adapter.compile(Grammar("lark", f"start: X\n%import common.{name} -> X"))
            for text in [*matching.split(","), *others.split(",")]:
                walked = compiled.start()
                ended = all(walked.accept_token(byte) for byte in text.encode()) and walked.is_accepting()
                assert ended == (text in matching.split(",")), (spec, name, text)
