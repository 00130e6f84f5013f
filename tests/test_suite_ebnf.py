"""Facts about suites/ebnf.jsonl: every instance's expectation is judged by the reference."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from reference_ebnf import EbnfError, accepts, parse

REPOSITORY = Path(__file__).parents[1]
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

EXAMPLE, FORM = re.findall(r"```ebnf\n(.*?)```", (REPOSITORY / "docs" / "ebnf.md").read_text(encoding="utf-8"), re.DOTALL)
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


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["description"]))
def test_the_reference_judges_every_instance_as_the_suite_does(case: dict[str, Any]) -> None:
    wrong = [instance["description"] for instance in case["tests"] if is_valid(case["ebnf"], instance) != instance["valid"]]
    assert not wrong


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["description"]))
def test_a_case_has_exactly_the_fields_of_the_format(case: dict[str, Any]) -> None:
    assert case.keys() - {"notes"} == {"description", "ebnf", "tests", "tags"}
    assert case["tags"] and len(set(case["tags"])) == len(case["tags"])
    for instance in case["tests"]:
        assert instance.keys() in ({"description", "text", "valid"}, {"description", "bytes", "valid"})
        assert isinstance(instance["valid"], bool)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["description"]))
def test_a_case_has_valid_and_invalid_instances_each_once(case: dict[str, Any]) -> None:
    counts = Counter(instance["valid"] for instance in case["tests"])
    assert counts[False] >= 3
    assert counts[True] >= 1 or "no-valid" in case["tags"]
    assert len({instance["description"] for instance in case["tests"]}) == len(case["tests"])
    assert len({instance.get("text", instance.get("bytes")) for instance in case["tests"]}) == len(case["tests"])


def test_cases_are_many_and_all_different() -> None:
    assert len(CASES) >= 40
    assert len({case["description"] for case in CASES}) == len(CASES)
    assert len({case["ebnf"] for case in CASES}) == len(CASES)


@pytest.mark.parametrize("tag", REQUIRED_TAGS)
def test_every_required_kind_is_present(tag: str) -> None:
    assert any(tag in case["tags"] for case in CASES)


def test_a_long_literal_is_two_thousand_characters() -> None:
    long_literals = [case for case in CASES if "long" in case["tags"] and "recursion" not in case["tags"]]
    assert any(instance["valid"] and len(instance["text"]) == 2000 for case in long_literals for instance in case["tests"])


def test_the_example_of_the_documentation_means_what_it_seems_to() -> None:
    grammar = parse(EXAMPLE)
    assert all(accepts(grammar, text) for text in ("12", "1.5 mm", "none.007 µm"))
    assert not any(accepts(grammar, text) for text in ("1234", "1.", "1mm", "1 m"))


@pytest.mark.parametrize("ebnf", [EXAMPLE, FORM, *(case["ebnf"] for case in CASES if len(case["ebnf"]) < 4000)])
def test_the_form_in_itself_derives_every_grammar(ebnf: str) -> None:
    assert accepts(parse(FORM), ebnf)


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
