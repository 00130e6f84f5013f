"""Why a valid document was refused: because of how its value is spelled, or where in the document."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, combinations, product
from typing import Any

from harness.spellings import (
    COMPACT,
    LAYOUTS,
    SPACED,
    Name,
    Style,
    Value,
    layout_of,
    plain_number,
    plain_string,
    read,
    reordered,
    write,
)

Order = Callable[[list[Name]], list[Name]]
Change = Callable[[Value, Style], tuple[Value, Style]]

UNLISTED = "unlisted_name"
"""The one cause that is no spelling: the document has properties that no `properties` of the schema lists."""


def simpler(schema: str, document: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """The document with one thing or several spelled as backends like them (or without its unlisted names), and these things' names.

    First with all of them: if none of these texts is accepted, none of the others need be tried. Then the fewest first.
    """
    try:
        value = read(document)
        parsed = json.loads(schema)
    except (ValueError, RecursionError):
        return
    layout = layout_of(document, value)
    choices: dict[str, list[Change]] = {
        "whitespace": [_in_layout(other) for other in (COMPACT, SPACED, LAYOUTS["indented_2"])],
        "property_order": [_in_order(order) for order in _orders(parsed)],
        "escapes": [lambda value, style: (value, style._replace(string=plain_string))],
        "number_forms": [lambda value, style: (value, style._replace(number=plain_number))],
        UNLISTED: [_without_unlisted(parsed)],
    }

    def texts(names: tuple[str, ...]) -> list[bytes]:
        found: list[bytes] = []
        for changes in product(*(choices[name] for name in names)):
            changed, style = value, layout
            for change in changes:
                changed, style = change(changed, style)
            found.append(write(changed, style))
        return list(dict.fromkeys(found))

    # A change that changes nothing would only give another name to the same.
    able = tuple(name for name in choices if any(text != write(value, layout) for text in texts((name,))))
    yield "", texts(able)
    for names in chain.from_iterable(combinations(able, count) for count in range(1, len(able) + 1)):
        yield "+".join(names), texts(names)


def _in_layout(layout: Style) -> Change:
    return lambda value, style: (value, layout._replace(string=style.string, number=style.number))


def _in_order(order: Order) -> Change:
    return lambda value, style: (reordered(value, order), style)


def _without_unlisted(schema: Any) -> Change:
    listed = {name for names in _listed(schema) for name in names}

    def without(value: Value) -> Value:
        if isinstance(value, dict):
            return {name: without(each) for name, each in value.items() if name in listed}
        return [without(each) for each in value] if isinstance(value, list) else value

    return lambda value, style: (without(value), style)


def _orders(schema: Any) -> Iterator[Order]:
    """The names as the schema lists them, those that it does not list behind or before them."""
    lists = _listed(schema)

    def sorted_by_schema(names: list[Name], unlisted: int) -> list[Name]:
        """By the list that has most of the names."""
        best = max(lists, key=lambda each: len({*each} & {*names}), default=[])
        ranks = {name: rank for rank, name in enumerate(best)}
        return sorted(names, key=lambda name: ranks.get(name, unlisted))

    for unlisted in (1 << 30, -1):
        yield partial(sorted_by_schema, unlisted=unlisted)


def _listed(schema: Any) -> list[list[str]]:
    """The names of each `properties`."""
    return [list(each["properties"]) for each in _subschemas(schema) if isinstance(each.get("properties"), dict)]


def _subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    stack = [schema]
    while stack:
        each = stack.pop()
        if isinstance(each, dict):
            yield each
            stack += each.values()
        elif isinstance(each, list):
            stack += each


def place(document: bytes, at: int) -> str:
    """Where a document was refused whose first `at` bytes were accepted: `at_name`, `at_string`, `at_number`, `at_literal`,
    `at_structure` or `at_end`."""
    stack: list[bool] = []  # of the containers that are open: is it an object?
    in_string = escaped = is_name = after_colon = False
    for byte in document[:at]:
        if in_string:
            if escaped:
                escaped = False
            elif byte == 0x5C:
                escaped = True
            elif byte == 0x22:
                in_string = False
        elif byte == 0x22:
            in_string = True
            is_name = bool(stack) and stack[-1] and not after_colon
        elif byte in b"{[":
            stack.append(byte == 0x7B)
            after_colon = False
        elif byte in b"}]":
            del stack[-1:]
        elif byte in b":,":
            after_colon = byte == 0x3A
    if in_string:
        return "at_name" if is_name else "at_string"
    rest = document[at:].lstrip(b" \t\r\n")
    if not rest:
        return "at_end"
    if rest[0] == 0x22:
        return "at_name" if stack and stack[-1] and not after_colon else "at_string"
    before = document[:at][-1:]
    if rest[:1].isdigit() or rest[0] in b"-" or (before.isdigit() and rest[0] in b".eE"):
        return "at_number"
    return "at_literal" if rest[:1].isalpha() else "at_structure"
