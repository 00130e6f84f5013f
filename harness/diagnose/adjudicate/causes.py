"""Finds why a valid document was refused: because of how its value is spelled, because of a character, or
because of a name.

A cause is never read off a refused document. It is named after an experiment only: the same document without
that one thing is accepted, and, where taking the thing away takes more away with it, the document with that
thing and nothing else of note is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, combinations, product
from typing import Any

from harness.cases.spelled_json import (
    COMPACT,
    SPACED,
    Name,
    Number,
    Style,
    Text,
    Value,
    document_text,
    read_document,
)
from harness.cases.spellings import (
    LAYOUTS,
    RAW_DELETE,
    STRINGS,
    layout_of,
    plain_number,
    plain_string,
    reordered,
)

Order = Callable[[list[Name]], list[Name]]
Change = Callable[[Value, Style], tuple[Value, Style]]

NAME_CHARACTERS = "name_characters"
"""A name that no `properties` lists has characters other than ASCII letters, digits and `_`."""
UNLISTED = "unlisted_name"
"""The document has properties that no `properties` of the schema lists, however they are called and whatever
they hold."""
ESCAPES = "escapes"
ESCAPED_NAMES = "escapes_in_names"
"""Names are refused when they are written with escapes; values are not."""

MOST_CAUSES = 3
"""Most causes that are named together. Where more must be taken away, none is named."""
SIMPLE_VALUES: tuple[Value, ...] = (Text('"a"'), Number("1"), True, None, [], {})
"""The values that an unlisted member gets in the experiments on its name: none of them can be refused for its
own sake."""


@dataclass(frozen=True)
class Experiment:
    """Documents that tell whether a cause is the cause of a refusal."""

    cause: str
    """The names of what was taken away, joined by `+`; empty where all of it was taken away at once."""
    without: tuple[bytes, ...]
    """The document without the cause, in several ways. One that is valid must be accepted."""
    bare: tuple[bytes, ...] = ()
    """Documents that have the cause, and are simple in all else. If there are any, one must be valid, and no
    valid one be accepted."""


def experiments(schema: str, document: bytes) -> Iterator[Experiment]:
    """Yields the experiments on a refused document.

    The first takes away all that can be: if nothing of it is accepted, no other need be made.

    Then those of one cause, of two, and so on, so that the first that succeeds names no cause that is not
    needed.
    """
    try:
        value = read_document(document)
        parsed = json.loads(schema)
    except (ValueError, RecursionError):
        return
    layout = layout_of(document, value)
    listed = {name for names in _listed(parsed) for name in names}
    choices: dict[str, list[Change]] = {
        "whitespace": [_in_layout(other) for other in (COMPACT, SPACED, LAYOUTS["indented_2"])],
        "property_order": [_in_order(order) for order in _orders(parsed)],
        ESCAPES: [lambda value, style: (value, style._replace(string=_without_escapes)), _escapes_replaced],
        "number_forms": [lambda value, style: (value, style._replace(number=plain_number))],
        RAW_DELETE: [_delete_escaped, _delete_replaced],
        NAME_CHARACTERS: [partial(_renamed, listed)],
        UNLISTED: [partial(_without_unlisted, listed)],
    }
    bare_changes: list[Change] = [partial(_bare, listed, simple) for simple in SIMPLE_VALUES]

    def texts(names: tuple[str, ...], last: list[Change]) -> tuple[bytes, ...]:
        rewritten: list[bytes] = []
        for changes in product(*(choices[name] for name in names), last):
            changed, style = value, layout
            for change in changes:
                changed, style = change(changed, style)
            rewritten.append(document_text(changed, style))
        return tuple(dict.fromkeys(rewritten))

    def without(names: tuple[str, ...]) -> tuple[bytes, ...]:
        return texts(names[:-1], choices[names[-1]])

    # A change that changes nothing would only give another name to the same.
    unchanged = document_text(value, layout)
    able = tuple(name for name in choices if any(text != unchanged for text in without((name,))))
    if not able:
        return
    # A document without its unlisted members, or without their names, may be valid no more: all at once is
    # tried with them too.
    kept = [
        tuple(name for name in able if name not in spared)
        for spared in ((), (UNLISTED,), (UNLISTED, NAME_CHARACTERS))
    ]
    everything = [text for names in dict.fromkeys(filter(None, kept)) for text in without(names)]
    yield Experiment("", tuple(dict.fromkeys(everything)))
    for names in chain.from_iterable(combinations(able, count) for count in range(1, MOST_CAUSES + 1)):
        if {NAME_CHARACTERS, UNLISTED} <= {*names}:
            continue  # a member that is not there has no name
        bare = (
            texts(tuple(name for name in names if name != UNLISTED), bare_changes)
            if UNLISTED in names
            else ()
        )
        yield Experiment("+".join(names), without(names), bare)


def names_alone(document: bytes) -> tuple[bytes, bytes] | None:
    """Returns the document with escapes in its names only, and the document with escapes in its values only;
    None unless it has both names and values.

    Whoever refuses the first and accepts the second, if they are valid, refuses escapes in names only.
    """
    try:
        value = read_document(document)
    except ValueError:
        return None
    layout = layout_of(document, value)
    value, _ = _escapes_replaced(value, layout)
    plain, *escaped = (
        document_text(value, layout._replace(string=string))
        for string in (_without_escapes, STRINGS["escaped_name"], STRINGS["escaped_value"])
    )
    return (escaped[0], escaped[1]) if plain not in escaped else None


def _without_escapes(text: Text) -> str:
    """Writes the text with as few escapes as it can; U+007F stays as it was, for its raw form may be refused
    too."""
    plain = plain_string(text)
    return plain if "\x7f" in text.literal else plain.replace("\x7f", "\\u007f")


def _escapes_replaced(value: Value, style: Style) -> tuple[Value, Style]:
    """Returns the value with the letter x for each character that can only be written as an escape, and
    without the other escapes."""
    return _mapped(value, lambda text: type(text)(_ESCAPE.sub("x", _without_escapes(text)))), style


_ESCAPE = re.compile(r"\\(?:u[0-9a-f]{4}|.)")


def _delete_escaped(value: Value, style: Style) -> tuple[Value, Style]:
    return value, style._replace(string=lambda text: style.string(text).replace("\x7f", "\\u007f"))


def _delete_replaced(value: Value, style: Style) -> tuple[Value, Style]:
    """Returns the value with the letter x for U+007F, for arms that refuse its escape too."""
    return _mapped(value, lambda text: type(text)(text.literal.replace("\x7f", "x"))), style


def _mapped(value: Value, change: Callable[[Text], Text]) -> Value:
    """Returns the value with each string changed; two names that become the same are one member."""
    if isinstance(value, dict):
        return {change(name): _mapped(member, change) for name, member in value.items()}
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    return change(value) if isinstance(value, Text) else value


def _renamed(listed: set[str], value: Value, style: Style) -> tuple[Value, Style]:
    """Returns the value with the letter x for all but ASCII letters, digits and `_` in unlisted names.

    A character that was written as an escape stays an escape."""

    def renamed(text: Text) -> Text:
        if not isinstance(text, Name) or text in listed:
            return text
        plain = _NOT_PLAIN.sub(lambda match: "\\u0078" if match[0][0] == "\\" else "x", text.literal[1:-1])
        return Name(f'"{plain}"')

    return _mapped(value, renamed), style


_NOT_PLAIN = re.compile(r"\\u[0-9a-fA-F]{4}|\\.|[^A-Za-z0-9_]", re.DOTALL)


def _bare(listed: set[str], simple: Value, value: Value, style: Style) -> tuple[Value, Style]:
    """Returns the value with a simple value for each member of an unlisted name, whose name becomes a plain
    one that is not listed either."""

    def bare(value: Value) -> Value:
        if isinstance(value, list):
            return [bare(item) for item in value]
        if not isinstance(value, dict):
            return value
        bare_members: dict[Name, Value] = {}
        for number, (name, member) in enumerate(value.items()):
            plain = name if _PLAIN_NAME.fullmatch(name.literal) else Name(f'"other{number or ""}"')
            bare_members[name if name in listed else plain] = bare(member) if name in listed else simple
        return bare_members

    return bare(value), style


_PLAIN_NAME = re.compile(r'"[A-Za-z0-9_]+"')


def _in_layout(layout: Style) -> Change:
    return lambda value, style: (value, layout._replace(string=style.string, number=style.number))


def _in_order(order: Order) -> Change:
    return lambda value, style: (reordered(value, order), style)


def _without_unlisted(listed: set[str], value: Value, style: Style) -> tuple[Value, Style]:
    def without(value: Value) -> Value:
        if isinstance(value, dict):
            return {name: without(member) for name, member in value.items() if name in listed}
        return [without(item) for item in value] if isinstance(value, list) else value

    return without(value), style


def _orders(schema: Any) -> Iterator[Order]:
    """Yields orders of names: as the schema lists them, with the names that it does not list behind or before
    them."""
    lists = _listed(schema)

    def sorted_by_schema(names: list[Name], unlisted: int) -> list[Name]:
        """Returns the names in the order of the `properties` that lists most of them."""
        best = max(lists, key=lambda declared: len({*declared} & {*names}), default=[])
        ranks = {name: rank for rank, name in enumerate(best)}
        return sorted(names, key=lambda name: ranks.get(name, unlisted))

    for unlisted in (1 << 30, -1):
        yield partial(sorted_by_schema, unlisted=unlisted)


def _listed(schema: Any) -> list[list[str]]:
    """Returns the names in each `properties` of the schema."""
    return [
        list(subschema["properties"])
        for subschema in _subschemas(schema)
        if isinstance(subschema.get("properties"), dict)
    ]


def _subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    stack = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            yield node
            stack += node.values()
        elif isinstance(node, list):
            stack += node


def place(document: bytes, at: int) -> str:
    """Returns where a document was refused whose first `at` bytes were accepted: `at_name`, `at_string`,
    `at_number`, `at_literal`, `at_structure` or `at_end`."""
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
