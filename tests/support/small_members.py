"""Objects in small styles of XML: which texts stand for an object of a schema, told by the definition of
docs/structural_tags.md and not by an automaton."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from all_texts import all_texts
from jsonschema import Draft202012Validator

from harness.oracle.tag_formats.styles import ANY, OTHERS, Middle, Style

WHITE = " \t\n\r"
SMALL_STYLES = {
    "plain": Style(b"(", b")]", b"=", (Middle(b"=", ANY),)),
    "spaced": Style(b"(", b")", b"=]", (Middle(b"=](", ANY, space_at=2),)),
    "typed": Style(
        b"(",
        b")",
        b"=",
        (Middle(b"=s:", ("string",)), Middle(b"=j:", OTHERS)),
        entities=((b"&", b"&a"), (b"=", b"&e")),
    ),
}
KINDS = {bool: "boolean", int: "number", float: "number", dict: "object", list: "array", type(None): "null"}


Members = list[tuple[str, Any]]


def readings(text: str, style: Style) -> Iterator[Members]:
    """Yields the members of the objects that a text may stand for in a style."""
    text = text.lstrip(WHITE)
    before, behind, name_end = (each.decode() for each in (style.before, style.behind, style.name_end))
    if not text:
        yield []
    if not text.startswith(before):
        return
    name, found, _ = text[len(before) :].partition(name_end)
    at = len(before) + len(name)
    if not found or (plain := plain_name(name, style)) is None:
        return
    for middle in style.middles:
        if match := re.match(pattern_of(middle), text[at:]):
            value, found, rest = text[at + match.end() :].partition(behind)
            for members in readings(rest, style) if found else ():
                yield from ([(plain, each), *members] for each in values(value, middle))


def plain_name(name: str, style: Style) -> str | None:
    """Returns the name that is written so; None if no name is."""
    plain = ""
    entities = {written.decode(): meant.decode() for meant, written in style.entities}
    while name:
        written = next((each for each in entities if name.startswith(each)), name[0])
        if written not in entities and written in entities.values():
            return None
        plain, name = plain + entities.get(written, written), name[len(written) :]
    return plain


def pattern_of(middle: Middle) -> str:
    text = middle.text.decode()
    if middle.space_at is None:
        return re.escape(text)
    return f"{re.escape(text[: middle.space_at])}[{WHITE}]*{re.escape(text[middle.space_at :])}"


def values(text: str, middle: Middle) -> Iterator[Any]:
    """Yields the values that a text may stand for."""
    if "string" in middle.readings:
        before = len(text) - len(text.lstrip(WHITE))
        behind = len(text.rstrip(WHITE))
        if behind < before:  # white space only
            yield from {text[first:last] for last in range(len(text) + 1) for first in range(last + 1)}
        else:
            yield from (
                text[first:last] for first in range(before + 1) for last in range(behind, len(text) + 1)
            )
    try:
        value = json.loads(text.strip(WHITE))
    except ValueError:
        return
    if not isinstance(value, str) and KINDS[type(value)] in middle.readings:
        yield value


def is_right(text: str, style: Style, schema: dict[str, Any]) -> bool | None:
    """Returns whether a text stands for an object that is valid by the schema; None where that hangs on a
    name that comes twice and that the schema does not list, which the definition leaves open."""
    judge = Draft202012Validator(schema)
    is_open = False
    for members in readings(text, style):
        names = [name for name, _ in members]
        twice = {name for name in names if names.count(name) > 1}
        if not twice and judge.is_valid(dict(members)):
            return True
        is_open |= bool(twice) and twice.isdisjoint(schema.get("properties", {}))
    return None if is_open else False


NAMES = ("a", "b", "", "c")
SCHEMAS: tuple[dict[str, Any], ...] = (
    {"properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False},
    {"properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "additionalProperties": False},
    {"properties": {"a": {"enum": ["1", 1, "x)", ""]}, "b": {}}, "additionalProperties": False},
    {"properties": {"a": {"const": "x)]"}, "b": {"type": "null"}}, "additionalProperties": False},
    {
        "properties": {"a": {"maxLength": 1}, "b": {"pattern": "^1"}},
        "additionalProperties": {"type": "array"},
    },
    {"additionalProperties": {"type": "boolean"}, "minProperties": 1},
    {
        "properties": {"a": {"anyOf": [{"type": "string", "minLength": 2}, {"minimum": 2}]}},
        "maxProperties": 1,
    },
    {
        "properties": {"a": {"items": {"const": ")]"}}, "=": {"type": "number"}},
        "dependentRequired": {"a": ["b"]},
    },
)


def small_texts(style: Style) -> Iterator[str]:
    """Yields texts of up to two members, whole and cut, with small names and values."""
    before, behind = style.before.decode(), style.behind.decode()
    middles = [middle.text.decode() for middle in style.middles]
    if any(middle.space_at for middle in style.middles):
        middles.append(middles[0].replace("](", "] ("))
    many = [
        *all_texts("1x) ", 3),
        "null",
        "true",
        "[]",
        "[1]",
        '[")]"]',
        '"1"',
        "{}",
        "2",
        "12",
        " [ ] ",
        ")]x",
        "x)]",
    ]
    few = ("1", "x", "", "null", "[]")
    names = (*NAMES, "&e", "&a", "=")
    members = [
        before + name + middle + value + behind for name in names for middle in middles for value in many
    ]
    yield from members
    yield from (member[:-1] for member in members)
    yield from ("", " ", "\n", ")", before, *(f" {member}\n" for member in members[::7]))
    shorter = [
        before + name + middle + value + behind for name in NAMES for middle in middles for value in few
    ]
    yield from (first + between + second for first in shorter for second in shorter for between in ("", " "))
