"""Documents as Gemma writes them: which texts stand for a document of a schema, told by the definition of
docs/structural_tags.md and not by an automaton."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator

QUOTE = '<|"|>'
WHITE = " \t\n\r"
SCALAR = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?|true|false|null")


class Reader:
    """Reads one document; raises ValueError where the text is none."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.has_twice = text, 0, False

    def document(self) -> Any:
        value = self.value()
        self.white()
        if self.at != len(self.text):
            raise ValueError
        return value

    def white(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in WHITE:
            self.at += 1

    def takes(self, text: str) -> bool:
        is_there = self.text.startswith(text, self.at)
        self.at += len(text) * is_there
        return is_there

    def value(self) -> Any:
        self.white()
        if self.takes(QUOTE):
            end = self.text.index(QUOTE, self.at)
            content, self.at = self.text[self.at : end], end + len(QUOTE)
            return content
        if self.takes("{"):
            return dict(self.until("}", self.member))
        if self.takes("["):
            return list(self.until("]", self.value))
        if (scalar := SCALAR.match(self.text, self.at)) is None:
            raise ValueError
        self.at = scalar.end()
        return json.loads(scalar[0])

    def until(self, end: str, one: Any) -> Iterator[Any]:
        self.white()
        if self.takes(end):
            return
        names = set()
        while True:
            found = one()
            if end == "}":
                self.has_twice |= found[0] in names
                names.add(found[0])
            yield found
            self.white()
            if self.takes(end):
                return
            if not self.takes(","):
                raise ValueError

    def member(self) -> tuple[str, Any]:
        name, colon, _ = self.text[self.at :].partition(":")
        plain = name.strip(WHITE)
        if not colon or plain.startswith(",") or set(plain) & set("{}[]"):
            raise ValueError
        self.at += len(name) + 1
        return plain, self.value()


def is_right(text: str, schema: dict[str, Any]) -> bool | None:
    """Returns whether a text stands for a document that is valid by the schema; None where an object has a
    name twice, which the definition leaves open where the schema does not list it."""
    reader = Reader(text)
    try:
        value = reader.document()
    except ValueError:
        return False
    return None if reader.has_twice else Draft202012Validator(schema).is_valid(value)


SCHEMAS: tuple[dict[str, Any], ...] = (
    {"properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False},
    {"properties": {"a": {"type": "integer"}, "b b": {"maxLength": 1}}, "additionalProperties": False},
    {"properties": {"a": {"enum": ['x"', "<|", 1, ["x"]]}}, "type": "object", "minProperties": 1},
    {"properties": {"a": {"const": QUOTE}, "b": {}}, "type": "object", "additionalProperties": False},
    {"properties": {"a": {"properties": {"a": {"type": "string"}}, "additionalProperties": False}}},
    {"items": {"pattern": "^x"}, "type": ["array", "string"]},
    {"additionalProperties": {"items": {"type": "string"}, "type": "array"}, "type": "object"},
    {"propertyNames": {"pattern": "^[a:]$"}, "type": "object"},
)
PIECES = (
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    " ",
    QUOTE,
    '<|"',
    "a",
    "b b",
    "x",
    '"',
    "1",
    "1.0",
    "null",
    "\n",
    "é",
)


def written(dice: random.Random, depth: int = 2) -> list[str]:
    """Returns the pieces of a small document."""
    kind = dice.choice("ssnss{{{[[" if depth else "sns")
    if kind == "{":
        members = [
            [dice.choice(("a", "b b", "b", "c", "", "a ", "\na")), ":", *written(dice, depth - 1)]
            for _ in range(dice.randrange(3))
        ]
        return ["{", *_joined(members), "}"]
    if kind == "[":
        return ["[", *_joined([written(dice, depth - 1) for _ in range(dice.randrange(3))]), "]"]
    if kind == "n":
        return [dice.choice(("1", "1.0", "null", "true", "-3"))]
    return [QUOTE, *dice.choices(('"', "x", "<|", "|>", " ", "\n", "é", ","), k=dice.randrange(3)), QUOTE]


def _joined(parts: list[list[str]]) -> list[str]:
    return [piece for number, part in enumerate(parts) for piece in ([","] if number else []) + part]


def small_texts(seed: int, count: int) -> Iterator[str]:
    """Yields small documents, and such in which a piece was left out, put in or replaced."""
    dice = random.Random(seed)
    for _ in range(count):
        pieces = written(dice)
        yield "".join(pieces)
        for _ in range(dice.randrange(1, 3)):
            at = dice.randrange(len(pieces) + 1)
            pieces[at : at + dice.randrange(2)] = dice.choices(PIECES, k=dice.randrange(2))
        yield "".join(pieces)
