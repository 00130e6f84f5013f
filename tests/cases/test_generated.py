"""Schemas without instances get documents: valid ones, and such as break just one keyword."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import Mock

import pytest
from places import SUPPORT
from small_schemas import small_schema

from harness.backend.grammar import Grammar
from harness.backend.process.service import Service
from harness.cases.case import Case, case_id, json_text
from harness.cases.case_line import case_from_line, case_to_line
from harness.cases.generated import differences as difference_module
from harness.cases.generated.differences import differences
from harness.cases.generated.documents import CLOCK_SECONDS, Document, documents_for
from harness.cases.generated.generator import Generator
from harness.cases.generated.right_texts import RIGHT_TEXTS
from harness.cases.plain_constants import with_plain_constants
from harness.cases.plan import PROFILES, write_plan
from harness.cases.subschemas import ASSERTIONS, put
from harness.cases.suite import find_suite
from harness.oracle.judge import is_valid
from harness.oracle.judge.drafts import CLASSES
from harness.oracle.judge.second import second_verdict

OF_EACH_KEYWORD: dict[str, dict[str, Any]] = {
    "type": {"type": "integer"},
    "enum": {"enum": ["a", 2, None]},
    "const": {"const": {"a": [1]}},
    "minimum": {"type": "number", "minimum": 3},
    "maximum": {"type": "number", "maximum": 3},
    "exclusiveMinimum": {"type": "integer", "exclusiveMinimum": 3},
    "exclusiveMaximum": {"type": "integer", "exclusiveMaximum": 3},
    "multipleOf": {"type": "integer", "multipleOf": 7},
    "minLength": {"type": "string", "minLength": 2},
    "maxLength": {"type": "string", "maxLength": 2},
    "pattern": {"type": "string", "pattern": "^[a-c]+$"},
    "minItems": {"type": "array", "minItems": 2},
    "maxItems": {"type": "array", "maxItems": 2},
    "uniqueItems": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    "items": {"type": "array", "items": False},
    "contains": {"type": "array", "contains": {"type": "null"}},
    "maxContains": {"type": "array", "contains": {"type": "null"}, "maxContains": 1},
    "minContains": {"type": "array", "contains": {"type": "null"}, "minContains": 2},
    "required": {"type": "object", "required": ["a"]},
    "additionalProperties": {"properties": {"a": {}}, "additionalProperties": False, "type": "object"},
    "propertyNames": {"type": "object", "propertyNames": {"maxLength": 1}},
    "minProperties": {"type": "object", "minProperties": 1},
    "maxProperties": {"type": "object", "maxProperties": 1},
    "dependentRequired": {"type": "object", "dependentRequired": {"a": ["b"]}},
    "anyOf": {"anyOf": [{"type": "null"}, {"type": "boolean"}]},
    "oneOf": {"oneOf": [{"type": "integer"}, {"minimum": 3}]},
    "not": {"not": {"type": "string"}},
    "then": {"if": {"type": "string"}, "then": {"minLength": 1}},
    "unevaluatedProperties": {
        "allOf": [{"properties": {"a": {}}}],
        "unevaluatedProperties": False,
        "type": "object",
    },
}


@pytest.mark.parametrize("keyword", OF_EACH_KEYWORD)
@pytest.mark.parametrize("place", ["/properties/x/", "/$defs/y/"])
def test_each_keyword_is_kept_and_broken_wherever_it_stands(keyword: str, place: str) -> None:
    inner: Any = OF_EACH_KEYWORD[keyword]
    schemas: dict[str, Any] = {
        "/properties/x/": {"type": "object", "properties": {"x": inner}, "required": ["x"]},
        "/$defs/y/": {"$defs": {"y": inner}, "anyOf": [{"$ref": "#/$defs/y"}]},
    }
    schema = schemas[place]
    documents = documents_for(json.dumps(schema), None, False)
    broken = [
        document for document in documents if not document.valid and place + keyword in document.pointers
    ]
    assert broken and any(document.valid for document in documents)
    for document in broken:  # without the keyword the document is valid: it breaks just that
        weaker = json.dumps(without(schema, place + keyword))
        assert keyword in ("items", "then") or is_valid(Grammar("json_schema", weaker), document.content)


def without(schema: Any, pointer: str) -> Any:
    """Returns the schema without the keyword at a JSON Pointer."""
    copy = json.loads(json.dumps(schema))
    *way, last = pointer.split("/")[1:]
    node = copy
    for step in way:
        node = node[step]
    if last == "contains":
        node.pop("contains")
    else:
        del node[last]
    return copy


def documents_of(schema: Any, draft: str | None = None) -> dict[str, Document]:
    return {document.name: document for document in documents_for(json.dumps(schema), draft, False)}


def test_bounds_are_met_exactly_and_missed_by_one() -> None:
    documents = documents_of({"type": "object", "properties": {"n": {"type": "integer", "maximum": 10}}})
    assert documents["n > maximum: at the bound"].content == b'{"n": 10}'
    assert documents["breaks n > maximum by one"].content == b'{"n": 11}'
    documents = documents_of({"type": "string", "minLength": 2})
    assert len(json.loads(documents["breaks $ > minLength by one"].content)) == 1


@pytest.mark.parametrize("draft", [*CLASSES])
def test_a_bound_is_met_and_the_only_required_name_left_out_in_each_draft(draft: str) -> None:
    """Draft 4 has no strict bound that is a number, and no empty `required`."""
    documents = documents_of(closed({"n": {"type": "number", "maximum": 2.5}}), draft)
    assert documents["n > maximum: at the bound"].content == b'{"n": 2.5}'
    assert documents["breaks $ > required n"].content == b"{}"


def test_alternatives_that_hold_one_another_have_documents() -> None:
    condition = {
        "anyOf": [
            closed({"field": {"type": "string"}, "is": {"type": ["string", "number", "null"]}}),
            closed({"all": {"type": "array", "items": {"$ref": "#/$defs/condition"}, "minItems": 1}}),
        ]
    }
    schema = {**closed({"where": {"$ref": "#/$defs/condition"}}), "$defs": {"condition": condition}}
    documents = documents_of(schema)
    assert "breaks $defs.condition/anyOf/0.field > type" in documents


def test_no_valid_document_has_names_of_another_alternative_between_those_of_its_own() -> None:
    """A union with a discriminator had the valid document `{"kind": "dog", "lives": 0, "name": ""}`. No
    backend writes a dog so, and one that refused it was said to refuse valid output."""
    pets = {
        "Cat": {"kind": {"const": "cat"}, "lives": {"type": "integer"}},
        "Dog": {"kind": {"const": "dog"}, "name": {"type": "string"}},
    }
    defined = {
        name: {"type": "object", "properties": properties, "required": list(properties)}
        for name, properties in pets.items()
    }
    schema = {"$defs": defined, "oneOf": [{"$ref": f"#/$defs/{name}"} for name in pets]}
    valid = [json.loads(each.content) for each in documents_of(schema).values() if each.valid]
    assert {document["kind"] for document in valid} == {"cat", "dog"}
    for document in valid:
        own = list(pets["Cat" if document["kind"] == "cat" else "Dog"])
        assert list(document)[: len(own)] == own


def closed(properties: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of an object that has all of these members and no other."""
    required = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def test_what_is_made_until_the_time_on_the_clock_is_up_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, *[1.0] * 3, *[CLOCK_SECONDS + 1] * 1000])
    monkeypatch.setattr("harness.cases.generated.documents.time.monotonic", lambda: next(clock))
    made = documents_for('{"type": "object", "required": ["a", "b", "c", "d"]}', None, False)
    assert 1 <= len(made) <= 3


