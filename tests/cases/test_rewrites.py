"""Schemas written in another way: every transformation, what is offered held against the judge, and a wrong
transformation that is never offered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from time import process_time
from typing import Any

import pytest
from small_schemas import documents, scalars, whole_schema

from harness.backend.grammar import Grammar
from harness.cases.case import Case, case_id, json_text
from harness.cases.rewrites import Rewriter
from harness.cases.rewrites import rewrite as rewrite_module
from harness.cases.rewrites.candidates import LINE_BREAK, candidates
from harness.cases.rewrites.equivalence import is_equivalent, is_equivalent_to_all
from harness.cases.rewrites.patterns import has_end
from harness.cases.rewrites.rewrite import Change, Place, Rewrite, all_transformations, rewrites
from harness.oracle.judge import Unjudgeable, is_valid

NEW, OLD, OLDEST = "draft2020-12", "draft7", "draft4"
CLOSED = {"type": "object", "additionalProperties": False}

EXAMPLES: dict[str, list[tuple[str, Any]]] = {
    "unasking_keyword_left_out": [
        (NEW, {"type": "array", "uniqueItems": True, "maxItems": 1}),
        (OLD, {"type": "object", "additionalProperties": True}),
    ],
    "const_as_enum": [(NEW, {"const": "a"}), (OLD, {"properties": {"a": {"const": None}}})],
    "enum_of_one_as_const": [(NEW, {"enum": [1.5]}), (OLD, {"enum": [[1]]})],
    "value_as_structure": [
        (NEW, {"const": {"a": [1]}}),
        (OLD, {"enum": [[1], "a"]}),
        (OLDEST, {"enum": [{"a": 1}]}),
    ],
    "excluded_values_left_out": [
        (NEW, {"enum": [1, 0, "a"], "not": {"const": 0}}),
        (OLDEST, {"enum": ["a", "b", None], "not": {"enum": ["a", "b"]}}),
    ],
    "enum_without_other_types": [
        (NEW, {"type": "string", "enum": [1, "a"]}),
        (OLD, {"type": ["integer", "null"], "enum": [1.5, 2, None]}),
    ],
    "type_of_values_added": [(NEW, {"enum": ["a", "b"]}), (OLD, {"const": 0.5})],
    "type_that_is_possible_added": [
        (NEW, {"allOf": [{"type": "array"}, {"minItems": 1}], "maxItems": 2}),
        (OLD, {"allOf": [{"type": "string"}], "minLength": 1}),
    ],
    "types_as_alternatives": [
        (NEW, {"type": ["string", "array"], "minLength": 1, "maxItems": 1}),
        (OLDEST, {"type": ["integer", "null"], "enum": [1, None, 2]}),
    ],
    "alternatives_as_types": [
        (NEW, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (OLD, {"oneOf": [{"const": "a"}, {"enum": [1, None]}]}),
    ],
    "integers_as_enum": [
        (NEW, {"type": "integer", "minimum": 0, "maximum": 10, "multipleOf": 5}),
        (OLDEST, {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "maximum": 3}),
    ],
    "whole_bounds": [
        (NEW, {"type": "integer", "exclusiveMinimum": 0, "maximum": 2.5}),
        (OLDEST, {"type": "integer", "maximum": 3, "exclusiveMaximum": True}),
    ],
    "multiple_of_one_as_integer": [
        (NEW, {"type": "number", "multipleOf": 1}),
        (OLD, {"type": "number", "multipleOf": 2}),
    ],
    "exclusive_ranges_of_integers": [
        (NEW, {"oneOf": [{"type": "integer", "minimum": 0}, {"type": "integer", "maximum": 2}]}),
        (OLD, {"type": "integer", "oneOf": [{"minimum": 1, "maximum": 3}, {"minimum": 2}]}),
    ],
    "pattern_anchored": [
        (NEW, {"type": "string", "pattern": "a.*b"}),
        (OLD, {"pattern": "^a|b$"}),
    ],
    "pattern_without_short_classes": [
        (NEW, {"type": "string", "pattern": r"^\w\s?$"}),
        (OLD, {"type": "string", "pattern": r"^[\da]\D*$"}),
    ],
    "pattern_as_enum": [
        (NEW, {"type": "string", "pattern": "^(?:a|ab)$"}),
        (OLD, {"type": "string", "pattern": "^a$"}),
    ],
    "enum_as_pattern": [(NEW, {"enum": ["a", "é"]}), (OLDEST, {"type": "string", "enum": ['"', "b"]})],
    "length_as_pattern": [
        (NEW, {"type": "string", "minLength": 1, "maxLength": 2}),
        (OLD, {"type": "string", "pattern": "^[ab]+$", "maxLength": 2}),
    ],
    "pattern_as_length": [
        (NEW, {"type": "string", "pattern": r"^[\s\S]{1,2}$"}),
        (OLD, {"type": "string", "pattern": r"^[\s\S]+$"}),
    ],
    "excluded_texts_as_pattern": [
        (NEW, {"type": "string", "not": {"enum": ["a", "ab", "é"]}}),
        (OLD, {"type": "string", "not": {"const": ""}}),
    ],
    "excluded_beginnings_as_pattern": [
        (NEW, {"type": "string", "not": {"pattern": r"^\."}}),
        (OLD, {"type": "string", "not": {"pattern": "^(?:a|ab|b1)"}}),
    ],
    "additional_properties_written_out": [
        (NEW, {"type": "object", "properties": {"a": {"type": "integer"}}}),
        (OLDEST, {"properties": {"a": {"type": "string"}}}),
    ],
    "unevaluated_as_additional_properties": [
        (NEW, {"type": "object", "properties": {"a": {}}, "unevaluatedProperties": False}),
        ("draft2019-09", {"type": "object", "unevaluatedProperties": {"type": "integer"}}),
    ],
    "required_names_listed": [
        (NEW, {"type": "object", "required": ["a"]}),
        (OLD, {"type": "object", "required": ["a"], "additionalProperties": {"type": "integer"}}),
    ],
    "refused_names_left_out": [
        (NEW, {**CLOSED, "properties": {"a": False, "b": {}}}),
        (OLD, {**CLOSED, "properties": {"a": False}}),
    ],
    "pattern_properties_as_properties": [
        (NEW, {**CLOSED, "patternProperties": {"^a$": {"type": "integer"}}}),
        (OLDEST, {"type": "object", "patternProperties": {"^(a|b)$": {"type": "integer"}}}),
    ],
    "property_names_as_patterns": [
        (NEW, {"type": "object", "propertyNames": {"pattern": "^[ab]*$"}}),
        (OLD, {"type": "object", "propertyNames": {"enum": ["a", "b"]}}),
    ],
    "dependencies_as_alternatives": [
        (NEW, {**CLOSED, "properties": {"a": {}, "b": {}}, "dependentRequired": {"a": ["b"]}}),
        (OLDEST, {"type": "object", "dependencies": {"a": {"required": ["b"]}}}),
        (NEW, {"type": "object", "dependentSchemas": {"a": {"properties": {"b": {"type": "string"}}}}}),
    ],
    "number_of_properties_as_alternatives": [
        (NEW, {**CLOSED, "properties": {"a": {}, "b": {}}, "minProperties": 1}),
        (OLD, {**CLOSED, "properties": {"a": {}, "b": {}}, "maxProperties": 1}),
    ],
    "condition_as_alternatives": [
        (NEW, {"type": "object", "properties": {"a": {"enum": ["a", "b"]}}, "required": ["a"],
               "if": {"properties": {"a": {"const": "a"}}}, "then": {"required": ["b"]}}),
        (OLD, {"type": "object", "if": {"required": ["a"]}, "then": {"required": ["b"]},
               "else": {"required": ["ab"]}}),
    ],
    "negation_as_alternatives": [
        (NEW, {"type": "object", "not": {"required": ["a", "b"]}}),
        (OLD, {"type": "object", "properties": {"a": {"enum": [1, "a"]}},
               "not": {"properties": {"a": {"const": 1}}}}),
    ],
    "exclusive_names_as_alternatives": [
        (NEW, {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        (OLD, {**CLOSED, "properties": {"a": {}, "b": {}},
               "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
    ],
    "items_one_by_one": [
        (NEW, {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}),
        (OLD, {"type": "array", "minItems": 1, "maxItems": 1, "items": {"type": "string"}}),
    ],
    "equal_items_together": [
        (NEW, {"type": "array", "prefixItems": [{"type": "integer"}] * 2, "items": False}),
        (OLD, {"type": "array", "items": [{"type": "integer"}], "additionalItems": {"type": "integer"}}),
    ],
    "contained_item_at_each_place": [
        (NEW, {"type": "array", "items": {"type": "integer"}, "contains": {"minimum": 1}, "maxItems": 2}),
        (OLD, {"type": "array", "contains": {"const": 1}, "maxItems": 1}),
    ],
    "arrays_as_enum": [
        (NEW, {"type": "array", "items": {"enum": [1, "a"]}, "uniqueItems": True}),
        (OLD, {"type": "array", "items": {"enum": [0, 1]}, "maxItems": 2, "contains": {"const": 1}}),
    ],
    "all_of_merged": [
        (NEW, {"allOf": [{"type": "object", "required": ["a"]}, {"required": ["b"]}]}),
        (OLD, {"allOf": [{"$ref": "#/definitions/x"}], "definitions": {"x": {"type": "string"}}}),
    ],
    "one_of_as_any_of": [
        (NEW, {"oneOf": [{"type": "string"}, {"type": "array", "maxItems": 1}]}),
        (OLDEST, {"oneOf": [{"enum": ["a"]}, {"type": "integer"}]}),
    ],
    "siblings_in_each_alternative": [
        (NEW, {"type": "object", "properties": {"a": {"type": "integer"}},
               "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        (OLD, {"type": "string", "anyOf": [{"minLength": 2}, {"maxLength": 0}]}),
    ],
    "only_alternative": [
        (NEW, {"anyOf": [{"type": "string"}], "maxLength": 1}),
        (OLD, {"oneOf": [{"$ref": "#/definitions/x"}], "definitions": {"x": {"type": "null"}}}),
    ],
    "reference_written_out": [
        (NEW, {"items": {"$ref": "#/$defs/x", "maximum": 1}, "$defs": {"x": {"type": "integer"}}}),
        (OLD, {"items": {"$ref": "#/definitions/x", "maximum": 1},
               "definitions": {"x": {"type": "integer"}}}),
    ],
}  # fmt: skip
DOCUMENTS = [*scalars(), *documents()]
FEW = Random(1).sample(DOCUMENTS, 200)


def judged(schema: Any, draft: str, texts: list[str]) -> list[bool]:
    grammar = Grammar("json_schema", json_text(schema))
    return [is_valid(grammar, text.encode(), draft=draft, assert_formats=False) for text in texts]


def case_of(schema: Any, draft: str = NEW) -> Case:
    grammar = Grammar("json_schema", json_text(schema))
    return Case(case_id(grammar), "case", grammar, options={"draft": draft})


def test_every_transformation_has_an_example() -> None:
    assert sorted(EXAMPLES) == sorted(all_transformations())
    assert all(len({draft for draft, _ in examples}) > 1 for examples in EXAMPLES.values())


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_a_transformation_writes_asks_the_same(name: str) -> None:
    for draft, schema in EXAMPLES[name]:
        made = [rewrite for rewrite in rewrites(schema, draft) if rewrite.transformation == name]
        proven = [
            rewrite for rewrite in made if is_equivalent(schema, rewrite.schema, draft, False, rewrite.path)
        ]
        assert proven, (draft, schema, [rewrite.schema for rewrite in made])
        for rewrite in proven:
            assert is_equivalent(schema, rewrite.schema, draft, False), rewrite
            assert judged(rewrite.schema, draft, DOCUMENTS) == judged(schema, draft, DOCUMENTS), rewrite


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.long) for first in range(5, 120, 5))]
)
def test_what_is_offered_for_random_schemas_agrees_with_the_judge(first: int) -> None:
    for number in range(first, first + 5):
        schema = whole_schema(number)
        try:
            verdicts = judged(schema, NEW, FEW)
        except Unjudgeable:
            continue
        for candidate in candidates(case_of(schema), seconds=1.0):
            written = json.loads(candidate.case.grammar.text)
            assert judged(written, NEW, FEW) == verdicts, (number, candidate.sentences)


def negation_left_out(place: Place) -> Iterator[Change]:
    """A wrong transformation."""
    if "maxLength" in place.body:
        yield Change(place.without("maxLength"))


def test_a_wrong_transformation_is_never_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {"wrong": negation_left_out}
    monkeypatch.setattr(rewrite_module, "all_transformations", lambda: wrong)
    schema = {"properties": {"a": {"type": "string", "maxLength": 1}}}
    (made,) = rewrites(schema, NEW)
    assert is_equivalent(schema, made.schema, NEW, False, made.path) is False
    assert list(candidates(case_of(schema))) == []
    unasking = {"properties": {"a": {"type": "integer", "maxLength": 1}}}
    assert len(list(candidates(case_of(unasking)))) == 1


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"enum": [1, 2]}, "minItems": 1.0, "maxItems": 2, "uniqueItems": True},
        {"if": {"properties": {"a": {"enum": []}}}, "then": {"required": ["b"]}},
        {"dependentSchemas": {"a": False}, "dependencies": {"a": ["b"]}},
    ],
    ids=str,
)
def test_unusual_schemas_are_rewritten_or_not_and_raise_nothing(schema: dict[str, Any]) -> None:
    before = case_of(schema)
    for each in candidates(before):
        assert is_equivalent(schema, json.loads(each.case.grammar.text), NEW, False)


def test_a_place_is_not_looked_at_alone_where_what_is_in_it_is_referred_to() -> None:
    schema = {
        "properties": {"a": {"allOf": [{"type": "string"}]}, "b": {"$ref": "#/properties/a/allOf/0"}},
    }
    changed = {"properties": {"a": {"type": "string"}, "b": {"$ref": "#/properties/a/allOf/0"}}}
    assert is_equivalent(schema, changed, NEW, False, ("properties", "a")) is None


def test_a_proof_needs_no_reference_of_the_rest() -> None:
    tags = {"type": "array", "uniqueItems": True}
    schema = {"properties": {"tags": tags, "n": {"const": 1}}}
    changed = {"properties": {"tags": tags, "n": {"enum": [1]}}}
    assert is_equivalent(schema, changed, NEW, False) is None
    assert is_equivalent(schema, changed, NEW, False, ("properties", "n")) is True


@pytest.mark.parametrize(
    "fault", ["uniqueItems", "/properties/tags/uniqueItems", "tags.uniqueItems", "tags > uniqueItems"]
)
def test_only_what_is_at_fault_is_rewritten(fault: str) -> None:
    tags = {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True}
    case = case_of({"type": "object", "properties": {"tags": tags, "n": {"const": 1}}})
    found = list(candidates(case, [fault]))
    assert found
    assert all(step.path[:2] == ("properties", "tags") for one in found for step in one.rewrites)
    assert "uniqueItems" not in found[0].case.grammar.text


@pytest.mark.parametrize(
    ("fault", "place"), [("then.required", ()), ("a.then.required", ("properties", "a"))]
)
def test_what_a_branch_asks_is_mended_by_another_condition(fault: str, place: tuple[str, ...]) -> None:
    """A validator names the branch, and the condition is what has to be written in another way."""
    inner = {
        **CLOSED,
        "properties": {"kind": {"enum": ["full", "part"]}, "cents": {"type": "integer"}},
        "required": ["kind"],
        "if": {"properties": {"kind": {"const": "part"}}},
        "then": {"required": ["cents"]},
    }
    schema = {**CLOSED, "properties": {"a": inner}, "required": ["a"]} if place else inner
    first = next(candidates(case_of(schema), [fault]))
    assert [(step.path, step.transformation) for step in first.rewrites] == [
        (place, "condition_as_alternatives")
    ]


def test_candidates_grow_and_end_with_everything() -> None:
    schema = {
        "type": "object",
        "properties": {
            name: {"oneOf": [{"type": "string"}, {"type": "null", "enum": [None]}]} for name in "abcd"
        },
        "additionalProperties": False,
    }
    found = list(candidates(case_of(schema), ["oneOf"], seconds=20))
    lengths = [len(candidate.rewrites) for candidate in found]
    assert lengths[0] == 1 and lengths[-1] >= 4 and sorted(lengths[:-1]) == lengths[:-1]
    assert "oneOf" not in found[-1].case.grammar.text
    assert len({candidate.case.id for candidate in found}) == len(found)


OPEN: dict[str, Any] = {
    "dependencies": {**CLOSED, "properties": {"a": {}, "b": {}}, "dependencies": {"a": ["b"]}},
    "required": {"type": "object", "dependencies": {"a": {"required": ["b"]}}},
    "date": {"anyOf": [{"type": "string", "format": "date"}, {"type": "string", "minLength": 2}]},
    "idn-email": {"items": {"type": "string", "format": "idn-email"}, "maxItems": 1, "uniqueItems": True},
    "int32": {"type": "integer", "format": "int32"},
}
"""Schemas with a keyword, or the value of one, that the draft leaves open and that validators may apply."""


@pytest.mark.parametrize("kept", OPEN)
def test_what_a_validator_may_apply_is_never_left_out(kept: str) -> None:
    for candidate in candidates(case_of(OPEN[kept])):
        assert f'"{kept}"' in candidate.case.grammar.text, candidate.sentences
    asserting = replace(case_of(OPEN[kept]), options={"format": "assert"})
    for candidate in candidates(asserting):
        assert f'"{kept}"' in candidate.case.grammar.text, candidate.sentences


def test_what_stands_beside_an_open_keyword_is_still_rewritten() -> None:
    texts = [candidate.case.grammar.text for candidate in candidates(case_of(OPEN["idn-email"]))]
    assert any("uniqueItems" not in text for text in texts)
    old = {"type": "object", "dependencies": {"a": ["b"]}}
    assert any("dependencies" not in one.case.grammar.text for one in candidates(case_of(old, OLD)))


def test_a_format_of_numbers_hides_nothing_that_is_asked_of_other_values() -> None:
    schema = {"format": "int32", "dependencies": {"a": ["b"]}}
    for changed in ({"format": "int32"}, {"dependencies": {"a": ["b"]}}, {**schema, "format": "int64"}):
        assert not is_equivalent_to_all(schema, changed, NEW, False, (), 1.0), changed
    written = {"format": "int32", "allOf": [{"dependencies": {"a": ["b"]}}]}
    assert is_equivalent_to_all(schema, written, NEW, False, (), 1.0)


def test_a_pattern_that_is_written_comes_with_what_python_makes_of_its_end() -> None:
    for schema, is_told in (
        ({"enum": ["en", "de"], "type": "string"}, True),
        ({"type": "object", "propertyNames": {"pattern": "^a$"}, "additionalProperties": True}, False),
        ({"type": "string", "pattern": r"^\d$"}, False),
        ({"type": "integer", "enum": [1]}, False),
    ):
        told = [LINE_BREAK in candidate.sentences for candidate in candidates(case_of(schema))]
        assert told and any(told) == is_told, schema


@pytest.mark.parametrize("pattern", ["a$", "(a$)", "(?:^a$)", "^a$|b", r"a\\$", "[$]$"])
def test_a_pattern_asks_for_the_end_wherever_that_stands(pattern: str) -> None:
    assert has_end(pattern)


@pytest.mark.parametrize("pattern", ["a", r"a\$", "a[$]", "a[^$]", "a[$"])
def test_a_dollar_sign_that_is_text_is_no_end(pattern: str) -> None:
    assert not has_end(pattern)


def test_there_is_nothing_after_the_time_and_of_other_dialects() -> None:
    assert list(candidates(case_of({"const": 1}), seconds=0)) == []
    grammar = Grammar("regex", "a")
    assert list(candidates(Case(case_id(grammar), "regex", grammar))) == []


def test_a_hostile_schema_has_no_rewrites_and_the_next_one_has_its_own() -> None:
    """Neither a judge that never ends, nor one call for each character or level, ends the search for good."""
    items = {"enum": ["a" * 48 + "!", "b"]}
    endless = {"type": "array", "items": items, "maxItems": 1, "contains": {"pattern": "^(a|a|aa)+(?=b)$"}}
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    with Rewriter(deadline=0.5) as rewriter:
        assert rewriter.rewrites_of(case_of(endless), [], 0.5, 3) == []
        rewriter.deadline = 30.0
        for schema in ({"type": "string", "not": {"const": "x" * 900}}, {"const": deep}):
            assert rewriter.rewrites_of(case_of(schema), [], 10, 3)
        (written, *_) = rewriter.rewrites_of(replace(case_of({"const": 1}), name="c"), [], 10, 3)
    assert (written.case.name, written.sentences) == (
        "c",
        ("at `$`: write `enum: [1]` instead of `const: 1`",),
    )


def test_the_time_is_kept_with_many_values() -> None:
    """Alternatives that are lists become one list, whose values are not compared one by one with all."""
    values = [f"v{number}" for number in range(6000)]
    schema = {"anyOf": [{"enum": values[first : first + 50]} for first in range(0, 6000, 50)]}
    start = process_time()
    (change,) = [each for each in rewrites(schema, NEW) if each.transformation == "alternatives_as_types"]
    assert change.schema == {"enum": values}
    list(candidates(case_of(schema), ["anyOf"], seconds=0.2))
    assert process_time() - start < 10


def test_data_and_titles_stay() -> None:
    schema = {"title": "T", "default": {"const": 1}, "enum": [{"const": 1}], "description": "D"}
    made: list[Rewrite] = list(rewrites(schema, NEW))
    assert made
    for rewrite in made:
        assert (rewrite.path, rewrite.schema["title"], rewrite.schema["default"]) == ((), "T", {"const": 1})
