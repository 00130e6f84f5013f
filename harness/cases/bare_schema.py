"""Tells whether an object is a JSON Schema, and names its types that are words of another language."""

from __future__ import annotations

from typing import Any

from harness.cases.subschemas import ASKED_OF, ASSERTIONS, OF_DRAFTS, pointer, subschemas

SCHEMA_KEYWORDS = ASSERTIONS | frozenset(
    """
    $schema $id id $defs definitions $anchor extends disallow divisibleBy
    title description $comment default examples
    """.split()  # noqa: SIM905
)
"""The keywords by which a bare JSON Schema is known, three of them draft 3's, and its annotations."""
SHARED = frozenset(("dependencies", "extends"))
"""Keywords that other files have too, with text for a value or for its members: those of packages and of
tools' settings."""
SILENT = frozenset(("$schema", "$id", "id", "$comment", "title", "description", "default", "examples"))
"""The keywords that constrain nothing."""
OF_OBJECTS = frozenset((*ASKED_OF["object"], "$defs", "definitions", "not", "if", "const"))
"""Keywords that a schema of an object may have, and whose value may be an object."""
HOLDING = frozenset(("properties", "patternProperties", "$ref", "allOf", "anyOf", "oneOf", "extends"))
"""The keywords under which a schema of an object says what its properties may be."""
NEVER_OBJECTS = frozenset(("type", "format", "pattern", "title", "description"))
"""Keywords that arguments are often called by, and whose value is never an object."""

FORMATS = frozenset(
    """
    date-time date time duration email idn-email hostname idn-hostname ipv4 ipv6 uri uri-reference iri
    iri-reference uuid uri-template json-pointer relative-json-pointer regex
    host-name ip-address utc-millisec color style phone
    """.split()  # noqa: SIM905
)
"""The formats that JSON Schema names, those of draft 3 alone in the last line."""

TYPES = frozenset(("object", "array", "string", "number", "integer", "boolean", "null"))
MISNAMED = {
    word: name
    for name, words in {
        "object": "dict dictionary map hashmap",
        "array": "list tuple set arraylist",
        "string": "str",
        "number": "float double decimal",
        "integer": "int long int32 int64",
        "boolean": "bool",
        "null": "none nil",
        "": "any",
    }.items()
    for word in words.split()
}
"""The words of other languages for a type, in lower case, each with its name in JSON Schema; for `any` it is
empty."""


def is_schema(value: object) -> bool:
    """Is this an object that a person means as a JSON Schema? Data have titles and ids too, and requests to
    model servers have a `type` and a `format` of their own."""
    if not isinstance(value, dict):
        return False
    known = value.keys() & ((SCHEMA_KEYWORDS - SILENT) | {"$schema"})
    return any(_MEANT.get(keyword, _is_any)(value[keyword]) for keyword in known)


def names_a_draft(value: dict[str, Any]) -> bool:
    """Does the object say by its `$schema` that it is a JSON Schema, and no file of another kind?"""
    return isinstance(named := value.get("$schema"), str) and named.startswith(OF_DRAFTS)


def why_not_meant(schema: dict[str, Any]) -> str:
    """Returns why a file of this schema alone can hardly be meant as one, and what to do; empty if it can.
    What such a file is taken for allows everything."""
    others = {key: held for key, held in schema.items() if key != "$schema"}
    if isinstance(named := schema.get("$schema"), str) and not (names_a_draft(schema) or is_schema(others)):
        return (
            f'is no JSON Schema: its "$schema" ({named[:80]}) is that of files of another kind, and none of '
            "its keywords asks anything; take it out"
        )
    if (schema.keys() & SCHEMA_KEYWORDS) - SILENT <= {"$defs", "definitions", "$anchor"}:
        for key in ("$defs", "definitions"):
            if isinstance(held := schema.get(key), dict) and held:
                first = f"#{pointer((key, next(iter(held))))}"
                return f'has definitions alone, which ask nothing; add "$ref": "{first[:80]}" (or another)'
    return ""


def asks_of_arguments(value: dict[str, Any]) -> bool:
    """Is this a JSON Schema of a call's arguments, and not a map from their names to what each may be?

    An argument may be called as a keyword is (`type`, `pattern`): a map that has objects only has no keyword
    about objects. A map may also stand beside keywords (`required`), but beside none that holds properties.
    """
    if not is_schema(value):
        return False
    if not OF_OBJECTS & value.keys() and all(isinstance(member, dict) for member in value.values()):
        return False
    named = [
        member
        for key, member in value.items()
        if (key not in SCHEMA_KEYWORDS and not key.startswith(("$", "x-")))
        or (key in NEVER_OBJECTS and isinstance(member, dict))
    ]
    return bool(HOLDING & value.keys()) or not named or not all(map(_may_be_a_property, named))


def has_annotations_alone(value: dict[str, Any]) -> bool:
    """Is this a JSON Schema that asks nothing? A `title` that is an object is the property of a map."""
    return all(key in SILENT and not isinstance(member, dict) for key, member in value.items())


def misnamed_types(schema: object) -> str:
    """Returns where the schema has a type by a word of another language, and what to write instead, once for
    each word; empty if it has none."""
    found: dict[str, str] = {}
    for path, node in subschemas(schema):
        given = node.get("type") if isinstance(node, dict) else None
        for word in given if isinstance(given, list) else [given]:
            if isinstance(word, str) and word not in TYPES and is_type(word):
                name = word.lower() if word.lower() in TYPES else MISNAMED[word.lower()]
                advice = f'write "{name}"' if name else 'leave "type" out'
                found.setdefault(word, f'{pointer((*path, "type"))} is "{word}" ({advice})')
    return ", ".join(found.values())


def _may_be_a_property(value: object) -> bool:
    return isinstance(value, dict) and (not value or bool(SCHEMA_KEYWORDS & value.keys()))


def _is_any(_: object) -> bool:
    return True


def _is_format(value: object) -> bool:
    """Is this the name of a format that JSON Schema has? Requests and their logs have a `format` of any other
    word, such as the name of an interface."""
    return isinstance(value, str) and value in FORMATS


def is_type(name: str) -> bool:
    """Is this the name of a type, or what another language calls one?"""
    return name.lower() in TYPES or name.lower() in MISNAMED


def _is_type(value: object) -> bool:
    """Is this the name of a type, or a list, as of such names?"""
    return is_type(value) if isinstance(value, str) else isinstance(value, list)


def _holds_no_text(value: object) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
    return not any(isinstance(each, str) for each in inner)


_MEANT = {"type": _is_type, "format": _is_format, **dict.fromkeys(SHARED, _holds_no_text)}
"""The keywords that other files have too, each with the question whether its value is a schema's."""
