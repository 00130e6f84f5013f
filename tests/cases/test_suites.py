"""What holds for every suite: nothing in its file is invisible or comes twice, its schemas and verdicts are
right, and the harness reads its instances as they are meant."""

from __future__ import annotations

import json

import pytest
from recognising import allows
from suite_files import SUITES, content, lines_of

from harness.cases.case import GRAMMAR_KEYS
from harness.cases.suite import find_suite, read_cases
from harness.oracle.judge import check_schema


def each_but(*names: str) -> pytest.MarkDecorator:
    """One test for each suite but these."""
    assert set(names) < SUITES.keys()
    return pytest.mark.parametrize("name", [name for name in SUITES if name not in names])


@each_but("ebnf", "known_bugs")  # which have invisible characters in literals and classes
def test_nothing_in_the_file_is_invisible(name: str) -> None:
    text = SUITES[name].read_text(encoding="utf-8").replace("\n", "")
    assert text and [character for character in text if not character.isprintable()] == []


@each_but(
    "lark",  # whose instances have no description
    "tools",  # where families write alike
)
def test_no_name_grammar_or_instance_comes_twice(name: str) -> None:
    _, *cases = lines_of(SUITES[name])
    grammars = {json.dumps([[key, case[key]] for key in GRAMMAR_KEYS if key in case]) for case in cases}
    assert len({case["description"] for case in cases}) == len(grammars) == len(cases) > 0
    for case in cases:
        contents = {str(test["tokens"]) if "tokens" in test else content(test) for test in case["tests"]}
        assert (
            len({test["description"] for test in case["tests"]}) == len(contents) == len(case["tests"]) > 0
        ), case["description"]
    read = list(read_cases(find_suite(str(SUITES[name]))))
    assert [case.name for case in read if "-" in case.id] == []  # the reader's mark of a grammar seen before


@each_but("tag_formats")  # some of whose instances are tokens
def test_the_harness_reads_the_instances_as_they_are_meant(name: str) -> None:
    _, *cases = lines_of(SUITES[name])
    meant = [[(content(test), test["valid"]) for test in case["tests"]] for case in cases]
    read = read_cases(find_suite(str(SUITES[name])))
    assert [[(each.content, each.valid) for each in case.instances] for case in read] == meant


@pytest.mark.parametrize("name", ["decode", "json_schema", "keywords", "known_bugs", "speed", "utf8"])
def test_schemas_are_right_by_their_meta_schema(name: str) -> None:
    read = read_cases(find_suite(str(SUITES[name])))
    found = {
        case.name: check_schema(case.grammar.text, case.options.get("draft"))
        for case in read
        if case.grammar.dialect == "json_schema"
    }
    assert found and {case: problem for case, problem in found.items() if problem is not None} == {}


@pytest.mark.parametrize("name", ["decode", "known_bugs", "speed"])
def test_every_verdict_is_the_judges(name: str) -> None:
    for case in read_cases(find_suite(str(SUITES[name]))):
        assert [(each.name, allows(case, each.content)) for each in case.instances] == [
            (each.name, each.valid) for each in case.instances
        ], case.name


@pytest.mark.parametrize("name", ["choice_and_tags", "decode", "lark", "tag_formats", "tools"])
def test_every_case_allows_something_and_forbids_two(name: str) -> None:
    _, *cases = lines_of(SUITES[name])
    for case in cases:
        valid = [test for test in case["tests"] if test["valid"]]
        assert valid and len(case["tests"]) - len(valid) >= 2, case["description"]
