"""Tells an output that may have a name twice in one object.

The automaton of a JSON Schema counts a name that no schema lists each time that it stands there, so that it
takes `{"x":1,"x":1}` for a document of two properties. JSON Schema says nothing of such a document.
"""

from __future__ import annotations

import json
import re
from typing import Any

from harness.backend.grammar import Dialect
from harness.oracle.tag_formats.gemma import QUOTE
from harness.oracle.tag_formats.styles import STYLES

_IN_XML = [
    re.compile(re.escape(style.before.decode()) + "(.*?)" + re.escape(style.name_end.decode()), re.DOTALL)
    for style in STYLES.values()
]
_OF_GEMMA = re.compile(r"[{,]([^:{}\[\]]*):")
_TEXT_OF_GEMMA = re.compile(f"{re.escape(QUOTE.decode())}.*?{re.escape(QUOTE.decode())}", re.DOTALL)
_OBJECT = re.compile(r'\{(?=[ \t\n\r]*["}])')
"""How an object in JSON begins. No other brace is tried: each failure takes as long as the text before it."""
_STEPS = re.compile(r'"(?:[^"\\]|\\.)*"|["{}\[\],]', re.DOTALL)
"""What tells where a name stands in JSON: whole strings, the quote of one that is not whole, brackets and
commas."""


def may_repeat_a_name(dialect: Dialect, text: bytes) -> bool:
    """Returns whether an object in an output of the dialect may have a name twice.

    Documents in JSON are read. In the other styles of a structural tag names are only searched for, so that a
    name that stands once in each of two objects counts as repeated.
    """
    if dialect not in ("json_schema", "structural_tag"):
        return False
    written = text.decode("utf-8", "replace")
    if dialect == "json_schema":
        return _repeats_in_document(written)
    rest = _without_objects(written)
    return rest is None or _repeats_in_other_styles(rest)


def has_repeated_a_name(text: bytes) -> bool:
    """Returns whether an object has a name twice already in a beginning of some text in JSON. A name counts
    once its last quote is written."""
    around: list[set[str] | None] = []  # the names of each object that is open, and None for each array
    before = ""
    for step in _STEPS.findall(text.decode("utf-8", "replace")):
        if step == '"':
            return False
        if step in "{[":
            around.append(set() if step == "{" else None)
        elif step in "}]":
            around.pop()
        elif step != "," and before in ("{", ",") and (names := around[-1]) is not None:
            name = json.loads(step)
            if name in names:
                return True
            names.add(name)
        before = step
    return False


class _Repeated(Exception):
    """An object of JSON has a name twice."""


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> None:
    """Raises _Repeated if a name of an object stands there twice."""
    if len({name for name, _ in pairs}) < len(pairs):
        raise _Repeated


_DECODER = json.JSONDecoder(object_pairs_hook=_refuse_repeated, parse_int=str, parse_float=str)


def _repeats_in_document(text: str) -> bool:
    """Returns whether an object of the document has a name twice; True too where it cannot be read as JSON,
    or nests too deeply to be read."""
    try:
        _DECODER.decode(text)
    except (_Repeated, RecursionError, ValueError):
        return True
    return False


def _without_objects(text: str) -> str | None:
    """Returns the text without its objects of JSON; None where one of them has a name twice, or nests too
    deeply to be read."""
    parts: list[str] = []
    behind = 0
    while begin := _OBJECT.search(text, behind):
        place = begin.start()
        parts.append(text[behind:place])
        try:
            _, behind = _DECODER.raw_decode(text, place)
        except (_Repeated, RecursionError):
            return None
        except ValueError:  # an object in another style, or free text
            parts.append("{")
            behind = place + 1
    return "".join((*parts, text[behind:]))


def _repeats_in_other_styles(text: str) -> bool:
    """Returns whether some name that is written as XML or as Gemma writes it stands twice in the text."""
    in_gemma = _OF_GEMMA.findall(_TEXT_OF_GEMMA.sub("", text))
    found = [*(pattern.findall(text) for pattern in _IN_XML), [name.strip() for name in in_gemma]]
    return any(len({*names}) < len(names) for names in found)
