"""Facts about suites/lark.jsonl: every instance is judged by the reference, in both readings."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from places import ROOT

from harness.oracle.lark.automaton import lark_automaton

HEADER, *CASES = (
    json.loads(line) for line in (ROOT / "suites" / "lark.jsonl").read_text(encoding="utf-8").splitlines()
)
TAGS = (
    "alternatives",
    "case",
    "classes",
    "comment",
    "common",
    "counts",
    "escape",
    "flags",
    "ignore",
    "lexer",
    "names",
    "optional",
    "range",
    "recursion",
    "tool call",
    "unicode",
)


def test_header_names_the_suite_and_its_version() -> None:
    assert HEADER.keys() == {"suite", "version", "default", "description"}
    assert (HEADER["suite"], HEADER["default"]) == ("lark", False)


@pytest.mark.parametrize("lexer", [False, True])
@pytest.mark.parametrize("dialect", ["python", "rust", "javascript"])
def test_every_reading_judges_as_the_suite_does(dialect: str, lexer: bool) -> None:
    for case in CASES:
        language = lark_automaton(case["lark"], dialect, lexer=lexer)  # type: ignore[arg-type]
        for instance in case["tests"]:
            said = language.accepts(instance["text"].encode())
            assert said == instance["valid"], (case["description"], instance["text"])


def test_a_case_has_the_fields_of_the_format_and_instances_of_both_kinds() -> None:
    for case in CASES:
        assert case.keys() - {"notes"} == {"description", "lark", "tests", "tags"}, case["description"]
        counts = Counter(instance["valid"] for instance in case["tests"])
        assert counts[True] and counts[False] >= 2, case["description"]
        assert len({instance["text"] for instance in case["tests"]}) == len(case["tests"]), case[
            "description"
        ]


def test_cases_are_many_and_all_different() -> None:
    assert len(CASES) >= 25
    assert len({case["description"] for case in CASES}) == len({case["lark"] for case in CASES}) == len(CASES)


@pytest.mark.parametrize("tag", TAGS)
def test_every_kind_is_present(tag: str) -> None:
    assert any(tag in case["tags"] for case in CASES)
