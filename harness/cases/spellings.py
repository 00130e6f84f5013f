"""Makes the spellings of a JSON document: other texts for the same value, each different in one way.

Whitespace, the order of names, escapes and number forms mean nothing in JSON; a backend that refuses one of
them constrains more than the schema does, which it may document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Literal, NamedTuple

from harness.cases.case import Case, Instance
from harness.cases.spelled_json import (
    COMPACT,
    SPACED,
    Name,
    Style,
    Text,
    Value,
    document_text,
    read_document,
)

Family = Literal["whitespace", "property_order", "escapes", "number_forms"]

RAW_DELETE = "raw_delete_character"
"""The name of the cause of a refusal where U+007F (delete) stands unescaped in a string, which RFC 8259
allows."""

LONGEST_PLAIN = 40
"""Digits before the point, or zeros behind it, from which on a number keeps its exponent."""

BASES = ("compact", "spaced")
"""The layouts in which everything else is spelled."""
LAYOUTS: dict[str, Style] = {
    "compact": COMPACT,
    "spaced": SPACED,
    "indented_2": Style(",", ": ", "  "),
    "indented_4": Style(",", ": ", "    "),
    "indented_tab": Style(",", ": ", "\t"),
    "indented_crlf": Style(",", ": ", "  ", "\r\n"),
    "padded": Style(" , ", " : ", padding=" "),
    "blanks_16": Style("," + 16 * " ", ":" + 16 * " "),
}


# Strings


def plain_string(text: str) -> str:
    """Returns the string with as few escapes as JSON allows, short ones where there are any; a lone surrogate
    is escaped."""
    return _escaped(json.dumps(text, ensure_ascii=False), re.compile("[\ud800-\udfff]"))


def _escaped(quoted: str, characters: re.Pattern[str]) -> str:
    """Returns the string with those characters as `\\uXXXX`; one beyond the first plane becomes two
    surrogates."""
    return characters.sub(lambda match: json.dumps(match[0])[1:-1], quoted)


_UNICODE_ESCAPE = re.compile(r"\\(u[0-9a-f]{4}|.)")
_SHORT_ESCAPE = re.compile(r'\\([bfnrt"\\])')
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_CODES = {"b": 8, "f": 12, "n": 10, "r": 13, "t": 9, '"': 34, "\\": 92}


def _first_escaped(text: Text, is_name: bool) -> str:
    """Returns the string with its first letter escaped, either in names only or in values only."""
    quoted = plain_string(text)
    return _first_letter_escaped(quoted) if isinstance(text, Name) == is_name else quoted


def _first_letter_escaped(quoted: str) -> str:
    return re.sub(r'^"([A-Za-z0-9])', lambda match: f'"\\u{ord(match[1]):04x}', quoted)


def _long_escapes(quoted: str) -> str:
    return _SHORT_ESCAPE.sub(lambda match: f"\\u{_CODES[match[1]]:04x}", quoted)


def _upper_escapes(quoted: str) -> str:
    return _UNICODE_ESCAPE.sub(
        lambda match: "\\u" + match[1][1:].upper() if len(match[1]) == 5 else match[0], quoted
    )


STRINGS: dict[str, Callable[[Text], str]] = {
    "raw": plain_string,
    "escaped_non_ascii": lambda text: _escaped(plain_string(text), _NOT_ASCII),
    "escaped_upper_hex": lambda text: _upper_escapes(_escaped(plain_string(text), _NOT_ASCII)),
    "escaped_slash": lambda text: plain_string(text).replace("/", "\\/"),
    "escaped_value": lambda text: _first_escaped(text, False),
    "escaped_name": lambda text: _first_escaped(text, True),
    "long_escapes": lambda text: _long_escapes(plain_string(text)),
}


# Numbers


def _as_fraction(literal: str) -> str:
    return f"{literal}.0" if re.fullmatch("-?[0-9]+", literal) else literal


def _with_trailing_zero(literal: str) -> str:
    return f"{literal}0" if re.fullmatch(r"-?[0-9]+\.[0-9]+", literal) else literal


def _with_exponent(suffix: str) -> Callable[[str], str]:
    return lambda literal: literal if "e" in literal.lower() else literal + suffix


def _shifted(literal: str) -> str:
    """Returns an integer multiplied by ten with a tenth as exponent: `12` as `120e-1`."""
    return f"{literal}0e-1" if re.fullmatch("-?[1-9][0-9]*", literal) else literal


def _negative_zero(literal: str) -> str:
    return "-0" if literal == "0" else literal


def plain_number(literal: str) -> str:
    """Returns the number without exponent and trailing zeros, if that is not long."""
    try:
        value = Decimal(literal)
    except InvalidOperation:
        return literal
    if not value:
        return "0"
    if abs(value.adjusted()) >= LONGEST_PLAIN:
        return literal  # the zeros at its end may be those of its exponent
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


NUMBERS: dict[str, Callable[[str], str]] = {
    "plain_number": plain_number,
    "fraction_zero": _as_fraction,
    "trailing_zero": _with_trailing_zero,
    "exponent_zero": _with_exponent("e0"),
    "exponent_upper": _with_exponent("E+0"),
    "exponent_negative": _shifted,
    "negative_zero": _negative_zero,
}


# All of them


def reordered(value: Value, order: Callable[[list[Name]], list[Name]]) -> Value:
    if isinstance(value, dict):
        return {name: reordered(value[name], order) for name in order(list(value))}
    return [reordered(item, order) for item in value] if isinstance(value, list) else value


ORDERS: dict[str, Callable[[list[Name]], list[Name]]] = {
    "reversed_names": lambda names: names[::-1],
    "sorted_names": sorted,
}

FAMILY: Mapping[str, Family] = {
    **dict.fromkeys((*LAYOUTS, "leading_space", "trailing_newline"), "whitespace"),
    **dict.fromkeys(ORDERS, "property_order"),
    **dict.fromkeys(STRINGS, "escapes"),
    **dict.fromkeys(NUMBERS, "number_forms"),
}
"""The family of each spelling, which is what a backend's documentation speaks of."""


