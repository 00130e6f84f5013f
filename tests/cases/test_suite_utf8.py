"""The UTF-8 suite, judged by the `regex` library, by jsonschema and by membership; bytes that are not UTF-8
are never valid."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn

import pytest
import regex
from jsonschema import Draft202012Validator
from referencing import Registry
from suite_files import SUITES, content, lines_of

HEADER, *CASES = lines_of(SUITES["utf8"])
KINDS = {"regex", "ebnf", "choice", "schema"}

SAME_LANGUAGE = {
    "EBNF: literal and class of Chinese characters": "日本[語人]",
    "EBNF: emoji siblings": "[😀😁]+",
    "EBNF: negated class": "<[^<>é]*>",
    "EBNF: escapes of all widths": "Aé日😀[ぁ-ん]?",
    "EBNF: range over all lengths": r"[\x7f-\U00010000][\U00010000-\U0010ffff]",
    "EBNF: counted kana": "[ぁ-ん]{2,4}。",
    "EBNF: JSON string by hand": r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt])*"',
    "EBNF: names beyond ASCII inside quotes": r'\{"名":(?:"[山川]"|null)\}',
    "EBNF: every character": r"[^\x00]*",
    "EBNF: special tokens as text": r"<\|im_(?:end|start)\|>[a-z]*</s>",
}
"""For each EBNF case, by hand, a pattern of the same language."""


def names(case: dict[str, Any]) -> str:
    return str(case["description"])


def strict_json(text: str) -> Any:
    """RFC 8259 and nothing else; ValueError otherwise."""

    def refuse(constant: str) -> NoReturn:
        raise ValueError(constant)

    return json.loads(text, parse_constant=refuse)


def judge(case: dict[str, Any]) -> Callable[[str], bool]:
    """Does the case's grammar allow this text?"""
    if "choice" in case:
        return lambda text: text in case["choice"]
    if "schema" in case:
        Draft202012Validator.check_schema(case["schema"])
        validator = Draft202012Validator(case["schema"], registry=Registry())

        def is_valid_json(text: str) -> bool:
            try:
                return validator.is_valid(strict_json(text))
            except ValueError:
                return False

        return is_valid_json
    pattern = regex.compile(case["regex"] if "regex" in case else SAME_LANGUAGE[case["description"]])
    return lambda text: pattern.fullmatch(text, timeout=10) is not None


def utf8_only(allows: Callable[[str], bool], output: bytes) -> bool:
    try:
        text = output.decode()
    except UnicodeDecodeError:
        return False
    return allows(text)


def test_every_validity_is_what_the_judge_of_its_dialect_says() -> None:
    for case in CASES:
        allows = judge(case)
        judged = {test["description"]: utf8_only(allows, content(test)) for test in case["tests"]}
        assert judged == {test["description"]: test["valid"] for test in case["tests"]}, case["description"]


def test_every_case_allows_something_and_forbids_something() -> None:
    for case in CASES:
        valid = [test for test in case["tests"] if test["valid"]]
        assert valid and len(case["tests"]) - len(valid) >= 3, case["description"]


def test_hex_is_kept_for_what_is_not_utf8() -> None:
    for case in CASES:
        for test in case["tests"]:
            if "bytes" in test:
                with pytest.raises(UnicodeDecodeError):
                    content(test).decode()


def test_each_kind_of_malformed_sequence_occurs() -> None:
    outputs = [content(test) for case in CASES for test in case["tests"] if "bytes" in test]
    overlong = [
        b"\xc0\x80",
        b"\xc1\xbf",
        b"\xe0\x80\x80",
        b"\xe0\x9f\xbf",
        b"\xf0\x80\x80\x80",
        b"\xf0\x8f\xbf\xbf",
    ]
    surrogates = [b"\xed\xa0\x80", b"\xed\xaf\xbf", b"\xed\xb0\x80", b"\xed\xa0\xbd\xed\xb8\x80"]
    beyond = [b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xfe", b"\xff"]
    lone_and_truncated = [
        b"\x80",
        b"\xbf",
        b"\xc3",
        b"\xe6",
        b"\xe6\x97",
        b"\xf0",
        b"\xf0\x9f",
        b"\xf0\x9f\x98",
    ]
    for sequence in [*overlong, *surrogates, *beyond, *lone_and_truncated]:
        assert sequence in outputs, sequence.hex(" ")


def test_every_boundary_between_lengths_is_on_both_sides_of_a_verdict() -> None:
    texts = {(test["text"], test["valid"]) for case in CASES for test in case["tests"] if "text" in test}
    for code in (0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000):
        assert {(chr(code), True), (chr(code), False)} <= texts, f"U+{code:04X}"
    assert (chr(0x10FFFF), True) in texts


def test_the_file_has_the_form_of_a_suite() -> None:
    assert HEADER.keys() == {"suite", "version", "description"} and HEADER["suite"] == "utf8"
    for case in CASES:
        assert len(KINDS & case.keys()) == 1, case["description"]
        assert case.keys() - KINDS - {"notes"} == {"description", "tests", "tags"}, case["description"]
        for test in case["tests"]:
            assert test.keys() - {"data", "text", "bytes"} == {"description", "valid"} and len(test) == 3, (
                case["description"]
            )


def test_the_suite_covers_what_it_promises() -> None:
    topics = (
        "boundary malformed truncated overlong class negated siblings forced combining zwj flags rtl "
        "bom separator control private"
    )
    others = "replacement json enum const key length pattern escape special_token accepting"
    assert len(CASES) >= 40
    assert set(f"{topics} {others}".split()) <= {tag for case in CASES for tag in case["tags"]}
    assert {kind for case in CASES for kind in KINDS & case.keys()} == KINDS
