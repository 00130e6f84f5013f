"""Facts about suites/ebnf.jsonl: every instance's expectation is judged by the reference."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest
from places import ROOT
from reference_ebnf import EbnfError, accepts, parse

REPOSITORY = ROOT
SUITE = REPOSITORY / "suites" / "ebnf.jsonl"
REQUIRED_TAGS = (
    "ambiguity",
    "arithmetic",
    "class",
    "deep",
    "escapes",
    "hidden-left-recursion",
    "json",
    "large",
    "layout",
    "left-recursion",
    "long",
    "mutual-recursion",
    "names",
    "negated",
    "nullable",
    "prefix",
    "recursion",
    "regression",
    "repetition",
    "right-recursion",
    "sql",
    "unicode",
    "useless",
    "utf8",
)

EXAMPLE, FORM = re.findall(
    r"```ebnf\n(.*?)```", (REPOSITORY / "docs" / "ebnf.md").read_text(encoding="utf-8"), re.DOTALL
)
HEADER, *CASES = (json.loads(line) for line in SUITE.read_text(encoding="utf-8").splitlines())


def is_valid(ebnf: str, instance: dict[str, Any]) -> bool:
    grammar = parse(ebnf)
    try:
        text = instance["text"] if "text" in instance else bytes.fromhex(instance["bytes"]).decode("utf-8")
    except UnicodeDecodeError:
        return False  # an output is UTF-8, or it is no sentence
    return accepts(grammar, text)


def test_header_names_the_suite_and_its_version() -> None:
    assert HEADER.keys() == {"suite", "version", "description"}
    assert (HEADER["suite"], HEADER["version"]) == ("ebnf", "1")


def test_the_reference_judges_every_instance_as_the_suite_does() -> None:
    wrong = [
        (case["description"], instance["description"])
        for case in CASES
        for instance in case["tests"]
        if is_valid(case["ebnf"], instance) != instance["valid"]
    ]
    assert not wrong


def test_a_case_has_exactly_the_fields_of_the_format() -> None:
    for case in CASES:
        name = case["description"]
        assert case.keys() - {"notes"} == {"description", "ebnf", "tests", "tags"}, name
        assert case["tags"] and len(set(case["tags"])) == len(case["tags"]), name
        for instance in case["tests"]:
            assert instance.keys() in (
                {"description", "text", "valid"},
                {"description", "bytes", "valid"},
            ), name
            assert isinstance(instance["valid"], bool), name


def test_a_case_has_valid_and_invalid_instances_each_once() -> None:
    for case in CASES:
        name, instances = case["description"], case["tests"]
        counts = Counter(instance["valid"] for instance in instances)
        assert counts[False] >= 3, name
        assert counts[True] >= 1 or "no-valid" in case["tags"], name
        assert len({instance["description"] for instance in instances}) == len(instances), name
        contents = {instance.get("text", instance.get("bytes")) for instance in instances}
        assert len(contents) == len(instances), name


def test_cases_are_many_and_all_different() -> None:
    assert len(CASES) >= 40
    assert len({case["description"] for case in CASES}) == len(CASES)
    assert len({case["ebnf"] for case in CASES}) == len(CASES)


@pytest.mark.parametrize("tag", REQUIRED_TAGS)
def test_every_required_kind_is_present(tag: str) -> None:
    assert any(tag in case["tags"] for case in CASES)


def test_a_long_literal_is_two_thousand_characters() -> None:
    long_literals = [case for case in CASES if "long" in case["tags"] and "recursion" not in case["tags"]]
    assert any(
        instance["valid"] and len(instance["text"]) == 2000
        for case in long_literals
        for instance in case["tests"]
    )


def test_the_example_of_the_documentation_means_what_it_seems_to() -> None:
    grammar = parse(EXAMPLE)
    assert all(accepts(grammar, text) for text in ("12", "1.5 mm", "none.007 µm"))
    assert not any(accepts(grammar, text) for text in ("1234", "1.", "1mm", "1 m"))


def test_the_form_in_itself_derives_every_grammar() -> None:
    form = parse(FORM)
    grammars = [EXAMPLE, FORM, *(case["ebnf"] for case in CASES if len(case["ebnf"]) < 4000)]
    assert [ebnf for ebnf in grammars if not accepts(form, ebnf)] == []


@pytest.mark.parametrize(
    "ebnf",
    [
        "",
        "root ::=",
        'root ::= "a" |',
        "root ::= ()",
        'root ::= "a"*?',
        'root ::= ("a"',
        'root ::= "a" x ::= "b"',
        'root ::= "a" # x\n# y ::= "b"\n|',
        "root ::= []",
        "root ::= [^]",
        'root ::= "a\nb"',
        r'root ::= "\-"',
        r'root ::= "\x4"',
        'root ::= "a"{,2}',
        "root ::= 1",
    ],
)
def test_the_form_in_itself_refuses_what_the_reference_cannot_read(ebnf: str) -> None:
    assert not accepts(parse(FORM), ebnf)
    with pytest.raises(EbnfError):
        parse(ebnf)
