"""Tells whether half a surrogate pair can mean something of its own to a schema.

A document can hold one as an escape (`"\\ud800"`), but the texts of the reference automaton have none. What
it proves holds for such documents too where the schema takes each half as it takes many other characters:
with those instead, the document is valid or not, just as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from harness.cases.rewrites.patterns import pieces
from harness.oracle.regex.ecma_classes import SETS, NotEcma, read_class, read_escape
from harness.oracle.utf8 import SURROGATES
from harness.text import SURROGATES as IN_TEXT

Area = tuple[int, int]
"""A range of code points, both ends included."""

OTHERS: frozenset[Area] = frozenset(((0xE000, 0xF8FF), (0xF0000, 0xFFFFD), (0x50000, 0x5FFFD)))
"""Characters for which the halves may stand: two areas of private use, and one in which nothing is assigned.
Each has more of them than there are halves."""


def half_a_pair_matters(value: Any) -> bool:
    """May a document with half a surrogate pair be valid by the schemas in a value of JSON where none with
    another character for it is, or the other way round?

    That is so where a text holds a half, or where there is no area of which all patterns take every character
    as they take every half: with `\\ud800`, `\\p{Cs}`, and `[\\0-\\ud7ff\\ue000-\\u{10ffff}]`, which leaves
    just them out. `.` and `[^"]` take them as they take most others.
    """
    alike = OTHERS
    for text, is_pattern in _texts(value):
        if IN_TEXT.search(text):
            return True
        if is_pattern:
            alike &= _taken_like_halves(text)
    return not alike


def _texts(value: Any) -> Iterator[tuple[str, bool]]:
    """Yields each text in a value of JSON, and whether it stands where a schema has a pattern."""
    waiting = [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, str):
            yield here, False
        elif isinstance(here, list):
            waiting += here
        elif isinstance(here, dict):
            waiting += [*here, *here.values()]
            patterns = here.get("patternProperties")
            found = [here.get("pattern"), *(patterns if isinstance(patterns, dict) else ())]
            yield from ((each, True) for each in found if isinstance(each, str))


@lru_cache(maxsize=4096)
def _taken_like_halves(pattern: str) -> frozenset[Area]:
    """Returns the areas whose characters mean to the pattern what the halves mean, wherever they stand; none
    where the pattern cannot be read."""
    alike = OTHERS
    try:
        for member in _members(pattern):
            halves = _holds(member, SURROGATES)
            alike = frozenset(area for area in alike if halves is not None and _holds(member, area) is halves)
    except NotEcma:
        return frozenset()
    return alike


def _members(pattern: str) -> Iterator[Area | str]:
    """Yields the characters that a pattern names, alone, in classes or as sets. Raises NotEcma."""
    for piece in pieces(pattern):
        if piece[0] == "[":
            yield from read_class(piece, 1)[1]
        elif piece[0] == "\\" and piece not in ("\\b", "\\B"):
            member, _ = read_escape(piece, 0)
            yield (member, member) if isinstance(member, int) else member
        elif len(piece) == 1:
            yield ord(piece), ord(piece)


def _holds(member: Area | str, area: Area) -> bool | None:
    """Returns whether every code point of an area is a member, or none is; None where only some are."""
    if isinstance(member, str) and member not in SETS:
        return _has_property(member, area)
    pairs = SETS[member] if isinstance(member, str) else (member,)
    if any(first <= area[0] and area[1] <= last for first, last in pairs):
        return True
    return None if any(first <= area[1] and area[0] <= last for first, last in pairs) else False


@lru_cache(maxsize=1024)
def _has_property(name: str, area: Area) -> bool | None:
    """Returns whether every code point of an area has a property, in the spelling of the `regex` library, or
    none has it; None where only some have it."""
    import regex

    text = "".join(map(chr, range(area[0], area[1] + 1)))
    count = len(regex.findall(name, text))
    return None if 0 < count < len(text) else count > 0
