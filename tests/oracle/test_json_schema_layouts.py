"""The automaton of a JSON Schema and a layout: against grammars written by hand, against the automaton of
every spelling, and against the judge on texts that are spelled so."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import cache
from itertools import permutations
from typing import Any, get_args

import pytest
from against_the_judge import DOCUMENTS, DeadEnd, completion, differences_in_layout
from layout_grammars import PAIRS, RULES
from side_by_side import first_difference
from small_schemas import whole_schema

from harness.backend.grammar import Grammar
from harness.backend.layout import COMPACT, LAYOUTS, Layout, LayoutName
from harness.backend.vocabulary import load_vocabulary
from harness.oracle.automaton import DEAD, NoOracle
from harness.oracle.ebnf.automaton import ebnf_automaton
from harness.oracle.json_schema import (
    automaton,
    decimals,
    keywords,
    members,
    numbers,
    spellable,
    strings,
    texts,
)
from harness.oracle.json_schema.atoms import AllMembers
from harness.oracle.json_schema.automaton import JsonSchemaAutomaton, json_schema_automaton
from harness.oracle.json_schema.formula import TRUE
from harness.oracle.reference import Reference
from harness.oracle.utf8 import LAST, common, merged

MOST_PAIRS = 1_500
FREE: dict[str, Any] = {"order": "any", "unlisted": "anywhere"}
NAMES = [f"{json.dumps(schema)[:50]} {place}" for place, (schema, _, _) in enumerate(PAIRS)]


def difference_of_pair(place: int) -> str | None:
    schema, layout, rule = PAIRS[place]
    own = json_schema_automaton(json.dumps(schema), layout=layout)
    # A rule of the pair replaces one of the same name.
    names = [line.split(" ::= ")[0] for line in rule.split("\n")[1:]]
    rules = [line for line in RULES.strip().split("\n") if line.split(" ::= ")[0] not in names]
    return first_difference(own, ebnf_automaton("root ::= " + "\n".join([rule, *rules])), MOST_PAIRS)


@pytest.mark.parametrize("place", range(len(PAIRS)), ids=NAMES)
def test_the_same_bytes_may_come_after_every_text(place: int) -> None:
    assert difference_of_pair(place) is None


@pytest.mark.parametrize("place", range(len(PAIRS)), ids=NAMES)
def test_a_layout_has_no_spelling_that_json_has_not(place: int) -> None:
    schema, layout, _ = PAIRS[place]
    own, other = (
        json_schema_automaton(json.dumps(schema), layout=layout),
        json_schema_automaton(json.dumps(schema)),
    )
    assert first_difference(own, other, 400, other_may_have_more=True) is None


# ------------------------------------------------------------------------------------------- the judge's word

ASCII = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7E))


def respelled(text: bytes, separators: tuple[str, str], only_ascii: bool) -> bytes:
    """The document with its members as they stand, and everything else as `json.dumps` spells it."""
    value = json.loads(text, object_pairs_hook=Members, parse_float=Decimal, parse_int=Decimal)
    return written(value, separators, only_ascii).encode()


class Members(list[Any]):
    """The members of an object in their order."""


def written(value: Any, separators: tuple[str, str], only_ascii: bool) -> str:
    def below(part: Any) -> str:
        return written(part, separators, only_ascii)

    if isinstance(value, Members):
        return (
            "{"
            + separators[0].join(f"{below(name)}{separators[1]}{below(item)}" for name, item in value)
            + "}"
        )
    if isinstance(value, list):
        return "[" + separators[0].join(map(below, value)) + "]"
    if isinstance(value, Decimal):
        return str(int(value)) if value == int(value) else format(value, "f")
    return json.dumps(value, ensure_ascii=only_ascii)


@cache
def as_compact(text: bytes) -> bytes:
    return respelled(text, (",", ":"), False)


@cache
def as_spaced(text: bytes) -> bytes:
    return respelled(text, (", ", ": "), False)


@cache
def as_python(text: bytes) -> bytes:
    return respelled(text, (", ", ": "), True)


def is_ascii_compact(text: bytes) -> bool:
    return as_compact(text) == text and text.isascii()


OF_PYTHON = replace(
    LAYOUTS["spaced"],
    raw=ASCII,
    hex_escapes=((0, 7), (11, 11), (14, 31), (0x7F, LAST)),
    **FREE,
)
SPELLED: dict[str, tuple[Layout, Callable[[bytes], bytes], Callable[[bytes], bool]]] = {
    "compact": (replace(LAYOUTS["compact"], **FREE), as_compact, lambda text: as_compact(text) == text),
    "spaced": (replace(LAYOUTS["spaced"], **FREE), as_spaced, lambda text: as_spaced(text) == text),
    "python": (OF_PYTHON, as_python, lambda text: as_python(text) == text),
    # Other characters than those of ASCII have no spelling, so that some strings do not exist.
    "ascii": (replace(LAYOUTS["compact"], raw=ASCII, **FREE), as_compact, is_ascii_compact),
}  # fmt: skip


@cache
def texts_of(name: str) -> tuple[bytes, ...]:
    """The small documents, as they are and respelled."""
    return tuple(dict.fromkeys(each for text in DOCUMENTS for each in (SPELLED[name][1](text), text)))


def differences(name: str, number: int) -> list[str]:
    layout, _, is_spelled = SPELLED[name]
    return differences_in_layout(number, layout, texts_of(name), is_spelled)


@pytest.mark.parametrize("name", SPELLED)
def test_valid_documents_that_are_spelled_so_are_those_of_the_judge(name: str) -> None:
    assert [line for number in range(8) for line in differences(name, number)] == []


@pytest.mark.long
@pytest.mark.parametrize("name", SPELLED)
@pytest.mark.parametrize("part", range(4))
def test_documents_of_many_schemas_are_those_of_the_judge(name: str, part: int) -> None:
    assert [
        line for number in range(8 + 20 * part, 28 + 20 * part) for line in differences(name, number)
    ] == []


STRICT = [
    LAYOUTS["compact"],
    replace(LAYOUTS["compact"], unlisted="never"),
    replace(LAYOUTS["compact"], unlisted="asked", further_items=False),
    Layout(order="listed", unlisted="never", exponents="signed", raw=ASCII, hex_escapes=(), longest_run=1),
]


def wrong_in(number: int, layout: Layout) -> list[str]:
    """What the layout allows beyond the schema, and where it enters dead ends."""
    schema = json.dumps(whole_schema(number))
    wrong: list[str] = []
    try:
        own, other = json_schema_automaton(schema, layout=layout), json_schema_automaton(schema)
        if own.start == DEAD:
            return []
        more = first_difference(own, other, 300, other_may_have_more=True)
        if more is not None:
            wrong.append(f"{number}: {more} in {schema}")
        for text in texts_of("compact"):
            for end in range(own.viable(text) + 1):
                try:
                    rest = completion(own, own.run(own.start, text[:end]), most=300)
                except DeadEnd:
                    wrong.append(f"{number}: nothing goes on from {text[:end]!r} in {schema}")
                    continue
                if rest is not None and not other.accepts(text[:end] + rest):
                    wrong.append(f"{number}: {text[:end] + rest!r} is no document of {schema}")
    except NoOracle:
        return []
    return wrong


@pytest.mark.parametrize("layout", STRICT, ids=["compact", "never", "asked", "blanks"])
def test_what_a_strict_layout_allows_leads_to_a_document(layout: Layout) -> None:
    assert [line for number in range(6) for line in wrong_in(number, layout)] == []


@pytest.mark.parametrize("number", range(12))
def test_an_order_of_names_leaves_out_no_value(number: int) -> None:
    """An object that is valid in some order is valid in one order that the layout has."""
    schema = json.dumps(whole_schema(number))
    try:
        free = json_schema_automaton(schema, layout=SPELLED["compact"][0])
        own = json_schema_automaton(schema, layout=LAYOUTS["compact"])
        for text in texts_of("compact"):
            members = re.findall(rb'("[^"]*":(?:\[[^]]*\]|[^,{]+|\{[^}]*\}))[,}]', text)
            if text[:1] == b"{" and b"{" + b",".join(members) + b"}" == text:
                orders = {b"{" + b",".join(order) + b"}" for order in permutations(members)}
                assert any(map(free.accepts, orders)) == any(map(own.accepts, orders)), text
    except NoOracle:
        return


# --------------------------------------------------------------------------------------------- wrong automata


def spells_every_character(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(automaton, "spellable_values", lambda schemas, layout: TRUE)


def forgets_the_order(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, frame: Any, name: str | None) -> Any:
        return frame.seen if name is None else frame.seen | {name}

    patch.setattr(members.Members, "seen_behind", wrong)


def hopes_for_exponents(patch: pytest.MonkeyPatch) -> None:
    right = decimals.has_size_beginning
    patch.setattr(
        decimals,
        "has_size_within",
        lambda sizes, begin, end, is_open: right(sizes, begin.numerator, None),
    )
    patch.setattr(
        decimals, "has_size_beginning", lambda sizes, digits, least_scale: right(sizes, digits, None)
    )


def hopes_for_digits(patch: pytest.MonkeyPatch) -> None:
    """A last 0 may stand where no other digit can follow it."""
    right = decimals.has_size_within
    patch.setattr(
        decimals, "has_size_within", lambda sizes, begin, end, is_open: right(sizes, begin, end, False)
    )


def writes_last_zeros(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(numbers.Numbers, "_ends_with_zero", lambda self, literal: False)


def escapes_every_character(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(texts, "common", lambda ranges, others: ranges)


def takes_any_second_byte(patch: pytest.MonkeyPatch) -> None:
    """A character of which the first byte may stand raw may do so too."""
    right = strings.of_raw_characters

    def wrong(raw: Any) -> Any:
        table, first = right(raw)
        return table, [utf8 if byte >= 0 else -1 for byte, utf8 in zip(first, strings.UTF8[0], strict=True)]

    patch.setattr(strings, "of_raw_characters", wrong)


def lists_no_names_below(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(spellable, "_asked_of", lambda schemas, formulas, name: [])


def closes_no_array(patch: pytest.MonkeyPatch) -> None:
    right = spellable._only_listed
    patch.setattr(
        spellable,
        "_only_listed",
        lambda schemas, formulas, layout: right(schemas, formulas, replace(layout, further_items=True)),
    )


def asks_for_no_other_name(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(spellable, "_asked_for", lambda formulas: ({}, []))


def asks_for_every_name(patch: pytest.MonkeyPatch) -> None:
    """It takes names of which the schema says nothing for names that it asks for."""
    right = spellable._asked_for
    patch.setattr(spellable, "_asked_for", lambda formulas: (right(formulas)[0], [TRUE]))


def asks_by_what_is_negated(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(spellable, "polarity", lambda formula: (formula.atoms, frozenset()))


def forgets_what_is_default(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(keywords, "AllMembers", lambda *parts: AllMembers(*parts[:3]))


def never_counts_blanks(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, frame: Any, read: int, key: Any) -> Any:
        return ((byte, key) for byte in self.layout.whitespace)

    patch.setattr(automaton.JsonSchemaAutomaton, "_whitespace", wrong)


FIRST_ASKED = len(PAIRS) - 6
MUTANTS: dict[Callable[[pytest.MonkeyPatch], None], int] = {
    spells_every_character: 0, forgets_the_order: 3, hopes_for_exponents: 9, hopes_for_digits: 49,
    writes_last_zeros: 0, escapes_every_character: 0, takes_any_second_byte: 36, lists_no_names_below: 27,
    closes_no_array: 29, never_counts_blanks: 0, asks_for_no_other_name: FIRST_ASKED,
    asks_for_every_name: FIRST_ASKED + 1, asks_by_what_is_negated: FIRST_ASKED + 5,
    forgets_what_is_default: FIRST_ASKED + 2,
}  # fmt: skip
"""Each with a pair in which it is seen, which is tried first: others may take long, and show nothing."""


@pytest.mark.parametrize("bend", MUTANTS, ids=[bend.__name__ for bend in MUTANTS])
def test_a_wrong_automaton_is_seen(bend: Callable[[pytest.MonkeyPatch], None], monkeypatch: Any) -> None:
    bend(monkeypatch)
    assert any(difference_of_pair(place) for place in (MUTANTS[bend], *range(len(PAIRS))))


def test_a_character_without_a_spelling_is_missed_by_the_judge_too(monkeypatch: Any) -> None:
    spells_every_character(monkeypatch)
    assert any(differences("ascii", number) for number in range(8))


# --------------------------------------------------------------------------------------------------- by name


def test_the_reference_takes_a_layout_by_its_name() -> None:
    assert {*LAYOUTS} == {*get_args(LayoutName)}
    grammar = Grammar("json_schema", json.dumps({"type": "object", "properties": {"b": True, "a": True}}))
    accepted = {}
    for name in LAYOUTS:
        adapter = Reference(load_vocabulary("bytes"), layout=name)
        texts = [b'{"b":1,"a":[1,2]}', b'{"b": 1, "a": [1, 2]}', b'{"a":1,"b":2}']
        accepted[name] = [reaches_an_end(adapter.compile(grammar), text) for text in texts]
    assert accepted == {
        "any": [True, True, True],
        "compact": [True, False, False],
        "spaced": [False, True, False],
    }


def reaches_an_end(compiled: Any, text: bytes) -> bool:
    grammar_object = compiled.start()
    return all(grammar_object.accept_token(byte) for byte in text) and grammar_object.is_accepting()


def test_ranges_of_characters_are_joined_and_cut() -> None:
    assert merged(((5, 9), (0, 2), (3, 4), (12, 12))) == ((0, 9), (12, 12))
    assert common(((0, 9), (12, 20)), ((4, 13), (20, 30))) == ((4, 9), (12, 13), (20, 20))


def test_the_order_of_names_does_not_hang_on_schemas_that_were_read_before() -> None:
    """Formulas are shared by all schemas of a process; the order in which they were made must not show."""
    lay = replace(COMPACT, unlisted="never")
    first, second = (
        {"properties": {name: {"type": kind}}, "required": [name]}
        for name, kind in (("unread", "integer"), ("read before", "boolean"))
    )

    def of(*alternatives: object) -> JsonSchemaAutomaton:
        schema = {"type": "object", "anyOf": alternatives, "unevaluatedProperties": {"type": "string"}}
        return json_schema_automaton(json.dumps(schema), layout=lay)

    of(second)
    both = of(first, second)
    for text, is_viable in ((b'{"unread":1,"read before":true}', True), (b'{"read before":true,', False)):
        assert (both.run(both.start, text) != DEAD) == is_viable


@pytest.mark.parametrize("behind", [True, False])
@pytest.mark.parametrize("kind", ["properties", "allOf", "$ref"])
def test_unevaluated_properties_leave_the_listed_order(kind: str, behind: bool) -> None:
    listed = {"properties": {"b": {"type": "integer"}, "a": {"type": "integer"}}}
    of_kind: dict[str, Any] = {"properties": listed["properties"], "allOf": [listed], "$ref": "#/$defs/x"}
    parts = [("unevaluatedProperties", False), (kind, of_kind[kind])]
    schema = dict(parts[:: -1 if behind else 1]) | {"$defs": {"x": listed}}
    own = json_schema_automaton(json.dumps(schema), layout=LAYOUTS["compact"])
    assert own.accepts(b'{"b":1,"a":1}') and not own.accepts(b'{"a":1,"b":1}')


@pytest.mark.parametrize(
    "nothing", ["true", "{}", '{"$ref": "#/$defs/it"}', '{"allOf": [{"$ref": "#/$defs/it"}]}']
)
def test_items_of_which_nothing_is_asked_are_left_out_also_where_a_reference_says_so(nothing: str) -> None:
    schema = f'{{"prefixItems": [{{"type": "null"}}], "items": {nothing}, "$defs": {{"it": true}}}}'
    language = json_schema_automaton(schema, layout=replace(COMPACT, unlisted="never", further_items=False))
    assert language.accepts(b"[null]") and not language.accepts(b"[null,1]")


@pytest.mark.parametrize(
    "never", ["false", '{"not": {}}', '{"$ref": "#/$defs/no"}', '{"allOf": [{"$ref": "#/$defs/no"}]}']
)
def test_an_alternative_without_other_names_is_one_also_where_a_reference_says_so(never: str) -> None:
    one, other = (
        f'{{"properties": {{{names}}}, "additionalProperties": {never}}}'
        for names in ('"a": true, "b": true', '"c": true, "a": true')
    )
    schema = f'{{"anyOf": [{one}, {other}], "$defs": {{"no": false}}}}'
    language = json_schema_automaton(schema, layout=replace(COMPACT, alternatives_agree=True))
    assert language.accepts(b'{"c":1,"a":1}') and not language.accepts(b'{"a":1,"c":1}')
