"""What holds of each adapter whose backend takes every dialect."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from adapter_tools import TAG, Tools, maker

from harness.backend.grammar import Dialect

Holds = Callable[..., bool]


@pytest.fixture(params=[("xgrammar", "Xgrammar"), ("llguidance", "Llguidance")], ids=lambda each: each[0])
def holds(request: pytest.FixtureRequest) -> Holds:
    """Is an output in the language of a grammar?"""
    pytest.importorskip(request.param[0])
    return Tools(maker(*request.param)).holds


@pytest.mark.parametrize(
    ("dialect", "text", "valid", "not_valid"),
    [
        ("json_schema", '{"type": "integer"}', "10", "1x"),
        ("json_schema", "true", '{"a": [1, "b", null]}', "{a}"),
        ("regex", "a{2}b+", "aabb", "ab"),
        ("ebnf", 'root ::= "a" rest\nrest ::= "" | "b" rest', "abb", "ba"),
        ("lark", 'start: X ("," X)*\nX: "a".."c"~2\n%ignore " "', "ab , cc", "ab,c"),
        ("choice", '["yes", "no"]', "no", "ye"),
        ("structural_tag", TAG, 'text <f>{"a": 1}</f> more', 'text <f>{"a": "1"}</f>'),
    ],
)
def test_each_dialect_compiles_to_its_language(
    holds: Holds, dialect: Dialect, text: str, valid: str, not_valid: str
) -> None:
    assert holds(dialect, text, valid)
    assert not holds(dialect, text, not_valid)


@pytest.mark.parametrize(
    "choice",
    ['a"b', "a\\b", "\n\r\t", "\0b", "日本", "é0", "😀0", "", "\x7f1", "\u2028", "[a-z]*", "#", "${x}"],
)
def test_a_choice_may_hold_any_characters(holds: Holds, choice: str) -> None:
    text = json.dumps([choice, "zz"])
    assert holds("choice", text, choice)
    assert holds("choice", text, "zz")
    assert not holds("choice", text, choice + "z")


def test_a_choice_may_begin_another(holds: Holds) -> None:
    assert all(holds("choice", '["a", "ab", "abc"]', text) for text in ("a", "ab", "abc"))
