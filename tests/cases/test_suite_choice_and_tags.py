"""The suite of choices and structural tags: choices judged by membership, structural tags by the recogniser
below."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from recognising import recognises
from suite_files import SUITES, content, lines_of

HEADER, *CASES = lines_of(SUITES["choice_and_tags"])
KINDS = {"choice", "structural_tag"}
TAG_CASES = [case for case in CASES if "structural_tag" in case]


def allows(case: dict[str, Any], output: bytes) -> bool:
    try:
        text = output.decode()
    except UnicodeDecodeError:
        return False
    return text in case["choice"] if "choice" in case else recognises(case["structural_tag"], text)


def names(case: dict[str, Any]) -> str:
    return str(case["description"])


@pytest.mark.parametrize("case", CASES, ids=names)
def test_every_validity_is_what_the_judge_says(case: dict[str, Any]) -> None:
    judged = {test["description"]: allows(case, content(test)) for test in case["tests"]}
    assert judged == {test["description"]: test["valid"] for test in case["tests"]}


@pytest.mark.parametrize("case", [case for case in CASES if "choice" in case], ids=names)
def test_every_choice_of_a_short_list_is_tried(case: dict[str, Any]) -> None:
    tried = {test["text"] for test in case["tests"] if test["valid"]}
    assert tried == set(case["choice"]) or (len(case["choice"]) > 10 and len(tried) >= 3)


@pytest.mark.parametrize("case", TAG_CASES, ids=names)
def test_structural_tags_are_unambiguous(case: dict[str, Any]) -> None:
    triggers, structures = case["structural_tag"]["triggers"], case["structural_tag"]["structures"]
    assert all(
        structure.keys() == {"begin", "schema", "end"} and structure["end"] for structure in structures
    )
    assert all(structure["begin"].startswith(tuple(triggers)) for structure in structures)
    # A trigger in the middle of another would make "the first place where a trigger begins" differ from where
    # one is first complete.
    assert not [
        (one, other)
        for one in triggers
        for other in triggers
        if one in other[1:] and not other.startswith(one)
    ]
    for structure in structures:
        Draft202012Validator.check_schema(structure["schema"])


def test_the_recogniser_knows_outside_from_inside() -> None:
    tag = {"triggers": ["<f"], "structures": [{"begin": "<f>", "schema": {"type": "integer"}, "end": "</f>"}]}
    for text in ("", "<", "</f>", "a<f>1</f>", "<f>1</f><f> 2 </f>b", "<f>1</f><"):
        assert recognises(tag, text), text
    for text in (
        "<f",
        "<f>",
        "<f>1",
        "<f>1</f",
        "<f>x</f>",
        "<f></f>",
        "<f>1</f><f",
        "<fx",
        "<f>1 2</f>",
        "<f>NaN</f>",
    ):
        assert not recognises(tag, text), text


def test_the_recogniser_takes_an_end_inside_a_string_for_text() -> None:
    tag = {"triggers": ["["], "structures": [{"begin": "[", "schema": {"type": "string"}, "end": "]"}]}
    assert recognises(tag, '["a]b["]') and recognises(tag, '["a"]"]')
    assert not recognises(tag, '["a]b') and not recognises(tag, '["a]')


def test_the_file_has_the_form_of_a_suite() -> None:
    assert HEADER.keys() == {"suite", "version", "description"} and HEADER["suite"] == "choice_and_tags"
    for case in CASES:
        assert len(KINDS & case.keys()) == 1, case["description"]
        assert case.keys() - KINDS - {"notes"} == {"description", "tests", "tags"}, case["description"]
        for test in case["tests"]:
            assert test.keys() in ({"description", "text", "valid"}, {"description", "bytes", "valid"}), case[
                "description"
            ]


def test_the_suite_covers_what_it_promises() -> None:
    topics = (
        "prefix empty quote escape newline metacharacter unicode size special_token number whitespace "
        "siblings"
    )
    of_tags = (
        "free_text trigger several_calls nested end_in_string no_parameters missing_end wrong_json multibyte"
    )
    assert len(CASES) - len(TAG_CASES) >= 12
    assert len(TAG_CASES) >= 12
    assert set(f"{topics} {of_tags}".split()) <= {tag for case in CASES for tag in case["tags"]}