def test_a_schema_is_made_only_of_what_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """All schemas that could be made of a wide one have together a size that is quadratic in its width."""
    made = Mock(wraps=put)
    monkeypatch.setattr(difference_module, "put", made)
    names = {f"p{number}": {"type": "string", "minLength": 1} for number in range(300)}
    wanted = differences({"properties": names})
    first = next(wanted)
    assert not made.called
    assert first.taken == {"properties": names} and first.refused != first.taken
    assert 0 < made.call_count < 5 and sum(1 for _ in wanted) > 1000


def test_each_value_of_an_enum_has_a_document_and_each_name_is_left_out() -> None:
    schema = {
        "type": "object",
        "properties": {"unit": {"enum": ["C", "F", "K"]}, "city": {"type": "string"}},
        "required": ["unit", "city"],
    }
    documents = documents_for(json.dumps(schema), None, False)
    values = {json.loads(document.content)["unit"] for document in documents if document.valid}
    assert values == {"C", "F", "K"}
    missing = {document.name for document in documents if "required" in document.name}
    assert missing == {"breaks $ > required unit", "breaks $ > required city"}
    texts = [json.loads(document.content) for document in documents if document.valid]
    assert {"é 日本 😀", 'a"b\\c\n'} <= {text["city"] for text in texts}


