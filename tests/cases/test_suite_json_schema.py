"""The suite json_schema: its verdicts, its spread over the keywords of JSON Schema and over the kinds
of bug.
"""

from __future__ import annotations

import json
from collections import Counter
from importlib import import_module
from typing import Any

import pytest

from harness.backend.grammar import Grammar
from harness.cases.case import Case
from harness.cases.suite import find_suite, read_cases
from harness.oracle.judge import Unjudgeable, is_valid

SUITE = find_suite("json_schema")
CASES = list(read_cases(SUITE))
LINES: list[dict[str, Any]] = [
    json.loads(line) for line in SUITE.files[0].read_text(encoding="utf-8").split("\n")[1:] if line
]
CATEGORIES = "EFGHIJKL"

# Keywords whose value is a schema, a list of schemas, or an object of schemas.
SCHEMA = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
]
SCHEMA_LIST = ["allOf", "anyOf", "oneOf", "prefixItems", "items", "extends", "disallow"]
SCHEMA_MAP = ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties", "dependencies"]


def keywords(value: Any) -> set[str]:
    """The keywords at work in a schema; not the names of properties, nor what enum, const, default and
    examples hold."""
    if not isinstance(value, dict):
        return set()
    found = set(value)
    for name, each in value.items():
        if name in SCHEMA_MAP and isinstance(each, dict):
            subschemas = list(each.values())
        elif name in SCHEMA_LIST and isinstance(each, list):
            subschemas = each
        else:
            subschemas = [each] if name in SCHEMA else []
        found = found.union(*map(keywords, subschemas))
    return found


def vocabulary(name: str) -> set[str]:
    """The keywords of one vocabulary of 2020-12, from its own meta-schema."""
    registry: Any = import_module("jsonschema_specifications").REGISTRY
    contents = registry.contents(f"https://json-schema.org/draft/2020-12/meta/{name}")
    return set(contents["properties"])


def misjudged(case: Case) -> list[str]:
    """The instances of which the judge says otherwise than the suite."""
    options: dict[str, Any] = {
        "draft": case.options.get("draft"),
        "assert_formats": case.options.get("format") == "assert",
    }
    return [
        instance.name
        for instance in case.instances
        if is_valid(case.grammar, instance.content, **options) != instance.valid
    ]


def test_every_verdict_is_the_judges() -> None:
    wrong = {case.name: names for case in CASES if (names := misjudged(case))}
    assert not wrong


def test_suite_is_large() -> None:
    assert len(CASES) >= 150


def test_every_case_has_a_valid_and_an_invalid_instance() -> None:
    for case in CASES:
        valid = Counter(each.valid for each in case.instances)
        assert valid[False], case.name
        assert bool(valid[True]) is ("unsatisfiable" not in case.tags), case.name


def test_typical_case_has_two_of_each() -> None:
    rich = [
        case
        for case in CASES
        if min(Counter(each.valid for each in case.instances).get(valid, 0) for valid in (True, False)) >= 2
    ]
    assert len(rich) >= 0.75 * len(CASES)


@pytest.mark.parametrize(
    "name", ["core", "applicator", "validation", "unevaluated", "meta-data", "content", "format-annotation"]
)
def test_every_keyword_of_2020_12_is_at_work_in_some_case(name: str) -> None:
    used = set().union(*(keywords(line["schema"]) for line in LINES))
    assert vocabulary(name) - used - {"$vocabulary"} == set()  # that one is for meta-schemas


def test_every_keyword_of_older_drafts_is_at_work_in_some_case() -> None:
    used = set().union(*(keywords(line["schema"]) for line in LINES))
    assert {
        "additionalItems",
        "definitions",
        "dependencies",
        "id",
        "$recursiveRef",
        "divisibleBy",
        "disallow",
        "extends",
    } <= used


def test_every_assertion_decides_some_verdict() -> None:
    """Without the keyword at the top of some case's schema, an invalid instance of that case would
    be valid.
    """
    decides: set[str] = set()
    for line, case in zip(LINES, CASES, strict=True):
        asserts = case.options.get("format") == "assert"
        for keyword in (
            set()
            if "draft" in case.tags or isinstance(line["schema"], bool)
            else set(line["schema"]) - decides
        ):
            rest = {name: value for name, value in line["schema"].items() if name != keyword}
            grammar = Grammar("json_schema", json.dumps(rest))
            try:
                freed = [
                    is_valid(grammar, each.content, assert_formats=asserts)
                    for each in case.instances
                    if each.valid is False
                ]
            except Unjudgeable:  # without $defs a $ref leads nowhere
                continue
            if any(freed):
                decides.add(keyword)
    assertions = (
        vocabulary("applicator") | vocabulary("validation") | vocabulary("unevaluated") | {"format", "$ref"}
    )
    assert assertions - decides == set()


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_category_of_bug_has_cases(category: str) -> None:
    assert sum(f"category:{category}" in case.tags for case in CASES) >= 5


def test_tags_name_the_keywords_that_a_pair_is_about() -> None:
    pairs = 0
    for line in LINES:
        for tag in line["tags"]:
            if tag.startswith("pair:"):
                pairs += 1
                assert set(tag.removeprefix("pair:").split("+")) <= keywords(line["schema"]), line[
                    "description"
                ]
    assert pairs >= 50


def test_only_tagged_cases_leave_the_default_spelling() -> None:
    """White space, escapes, number spellings and the order of names are tested only where a case says so."""
    spellings = {"whitespace", "escapes", "number_spelling", "property_order"}
    unbounded = {"type number", "end of a number"}
    for line in LINES:
        if spellings & set(line["tags"]):
            continue
        for test in line["tests"]:
            if test["valid"] and "text" in test and line["description"] not in unbounded:
                assert json.dumps(json.loads(test["text"]), ensure_ascii=False) == test["text"], (
                    line["description"],
                    test["description"],
                )
            if test["valid"] and isinstance(line["schema"], dict) and isinstance(test.get("data"), dict):
                declared = [name for name in line["schema"].get("properties", {}) if name in test["data"]]
                assert [name for name in test["data"] if name in declared] == declared, line["description"]