PLAIN = "plain"
"""The name of the spelling in a layout that changes nothing else."""


def layouts(value: Value) -> dict[str, bytes]:
    """Returns the document in every layout, by name; a layout in which it is written as in one before is left
    out, because whoever takes it there says nothing of that layout."""
    return _each_once({name: document_text(value, style) for name, style in LAYOUTS.items()})


def respelled(value: Value, layout: Style) -> dict[str, bytes]:
    """Returns the document in one layout with all else spelled in every way that changes something, by
    name."""
    plain = document_text(value, layout)
    texts = {"leading_space": b" " + plain, "trailing_newline": plain + b"\n"}
    texts |= {name: document_text(reordered(value, order), layout) for name, order in ORDERS.items()}
    texts |= {name: document_text(value, layout._replace(string=string)) for name, string in STRINGS.items()}
    texts |= {name: document_text(value, layout._replace(number=number)) for name, number in NUMBERS.items()}
    return _each_once({name: text for name, text in texts.items() if text != plain})


def layout_of(content: bytes, value: Value) -> Style:
    """Returns the layout in which the document is written, whatever its escapes; compact if it is none of
    ours."""
    bare = _SCALAR.sub(b"_", content)
    return next(
        (style for style in LAYOUTS.values() if _SCALAR.sub(b"_", document_text(value, style)) == bare),
        COMPACT,
    )


_SCALAR = re.compile(rb'"(?:[^"\\]|\\.)*"|[^\s"{}\[\],:]+', re.DOTALL)


def _each_once(texts: dict[str, bytes]) -> dict[str, bytes]:
    """Returns the texts, each by the first of its names."""
    names = {text: name for name, text in reversed(texts.items())}
    return {name: text for name, text in texts.items() if names[text] == name}


# A suite of them


class SpelledName(NamedTuple):
    """What the name of an instance that `spelled` made says of it."""

    layout: str
    spelling: str
    document: int
    """The number of the instance that was spelled so."""

    def __str__(self) -> str:
        return f"{self.layout} {self.spelling} {self.document}"

    @classmethod
    def parse(cls, name: str) -> SpelledName:
        """Returns what `str` made the name of. Raises ValueError if it is the name of another instance."""
        layout, spelling, document = name.split(" ")
        if layout not in FAMILY or spelling not in (PLAIN, *FAMILY):
            raise ValueError(f"{name!r} names no spelling")
        return cls(layout, spelling, int(document))


def spelled(case: Case) -> Case:
    """Returns the case with the spellings of its valid instances as instances, which nobody has judged yet;
    run as any other case.

    Names, escapes and numbers are spelled in two layouts, because a backend may insist on one.
    """
    respellings: list[Instance] = []
    for number, instance in enumerate(case.instances):
        try:
            value = read_document(instance.content) if instance.valid else None
        except ValueError:
            continue
        if instance.valid:
            plain = layouts(value)
            texts = {(name, PLAIN): text for name, text in plain.items()}
            texts |= {
                (layout, name): text
                for layout in BASES
                if layout in plain
                for name, text in respelled(value, LAYOUTS[layout]).items()
            }
            respellings += [
                Instance(str(SpelledName(layout, name, number)), text, None)
                for (layout, name), text in texts.items()
            ]
    return replace(case, instances=tuple(respellings))
