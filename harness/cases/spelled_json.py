"""JSON as it is spelled: a document whose strings and numbers keep their literals, read, and written in a
style."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from harness.oracle.judge.strict_json import no_constant

MOST_BYTES = 1 << 16
"""The most bytes of a document that is read."""
DEEPEST = 200
"""The most levels of nesting in it."""


@dataclass(frozen=True)
class Number:
    """A number as it is spelled."""

    literal: str


class Text(str):
    """A string, and how it is spelled."""

    literal: str

    def __new__(cls, literal: str) -> Self:
        text = super().__new__(cls, json.loads(literal))
        text.literal = literal
        return text


class Name(Text):
    """A property's name, apart from the strings that are values."""


Value = Any
"""An object (dict by Name), array (list), Text, Number, True, False or None."""


class Style(NamedTuple):
    """How whitespace, strings and numbers are written."""

    comma: str = ","
    colon: str = ":"
    indent: str | None = None
    newline: str = "\n"
    padding: str = ""
    """Whitespace inside brackets that are not empty."""
    string: Callable[[Text], str] = lambda text: text.literal
    number: Callable[[str], str] = lambda literal: literal


COMPACT = Style()
SPACED = Style(", ", ": ")


def read_document(content: bytes) -> Value:
    """Returns the document as it is spelled.

    Raises ValueError for what is none, is too large or names a property twice.
    """
    if len(content) > MOST_BYTES:
        raise ValueError("too large to be spelled again")
    literals: list[str] = []

    def numbered(match: re.Match[str]) -> str:
        literals.append(match[0])
        return f'"{len(literals) - 1}"'

    skeleton = _STRING.sub(numbered, content.decode("utf-8"))
    try:
        value = json.loads(skeleton, parse_float=Number, parse_int=Number, parse_constant=no_constant)
    except RecursionError as error:
        raise ValueError("nests too deeply") from error
    if _depth(value) > DEEPEST:
        raise ValueError("nests too deeply")
    return _filled(value, literals)


_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


def _filled(value: Any, literals: list[str]) -> Value:
    """Returns the value with its strings in the place of the numbers that stand for them."""
    if isinstance(value, dict):
        members = {Name(literals[int(name)]): _filled(member, literals) for name, member in value.items()}
        if len(members) < len(value):
            raise ValueError("a name twice in one object")
        return members
    if isinstance(value, list):
        return [_filled(item, literals) for item in value]
    return Text(literals[int(value)]) if isinstance(value, str) else value


def _depth(value: Value) -> int:
    deepest, stack = 0, [(value, 1)]
    while stack:
        inner, depth = stack.pop()
        deepest = max(deepest, depth)
        if isinstance(inner, dict | list):
            stack += [(below, depth + 1) for below in (inner.values() if isinstance(inner, dict) else inner)]
    return deepest


def document_text(value: Value, style: Style) -> bytes:
    """Returns the document in a style."""
    return "".join(_parts(value, style, 0)).encode("utf-8")


def _parts(value: Value, style: Style, depth: int) -> Iterator[str]:
    match value:
        case Number(literal):
            yield style.number(literal)
        case Text():
            yield style.string(value)
        case dict() | list():
            yield from _container(value, style, depth)
        case _:
            yield json.dumps(value)


def _container(value: dict[Name, Value] | list[Value], style: Style, depth: int) -> Iterator[str]:
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    yield opening
    if value:
        inner = style.padding if style.indent is None else style.newline + style.indent * (depth + 1)
        outer = style.padding if style.indent is None else style.newline + style.indent * depth
        between = style.comma if style.indent is None else style.comma + inner
        yield inner
        for number, member in enumerate(value):
            if number:
                yield between
            if isinstance(value, dict):
                yield style.string(member) + style.colon
                yield from _parts(value[member], style, depth + 1)
            else:
                yield from _parts(member, style, depth + 1)
        yield outer
    yield closing