def test_a_constant_that_can_be_written_in_several_ways_is_in_no_valid_document() -> None:
    """A backend that writes the other form would be said to refuse the document."""
    mixed = documents_for('{"enum": [0.0, 0.5, 1e30, 9223372036854775808]}', None, False)
    assert {document.content for document in mixed if document.valid} == {b"0.5"}
    optional = '{"type": "object", "properties": {"a": {"const": 1.0}}, "additionalProperties": false}'
    contents = {document.content for document in documents_for(optional, None, False) if document.valid}
    assert contents == {b"{}"}
    assert not any(document.valid for document in documents_for('{"const": 1.0}', None, False))


def test_the_name_of_a_property_is_no_constant() -> None:
    schema = {"properties": {"const": {"minimum": 0.0}, "enum": [1.0], "not": True}, "$defs": {"const": 1.0}}
    assert with_plain_constants(schema) is schema
    within = {"properties": {"const": {"const": 1.0}}}
    assert with_plain_constants(within) == {"properties": {"const": {"const": 1.0, "not": {}}}}


def test_of_lists_of_names_that_hold_together_the_one_that_is_applied_first_comes_first() -> None:
    schema = {
        "allOf": [{"$ref": "#/$defs/base"}, {"properties": {"x": {"type": "null"}}, "required": ["x"]}],
        "type": "object",
        "$defs": {"base": {"properties": {"id": {"type": "null"}}, "required": ["id"]}},
    }
    contents = {document.content for document in documents_for(json.dumps(schema), None, False)}
    assert b'{"id": null, "x": null}' in contents and b'{"x": null, "id": null}' not in contents


def test_names_come_in_the_order_of_the_alternative_that_applies() -> None:
    """Libraries write each alternative by itself: in the order of another one a document would be refused."""
    alternatives = [closed({"id": {}, "town": {}}), closed({"id": {}, "street": {}, "town": {}})]
    for keyword in ("anyOf", "oneOf"):
        valid = [one.content for one in documents_of({keyword: alternatives}).values() if one.valid]
        assert {tuple(json.loads(content)) for content in valid} == {
            ("id", "town"),
            ("id", "street", "town"),
        }


def test_alternatives_with_names_in_contrary_orders_have_documents() -> None:
    both = [
        {
            "type": "object",
            "properties": {name: {"type": "integer"} for name in names},
            "required": ["a", "b"],
        }
        for names in ("ab", "ba")
    ]
    assert documents_of({"anyOf": both})["the shortest document"].content == b'{"a": 0, "b": 0}'


def test_alternatives_of_one_of_are_each_taken_and_taken_together() -> None:
    documents = documents_of({"oneOf": [{"type": "integer"}, {"minimum": 3}]})
    assert documents["breaks $ > oneOf: more than one"].content == b"3"


