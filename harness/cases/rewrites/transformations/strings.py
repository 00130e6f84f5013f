"""Patterns and lengths of strings. A pattern is that of ECMA-262 with the `u` flag, found anywhere in the
text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from harness.cases.rewrites.json_values import type_of
from harness.cases.rewrites.merging import values_of
from harness.cases.rewrites.patterns import (
    ANY,
    alternatives_of,
    escaped,
    is_anchored,
    repeated_atom,
    texts_of,
    without_short_classes,
)
from harness.cases.rewrites.rewrite import Change, Place

MOST_TEXTS = 30
"""Texts that are excluded by a pattern, or listed instead of one."""
MOST_EXCLUDED_CHARACTERS = 1000
"""Characters of all texts that are excluded by a pattern, which has some twenty for each of them."""


def pattern_anchored(place: Place) -> Iterator[Change]:
    """Writes a pattern so that it matches the whole text, between `^` and `$`."""
    pattern = place.body.get("pattern")
    if not isinstance(pattern, str) or is_anchored(pattern):
        return
    parts = []
    for part in alternatives_of(pattern):
        begins = part.startswith("^")
        ends = re.search(r"(?<!\\)(?:\\\\)*\$$", part) is not None
        core = part[1 if begins else 0 : -1 if ends else None]
        parts.append(f"{'' if begins else ANY + '*'}{core}{'' if ends else ANY + '*'}")
    whole = parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"
    yield Change({**place.body, "pattern": f"^{whole}$"})


def pattern_without_short_classes(place: Place) -> Iterator[Change]:
    r"""Writes `\d`, `\w` and `\s` as the characters that they are in ECMA-262."""
    pattern = place.body.get("pattern")
    if isinstance(pattern, str) and (written := without_short_classes(pattern)) not in (None, pattern):
        yield Change({**place.body, "pattern": written})


def pattern_as_enum(place: Place) -> Iterator[Change]:
    """Writes a pattern of a few literal texts as `enum`."""
    texts = texts_of(place.body.get("pattern"))
    if texts and len(texts) <= MOST_TEXTS and place.body.get("type") == "string" and "enum" not in place.body:
        yield Change({**place.without("pattern"), "enum": texts})


def enum_as_pattern(place: Place) -> Iterator[Change]:
    """Writes a list of texts as a pattern."""
    values = values_of(place.body)
    if not values or len(values) > MOST_TEXTS or "pattern" in place.body:
        return
    if all(isinstance(value, str) and value for value in values):
        texts = "|".join(map(escaped, values))
        text = f"^(?:{texts})$" if len(values) > 1 else f"^{texts}$"
        yield Change({**place.without("enum", "const"), "type": "string", "pattern": text})


def length_as_pattern(place: Place) -> Iterator[Change]:
    """Writes bounds of the length as a pattern, within the one that is there if that repeats one class."""
    least, most = place.body.get("minLength", 0), place.body.get("maxLength")
    if not {"minLength", "maxLength"} & place.body.keys() or type_of(least) != "integer":
        return
    pattern, low, high = place.body.get("pattern"), int(least), most
    atom = ANY
    if isinstance(pattern, str):
        repeated = repeated_atom(pattern)
        if repeated is None:
            return
        atom, its_low, its_high = repeated
        low = max(low, its_low)
        high = min((bound for bound in (most, its_high) if bound is not None), default=None)
    if high is not None and (type_of(high) != "integer" or high < low):
        return
    count = f"{{{low},{'' if high is None else int(high)}}}" if low != high else f"{{{low}}}"
    count = {"{0,}": "*", "{1,}": "+"}.get(count, count)
    rest = place.without("minLength", "maxLength")
    yield Change(
        {**rest, "pattern": f"^{atom}{count}$"}, tuple({"minLength", "maxLength"} & place.body.keys())
    )


def pattern_as_length(place: Place) -> Iterator[Change]:
    """Writes a pattern that bounds nothing but the length as `minLength` and `maxLength`."""
    pattern = place.body.get("pattern")
    repeated = repeated_atom(pattern) if isinstance(pattern, str) else None
    if repeated and not {"minLength", "maxLength"} & place.body.keys():
        _, low, high = repeated
        bounds = {"minLength": low or None, "maxLength": high}
        yield Change(
            {**place.without("pattern"), **{key: value for key, value in bounds.items() if value is not None}}
        )


def excluded_texts_as_pattern(place: Place) -> Iterator[Change]:
    """Writes that a string is none of a few texts as a pattern of all others."""
    refused = values_of(place.body.get("not"))
    if not refused or len(refused) > MOST_TEXTS or {"pattern", "enum", "const"} & place.body.keys():
        return
    if all(isinstance(value, str) for value in refused) and _are_short(refused):
        yield Change({**place.without("not"), "pattern": f"^{_others(set(refused))}$"})


def excluded_beginnings_as_pattern(place: Place) -> Iterator[Change]:
    """Writes that a string begins with none of a few texts as a pattern of all others."""
    refused = place.body.get("not")
    if not isinstance(refused, dict) or {"pattern", "enum", "const"} & place.body.keys():
        return
    pattern = refused.get("pattern")
    beginnings = texts_of(f"{pattern}$") if isinstance(pattern, str) else None
    if not beginnings or "" in beginnings or len(beginnings) > MOST_TEXTS:
        return
    if _are_short(beginnings):
        others = _others(set(beginnings), are_beginnings=True)
        yield Change({**place.without("not"), "pattern": f"^{others}$"})


def _are_short(texts: Iterable[str]) -> bool:
    """Have the texts together few enough characters to be excluded by a pattern?"""
    return sum(map(len, texts)) <= MOST_EXCLUDED_CHARACTERS


def _others(texts: set[str], *, are_beginnings: bool = False) -> str:
    """Returns a pattern, without anchors, of every text that is none of these, or that begins with none of
    them."""
    behind: dict[str, set[str]] = {}
    for text in texts - {""}:
        behind.setdefault(text[0], set()).add(text[1:])
    if not behind:
        return f"{ANY}+" if "" in texts else f"{ANY}*"
    parts = [
        f"{escaped(first)}{_others(rest, are_beginnings=are_beginnings)}"
        for first, rest in sorted(behind.items())
        if not (are_beginnings and "" in rest)
    ]
    letters = "".join(escaped(first, in_class=True) for first in sorted(behind))
    parts.append(f"[^{letters}]{ANY}*")
    return f"(?:{'|'.join(parts)}){'' if '' in texts else '?'}"
