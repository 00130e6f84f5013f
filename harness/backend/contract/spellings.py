"""Spellings of JSON that tell layouts apart: what a backend's layout says of each, and what it allows."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.backend.contract.place import NotApplicable, spell
from harness.backend.grammar import Adapter, Grammar, InvalidGrammar, UnsupportedGrammar
from harness.backend.layout import Layout


@dataclass(frozen=True)
class Spelling:
    """A document of a schema, in a spelling that some layouts have."""

    name: str
    schema: Any
    text: str
    """The document, with no white space but what the spelling is about."""
    is_in: Callable[[Layout], bool]
    is_about_space: bool = False

    def text_in(self, layout: Layout | None) -> str:
        """Returns the text with the separators of the layout, unless it is about these."""
        if self.is_about_space or layout is None or layout.separators is None:
            return self.text
        comma, colon = (separator.decode() for separator in layout.separators)
        return self.text.replace(",", f",{comma}").replace(":", f":{colon}")


@dataclass(frozen=True)
class Kept:
    """What became of a spelling."""

    name: str
    text: str
    declared: bool | None
    """The backend's layout has it; None where it declares no layout."""
    allowed: bool | None
    """The backend accepts it; None where it declines the schema or is lost, or the vocabulary lacks a
    byte."""
    lost: str = ""
    """How the backend was lost over it, in one line."""


def _has_space(characters: str) -> Callable[[Layout], bool]:
    """Returns whether a layout has such a run of white space anywhere between two tokens of JSON."""

    def is_in(layout: Layout) -> bool:
        return (
            layout.separators is None
            and all(ord(character) in layout.whitespace for character in characters)
            and (layout.longest_run is None or len(characters) <= layout.longest_run)
        )

    return is_in


def _has_separators(comma: bytes, colon: bytes) -> Callable[[Layout], bool]:
    def is_in(layout: Layout) -> bool:
        if layout.separators is not None:
            return layout.separators == (comma, colon)
        return not (comma or colon) or _has_space(" ")(layout)

    return is_in


def _is_any(_: Layout) -> bool:
    return True


def _has_raw(point: int) -> Callable[[Layout], bool]:
    return lambda layout: any(first <= point <= last for first, last in layout.raw)


def _has_escape(letter: str) -> Callable[[Layout], bool]:
    return lambda layout: ord(letter) in layout.short_escapes


def _has_hex(point: int) -> Callable[[Layout], bool]:
    return lambda layout: any(first <= point <= last for first, last in layout.hex_escapes)


def _has_order(*orders: str) -> Callable[[Layout], bool]:
    return lambda layout: layout.order in orders


OBJECT = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["b"],
    "additionalProperties": True,
}
STRING, LIMITED, PATTERN = ({"type": "string", **more} for more in ({}, {"maxLength": 9}, {"pattern": "."}))
NUMBER, INTEGER = {"type": "number"}, {"type": "integer"}
ONE = {"type": "object", "properties": {"b": INTEGER}, "required": ["b"]}
LIST = {"type": "object", "properties": {"b": {"type": "array", "items": INTEGER}}, "required": ["b"]}

SPELLINGS = (
    Spelling("no white space", LIST, '{"b":[1,2]}', _has_separators(b"", b""), True),
    Spelling("a blank behind , and :", LIST, '{"b": [1, 2]}', _has_separators(b" ", b" "), True),
    Spelling("a blank before a colon", ONE, '{"b" :2}', _has_space(" "), True),
    Spelling("a blank inside of brackets", ONE, '{ "b":2 }', _has_space(" "), True),
    Spelling("a blank in a constant", {"const": [1, 2]}, "[1 ,2]", _has_space(" "), True),
    Spelling("two blanks", ONE, '{"b":  2}', _has_space("  "), True),
    Spelling("forty blanks", ONE, '{"b":' + 40 * " " + "2}", _has_space(40 * " "), True),
    Spelling("a tab", ONE, '{"b":\t2}', _has_space("\t"), True),
    Spelling("a line feed", ONE, '{"b":\n2}', _has_space("\n"), True),
    Spelling("a carriage return", ONE, '{"b":\r2}', _has_space("\r"), True),
    Spelling("a blank before the document", INTEGER, " 1", lambda layout: layout.is_surrounded),
    Spelling("a blank behind the document", ONE, '{"b":2} ', lambda layout: layout.is_surrounded),
    Spelling("names in the schema's order", OBJECT, '{"a":1,"b":2}', _has_order("any", "listed")),
    Spelling("required names before others", OBJECT, '{"b":2,"a":1}', _has_order("any", "required_first")),
    Spelling("other names at the end", OBJECT, '{"b":2,"x":0}', lambda layout: layout.unlisted != "never"),
    Spelling("other names in front", OBJECT, '{"x":0,"b":2}', lambda layout: layout.unlisted == "anywhere"),
    Spelling("an item behind the listed ones", {"prefixItems": [INTEGER]}, "[1,2]", lambda layout: (
        layout.further_items)),
    Spelling("a raw é", STRING, '"é"', _has_raw(0xE9)),
    Spelling("a raw U+007F", STRING, '"\x7f"', _has_raw(0x7F)),
    Spelling("the escape \\n", STRING, r'"\n"', _has_escape("n")),
    Spelling("the escape \\n beside maxLength", LIMITED, r'"\n"', _has_escape("n")),
    Spelling("the escape \\t beside pattern", PATTERN, r'"\t"', _has_escape("t")),
    Spelling("the escape \\n in a name", OBJECT, r'{"b":2,"\n":0}', lambda layout: (
        layout.unlisted != "never" and _has_escape("n")(layout))),
    Spelling("the escape \\/", STRING, r'"\/"', _has_escape("/")),
    Spelling("the escape \\u001f", STRING, r'"\u001f"', _has_hex(0x1F)),
    Spelling("the escape \\u0041", STRING, r'"\u0041"', _has_hex(0x41)),
    Spelling("a surrogate pair", STRING, r'"\ud83d\ude00"', _has_hex(0x1F600)),
    Spelling("an integer", NUMBER, "12", _is_any),
    Spelling("a fraction", NUMBER, "1.5", _is_any),
    Spelling("a fraction that ends with 0", NUMBER, "1.50", lambda layout: layout.has_last_zeros),
    Spelling("1.0 for a number", NUMBER, "1.0", lambda layout: not layout.integers_are_digits),
    Spelling("1.0 for an integer", INTEGER, "1.0", lambda layout: not layout.integers_are_digits),
    Spelling("-0", INTEGER, "-0", lambda layout: layout.has_minus_zero),
    Spelling("an exponent", NUMBER, "1.5e5", lambda layout: (
        layout.exponents == "any" and not layout.integers_are_digits)),
    Spelling("an exponent with a sign", NUMBER, "1.5e+5", lambda layout: (
        layout.exponents != "none" and not layout.integers_are_digits)),
)  # fmt: skip


def kept(adapter: Adapter, spelling: Spelling) -> Kept:
    """Returns what the adapter's layout says of a spelling, and whether the backend allows it."""
    declared = None if adapter.layout is None else spelling.is_in(adapter.layout)
    text = spelling.text_in(adapter.layout)
    try:
        tokens = spell(adapter.vocabulary, text.encode())
        grammar_object = adapter.compile(Grammar("json_schema", json.dumps(spelling.schema))).start()
    except (UnsupportedGrammar, InvalidGrammar, NotApplicable):
        return Kept(spelling.name, text, declared, None)
    allowed = grammar_object.accept_tokens(tokens) == len(tokens) and bool(grammar_object.is_accepting())
    return Kept(spelling.name, text, declared, allowed)