@pytest.mark.parametrize(
    ("draft", "names"), [("draft4", "definitions"), ("draft7", "definitions"), (None, "$defs")]
)
def test_a_reference_at_the_root_is_followed_in_each_draft(draft: str | None, names: str) -> None:
    schema = {"$ref": f"#/{names}/x", names: {"x": {"type": "string", "maxLength": 3}}}
    documents = documents_for(json.dumps(schema), draft, False)
    pointers = {place for document in documents if not document.valid for place in document.pointers}
    assert f"/{names}/x/maxLength" in pointers


REFERRING: dict[str, tuple[str | None, dict[str, Any]]] = {
    "by the whole identifier": (None, {"$id": "https://example.com/s.json", "$ref": "https://example.com/s.json#/$defs/n"}),
    "by the end of the identifier": (None, {"$id": "https://example.com/s.json", "$ref": "s.json#/$defs/n"}),
    "by a URN": (None, {"$id": "urn:example:s", "$ref": "urn:example:s#/$defs/n"}),
    "within a resource": (
        None,
        {
            "$id": "https://example.com/s.json",
            "$ref": "#/$defs/other",
            "$defs": {"other": {"$id": "other.json", "$ref": "s.json#/$defs/n"}},
        },
    ),
    "by a dynamic anchor": (
        None,
        {"$dynamicRef": "#m", "$defs": {"m": {"$dynamicAnchor": "m", "$ref": "#/$defs/n"}}},
    ),
    "draft 4": (
        "draft4",
        {"id": "http://example.com/x", "allOf": [{"$ref": "x#/definitions/n"}], "properties": {"id": {}}},
    ),
    "draft 7, to what stands beside": (
        "draft7",
        {"$ref": "#/else/a~1b", "else": {"a/b": {"$ref": "#/$defs/n"}}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFERRING)
def test_a_schema_that_refers_to_itself_has_documents(name: str) -> None:
    draft, schema = REFERRING[name]
    definitions = "definitions" if draft == "draft4" else "$defs"
    held = {**schema.get("$defs", {}), "n": {"type": "string", "maxLength": 3}}
    documents = documents_for(json.dumps({**schema, definitions: held}), draft, False)
    assert {document.valid for document in documents} == {True, False}
    assert f"/{definitions}/n/maxLength" in {place for each in documents for place in each.pointers}


@pytest.mark.parametrize(
    "seeds", [range(2), pytest.param(range(2, 12), marks=pytest.mark.long)], ids=["few", "more"]
)
def test_documents_are_the_same_each_time_and_judged_by_both_validators(seeds: range) -> None:
    for seed in seeds:
        schema = json.dumps(small_schema(Random(seed)))
        documents = documents_for(schema, None, False)
        assert documents == documents_for(schema, None, False)
        assert len({document.content for document in documents}) == len(documents)
        for document in documents:
            assert is_valid(Grammar("json_schema", schema), document.content) == document.valid
            assert second_verdict(schema, document.content, None, False)[0] in (document.valid, None)


@pytest.mark.parametrize(
    "seeds", [(2, 8), pytest.param(tuple(range(9, 40)), marks=pytest.mark.long)], ids=["few", "more"]
)
def test_what_is_not_looked_for_is_not_there(seeds: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every part that asks less takes more, no document is looked for that keeps a keyword and breaks
    the schema with less of it: whoever looks finds none."""
    left_out = 0
    for seed in seeds:
        schema = {"properties": {"x": small_schema(Random(seed))}, "required": ["x"]}
        made, wanted = documents_for(json.dumps(schema), None, False), len(list(differences(schema)))
        with monkeypatch.context() as patched:
            patched.setattr("harness.cases.generated.differences.ASKING_LESS_OR_MORE", ASSERTIONS)
            left_out += len(list(differences(schema))) - wanted
            assert documents_for(json.dumps(schema), None, False) == made
    assert left_out >= len(seeds), "nothing was left out of what is looked for"


@pytest.mark.parametrize(
    "schema", ["true", "false", '{"$ref": "https://example.com/other"}', '{"pattern": "("}']
)
def test_a_schema_of_which_nothing_can_be_made_has_none(schema: str) -> None:
    assert documents_for(schema, None, False) == []


def test_format_is_asked_where_the_case_asserts_it() -> None:
    schema = json.dumps({"type": "string", "format": "date"})
    assert "breaks $ > format" not in {document.name for document in documents_for(schema, None, False)}
    assert "breaks $ > format" in {document.name for document in documents_for(schema, None, True)}


@pytest.mark.parametrize("name", ["email", "date-time", "ipv6", "uuid"])
@pytest.mark.parametrize("required", [[], ["sent"]])
def test_no_document_depends_on_whether_formats_are_asserted(name: str, required: list[str]) -> None:
    """A backend that asserts them is not held to a text that has none, nor told to accept one."""
    sent = {"type": "string", "format": name}
    text = json.dumps(
        {"type": "object", "properties": {"sent": sent, "age": {"minimum": 1}}, "required": required}
    )
    documents = documents_for(text, None, False)
    grammar = Grammar("json_schema", text)
    assert any(document.valid and b'"sent": "' in document.content for document in documents)
    assert any(not document.valid for document in documents)
    for document in documents:
        for formats in (False, True):
            assert is_valid(grammar, document.content, assert_formats=formats) == document.valid, document


def takes_formats(text: str, content: bytes) -> bool | None:
    """Returns whether a document keeps the formats of a schema, by both validators."""
    verdict = is_valid(Grammar("json_schema", text), content, assert_formats=True)
    assert second_verdict(text, content, None, True)[0] == verdict
    return verdict


WITH_TAGS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "price": {"type": "number", "multipleOf": 0.5},
        "owner": {"type": "string", "not": {"const": "root"}},
    },
    "required": ["tags", "price", "owner"],
}


@pytest.mark.parametrize("name", ["date-time", "email", "uri", "uuid"])
def test_a_document_that_breaks_a_keyword_is_not_refused_for_a_format_instead(name: str) -> None:
    """Who ignores `uniqueItems` and asserts formats would be said to be right."""
    when = {"type": "string", "format": name}
    schema = {**WITH_TAGS, "required": ["when", *WITH_TAGS["required"]]}
    schema["properties"] = {"when": when, **WITH_TAGS["properties"]}
    documents = [each for each in documents_for(json.dumps(schema), None, False) if not each.valid]
    broken = ("/properties/tags/uniqueItems", "/properties/price/multipleOf", "/properties/owner/not")
    for place in broken:
        (document,) = (each for each in documents if place in each.pointers)
        assert takes_formats(json.dumps(without(schema, place)), document.content)
        assert not is_valid(Grammar("json_schema", json.dumps(schema)), document.content)


@pytest.mark.parametrize(
    ("least", "texts"),
    [
        (0, [*RIGHT_TEXTS["email"]]),
        (3, None),  # more items than there are such texts
    ],
)
def test_items_that_may_not_be_equal_have_their_format(least: int, texts: list[str] | None) -> None:
    """Who ignores `uniqueItems` and asserts formats refuses two empty texts for their format."""
    items = {"type": "string", "format": "email"}
    schema = {"type": "array", "items": items, "minItems": least, "uniqueItems": True}
    documents = documents_for(json.dumps(schema), None, False)
    (equal,) = (each.content for each in documents if "/uniqueItems" in each.pointers)
    assert takes_formats(json.dumps(without(schema, "/uniqueItems")), equal)
    assert not is_valid(Grammar("json_schema", json.dumps(schema)), equal)
    assert texts is None or {*json.loads(equal)} < {*texts}
    assert any(each.valid and len(json.loads(each.content)) >= max(1, least) for each in documents)


def test_a_format_keeps_what_is_asked_beside_it() -> None:
    when = {"type": "string", "format": "date", "pattern": "^1999"}
    schema = {"type": "array", "items": when, "minItems": 1, "maxItems": 1}
    documents = [each for each in documents_for(json.dumps(schema), None, False) if not each.valid]
    (two,) = (each.content for each in documents if "/maxItems" in each.pointers)
    assert all(takes_formats(json.dumps(when), json_text(one).encode()) for one in json.loads(two))


def test_a_document_with_a_wrong_format_is_better_than_none() -> None:
    """What breaks this keyword has no right text: nothing is a date and has one character."""
    schema = {"type": "array", "items": {"type": "string", "format": "date", "maxLength": 1}, "minItems": 1}
    documents = documents_for(json.dumps({**schema, "contains": {"const": "b"}}), None, False)
    assert any("/contains" in each.pointers and each.content == b'[""]' for each in documents)


@pytest.mark.parametrize("name", [*RIGHT_TEXTS])
def test_right_texts_have_their_format(name: str) -> None:
    first, second = RIGHT_TEXTS[name]
    schema = json.dumps({"type": "string", "format": name})
    assert first != second and all(
        takes_formats(schema, json_text(text).encode()) for text in (first, second)
    )
    assert not takes_formats(schema, b'"a b"')


INTEGER = {"type": "integer"}


@pytest.mark.parametrize(
    ("asked", "longer"),
    [
        ({"patternProperties": {"^x-": INTEGER}, "additionalProperties": False}, "^x-."),
        ({"properties": {"x-abc": INTEGER}, "patternProperties": {"^x-": INTEGER}}, "^x-(?!abc$)."),
        ({"patternProperties": {"^a$": False, "^[a-z]+$": INTEGER}}, "^..+"),
        ({"additionalProperties": INTEGER}, "^..."),
        ({"additionalProperties": INTEGER, "propertyNames": {"pattern": "^config\\."}}, "^config\\.."),
        ({"propertyNames": {"pattern": "^[a-z]+$"}}, "^..."),
    ],
)
def test_a_valid_document_has_a_name_that_is_longer_than_the_shortest(asked: Any, longer: str) -> None:
    documents = documents_for(json.dumps({"type": "object", **asked}), None, False)
    names = [name for each in documents if each.valid for name in json.loads(each.content)]
    assert any(re.search(longer, name) for name in names)


def test_a_plan_stores_the_documents_with_the_case(tmp_path: Path) -> None:
    (tmp_path / "tool.json").write_text('{"type": "object", "properties": {"a": {"type": "integer"}}}')
    plan = write_plan(
        [find_suite(str(tmp_path / "tool.json"))], PROFILES["default"], 0, tmp_path / "cases.jsonl"
    )
    _, _, case = case_from_line((tmp_path / "cases.jsonl").read_bytes())
    assert plan.suites["tool"]["generated"] == len(case.instances) == plan.suites["tool"]["instances"]
    assert {instance.valid for instance in case.instances} == {True, False}
    assert all(instance.made_for for instance in case.instances)
    assert case_from_line(case_to_line("tool", "", case))[2] == case


def test_a_generator_that_is_too_slow_leaves_the_case_as_it_is() -> None:
    grammar = Grammar("json_schema", '{"type": "object"}')
    case = Case(case_id(grammar), "slow", grammar)
    hanging = Service("answering:open_answering", {"harm": "hangs"}, environment={"PYTHONPATH": str(SUPPORT)})
    with Generator(deadline=0.1) as generator:
        generator._service = hanging  # a process that answers may do so before anybody looks at the time
        assert generator.with_instances(case) == case
    regex = Grammar("regex", "a")
    with Generator() as generator:
        assert generator.with_instances(case).instances
        assert generator.with_instances(Case("0" * 12, "regex", regex)).instances == ()
