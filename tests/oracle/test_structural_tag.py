"""The automaton of structural tags: against both judges on all small texts, against grammars written by hand,
and against wrong automata, each of which must be seen."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from side_by_side import first_difference
from small_tags import tag_differences

from harness.backend.grammar import Grammar
from harness.backend.layout import LAYOUTS
from harness.backend.registry import make, parse_spec
from harness.backend.vocabulary import byte_vocabulary, load_vocabulary
from harness.cases.suite import find_suite, read_cases
from harness.oracle import structural_tag
from harness.oracle.automaton import DEAD, Automaton, NoOracle
from harness.oracle.ebnf.automaton import ebnf_automaton
from harness.oracle.language import outputs_of
from harness.oracle.structural_tag import Begin, End, Inside, Outside, StructuralTagAutomaton
from harness.oracle.trie import trie_of

MOST_PAIRS = 1_500
"""Pairs of states that are compared."""


def tag(triggers: list[str], *structures: tuple[str, Any, str]) -> Grammar:
    """Returns the structural tag of (begin, schema, end)."""
    parts = [{"begin": begin, "schema": schema, "end": end} for begin, schema, end in structures]
    return Grammar("structural_tag", json.dumps({"triggers": triggers, "structures": parts}))


# ---------------------------------------------------------------------------------------- against the judges


FEW = 60
"""Tags that are enough to see every wrong automaton below."""


@pytest.mark.parametrize("part", range(4))
def test_every_small_text_is_judged_rightly(part: int) -> None:
    assert [line for number in range(part, FEW, 4) for line in tag_differences(number)] == []


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_every_small_text_of_more_tags_is_judged_rightly(part: int) -> None:
    assert [line for number in range(FEW + part, 900, 10) for line in tag_differences(number)] == []


@pytest.mark.parametrize("suite", ["choice_and_tags", "known_bugs"])
def test_the_suites_say_the_same(suite: str) -> None:
    tried = 0
    for case in read_cases(find_suite(suite)):
        if case.grammar.dialect == "structural_tag":
            automaton = outputs_of(case.grammar)
            for instance in case.instances:
                assert automaton.accepts(instance.content) is instance.valid, (case.name, instance)
                if instance.valid:
                    assert automaton.viable(instance.content) == len(instance.content)
                tried += 1
    assert tried > (200 if suite == "choice_and_tags" else 10)


# --------------------------------------------------------------------------------------- grammars by hand

SPACE = "ws ::= [ \\t\\n\\r]*\n"
PAIRS = {
    "one trigger": (
        tag(["<f"], ("<f>", {"const": True}, "</f>")),
        'root ::= (text "<"* "<f>" ws "true" ws "</f>")* text "<"*\ntext ::= ([^<] | "<"+ [^<f])*\n',
    ),
    "a trigger of one character": (
        tag(["#"], ("#", {"type": "null"}, "!")),
        'root ::= [^#]* ("#" ws "null" ws "!" [^#]*)*\n',
    ),
    "two structures of one trigger": (
        tag(["#"], ("#a", {"type": "null"}, "!"), ("#b", {"const": True}, "?")),
        'root ::= [^#]* (("#a" ws "null" ws "!" | "#b" ws "true" ws "?") [^#]*)*\n',
    ),
    "one begin is a prefix of another": (
        tag(["#"], ("#", {"type": "null"}, "!"), ("#n", {"const": True}, "?")),
        'root ::= [^#]* (("#" ws "null" ws "!" | "#n" ws "true" ws "?") [^#]*)*\n',
    ),
    "a structure without documents": (
        tag(["#"], ("#a", False, "!"), ("#b", {"const": True}, "?")),
        'root ::= [^#]* ("#b" ws "true" ws "?" [^#]*)*\n',
    ),
    "no structure has documents": (tag(["#"], ("#a", False, "!")), "root ::= [^#]*\n"),
    "the end begins like white space": (
        tag(["#"], ("#", {"type": "null"}, "\n!")),
        'root ::= [^#]* ("#" ws "null" ws "\\n!" [^#]*)*\n',
    ),
    "the end is a digit": (
        tag(["#"], ("#", {"type": "number"}, "1")),
        'root ::= [^#]* ("#" ws number ws "1" [^#]*)*\n'
        'number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [+\\-]? [0-9]+)?\n',
    ),
    "the end is empty": (
        tag(["#"], ("#", {"const": "a"}, "")),
        'root ::= [^#]* ("#" ws "\\"" ("a" | "\\\\u0061") "\\"" ws [^#]*)*\n',
    ),
    "two triggers": (
        tag(["#", "é"], ("#", {"type": "null"}, "!"), ("ée", {"const": True}, "?")),
        'root ::= [^#é]* (("#" ws "null" ws "!" | "ée" ws "true" ws "?") [^#é]*)*\n',
    ),
    "the begin stands in the end": (
        tag(["@@"], ("@@", {"type": "null"}, "@")),
        'root ::= text ("@@" ws "null" ws "@" text)* "@"?\ntext ::= ("@"? [^@])*\n',
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_grammar_written_by_hand_has_the_same_masks(name: str) -> None:
    own, other = pair(name)
    assert first_difference(own, other, MOST_PAIRS) is None
    trie = trie_of(load_vocabulary("probe"))
    for text in (b"", b"<", b"#", b"@", b"a#", b"<f>", b"#a", b"#null", b"@@null ", b"\xc3"):
        states = own.run(own.start, text), other.run(other.start, text)
        assert (trie.mask(own, states[0]) == trie.mask(other, states[1])).all(), text


def pair(name: str) -> tuple[Automaton[Any], Automaton[Any]]:
    grammar, rules = PAIRS[name]
    return outputs_of(grammar), ebnf_automaton(rules + SPACE)


# ----------------------------------------------------------------------------------------- wrong automata


def forgets_a_trigger(patch: pytest.MonkeyPatch) -> None:
    right = StructuralTagAutomaton.__init__
    patch.setattr(
        StructuralTagAutomaton,
        "__init__",
        lambda self, triggers, *others: right(self, triggers[:1], *others),
    )


def forgets_the_second_structure_of_a_trigger(patch: pytest.MonkeyPatch) -> None:
    right = StructuralTagAutomaton.__init__

    def wrong(self: Any, triggers: list[bytes], structures: list[Any], budget: Any) -> None:
        first = {each.begin[:1]: each for each in reversed(structures)}
        right(self, triggers, list(first.values()), budget)

    patch.setattr(StructuralTagAutomaton, "__init__", wrong)


def lets_free_text_contain_a_trigger(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(structural_tag, "_pending_behind", lambda *rests: {})


def finds_triggers_in_tags_too(patch: pytest.MonkeyPatch) -> None:
    right = structural_tag._pending_behind
    right_after = StructuralTagAutomaton._after

    def wrong(self: Any, reading: Any) -> Any:
        patch.setattr(structural_tag, "_pending_behind", lambda *rests: right(*{*rests, *self._triggers}))
        return list(right_after(self, reading))

    patch.setattr(StructuralTagAutomaton, "_after", wrong)


def accepts_the_end_early(patch: pytest.MonkeyPatch) -> None:
    right = StructuralTagAutomaton._is_accepting
    patch.setattr(
        StructuralTagAutomaton,
        "_is_accepting",
        lambda self, key: right(self, key) or any(isinstance(each, End) for each in key),
    )


def accepts_inside_a_character(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        StructuralTagAutomaton,
        "_is_accepting",
        lambda self, key: any(isinstance(each, Outside) for each in key),
    )


def ends_no_document_that_could_go_on(patch: pytest.MonkeyPatch) -> None:
    right = StructuralTagAutomaton._without_a_byte

    def wrong(self: Any, reading: Any) -> Any:
        for other in right(self, reading):
            goes_on = (
                isinstance(reading, Inside)
                and isinstance(other, End)
                and other.rest
                and (self._structures[reading.structure].documents.step(reading.state, other.rest[0]) != DEAD)
            )
            if not goes_on:
                yield other

    patch.setattr(StructuralTagAutomaton, "_without_a_byte", wrong)


def forgets_what_is_pending_where_a_tag_begins(patch: pytest.MonkeyPatch) -> None:
    right = StructuralTagAutomaton._without_a_byte

    def wrong(self: Any, reading: Any) -> Any:
        is_out = isinstance(reading, Outside) and reading.within == 0
        return iter([Begin(b"", frozenset())]) if is_out else right(self, reading)

    patch.setattr(StructuralTagAutomaton, "_without_a_byte", wrong)


def knows_no_dead_ends(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StructuralTagAutomaton, "_is_viable", lambda self, reading: True)


MUTANTS: tuple[Callable[[pytest.MonkeyPatch], None], ...] = (
    forgets_a_trigger,
    forgets_the_second_structure_of_a_trigger,
    lets_free_text_contain_a_trigger,
    finds_triggers_in_tags_too,
    accepts_the_end_early,
    accepts_inside_a_character,
    ends_no_document_that_could_go_on,
    forgets_what_is_pending_where_a_tag_begins,
    knows_no_dead_ends,
)


FIRST: dict[Callable[[pytest.MonkeyPatch], None], int] = {knows_no_dead_ends: 56}
"""A tag in which one is seen that the first ones do not show."""


@pytest.mark.parametrize("bend", MUTANTS, ids=lambda bend: bend.__name__)
def test_a_wrong_automaton_is_seen(
    bend: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    bend(monkeypatch)
    assert any(tag_differences(number) for number in (FIRST.get(bend, 0), *range(FEW)))


# ------------------------------------------------------------------------------------------- what is around


def test_a_layout_is_that_of_the_documents() -> None:
    grammar = tag(["<"], ("<", {"type": "array", "items": {"const": 1}}, ">"))
    free, compact, spaced = (
        outputs_of(grammar, layout=LAYOUTS[name]) for name in ("any", "compact", "spaced")
    )
    for text, *right in (
        (b" a <[1,1]> b", True, True, False),
        (b"<[1, 1]>", True, False, True),
        (b"< [1] >", True, False, False),
        (b"<[1]", False, False, False),
    ):
        assert [automaton.accepts(text) for automaton in (free, compact, spaced)] == right, text


def test_a_trigger_that_began_in_free_text_may_close_a_way() -> None:
    """Behind `a` the tag `b1c` would complete the trigger `ab1c`, and no structure begins there."""
    grammar = tag(["b", "ab1c"], ("b", {"const": 1}, "c"))
    automaton = outputs_of(grammar)
    assert automaton.accepts(b"b1c") and automaton.accepts(b"ab1 c") and automaton.accepts(b"aab 1c")
    assert not automaton.accepts(b"ab1c") and automaton.viable(b"ab1c") == 3
    # Without white space there is no other way.
    assert outputs_of(grammar, layout=LAYOUTS["compact"]).viable(b"ab") == 1


@pytest.mark.parametrize(
    ("triggers", "begin", "schema", "reason"),
    [
        ([], "a", {}, "has structures"),
        (["a", ""], "a", {}, "not empty"),
        (["a"], "b", {}, "none of the triggers"),
        (["\ud800"], "\ud800", {}, "surrogates"),
        (["a"], "a", {"const": float("inf")}, "not JSON compliant"),
        (["a"], "a", {"uniqueItems": True}, "uniqueItems"),
    ],
)
def test_what_has_no_reference_says_why(triggers: list[str], begin: str, schema: Any, reason: str) -> None:
    with pytest.raises(NoOracle, match=reason):
        outputs_of(tag(triggers, (begin, True, "."), (begin, schema, ".")))


@pytest.mark.parametrize("number", ["9007199254740993.5", "0.1000000000000000000001", "1e400", "1e-400"])
@pytest.mark.parametrize(
    "tag",
    [
        '{"triggers": ["<"], "structures": [{"begin": "<", "schema": {"const": NUMBER}, "end": ">"}]}',
        '{"format": {"type": "json_schema", "json_schema": {"const": NUMBER}}}',
    ],
)
def test_a_number_that_no_double_is_has_no_reference(tag: str, number: str) -> None:
    """Its schemas are read with doubles, by which another number would be the right one."""
    with pytest.raises(NoOracle, match=f"the number {number}, which is another as a double"):
        outputs_of(Grammar("structural_tag", tag.replace("NUMBER", number)))
    assert outputs_of(Grammar("structural_tag", tag.replace("NUMBER", "0.10")))


@pytest.mark.parametrize("text", ["{", "[]", '{"triggers": ["a"]}', '{"triggers": "a", "structures": []}'])
def test_what_is_no_structural_tag_says_so(text: str) -> None:
    with pytest.raises(NoOracle, match="no structural tag"):
        outputs_of(Grammar("structural_tag", text))


def test_a_tag_whose_documents_have_no_automaton_says_so_each_time() -> None:
    first = {"type": "array", "items": {"$ref": "#/$defs/d"}, "$defs": {"d": {"uniqueItems": True}}}
    automaton = outputs_of(tag(["<f", "a<f[[1"], ("<f", first, "</f>"), ("a<f[[1", True, "")))
    for _ in range(3):
        with pytest.raises(NoOracle, match="uniqueItems"):
            automaton.accepts(b"a<f[]</f>")


def test_the_processor_time_is_bounded() -> None:
    grammar = tag(["<"], ("<", {"type": "string", "maxLength": 2_000}, ">"))
    automaton = outputs_of(grammar, seconds=0.01)
    with pytest.raises(NoOracle, match="processor time"):
        automaton.run(automaton.start, b'<"' + b"x" * 1_500)


def test_the_reference_takes_structural_tags() -> None:
    grammar = tag(["<"], ("<", {"type": "integer"}, ">"))
    for options, text, accepted in (("", b"a < 1>", True), (":layout=compact", b"a < 1>", False)):
        grammar_object = make(parse_spec(f"reference{options}"), byte_vocabulary()).compile(grammar).start()
        assert all(grammar_object.accept_token(byte) for byte in text) is accepted
        assert grammar_object.is_accepting() is accepted
