"""The automaton of structural tags of the new form: against the judge of the tests on all small texts and
rows of tokens, and wrong automata, each of which must be seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from small_formats import TOKENS, format_differences, tag, token_differences

from harness.backend.grammar import Grammar
from harness.backend.layout import LAYOUTS
from harness.backend.registry import make, parse_spec
from harness.backend.tag_formats import FormatError, read_tag
from harness.backend.tag_formats.tokens import UnknownToken, token_id
from harness.backend.vocabulary import byte_vocabulary, load_vocabulary
from harness.oracle.automaton import DEAD, NoOracle
from harness.oracle.completion import shortest_completion
from harness.oracle.language import outputs_of
from harness.oracle.structural_tag import tag_of_any_documents
from harness.oracle.tag_formats import graph, parts
from harness.oracle.tag_formats.automaton import FormatAutomaton
from harness.oracle.tag_formats.graph import Graph
from harness.oracle.tag_formats.parts import FreeText
from harness.oracle.trie import trie_of


def text(value: str) -> dict[str, Any]:
    return {"type": "const_string", "value": value}


def wrapped(begin: str, content: dict[str, Any], end: Any) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


ANY: dict[str, Any] = {"type": "any_text"}
INTEGER = {"type": "json_schema", "json_schema": {"type": "integer"}}


# --------------------------------------------------------------------------------------- against the judge


@pytest.mark.parametrize("part", range(4))
def test_every_small_text_is_judged_rightly(part: int) -> None:
    assert [line for number in range(part, 80, 4) for line in format_differences(number)] == []


@pytest.mark.parametrize("part", range(4))
def test_every_short_row_of_tokens_is_judged_rightly(part: int) -> None:
    assert [line for number in range(part, 80, 4) for line in token_differences(number)] == []


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_every_small_text_of_more_tags_is_judged_rightly(part: int) -> None:
    assert [line for number in range(80 + part, 2_000, 10) for line in format_differences(number)] == []


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_every_row_of_tokens_of_more_tags_is_judged_rightly(part: int) -> None:
    assert [line for number in range(80 + part, 2_000, 10) for line in token_differences(number)] == []


# ----------------------------------------------------------------------------------------- wrong automata


def lets_free_text_hold_a_pattern(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FreeText, "exits", lambda self, state: self._free + right_exits(self, state))


right_exits = FreeText.exits


def forgets_excluded_texts_that_overlap_themselves(patch: pytest.MonkeyPatch) -> None:
    right = FreeText._behind

    def wrong(self: Any, key: Any, *others: Any) -> Any:
        longest = max(key.banned, key=len, default=b"")
        return right(self, key._replace(banned=frozenset({longest} - {b""})), *others)

    patch.setattr(FreeText, "_behind", wrong)


def lets_a_pattern_end_text_in_which_another_began(patch: pytest.MonkeyPatch) -> None:
    right = FreeText._behind

    def wrong(self: Any, key: Any, *others: Any) -> Any:
        return right(self, key._replace(is_free=True), *others)

    patch.setattr(FreeText, "_behind", wrong)


def lets_every_pattern_that_is_complete_end_free_text(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, state: int) -> Any:
        completed = self._keys[state].completed
        others = [self._numbers[each] for each in self._numbers if completed.endswith(each)]
        return (*right_exits(self, state), *(number for numbers in others for number in numbers))

    patch.setattr(FreeText, "exits", wrong)


def knows_no_dead_ends_in_free_text(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FreeText, "_is_viable", lambda self, reading: True)


def ends_free_text_inside_a_character(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FreeText, "_is_accepting", lambda self, key: key.is_free)


def forgets_the_end_of_the_tag_around(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Graph, "_text_ends", lambda self: ())


def takes_the_ends_of_all_tags_around(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        Graph,
        "_text_ends",
        lambda self: tuple(each for end in self._ends if isinstance(end, tuple) for each in end),
    )


def forgets_the_token_that_ends_the_tag_around(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Graph, "_token_ends", lambda self: ())


def goes_on_after_the_first_tag(patch: pytest.MonkeyPatch) -> None:
    right = Graph._triggered_tags
    patch.setattr(Graph, "_triggered_tags", lambda self, format, after: right(self, loose(format), after))


def loose(format: Any) -> Any:
    return type(format)(**{**vars(format), "stop_after_first": False})


def counts_one_round_too_few(patch: pytest.MonkeyPatch) -> None:
    right = Graph._repetition
    patch.setattr(
        Graph,
        "_repetition",
        lambda self, content, least, most, after: right(self, content, max(0, least - 1), most, after),
    )


def counts_bytes_for_characters(patch: pytest.MonkeyPatch) -> None:
    right = FreeText._behind

    def wrong(self: Any, key: Any, byte: bytes, within: int, characters: int) -> Any:
        return right(self, key, byte, within, characters + (characters == key.characters))

    patch.setattr(FreeText, "_behind", wrong)


def needs_no_separator(patch: pytest.MonkeyPatch) -> None:
    right = Graph._separated_tags
    patch.setattr(
        Graph,
        "_separated_tags",
        lambda self, format, after: right(self, type(format)(**{**vars(format), "separator": ""}), after),
    )


def reads_a_token_by_its_bytes(patch: pytest.MonkeyPatch) -> None:
    right = Graph._tokens

    def wrong(self: Any, tokens: Any, *, is_excluded: bool) -> Any:
        texts = [] if is_excluded else [TOKENS.tokens[self._id(token)] for token in tokens]
        return parts.Texts(texts) if all(texts) and texts else right(self, tokens, is_excluded=is_excluded)

    patch.setattr(Graph, "_tokens", wrong)


def takes_the_end_of_the_output_for_a_token(patch: pytest.MonkeyPatch) -> None:
    right = Graph._tokens

    def wrong(self: Any, tokens: Any, *, is_excluded: bool) -> Any:
        part = right(self, tokens, is_excluded=is_excluded)
        if is_excluded:
            part.allowed[TOKENS.eos_token] = True
        return part

    patch.setattr(Graph, "_tokens", wrong)


def forgets_ids_in_masks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FormatAutomaton, "ids_allowed", lambda self, state: None)


def forgets_the_bytes_where_an_id_is_meant(patch: pytest.MonkeyPatch) -> None:
    right = FormatAutomaton.after_token

    def wrong(self: Any, state: int, token: int, text: bytes) -> int:
        return right(self, state, token, b"" if self._token_parts(state) else text)

    patch.setattr(FormatAutomaton, "after_token", wrong)


def lets_an_empty_part_pass(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Graph, "_leaf", lambda self, part, after: self._node(part, {0: [after]}))


def lets_excluded_tokens_begin_a_tag(patch: pytest.MonkeyPatch) -> None:
    right = Graph._free_tokens
    patch.setattr(
        Graph, "_free_tokens", lambda self, node, contents, excluded: right(self, node, contents, ())
    )


MUTANTS: tuple[Callable[[pytest.MonkeyPatch], None], ...] = (
    lets_free_text_hold_a_pattern,
    forgets_excluded_texts_that_overlap_themselves,
    lets_a_pattern_end_text_in_which_another_began,
    lets_every_pattern_that_is_complete_end_free_text,
    knows_no_dead_ends_in_free_text,
    ends_free_text_inside_a_character,
    forgets_the_end_of_the_tag_around,
    takes_the_ends_of_all_tags_around,
    forgets_the_token_that_ends_the_tag_around,
    goes_on_after_the_first_tag,
    counts_one_round_too_few,
    counts_bytes_for_characters,
    needs_no_separator,
    reads_a_token_by_its_bytes,
    takes_the_end_of_the_output_for_a_token,
    forgets_ids_in_masks,
    forgets_the_bytes_where_an_id_is_meant,
    lets_an_empty_part_pass,
    lets_excluded_tokens_begin_a_tag,
)


def differences() -> Iterator[str]:
    for number in (*range(25), 61, 76, 157):  # the last three are the first to show some of the faults
        yield from token_differences(number, 2)
        yield from format_differences(number)


@pytest.mark.parametrize("bend", MUTANTS, ids=lambda bend: bend.__name__)
def test_a_wrong_automaton_is_seen(
    bend: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    bend(monkeypatch)
    assert any(differences())


# ------------------------------------------------------------------------------------------- what is around


def test_a_layout_is_that_of_the_documents() -> None:
    ones = {"type": "json_schema", "json_schema": {"type": "array", "items": {"const": 1}}}
    grammar = tag(wrapped("<", ones, ">"))
    free, compact, spaced = (
        outputs_of(grammar, layout=LAYOUTS[name]) for name in ("any", "compact", "spaced")
    )
    for output, *right in (
        (b"<[1,1]>", True, True, False),
        (b"<[1, 1]>", True, False, True),
        (b"< [1] >", True, False, False),
    ):
        assert [automaton.accepts(output) for automaton in (free, compact, spaced)] == right, output


def test_a_format_may_say_how_a_document_is_written() -> None:
    schema = {"properties": {"a": {}, "b": {}}, "type": "object", "additionalProperties": False}
    for fields, compact, spaced in (({}, False, True), ({"any_order": True}, True, True)):
        automaton = outputs_of(
            tag({"type": "json_schema", "json_schema": schema, **fields}), layout=LAYOUTS["compact"]
        )
        assert automaton.accepts(b'{"b":1,"a":1}') is compact
        assert automaton.accepts(b'{"a":1,"b":1}') is spaced
    automaton = outputs_of(tag({**INTEGER, "max_whitespace_cnt": 1}))
    assert automaton.accepts(b" 1 ") and not automaton.accepts(b"1  ")


@pytest.mark.parametrize(
    ("format", "reason"),
    [
        ({**INTEGER, "style": "cohere_xml"}, "style cohere_xml"),
        ({**INTEGER, "excludes": ["a"]}, "with excludes"),
        ({"type": "any_text", "max_tokens": 3}, "max_tokens of any_text"),
        ({"type": "token", "token": 1}, "ids of a vocabulary"),
        ({"type": "regex", "pattern": "(a)\\1"}, "back"),
        ({"type": "grammar", "grammar": "start ::= 1"}, "line 1"),
        ({"type": "json_schema", "json_schema": {"const": float("nan")}}, "not JSON compliant"),
        ({"type": "repeat", "min": 30_000, "max": -1, "content": text("a")}, "unrolls to more"),
        ({"type": "any_text", "excludes": ["a" * 9_000]}, "too long"),
        ({"type": "nothing"}, "/format/type"),
    ],
)
def test_what_has_no_reference_says_why(format: dict[str, Any], reason: str) -> None:
    with pytest.raises(NoOracle, match=reason):
        outputs_of(tag({"type": "or", "elements": [text("a"), format]}) if reason[:1] != "/" else tag(format))


def test_a_name_of_no_token_has_no_reference() -> None:
    for token in ("nothing", 7):
        with pytest.raises(NoOracle, match="has no"):
            outputs_of(tag({"type": "token", "token": token}), vocabulary=TOKENS)
    trigger = {"type": "tag", "begin": {"token": 0}, "content": text(""), "end": ""}
    with pytest.raises(NoOracle, match="begins with no trigger"):
        outputs_of(
            tag({"type": "token_triggered_tags", "trigger_tokens": [1], "tags": [trigger]}), vocabulary=TOKENS
        )


def test_of_several_tokens_with_one_text_a_name_means_the_one_that_is_written() -> None:
    twice = replace(byte_vocabulary(), name="twice", tokens=(*byte_vocabulary().tokens, b"a", b"ab"))
    piece = twice.size - 2
    assert token_id(twice, "a") == twice.ids_by_bytes[b"a"] < piece, "nobody says which one is written"
    writes_pieces = replace(twice, tokenize=lambda text: [piece] if text == "a" else [*text.encode()])
    assert token_id(writes_pieces, "a") == piece
    assert token_id(writes_pieces, "ab") == piece + 1, "it writes two tokens for it"
    with pytest.raises(UnknownToken):
        token_id(writes_pieces, "abc")


def test_a_token_is_met_by_its_id_and_not_by_its_bytes() -> None:
    automaton = outputs_of(
        tag({"type": "sequence", "elements": [{"type": "token", "token": "ab"}, text("ab")]}),
        vocabulary=TOKENS,
    )
    trie = trie_of(TOKENS)
    assert np.flatnonzero(trie.mask(automaton, automaton.start)).tolist() == [2]
    assert automaton.run(automaton.start, b"ab") == DEAD
    behind = automaton.after_token(automaton.start, 2, b"ab")
    assert np.flatnonzero(trie.mask(automaton, behind)).tolist() == [0, 2]
    assert automaton.forced(automaton.start) == b"" and automaton.forced(behind) == b"ab"


def test_a_long_text_needs_little_memory() -> None:
    automaton = outputs_of(tag({"type": "sequence", "elements": [text("a" * 1_000_000), text("b")]}))
    assert automaton.viable(b"a" * 2_000) == 2_000 and not automaton.accepts(b"b")


def test_the_processor_time_is_bounded() -> None:
    letters = {"type": "json_schema", "json_schema": {"type": "string", "maxLength": 2_000}}
    automaton = outputs_of(tag(wrapped("<", letters, ">")), seconds=0.01)
    with pytest.raises(NoOracle, match="processor time"):
        automaton.run(automaton.start, b'<"' + b"x" * 1_500)


@pytest.mark.parametrize(
    "content",
    [
        {"type": "any_text"},
        {"type": "regex", "pattern": "[a-z]*"},
        {"type": "optional", "content": {"type": "const_string", "value": "ab"}},
    ],
)
def test_one_step_through_a_long_repetition_is_bounded(content: dict[str, Any]) -> None:
    with pytest.raises(NoOracle, match="processor time"):
        automaton = outputs_of(
            tag({"type": "repeat", "min": 0, "max": 5_000, "content": content}), seconds=0.3
        )
        automaton.run(automaton.start, b"ab")


def test_the_search_for_an_end_of_a_written_document_is_bounded() -> None:
    value = {"type": "array", "items": {"type": "string", "pattern": "^x{300}</parameter>"}, "minItems": 3}
    schema = {"type": "object", "properties": {"a": value}, "required": ["a"]}
    written = {"type": "json_schema", "style": "qwen_xml", "json_schema": schema}
    with pytest.raises(NoOracle, match="processor time"):
        outputs_of(tag(written), seconds=0.5)


def test_many_triggers_without_tags_in_a_repetition_are_bounded() -> None:
    triggered = {
        "type": "triggered_tags",
        "triggers": [f"<{number}" for number in range(3_000)],
        "tags": [{"begin": "<1", "content": text("a"), "end": ">"}],
    }
    with pytest.raises(NoOracle, match="processor time"):
        outputs_of(tag({"type": "repeat", "min": 0, "max": 5_000, "content": triggered}), seconds=0.5)


@pytest.mark.parametrize(
    "form", [{"type": "json_schema", "style": "qwen_xml"}, {"type": "qwen_xml_parameter"}]
)
def test_the_tag_of_any_documents_asks_nothing_of_a_schema_by_its_old_name(form: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"a": {}}, "additionalProperties": False}
    written = tag({**form, "json_schema": schema})
    of_any = outputs_of(Grammar("structural_tag", tag_of_any_documents(written.text)))
    other = b"<parameter=b>text</parameter>"
    assert of_any.accepts(other) and not outputs_of(written).accepts(other)


def test_many_schemas_cost_no_more_than_one() -> None:
    numbers = [{"type": "json_schema", "json_schema": {"type": "array", "minItems": n}} for n in range(5_000)]
    with pytest.raises(NoOracle, match="processor time"):
        outputs_of(tag({"type": "or", "elements": numbers}), seconds=0.05)


def test_many_free_texts_cost_no_more_than_one() -> None:
    def any_texts(count: int, size: int) -> Grammar:
        texts = [{"type": "any_text", "excludes": [f"{number:05}" + "x" * size]} for number in range(count)]
        return tag({"type": "or", "elements": texts})

    assert outputs_of(any_texts(1, 4_000)).accepts(b"abc")
    with pytest.raises(NoOracle, match="too long, or too many"):
        outputs_of(any_texts(300, 4_000))
    with pytest.raises(NoOracle, match="processor time"):
        outputs_of(any_texts(5_000, 50), seconds=0.02)


def test_free_text_that_is_repeated_counts_once() -> None:
    calls = {"type": "dispatch", "rules": [["<" * 1_000, INTEGER]], "loop": False}
    automaton = outputs_of(tag({"type": "repeat", "min": 50, "max": 60, "content": calls}))
    assert automaton.accepts(b"a<<") and automaton.accepts(b"")


@pytest.mark.parametrize("most", [-1, 10**9])
def test_what_has_no_output_or_the_empty_one_alone_is_repeated_at_once(most: int) -> None:
    never = {"type": "json_schema", "json_schema": False}
    nothing = {"type": "repeat", "min": 0, "max": 0, "content": text("a")}
    often = {"type": "repeat", "min": 10**9, "max": most}
    assert outputs_of(tag({**often, "content": never})).start == DEAD
    automaton = outputs_of(tag({**often, "content": nothing}))
    assert automaton.accepts(b"") and not automaton.viable(b"a")


def test_five_hundred_tools_have_a_reference() -> None:
    tags = [wrapped(f"<f=tool_{number}>", INTEGER, "</f>") for number in range(500)]
    automaton = outputs_of(tag({"type": "triggered_tags", "triggers": ["<f="], "tags": tags}))
    assert automaton.accepts(b"hello <f=tool_499>12</f><f=tool_7>3</f> and <f")
    assert not automaton.accepts(b"<f=tool_500>1</f>") and automaton.viable(b"<f=tool_500>1</f>") == 10
    assert automaton.forced(automaton.run(automaton.start, b"<f=")) == b"tool_"
    assert trie_of(load_vocabulary("probe")).mask(automaton, automaton.start).any()


def test_a_witness_is_the_shortest_completion() -> None:
    automaton = outputs_of(tag(wrapped("<f>", INTEGER, ["</f>", "!"])))
    assert shortest_completion(automaton, automaton.run(automaton.start, b"<f>1")) == b"!"


def test_the_reference_takes_the_new_form() -> None:
    grammar = tag(wrapped("<", INTEGER, ">"))
    for options, output, accepted in (("", b"< 1>", True), (":layout=compact", b"< 1>", False)):
        grammar_object = make(parse_spec(f"reference{options}"), byte_vocabulary()).compile(grammar).start()
        assert all(grammar_object.accept_token(byte) for byte in output) is accepted
        assert grammar_object.is_accepting() is accepted
    ended = {"type": "tag", "begin": {"token": 97}, "content": ANY, "end": ""}
    grammar_object = make(parse_spec("reference"), byte_vocabulary()).compile(tag(ended)).start()
    assert not grammar_object.accept_token(98) and grammar_object.accept_token(97)


# ------------------------------------------------------------------------------------------------ the reader


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({}, '"format" is needed'),
        ({"format": 1}, "at /format: must be an object, not 1"),
        ({"format": {}}, "at /format/type: is missing"),
        ({"format": {"type": "regx"}}, 'there is no format "regx"; did you mean "regex"'),
        ({"format": {"type": "regex", "pattern": ""}}, "at /format/pattern: is empty"),
        ({"format": {"type": "any_text", "exclude": []}}, 'no such field here; did you mean "excludes"'),
        ({"format": {"type": "any_text", "excludes": [""]}}, "at /format/excludes/0: must be a string that"),
        ({"format": {"type": "any_text", "a/~\x1b": 1}}, r"at /format/a~1~0\\x1b: there is no such field"),
        ({"format": {"type": "const_string", "value": "\ud800"}}, "half a surrogate pair"),
        (
            {"format": {"type": "sequence", "elements": [text("a"), {"type": "or"}]}},
            "/elements/1/elements: is m",
        ),
        ({"format": {"type": "repeat", "min": 3, "max": 2, "content": ANY}}, "at /format/max: is 2, which"),
        ({"format": {"type": "repeat", "min": True, "max": 2, "content": ANY}}, "not a boolean"),
        ({"format": {"type": "repeat", "min": 0, "max": 2**31, "content": ANY}}, "whole number from -1"),
        ({"format": {"type": "dispatch", "rules": [["a"]]}}, "at /format/rules/0: a rule is a list of two"),
        ({"format": {"type": "dispatch", "rules": [["", ANY]]}}, "at /format/rules/0/0: must be a string"),
        ({"format": wrapped("a", ANY, [])}, "at /format/end: must be a text"),
        ({"format": wrapped("a", ANY, "") | {"begin": {"token": -1}}}, "at /format/begin/token: a token is"),
        (
            {"format": {"type": "triggered_tags", "triggers": ["a"], "tags": [wrapped("b", ANY, "")]}},
            "at /format/tags/0/begin: starts with none of the triggers",
        ),
        (
            {
                "format": {
                    "type": "token_triggered_tags",
                    "trigger_tokens": [1],
                    "tags": [wrapped("b", ANY, "")],
                }
            },
            "at /format/tags/0/begin: must be a token here",
        ),
        ({"type": "tag", "format": ANY}, 'at /type: must be "structural_tag"'),
        ({"format": {**INTEGER, "style": "yaml"}}, "at /format/style: must be one of json"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(form: Any, message: str) -> None:
    with pytest.raises(FormatError, match=message) as error:
        read_tag(form)
    assert "\n" not in str(error.value) and str(error.value).isprintable()


def test_deep_formats_are_refused() -> None:
    form: dict[str, Any] = ANY
    for _ in range(graph.MOST_NODES):
        form = {"type": "star", "content": form}
    with pytest.raises(FormatError, match="more than 100 formats stand in each other"):
        read_tag({"format": form})
