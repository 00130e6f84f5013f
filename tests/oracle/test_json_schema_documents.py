"""The automaton of a JSON Schema against the judge: documents, viable beginnings, and witnesses of what it
allows."""

from __future__ import annotations

import gc
import json
from fractions import Fraction
from typing import Any

import pytest
from against_the_judge import differences

from harness.backend.layout import EVERY_SPELLING
from harness.oracle.automaton import NoOracle
from harness.oracle.json_schema import formula, unevaluated
from harness.oracle.json_schema.atoms import AtLeast
from harness.oracle.json_schema.automaton import json_schema_automaton
from harness.oracle.json_schema.formula import atom
from harness.oracle.json_schema.numbers import Literal, Numbers


def test_documents_and_beginnings_are_those_of_the_judge() -> None:
    assert [line for number in range(20) for line in differences(number)] == []


@pytest.mark.long
@pytest.mark.parametrize("part", range(6))
def test_documents_and_beginnings_of_many_schemas_are_those_of_the_judge(part: int) -> None:
    numbers = range(20 + part * 40, 60 + part * 40)
    assert [line for number in numbers for line in differences(number)] == []


def test_formulas_that_nobody_holds_are_given_back() -> None:
    """A process that reads many schemas does not keep what each of them asked."""

    def kept(name: str) -> int:
        members = {f"{name}{n}": {"enum": [f"{name}{n}x", n]} for n in range(20)}
        schema = {"properties": members, "minProperties": 1}
        assert json_schema_automaton(json.dumps(schema)).accepts(json.dumps({f"{name}3": 3}).encode())
        gc.collect()
        return len(formula._formulas)

    first = kept("a")
    assert max(kept(name) for name in "bcd") <= first + 5


