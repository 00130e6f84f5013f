"""The axes along which cost grows: one function `grow_<axis>` each, which returns the grammar of a size and
an output that it allows. A new function is a new axis; nothing else has to name it.

The size is the only thing that changes along an axis. Where a figure of the mask is wanted, the output is as
long as the grammar makes it, or short and the same at all sizes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.backend.grammar import Dialect, Grammar
from harness.errors import BadInput, did_you_mean

MOST = 1024
"""The largest size of an axis, unless its function says otherwise."""

LONGEST_OUTPUT = 2048
"""The largest position in an output that is measured."""

SCHEMAS = "schemas"
"""The axis that is no family of grammars: so many different schemas are compiled in one process."""

MARKERS = ("<!--", "```")
"""What a text may not contain along the axis `excluded`. Both are tokens of `probe` and of most tokenizers:
an excluded text that is a token cost one library more with every token of the output (docs/growth.md)."""


@dataclass(frozen=True)
class GrownCase:
    """One size of an axis."""

    grammar: Grammar
    text: bytes
    """An output that the grammar allows, or the beginning of one."""
    position: int | None = None
    """The number of tokens after which masks are timed; None for places all over the text."""


@dataclass(frozen=True)
class Axis:
    """A family of grammars."""

    name: str
    about: str
    """What the size counts, in one sentence: the first line of the function's docstring."""
    grow: Callable[[int], GrownCase]
    largest: int
    dialect: Dialect
    """The dialect of its grammars: a warm-up compiles another grammar of the same dialect first."""
    is_position: bool
    """Whether the size is a position in the output, and the grammar the same at all sizes."""

    def sizes(self, most: int | None) -> tuple[int, ...]:
        """Returns the powers of two up to the axis's largest size, or up to `most`."""
        top = self.largest if most is None else most
        return tuple(2**power for power in range(top.bit_length()) if 2**power <= top)


def largest(size: int) -> Callable[[Callable[[int], GrownCase]], Callable[[int], GrownCase]]:
    """Returns a decorator that gives an axis another largest size than MOST."""

    def mark(grow: Callable[[int], GrownCase]) -> Callable[[int], GrownCase]:
        grow.__dict__["largest"] = size
        return grow

    return mark


def axes() -> dict[str, Axis]:
    """Returns every axis by its name, in the order in which they stand here."""
    found = {}
    for name, grow in vars(sys.modules[__name__]).items():
        if name.startswith("grow_"):
            axis = name.removeprefix("grow_")
            about = (grow.__doc__ or "").split("\n\n")[0].replace("\n    ", " ")
            one = grow(1)
            largest_size = getattr(grow, "largest", MOST)
            is_position = one.position is not None
            found[axis] = Axis(axis, about, grow, largest_size, one.grammar.dialect, is_position)
    return found


def chosen_axes(names: tuple[str, ...]) -> list[str]:
    """Returns the axes of these names, or all of them and `schemas` if none is named. Raises BadInput."""
    known = [*axes(), SCHEMAS]
    for name in names:
        if name not in known:
            raise BadInput(f'there is no axis "{name}"{did_you_mean(name, known)}')
    return [name for name in known if not names or name in names]


def _json_schema(schema: Any) -> Grammar:
    return Grammar("json_schema", json.dumps(schema))


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _arguments(number: int) -> dict[str, Any]:
    """Returns the schema of a tool's arguments: of each tool another one, with three properties."""
    return _object(
        {
            f"city_{number}": {"type": "string"},
            f"days_{number}": {"type": "integer"},
            "unit": {"enum": ["celsius", "fahrenheit"]},
        }
    )


def _call(number: int) -> dict[str, Any]:
    return {f"city_{number}": "Paris", f"days_{number}": 3, "unit": "celsius"}


def grow_tools(n: int) -> GrownCase:
    """Tools in one JSON Schema: a call of one of n tools, each with arguments of its own."""
    tools = [
        _object({"name": {"const": f"tool_{number}"}, "arguments": _arguments(number)}) for number in range(n)
    ]
    last = n - 1
    return GrownCase(
        _json_schema({"anyOf": tools}), _compact({"name": f"tool_{last}", "arguments": _call(last)})
    )


def grow_tags(n: int) -> GrownCase:
    """Tools in one structural tag: free text with calls of n tools, each in a tag of its own."""
    tags = [
        {"begin": f"<function=tool_{number}>", "schema": _arguments(number), "end": "</function>"}
        for number in range(n)
    ]
    grammar = Grammar("structural_tag", json.dumps({"triggers": ["<function="], "structures": tags}))
    last = n - 1
    call = _compact(_call(last)).decode()
    return GrownCase(grammar, f"I look. <function=tool_{last}>{call}</function>".encode())


