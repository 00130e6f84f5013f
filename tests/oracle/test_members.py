"""The automaton of objects in a style of XML: against the definition on all small texts, in which every place
leads to an end, and wrong automata, each of which must be seen."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from small_members import SCHEMAS, SMALL_STYLES, is_right, small_texts

from harness.backend.grammar import Grammar
from harness.backend.layout import LAYOUTS, WHITE_SPACED, with_delete_escaped
from harness.oracle.automaton import DEAD, NoOracle
from harness.oracle.completion import shortest_completion
from harness.oracle.json_schema.automaton import JsonSchemaAutomaton, json_schema_automaton
from harness.oracle.language import documents_of, outputs_of
from harness.oracle.tag_formats import members
from harness.oracle.tag_formats.members import MembersAutomaton
from harness.oracle.tag_formats.styles import ANY, STYLES, Style


@cache
def right_texts(style: str, number: int) -> dict[str, bool]:
    """Returns small texts with what the definition says of them."""
    texts = dict.fromkeys(small_texts(SMALL_STYLES[style]))
    said = {text: is_right(text, SMALL_STYLES[style], SCHEMAS[number]) for text in texts}
    return {text: is_valid for text, is_valid in said.items() if is_valid is not None}


def differences(style: str, number: int) -> list[str]:
    """Returns the texts of which the automaton says something else than the definition."""
    automaton = MembersAutomaton(documents_of(json.dumps(SCHEMAS[number])), SMALL_STYLES[style])
    said = right_texts(style, number)
    return [text for text, is_valid in said.items() if automaton.accepts(text.encode()) != is_valid]


FEW = (0, 2, 7)
"""The schemas with which every run tests; the long tests have all."""


@pytest.mark.parametrize("style", SMALL_STYLES)
@pytest.mark.parametrize("number", FEW)
def test_small_texts_are_judged_as_by_the_definition(style: str, number: int) -> None:
    assert differences(style, number) == []
    assert any(right_texts(style, number).values())


@pytest.mark.long
@pytest.mark.parametrize("style", SMALL_STYLES)
@pytest.mark.parametrize("number", range(len(SCHEMAS)))
def test_small_texts_of_every_schema_are_judged_as_by_the_definition(style: str, number: int) -> None:
    assert differences(style, number) == []
    assert any(right_texts(style, number).values())


@pytest.mark.parametrize("style", SMALL_STYLES)
def test_every_place_leads_to_an_end(style: str) -> None:
    for number in FEW:
        automaton = MembersAutomaton(documents_of(json.dumps(SCHEMAS[number])), SMALL_STYLES[style])
        for text in list(right_texts(style, number))[:400]:
            state = automaton.run(automaton.start, text.encode())
            rest = shortest_completion(automaton, state, avoided=b"0.eE[{")
            assert state == DEAD or (rest is not None and automaton.accepts(text.encode() + rest))


# ----------------------------------------------------------------------------------------- wrong automata


def replace_styles(patch: pytest.MonkeyPatch, changed: Callable[[Style], Style]) -> None:
    right = MembersAutomaton.__init__
    patch.setattr(
        MembersAutomaton, "__init__", lambda self, documents, style: right(self, documents, changed(style))
    )


def lets_a_value_hold_its_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(members, "borders", lambda text: [[0] * 256 for _ in text])


def keeps_white_space_around_strings(patch: pytest.MonkeyPatch) -> None:
    right = MembersAutomaton._space
    patch.setattr(
        MembersAutomaton,
        "_space",
        lambda self, item: () if isinstance(item, members.Before | members.Behind) else right(self, item),
    )


def reads_strings_in_quotes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(members, "first_bytes", lambda readings: b'"-0123456789tfn[{')


def knows_no_dead_ends(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MembersAutomaton, "_is_viable", lambda self, item: True)


def reads_a_value_as_any_kind(patch: pytest.MonkeyPatch) -> None:
    replace_styles(
        patch,
        lambda style: replace(style, middles=tuple(replace(each, readings=ANY) for each in style.middles)),
    )


def writes_names_as_they_are(patch: pytest.MonkeyPatch) -> None:
    replace_styles(patch, lambda style: replace(style, entities=()))


def needs_no_member(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        MembersAutomaton, "_ends", lambda self, item: isinstance(item, members.Between) and item.read == 0
    )


def ends_a_value_within_json(patch: pytest.MonkeyPatch) -> None:
    right = JsonSchemaAutomaton.ends_member
    patch.setattr(
        JsonSchemaAutomaton,
        "ends_member",
        lambda self, state: right(self, state) or self.nesting(state) > 1,
    )


def takes_no_second_member(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MembersAutomaton, "_named", lambda self, state: self.documents.run(state, b'"'))


WRONG: dict[Callable[[pytest.MonkeyPatch], None], tuple[str, int]] = {
    lets_a_value_hold_its_end: ("plain", 2),
    keeps_white_space_around_strings: ("plain", 2),
    reads_strings_in_quotes: ("plain", 2),
    reads_a_value_as_any_kind: ("typed", 2),
    writes_names_as_they_are: ("typed", 7),
    needs_no_member: ("plain", 0),
    ends_a_value_within_json: ("typed", 7),
    takes_no_second_member: ("plain", 2),
}
"""Each wrong automaton, with a style and a schema by which it is seen."""


@pytest.mark.parametrize("change", WRONG, ids=lambda change: change.__name__)
def test_a_wrong_automaton_is_seen(
    change: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    right_texts(*WRONG[change])
    change(monkeypatch)
    assert differences(*WRONG[change])


def test_an_end_that_cannot_be_reached_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A string that must hold what ends it cannot be written: nothing leads there."""
    documents = documents_of(json.dumps(SCHEMAS[3]))
    begun = b"(a=x)"
    automaton = MembersAutomaton(documents, SMALL_STYLES["plain"])
    assert automaton.run(automaton.start, b"(a") == DEAD
    monkeypatch.setattr(MembersAutomaton, "_is_viable", lambda self, item: True)
    automaton = MembersAutomaton(documents, SMALL_STYLES["plain"])
    assert automaton.run(automaton.start, begun) != DEAD