@pytest.mark.parametrize("keyword", ["unevaluatedProperties", "unevaluatedItems"])
def test_what_is_reached_in_many_ways_is_looked_at_once(
    keyword: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each definition refers twice to the next one, so that there are 2^16 ways to the last."""
    looked: list[object] = []
    found = unevaluated._in_place

    def counted(*asked: Any) -> Any:
        looked.append(asked[1])
        return found(*asked)

    monkeypatch.setattr(unevaluated, "_in_place", counted)
    chain: dict[str, Any] = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(16)}
    chain["a16"] = {"properties": {"x": {}}, "prefixItems": [True]}
    automaton = json_schema_automaton(json.dumps({"$ref": "#/$defs/a0", keyword: False, "$defs": chain}))
    right, wrong = (b'{"x":1}', b'{"y":1}') if keyword == "unevaluatedProperties" else (b"[1]", b"[1,2]")
    assert automaton.accepts(right) and not automaton.accepts(wrong) and len(looked) < 100


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"uniqueItems": True}, "uniqueItems"),
        ({"$ref": "other.json"}, "points out"),
        ({"$ref": "#"}, "refers to itself"),
        ({"unevaluatedProperties": False, "$ref": "#"}, "refers to itself"),
        ({"maxLength": 10**9}, "a count"),
        ({"pattern": "(a)\\1"}, "a group"),
        ({"maximum": 10**1000}, "digits"),
        (
            {"oneOf": [{"multipleOf": n} for n in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)]},
            "too many",
        ),
        # What is no schema has none, either; of a schema in a structural tag nobody else asks that.
        ({"minimum": 0, "exclusiveMinimum": True}, "the schema is wrong"),
        ({"maxLength": True}, "the schema is wrong"),
        ({"enum": "abc"}, "the schema is wrong"),
        ({"enum": [float("nan")]}, "the schema is wrong"),
        ({"properties": []}, "the schema is wrong"),
        ({"multipleOf": 0}, "the schema is wrong"),
        ({"multipleOf": -1}, "the schema is wrong"),
        ({"pattern": 5}, "the schema is wrong"),
        ({"$ref": 5}, "the schema is wrong"),
        ({"required": "ab"}, "the schema is wrong"),
        ({"anyOf": [{"unevaluatedProperties": False, "$ref": "#"}]}, "refers to itself"),
    ],
)
def test_what_has_no_automaton_says_why(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(NoOracle) as raised:
        json_schema_automaton(json.dumps(schema))
    assert reason in str(raised.value)


@pytest.mark.parametrize(
    ("schema", "text", "viable"),
    [
        # A dead end is never entered: no integer is above 2 and below 3.
        ({"type": "integer", "exclusiveMinimum": 2, "exclusiveMaximum": 3}, b"2", -1),
        ({"type": "number", "exclusiveMinimum": 2, "exclusiveMaximum": 3}, b"2.5", 3),
        # An exponent can make any digits small, so that only the sign is wrong at once.
        ({"type": "number", "maximum": 5}, b"700e-3", 6),
        ({"type": "number", "minimum": 0}, b"-5", 1),
        ({"type": "integer", "multipleOf": 4}, b"1e0", 3),
        # The member that the schema wants can be spelled with escapes; a listed name is not written twice.
        ({"required": ["a"], "type": "object", "properties": {"a": True}}, b'{"\\u0061":1}', 12),
        ({"type": "object", "properties": {"a": True}}, b'{"a":1,"a":2}', 9),
        # Nothing may come that cannot be completed: three members are wanted and two are there.
        ({"type": "object", "properties": {"a": True, "b": True}, "additionalProperties": False,
          "minProperties": 3}, b"{", -1),
        # A lone surrogate is no character.
        ({"type": "string"}, b'"\\ud800"', 7),
        ({"type": "string", "maxLength": 1}, b'"\\ud83d\\ude00a', 13),
        # Items that go on alike are told apart while one of them is read.
        ({"oneOf": [{"prefixItems": [{"const": "a"}]}, {"prefixItems": [{"const": "b"}]}], "type": "array",
          "minItems": 1, "maxItems": 1}, b'["a"]', 5),
        # What is unevaluated hangs on which branch holds.
        ({"type": "object", "anyOf": [{"required": ["a"], "properties": {"a": {"const": 1}}}, {}],
          "unevaluatedProperties": False}, b'{"a":2', 5),
        ({"type": "array", "contains": {"type": "null"}, "unevaluatedItems": False}, b"[null,1", 6),
        ({"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True}, b"[1,1.0]", 3),
        # Of a oneOf the two branches must not both hold.
        ({"oneOf": [{"type": "integer"}, {"multipleOf": 2, "type": "number"}]}, b"4,", 1),
    ],
)  # fmt: skip
def test_how_far_a_text_is_the_beginning_of_a_document(schema: Any, text: bytes, viable: int) -> None:
    assert json_schema_automaton(json.dumps(schema)).viable(text) == viable


def test_a_number_beyond_all_bounds_is_no_part_of_a_schema() -> None:
    with pytest.raises(NoOracle, match="cannot be read"):
        json_schema_automaton('{"maximum": 1e99999999999999999999}')


def test_a_reference_that_has_no_automaton_says_so_each_time() -> None:
    schema = {"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"uniqueItems": True}}}
    automaton = json_schema_automaton(json.dumps(schema))
    for text in (b'{"a":[', b'{"a": ['):
        with pytest.raises(NoOracle, match="uniqueItems"):
            automaton.viable(text)


def test_what_takes_too_long_has_no_reference() -> None:
    schema = {"allOf": [{"pattern": f"(a|b|c){{{n}}}[ab]{{0,9}}x"} for n in range(1, 12)], "type": "string"}
    with pytest.raises(NoOracle, match=r"0\.05 s of processor time"):
        automaton = json_schema_automaton(json.dumps(schema), seconds=0.05)
        automaton.accepts(b'"' + b"a" * 50)


def test_a_schema_that_nests_too_deeply_says_so_each_time() -> None:
    deep = '{"items":' * 250 + "{}" + "}" * 250
    automaton = json_schema_automaton(
        f'{{"properties": {{"a": {{"$ref": "#/$defs/d"}}}}, "$defs": {{"d": {deep}}}}}'
    )
    for _ in range(3):
        with pytest.raises(NoOracle, match="nests too deeply"):
            automaton.accepts(b'{"a":[]}')


def test_the_time_of_the_patterns_is_in_the_budget() -> None:
    """Each takes a fifth of a second."""
    patterns = ["^" + "".join(f"(?=.*[{each}{n}])" for each in "aceg") + ".{8,}$" for n in range(400)]
    schema = {"properties": {f"p{n}": {"pattern": pattern} for n, pattern in enumerate(patterns)}}
    with pytest.raises(NoOracle, match=r"0\.5 s of processor time"):
        json_schema_automaton(json.dumps(schema), seconds=0.5)


@pytest.mark.parametrize("count", ["1e400", "1e99999999", "-1e99999999", "1e-99999999", "1.5", "100001"])
def test_a_count_out_of_reach_has_no_reference(count: str) -> None:
    with pytest.raises(NoOracle, match=r"a count of|is wrong"):
        json_schema_automaton(f'{{"minLength": {count}}}')


def test_a_number_of_thousands_of_digits_has_no_reference() -> None:
    literals, formulas = Numbers(EVERY_SPELLING), (atom(AtLeast(Fraction(1))),)
    assert literals.after(Literal("integer", digits=10**3_900), "1", formulas) is not None
    with pytest.raises(NoOracle, match="thousands of digits"):
        literals.after(Literal("integer", digits=10**3_920), "1", formulas)


def test_a_union_of_many_calls_is_decided_alternative_by_alternative() -> None:
    """The values of one member answer 40 questions, in more combinations than can be gone through."""
    calls = [
        {
            "properties": {
                "method": {"const": f"m{number}"},
                "params": {"type": "object", "properties": {f"p{number}": {"type": "integer"}}},
            },
            "required": ["method"],
        }
        for number in range(40)
    ]
    automaton = json_schema_automaton(json.dumps({"type": "object", "anyOf": calls}))
    assert automaton.accepts(b'{"params":{"p9":1},"method":"m9"}')
    assert automaton.accepts(b'{"params":{"p9":""},"method":"m4"}')
    wrong = b'{"params":{"p9":""},"method":"m9"}'
    assert automaton.viable(wrong) == wrong.index(b'9"}')
    assert automaton.viable(b'{"method":"m9","params":{"p9":""}}') == len(b'{"method":"m9","params":{"p9":')
