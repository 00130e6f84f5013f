"""Patterns of ECMA-262 taken apart as far as a rewrite needs it, and written out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from harness.oracle.regex.ecma_classes import QUANTIFIER, SETS, NotEcma, read_class, read_escape

ANY = r"[\s\S]"
"""A class of every character: `.` leaves out the ends of lines."""

_GROUP = re.compile(r"\(\?(?::|=|!|<=|<!|<\w+>)")
_SHORT = {"d": "0-9", "w": "A-Za-z0-9_"}
_CONTROLS = {9: r"\t", 10: r"\n", 11: r"\v", 12: r"\f", 13: r"\r"}


def pieces(pattern: str) -> Iterator[str]:
    """Yields a pattern in its smallest pieces: a class, an escape, a quantifier, the beginning of a group, or
    one character. Raises NotEcma."""
    at = 0
    while at < len(pattern):
        end = at + 1
        if quantifier := QUANTIFIER.match(pattern, at):
            end = quantifier.end()
        elif pattern[at] == "[":
            _, _, end = read_class(pattern, at + 1)
        elif pattern[at] == "\\":
            is_boundary = pattern[at + 1 : at + 2] in ("b", "B", "k") or pattern[at + 1 : at + 2].isdecimal()
            end = at + 2 if is_boundary else read_escape(pattern, at)[1]
        elif group := _GROUP.match(pattern, at):
            end = group.end()
        yield pattern[at:end]
        at = end


def alternatives_of(pattern: str) -> list[str]:
    """Returns the outermost alternatives of a pattern; the pattern itself where it cannot be read."""
    parts, depth = [""], 0
    try:
        for piece in pieces(pattern):
            depth += piece.startswith("(") - (piece == ")")
            if piece == "|" and depth == 0:
                parts.append("")
            else:
                parts[-1] += piece
    except NotEcma:
        return [pattern]
    return parts


def is_anchored(pattern: str) -> bool:
    """Does the pattern, by how it is written, match nothing but whole texts?"""
    try:
        read = list(pieces(pattern))
    except NotEcma:
        return True
    return len(alternatives_of(pattern)) == 1 and read[:1] == ["^"] and read[-1:] == ["$"]


def has_end(pattern: str) -> bool:
    """Does the pattern ask with `$` for the end of a text? False for one that cannot be read."""
    try:
        return "$" in list(pieces(pattern))
    except NotEcma:
        return False


def repeated_atom(pattern: str) -> tuple[str, int, int | None] | None:
    """Returns the one class or character that an anchored pattern repeats, and how often it may stand; None
    if it does anything else."""
    try:
        read = list(pieces(pattern))
    except NotEcma:
        return None
    if len(read) == 3:
        read.insert(2, "{1}")
    if len(read) != 4 or read[0] != "^" or read[3] != "$" or read[1] in ("^", "$", "(", ")", "|"):
        return None
    counted = re.fullmatch(r"\{(\d+)(,?)(\d*)\}", read[2])
    if counted:
        low = int(counted[1])
        return read[1], low, int(counted[3]) if counted[3] else None if counted[2] else low
    counts = {"*": (0, None), "+": (1, None), "?": (0, 1)}
    return (read[1], *counts[read[2]]) if read[2] in counts else None


def without_short_classes(pattern: str) -> str | None:
    r"""Returns the pattern with `\d`, `\w`, `\s` and their opposites written as classes; None where an
    opposite stands in a class, or the pattern cannot be read."""
    written = []
    try:
        for piece in pieces(pattern):
            if piece in (r"\d", r"\w", r"\s", r"\D", r"\W", r"\S"):
                written.append(f"[{'^' if piece[1].isupper() else ''}{_inside(piece[1].lower())}]")
            elif piece.startswith("[") and piece != ANY:
                if re.search(r"(?<!\\)(?:\\\\)*\\[DWS]", piece):
                    return None
                written.append(
                    re.sub(
                        r"\\(.)", lambda found: _inside(found[1]) if found[1] in "dws" else found[0], piece
                    )
                )
            else:
                written.append(piece)
    except NotEcma:
        return None
    return "".join(written)


def _inside(letter: str) -> str:
    """Returns the characters of a short class as they stand in a class."""
    if letter in _SHORT:
        return _SHORT[letter]
    return "".join(
        _point(first) if first == last else f"{_point(first)}-{_point(last)}" for first, last in SETS[letter]
    )


def _point(point: int) -> str:
    if point in _CONTROLS:
        return _CONTROLS[point]
    return chr(point) if 0x20 <= point < 0x7F else f"\\u{point:04x}"


def escaped(text: str, in_class: bool = False) -> str:
    """Returns a text as the pattern of nothing but it."""
    special = r"\]^-[" if in_class else r"\^$.*+?()[]{}|/"
    return "".join(
        f"\\{character}" if character in special
        else character if ord(character) >= 0x20 and ord(character) != 0x7F
        else _point(ord(character))
        for character in text
    )  # fmt: skip


def texts_of(pattern: Any) -> list[str] | None:
    """Returns the texts that an anchored pattern of literal alternatives matches; None for another."""
    if not isinstance(pattern, str) or not is_anchored(pattern):
        return None
    core = pattern[1:-1]
    group = re.fullmatch(r"\((?:\?:)?(.*)\)", core, re.DOTALL)
    texts = []
    try:
        for part in alternatives_of(group[1] if group else core):
            text = ""
            for piece in pieces(part):
                if len(piece) == 2 and piece[0] == "\\" and not piece[1].isalnum():
                    text += piece[1]
                elif len(piece) == 1 and piece not in r"\^$.*+?()[]{}|":
                    text += piece
                else:
                    return None
            texts.append(text)
    except NotEcma:
        return None
    return list(dict.fromkeys(texts))