def grow_properties(n: int) -> GrownCase:
    """Properties of one object: n of them, all required."""
    properties = {f"property_{number}": {"type": "string"} for number in range(n)}
    return GrownCase(_json_schema(_object(properties)), _compact(dict.fromkeys(properties, "x")))


def grow_optional(n: int) -> GrownCase:
    """Properties of one object that may be left out: n of them, none required."""
    properties = {f"property_{number}": {"type": "string"} for number in range(n)}
    schema = _object(properties) | {"required": []}
    return GrownCase(_json_schema(schema), _compact({f"property_{n - 1}": "x"}))


def grow_enum(n: int) -> GrownCase:
    """Values of one enum: n strings with the same beginning."""
    values = [f"value number {number}" for number in range(n)]
    return GrownCase(_json_schema({"enum": values}), _compact(values[-1]))


def grow_nesting(n: int) -> GrownCase:
    """Objects in objects, n deep; each level has one required property and one string beside it."""
    schema, text = '{"type":"integer"}', "1"
    for _ in range(n):
        schema = (
            '{"type":"object","properties":{"name":{"type":"string"},"child":' + schema + "},"
            '"required":["name","child"],"additionalProperties":false}'
        )
        text = '{"name":"x","child":' + text + "}"
    return GrownCase(Grammar("json_schema", schema), text.encode())


@largest(16384)
def grow_maxLength(n: int) -> GrownCase:
    """The maxLength of one string: n characters; the output has at most four."""
    schema = _object({"text": {"type": "string", "maxLength": n}})
    return GrownCase(_json_schema(schema), _compact({"text": "abcd"[: min(n, 4)]}))


@largest(16384)
def grow_repetition(n: int) -> GrownCase:
    """A counted repetition in a regex: n times a letter and a digit at most; the output has at most four."""
    return GrownCase(Grammar("regex", f"([a-z][0-9]){{1,{n}}}"), b"a1b2c3d4"[: 2 * min(n, 4)])


def grow_items(n: int) -> GrownCase:
    """The maxItems of one array of small objects: n of them; the output has at most four."""
    schema = {"type": "array", "items": _object({"id": {"type": "integer"}}), "minItems": 1, "maxItems": n}
    return GrownCase(_json_schema(schema), _compact([{"id": 7}] * min(n, 4)))


def grow_alternatives(n: int) -> GrownCase:
    """Alternatives of one regex that all begin alike, so that all n stay open through a word."""
    pattern = "|".join(f"[a-z]+ {number}" for number in range(n))
    return GrownCase(Grammar("regex", f"({pattern})"), f"word {n - 1}".encode())


@largest(LONGEST_OUTPUT)
def grow_output(n: int) -> GrownCase:
    """The output so far: the mask after n tokens of one long array; the grammar stays the same."""
    schema = {"type": "array", "items": _object({"id": {"type": "integer"}, "name": {"type": "string"}})}
    text = _compact([{"id": 7, "name": "ab"}] * (n + 64))
    return GrownCase(_json_schema(schema), text, position=n)


@largest(LONGEST_OUTPUT)
def grow_excluded(n: int) -> GrownCase:
    """The output so far of free text that may not contain a marker: the mask after n tokens."""
    tag = {"type": "structural_tag", "format": {"type": "any_text", "excludes": list(MARKERS)}}
    return GrownCase(Grammar("structural_tag", json.dumps(tag)), b"a b c d e " * (n + 64), position=n)


def different_schema(number: int) -> Grammar:
    """Returns one of the schemas that are compiled one after another in one process; each number is another
    schema, and all are of one size."""
    name = f"{number:06}"
    return _json_schema(
        _object(
            {
                f"id_{name}": {"type": "integer"},
                f"name_{name}": {"type": "string"},
                "kind": {"enum": [f"a{name}", f"b{name}", f"c{name}"]},
            }
        )
    )


TINY: dict[Dialect, str] = {
    "json_schema": '{"type":"boolean"}',
    "regex": "yes|no",
    "ebnf": 'root ::= "yes"',
    "choice": '["yes", "no"]',
    "structural_tag": json.dumps(
        {"triggers": ["<t>"], "structures": [{"begin": "<t>", "schema": {"type": "boolean"}, "end": "</t>"}]}
    ),
}
"""A grammar of each dialect that is compiled before anything is timed, so that what a library sets up once is
not counted as the cost of a size."""
