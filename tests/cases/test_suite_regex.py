"""The regex suite, judged by the `regex` library and, for its claims about dialects, by the standard
library's `re`."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest
import regex
from suite_files import SUITES, content, lines_of

HEADER, *CASES = lines_of(SUITES["regex"])
DIALECTS = {"dialect:python", "dialect:rust", "dialect:ecma"}


def matches(pattern: str, output: bytes) -> bool:
    try:
        return regex.fullmatch(pattern, output.decode(), timeout=10) is not None
    except UnicodeDecodeError:
        return False


def python_agrees(case: dict[str, Any]) -> bool:
    """Does `re` know the pattern, and give every instance the validity that the suite gives it?"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            pattern = re.compile(case["regex"])
        except re.error:
            return False
    texts = [test for test in case["tests"] if "text" in test]
    return all((pattern.fullmatch(test["text"]) is not None) == test["valid"] for test in texts)


def test_every_validity_is_what_the_regex_library_says() -> None:
    wrong = [
        (case["description"], test["description"])
        for case in CASES
        for test in case["tests"]
        if matches(case["regex"], content(test)) != test["valid"]
    ]
    assert not wrong


def test_every_case_allows_something_and_forbids_something() -> None:
    for case in CASES:
        valid = [test for test in case["tests"] if test["valid"]]
        assert bool(valid) != ("unsatisfiable" in case["tags"]), case["description"]
        assert len(case["tests"]) - len(valid) >= 3, case["description"]


@pytest.mark.skipif(
    python_agrees({"regex": r"a\z", "tests": []}), reason="the tags tell what `re` knew before 3.14"
)
def test_a_case_claims_the_dialect_python_exactly_where_re_agrees() -> None:
    for case in CASES:
        # A case without the tag `dialect` claims that all dialects agree.
        claimed = "dialect" not in case["tags"] or "dialect:python" in case["tags"]
        assert python_agrees(case) == claimed, case["description"]


def test_where_dialects_differ_a_note_says_how_and_not_all_are_claimed() -> None:
    for case in CASES:
        claimed = DIALECTS & set(case["tags"])
        if "dialect" in case["tags"]:
            assert case.get("notes") and claimed < DIALECTS, case["description"]
        else:
            assert not claimed, case["description"]


def test_the_file_has_the_form_of_a_suite() -> None:
    assert HEADER.keys() == {"suite", "version", "description"} and HEADER["suite"] == "regex"
    for case in CASES:
        assert case.keys() - {"notes"} == {"description", "regex", "tests", "tags"}, case["description"]
        for test in case["tests"]:
            assert test.keys() in ({"description", "text", "valid"}, {"description", "bytes", "valid"}), case[
                "description"
            ]


def test_the_suite_covers_what_it_promises() -> None:
    tags = {tag for case in CASES for tag in case["tags"]}
    constructs = (
        "literal escape class negated quantifier lazy count alternation group named anchor "
        "boundary dot shorthand"
    )
    others = (
        "flag unicode property lookaround backreference posix empty prefix size realistic "
        "unsatisfiable accepts_everything"
    )
    assert len(CASES) >= 80
    assert set(f"{constructs} {others}".split()) <= tags