# -------------------------------------------------------------------------------------------- the styles


def tag(style: str, schema: dict[str, Any], **more: Any) -> Grammar:
    format = {"type": "json_schema", "style": style, "json_schema": schema, **more}
    return Grammar("structural_tag", json.dumps({"type": "structural_tag", "format": format}))


TOOL = {
    "type": "object",
    "properties": {
        "city": {"enum": ["Paris", "東京"]},
        "days": {"type": "integer"},
        "if": {"type": "object"},
    },
    "required": ["city"],
    "additionalProperties": False,
}
DSML = "｜DSML｜"
TEXTS = {
    "qwen_xml": "<parameter=city>\nParis\n</parameter>\n<parameter=days>3</parameter>\n",
    "minimax_xml": '<parameter name="city">東京</parameter>\n<parameter name="days"> 3 </parameter>',
    "glm_xml": "<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>"
    "<arg_key>if</arg_key><arg_value>{}</arg_value>",
    "deepseek_xml": f'<{DSML}parameter name="city" string="true">Paris</{DSML}parameter>'
    f'<{DSML}parameter name="days" string="false">3</{DSML}parameter>',
    "deepseek_v4_1_xml": f'<{DSML} parameter name="city" string="true">Paris</{DSML} parameter>',
    "kimi_k3_xml": '<|open|>argument key="city" type="string"<|sep|>Paris<|close|>argument<|sep|>'
    '<|open|>argument key="days" type="number"<|sep|>3<|close|>argument<|sep|>',
}
WRONG_TEXTS = {
    "qwen_xml": '<parameter=city>"Paris"</parameter>',
    "minimax_xml": '<parameter name="city">Paris</parameter><parameter name="city">Paris</parameter>',
    "glm_xml": "<arg_key>city</arg_key>x<arg_value>Paris</arg_value>",
    "deepseek_xml": f'<{DSML}parameter name="city" string="false">"Paris"</{DSML}parameter>',
    "deepseek_v4_1_xml": f'<{DSML} parameter name="city" string="true">Paris</{DSML}parameter>',
    "kimi_k3_xml": '<|open|>argument key="city" type="number"<|sep|>Paris<|close|>argument<|sep|>',
}


@pytest.mark.parametrize("style", STYLES)
def test_each_style_is_read(style: str) -> None:
    outputs = outputs_of(tag(style, TOOL))
    assert outputs.accepts(TEXTS[style].encode())
    assert not outputs.accepts(WRONG_TEXTS[style].encode())
    assert {style.behind[:1] for style in STYLES.values()}.isdisjoint(
        {each.behind[-1:] for each in STYLES.values()}
    )


@pytest.mark.parametrize("style", ["cohere_xml", "minimax_m3_xml"])
def test_a_style_of_values_within_values_has_no_reference(style: str) -> None:
    with pytest.raises(NoOracle, match="in the style"):
        outputs_of(tag(style, TOOL))


def test_a_layout_has_its_order_and_its_white_space() -> None:
    listed = replace(LAYOUTS["any"], order="listed", longest_run=1)
    text = "<parameter=days>3</parameter>{}<parameter=city>Paris</parameter>"
    outputs = outputs_of(tag("qwen_xml", TOOL, max_whitespace_cnt=1))
    assert outputs.accepts(text.format("").encode()) and not outputs.accepts(text.format("  ").encode())
    assert not outputs_of(tag("qwen_xml", TOOL), layout=listed).accepts(text.format("").encode())
    assert outputs_of(tag("qwen_xml", TOOL, any_order=True), layout=listed).accepts(text.format("").encode())


def test_tags_with_one_schema_do_not_use_up_the_time_of_one_another() -> None:
    """From the thirty-fifth tag on there was no reference, because all searched within one budget."""
    documents = json_schema_automaton(json.dumps(SCHEMAS[0]))
    right = next(text for text, is_valid in right_texts("plain", 0).items() if is_valid).encode()
    assert MembersAutomaton(documents, SMALL_STYLES["plain"]).accepts(right)
    documents.budget._left = 0.0
    assert MembersAutomaton(documents, SMALL_STYLES["plain"]).accepts(right)


@pytest.mark.parametrize("character", ["\x7f", "\x01", "é"])
def test_a_string_stands_as_it_is_in_a_layout_that_escapes_its_characters(character: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    outputs = outputs_of(tag("qwen_xml", schema), layout=with_delete_escaped(WHITE_SPACED))
    assert outputs.accepts(f"<parameter=a>{character}</parameter>".encode())
