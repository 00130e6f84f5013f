"""Runs of white space, digits and one character: what is counted of right backends, and what is found of
wrong ones."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from declaring import BYTES, declaring

from harness.backend.grammar import Grammar
from harness.backend.layout import COMPACT, EVERY_SPELLING, LAYOUTS, Layout
from harness.cases.case import Case, Instance
from harness.checks.endless import (
    MOST_TOKENS,
    RUNS_END,
    check_runs_end_where_they_must,
    longest_white_space,
)
from harness.checks.subject import NotApplicable, Subject
from harness.oracle.reference import Reference
from harness.rows.row import Finding

AB = {"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "null"}}}
DOCUMENT = b'{"a":true,"b":null}'


def looked_at(
    adapter: Any, schema: Any, document: bytes, dialect: Any = "json_schema"
) -> tuple[list[Finding], dict[str, int]]:
    """Returns what the check finds at every place along the document, and what it counts."""
    grammar = Grammar(dialect, schema if isinstance(schema, str) else json.dumps(schema))
    case = Case("0" * 12, "a case", grammar, (Instance("an instance", document, None),))
    subject = Subject(adapter, case, adapter.compile(grammar))
    findings = list(check_runs_end_where_they_must(subject))
    return findings, subject.counted.get(RUNS_END, {})


def runs_of(longest: int | None) -> Layout:
    return replace(COMPACT, separators=None, longest_run=longest)


@pytest.mark.parametrize("bound", [0, 1, 7])
def test_white_space_that_ends_where_the_layout_says_is_no_fault(bound: int) -> None:
    findings, counted = looked_at(declaring(runs_of(bound)), AB, DOCUMENT)
    assert findings == []
    assert counted.get("white_space_longest", 0) == bound and not counted.get("white_space_endless")


def test_white_space_without_end_is_counted_where_none_was_promised() -> None:
    findings, counted = looked_at(declaring(runs_of(None)), AB, DOCUMENT)
    assert findings == []
    assert counted["white_space_endless"] == counted["white_space_places"] > 1


@pytest.mark.parametrize(
    ("declared", "writes", "position"),
    [
        (runs_of(2), runs_of(None), 2),  # without end, though it is bounded
        (runs_of(2), runs_of(3), 2),  # one more than it says
        (runs_of(0), runs_of(1), 0),
        (COMPACT, runs_of(None), 0),
        (LAYOUTS["spaced"], runs_of(None), 1),
    ],
)
def test_white_space_beyond_the_declared_layout_is_found(
    declared: Layout, writes: Layout, position: int
) -> None:
    findings, _ = looked_at(declaring(declared, writes), AB, DOCUMENT)
    cause = "endless_beyond_its_layout" if writes.longest_run is None else "longer_than_its_layout"
    assert {(finding.cause, finding.under) for finding in findings} == {(cause, 0)}
    assert {len(finding.walk) - 1 - finding.position for finding in findings if finding.position} == {0}
    place = DOCUMENT.index(b":") + 1
    assert place + position in {finding.position for finding in findings}
    if writes.longest_run == 1:
        assert all(", for 1 character in all, " in finding.text for finding in findings)


@pytest.mark.parametrize(
    ("schema", "looser", "document", "count"),
    [
        ({"type": "string", "maxLength": 5}, {"type": "string"}, b'"ab"', "string_endless"),
        ({"type": "integer", "maximum": 100}, {"type": "integer"}, b"12", "digits_endless"),
        ({"type": "string", "maxLength": 5}, {"type": "string", "maxLength": 6}, b'"ab"', "string_longest"),
    ],
)
def test_a_run_with_which_no_document_goes_on_is_found(
    schema: Any, looser: Any, document: bytes, count: str
) -> None:
    findings, counted = looked_at(declaring(COMPACT, schema=looser), schema, document)
    assert findings and {(finding.cause, finding.under) for finding in findings} == {("no_document", 1)}
    assert counted[count]
    right, _ = looked_at(declaring(COMPACT), schema, document)
    assert right == []


def test_a_run_that_the_schema_leaves_open_is_no_fault() -> None:
    for schema, document, kind in ((True, b'"a"', "string"), ({"type": "integer"}, b"1", "digits")):
        findings, counted = looked_at(declaring(COMPACT), schema, document)
        assert findings == [] and counted[f"{kind}_endless"] and "digits_by_spelling" not in counted


def test_digits_without_end_by_the_spelling_of_a_bounded_number_are_told_apart() -> None:
    """`10` is 10.000 in any number of digits; who writes integers as digits only has an end."""
    schema = {"type": "integer", "minimum": 0, "maximum": 10}
    findings, counted = looked_at(Reference(BYTES), schema, b"10")
    assert findings == [] and counted["digits_by_spelling"] == counted["digits_endless"] > 0
    findings, counted = looked_at(declaring(COMPACT), schema, b"10")
    assert findings == [] and counted["digits_endless"] == 0 and counted["digits_longest"] == 2


def test_only_the_documents_inside_of_a_structural_tag_are_looked_at() -> None:
    tag = {"triggers": ["<f>"], "structures": [{"begin": "<f>", "schema": AB, "end": "</f>"}]}
    _, inside = looked_at(Reference(BYTES), tag, b"<f>" + DOCUMENT, "structural_tag")
    assert inside["white_space_endless"]
    _, outside = looked_at(Reference(BYTES), tag, b"free text", "structural_tag")
    assert outside == {}


FREE_BEHIND = {
    "triggers": ["<f="],
    "structures": [{"begin": "<f=a>", "schema": {"type": "integer"}, "end": ""}],
}
NESTED = {"type": "object", "properties": {"a": {"type": "array"}}, "required": ["a"]}


def in_xml(style: str, *before: Any) -> Any:
    document = {"type": "json_schema", "style": style, "json_schema": NESTED}
    return {"type": "structural_tag", "format": {"type": "sequence", "elements": [*before, document]}}


TAGS = {
    "free_text_behind_a_document": (FREE_BEHIND, b"<f=a>1"),
    "qwen_xml": (in_xml("qwen_xml"), b"<parameter=a>[1,2]</parameter>"),
    "kimi_k3_xml": (
        in_xml("kimi_k3_xml"),
        b'<|open|>argument key="a" type="array"<|sep|>[1,2]<|close|>argument<|sep|>',
    ),
    "free_text_before_xml": (
        in_xml("qwen_xml", {"type": "any_text", "excludes": ["!"]}),
        b"a <parameter=a>[1,2]</parameter>",
    ),
}


@pytest.mark.parametrize("layout", ["compact", "spaced"])
@pytest.mark.parametrize("name", TAGS)
def test_white_space_that_is_none_of_json_is_not_held_against_the_layout(name: str, layout: Any) -> None:
    tag, output = TAGS[name]
    findings, counted = looked_at(Reference(BYTES, layout=layout), tag, output, "structural_tag")
    assert findings == [] and counted["white_space_endless"] > 0


@pytest.mark.parametrize("name", ["qwen_xml", "kimi_k3_xml"])
def test_white_space_of_json_beyond_the_layout_is_found_in_xml(name: str) -> None:
    adapter = Reference(BYTES)
    adapter.layout_in_tags = COMPACT
    tag, output = TAGS[name]
    findings, _ = looked_at(adapter, tag, output, "structural_tag")
    assert {finding.cause for finding in findings} == {"endless_beyond_its_layout"}
    array = range(output.index(b"["), output.index(b"]") + 1)
    assert {finding.position for finding in findings} <= {*array}


@pytest.mark.parametrize(("declared", "position"), [(COMPACT, 0), (runs_of(2), 2), (LAYOUTS["spaced"], 0)])
def test_white_space_beyond_the_layout_is_found_in_a_tag(declared: Layout, position: int) -> None:
    adapter = Reference(BYTES)
    adapter.layout_in_tags = declared
    tag = {"triggers": ["<f>"], "structures": [{"begin": "<f>", "schema": AB, "end": "</f>"}]}
    findings, _ = looked_at(adapter, tag, b"<f>" + DOCUMENT, "structural_tag")
    assert {finding.cause for finding in findings} == {"endless_beyond_its_layout"}
    positions = {finding.position or 0 for finding in findings}
    assert len(b"<f>{") + position in positions and min(positions) >= len(b"<f>")


def test_other_dialects_have_no_white_space_of_the_backends_own() -> None:
    with pytest.raises(NotApplicable, match="only JSON"):
        looked_at(Reference(BYTES), "[0-9]+", b"1", "regex")


def test_no_more_places_than_the_effort_says_are_measured() -> None:
    grammar = Grammar("json_schema", json.dumps(AB))
    case = Case("0" * 12, "a case", grammar, (Instance("an instance", DOCUMENT, None),))
    adapter = declaring(runs_of(None))
    subject = Subject(adapter, case, adapter.compile(grammar), 2)
    assert list(check_runs_end_where_they_must(subject)) == []
    assert subject.counted[RUNS_END]["white_space_places"] == 2


@pytest.mark.parametrize(
    ("layout", "longest"),
    [(None, None), (EVERY_SPELLING, None), (COMPACT, 0), (LAYOUTS["spaced"], 1), (runs_of(12), 12)],
)
def test_the_longest_white_space_of_a_layout(layout: Layout | None, longest: int | None) -> None:
    assert longest_white_space(layout) == longest


@pytest.mark.parametrize(
    ("name", "longest"),
    [
        ("xgrammar", None),
        ("xgrammar:whitespace=compact", 0),
        ("llguidance", None),
        ("outlines-core:whitespace=library", 1),
        ("lm-format-enforcer:whitespace=library", 12),
    ],
)
def test_real_backends_are_measured(name: str, longest: int | None) -> None:
    from harness.backend.registry import make, parse_specs

    backend = make(parse_specs(name)[0], BYTES)
    findings, counted = looked_at(backend, AB, DOCUMENT)
    assert [finding for finding in findings if finding.cause == "no_document"] == []
    if longest is None:
        assert counted["white_space_endless"]
    else:
        assert not counted.get("white_space_endless") and counted.get("white_space_longest", 0) == longest


def test_two_hundred_tokens_are_without_end() -> None:
    assert MOST_TOKENS == 200  # docs/endless.md, and the table's heading
    schema = {"type": "string", "maxLength": 201}
    _, counted = looked_at(declaring(COMPACT), schema, b'"')
    assert counted["string_endless"] == 1
    _, counted = looked_at(declaring(COMPACT), {"type": "string", "maxLength": 199}, b'"')
    assert counted["string_endless"] == 0 and counted["string_longest"] == 199
