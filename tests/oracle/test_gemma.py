"""The automaton of documents as Gemma writes them: against the definition on small texts, in which every
place leads to an end, and wrong automata, each of which must be seen."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from small_gemma import QUOTE, SCHEMAS, is_right, small_texts

from harness.backend.grammar import Grammar
from harness.backend.layout import LAYOUTS
from harness.oracle.automaton import DEAD
from harness.oracle.completion import shortest_completion
from harness.oracle.language import documents_of, outputs_of
from harness.oracle.tag_formats import gemma
from harness.oracle.tag_formats.gemma import GemmaAutomaton
from harness.oracle.tag_formats.written import WrittenAutomaton, borders

FEW = 1_500


@cache
def right_texts(number: int, count: int = FEW) -> dict[str, bool]:
    """Returns small texts with what the definition says of them."""
    said = {text: is_right(text, SCHEMAS[number]) for text in small_texts(number, count)}
    return {text: is_valid for text, is_valid in said.items() if is_valid is not None}


def automaton_of(number: int) -> GemmaAutomaton:
    return GemmaAutomaton(documents_of(json.dumps(SCHEMAS[number])))


def differences(number: int, count: int = FEW) -> list[str]:
    """Returns the texts of which the automaton says something else than the definition."""
    automaton = automaton_of(number)
    said = right_texts(number, count)
    return [text for text, is_valid in said.items() if automaton.accepts(text.encode()) != is_valid]


@pytest.mark.parametrize("number", range(len(SCHEMAS)))
def test_small_texts_are_judged_as_by_the_definition(number: int) -> None:
    assert differences(number) == []
    assert {True, False} == set(right_texts(number).values())


@pytest.mark.long
@pytest.mark.parametrize("number", range(len(SCHEMAS)))
def test_many_small_texts_are_judged_as_by_the_definition(number: int) -> None:
    assert differences(number, 60_000) == []


@pytest.mark.parametrize("number", range(len(SCHEMAS)))
def test_every_place_leads_to_an_end(number: int) -> None:
    automaton = automaton_of(number)
    for text in list(right_texts(number))[:150]:
        state = automaton.run(automaton.start, text.encode())
        rest = shortest_completion(automaton, state, avoided=b"0.eE[{")
        assert state == DEAD or (rest is not None and automaton.accepts(text.encode() + rest))


def test_a_string_that_must_hold_its_end_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    automaton = automaton_of(3)
    assert automaton.run(automaton.start, b"{a") == DEAD
    monkeypatch.setattr(WrittenAutomaton, "_is_viable", lambda self, item: True)
    automaton = automaton_of(3)
    assert automaton.run(automaton.start, f"{{a:{QUOTE}<|".encode()) != DEAD


# ----------------------------------------------------------------------------------------- wrong automata


def lets_a_string_hold_its_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gemma, "QUOTED", [[0] * 256 for _ in QUOTE])


def marks_strings_otherwise(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gemma, "QUOTE", b'<"|>')
    patch.setattr(gemma, "QUOTED", borders(b'<"|>'))


def takes_white_space_for_a_part_of_a_name(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gemma, "WHITE", b"")


def lets_names_hold_brackets(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gemma, "NOT_IN_NAMES", b":")


def spells_strings_as_json(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(WrittenAutomaton, "_spelled", lambda self, state, byte: self.documents.step(state, byte))


def ends_within_values(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GemmaAutomaton, "_ends", lambda self, item: isinstance(item, gemma.Outside))


WRONG: dict[Callable[[pytest.MonkeyPatch], None], int] = {
    lets_a_string_hold_its_end: 4,
    marks_strings_otherwise: 0,
    takes_white_space_for_a_part_of_a_name: 1,
    lets_names_hold_brackets: 4,
    spells_strings_as_json: 2,
    ends_within_values: 0,
}
"""Each wrong automaton, with a schema by which it is seen."""


@pytest.mark.parametrize("change", WRONG, ids=lambda change: change.__name__)
def test_a_wrong_automaton_is_seen(
    change: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    right_texts(WRONG[change])
    change(monkeypatch)
    assert differences(WRONG[change])


# --------------------------------------------------------------------------------------- in structural tags


def tag(schema: dict[str, Any], **more: Any) -> Grammar:
    format = {"type": "json_schema", "style": "gemma", "json_schema": schema, **more}
    call = {"type": "tag", "begin": "<|tool_call>call:weather", "content": format, "end": "<tool_call|>"}
    return Grammar("structural_tag", json.dumps({"type": "structural_tag", "format": call}))


def call(arguments: str) -> bytes:
    return f"<|tool_call>call:weather{arguments}<tool_call|>".encode()


TOOL = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}


def test_a_call_is_read() -> None:
    outputs = outputs_of(tag(TOOL))
    assert outputs.accepts(call(f'{{city:{QUOTE}"Paris"\n<{QUOTE},days:3}}'))
    assert not outputs.accepts(call('{"city":"Paris"}'))
    assert not outputs.accepts(call(f"{{city:{QUOTE}Paris{QUOTE},days:{QUOTE}3{QUOTE}}}"))
    assert not outputs.accepts(call("{days:3}"))
    assert not outputs.accepts(call(f"{{city:{QUOTE}Paris{QUOTE},city:{QUOTE}Paris{QUOTE}}}"))


def test_a_layout_has_its_order_and_its_white_space() -> None:
    text = f"{{days:3,%scity:{QUOTE}Paris{QUOTE}}}"
    once = outputs_of(tag(TOOL, max_whitespace_cnt=1))
    assert once.accepts(call(text % " ")) and not once.accepts(call(text % "  "))
    compact = LAYOUTS["compact"]
    assert not outputs_of(tag(TOOL), layout=compact).accepts(call(text % ""))
    assert outputs_of(tag(TOOL, any_order=True), layout=compact).accepts(call(text % ""))
