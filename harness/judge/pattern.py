"""Patterns of JSON Schema: ECMA-262 with the `u` flag, written out for the `regex` library.

`\\d`, `\\w`, `\\s`, `\\b`, `.`, `^` and `$` mean what they mean in ECMA-262, not what they mean in Python.  Where ECMA-262 without
the flag is laxer (`\\_`, a lone `}`), so is this.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any


class NotAPattern(ValueError):
    """What ECMA-262 does not know, in one line."""


def finds(pattern: str, text: str) -> bool:
    """Does the pattern match somewhere in the text?  Raises `NotAPattern`."""
    return _compiled(pattern).search(text) is not None


def is_pattern(pattern: str) -> bool:
    """Is this a pattern of ECMA-262 that can be matched here?"""
    try:
        _compiled(pattern)
    except NotAPattern:
        return False
    return True


_LAST = 0x10FFFF
_DIGITS = [(0x30, 0x39)]
_WORD = [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)]
_SPACE = [(9, 13), (32, 32), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029)]
_SPACE += [(0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)]
_LINE_ENDS = [(10, 10), (13, 13), (0x2028, 0x2029)]
_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_GROUP = re.compile(r"\(\?(?::|=|!|<=|<!|<[A-Za-z_][A-Za-z0-9_]*>)")
_QUANTIFIER = re.compile(r"(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\??")
_BACKREFERENCE = re.compile(r"\\(?:([1-9][0-9]*)|k<([A-Za-z_][A-Za-z0-9_]*)>)")
_CODE_POINT = re.compile(
    r"\\(?:u\{([0-9A-Fa-f]{1,6})\}|u([Dd][89ABab][0-9A-Fa-f]{2})\\u([Dd][C-Fc-f][0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2}))"
)
_PROPERTY = re.compile(r"\\[pP]\{[A-Za-z0-9_=]+\}")


def _ranges(ranges: list[tuple[int, int]]) -> str:
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


def _without(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    starts = [0, *(last + 1 for _, last in ranges)]
    ends = [*(first - 1 for first, _ in ranges), _LAST]
    return [(start, end) for start, end in zip(starts, ends, strict=True) if start <= end]


_SETS = {"d": _ranges(_DIGITS), "w": _ranges(_WORD), "s": _ranges(_SPACE)}
_SETS |= {"D": _ranges(_without(_DIGITS)), "W": _ranges(_without(_WORD)), "S": _ranges(_without(_SPACE))}
_IN_WORD, _NO_LINE_END = f"[{_SETS['w']}]", f"[{_ranges(_without(_LINE_ENDS))}]"
_BOUNDARY = f"(?:(?<={_IN_WORD})(?!{_IN_WORD})|(?<!{_IN_WORD})(?={_IN_WORD}))"
_ASSERTIONS = {"^": r"\A", "$": r"\Z", ".": _NO_LINE_END}


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    import regex

    try:
        return regex.compile(_translated(pattern))
    except regex.error as error:
        raise NotAPattern(f"pattern {pattern[:80]!r}: {error}") from error


def _translated(pattern: str) -> str:
    out: list[str] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if quantifier := _QUANTIFIER.match(pattern, at):
            at = quantifier.end()
            if pattern[at : at + 1] in ("+", "*", "?") or not out:
                raise NotAPattern(f"pattern {pattern[:80]!r}: nothing to repeat")
            out.append(quantifier[0])
        elif character == "[":
            piece, at = _class(pattern, at + 1)
            out.append(piece)
        elif character == "\\":
            piece, at = _escape(pattern, at)
            out.append(piece)
        elif character == "(" and pattern[at + 1 : at + 2] == "?":
            group = _GROUP.match(pattern, at)
            if group is None:
                raise NotAPattern(f"pattern {pattern[:80]!r}: not a group of ECMA-262")
            out.append(group[0])
            at = group.end()
        else:
            out.append(_ASSERTIONS.get(character) or (character if character in "()|" else f"\\U{ord(character):08x}"))
            at += 1
    return "".join(out)


def _escape(pattern: str, at: int) -> tuple[str, int]:
    """What the escape at `at` is outside a class, and where it ends."""
    letter = pattern[at + 1 : at + 2]
    if back := _BACKREFERENCE.match(pattern, at):
        group = back[1] or back[2]
        return f"(?({group})(?:\\g<{group}>))", back.end()  # a group that took no part matches nothing, not fails
    if letter in ("b", "B"):
        return (_BOUNDARY if letter == "b" else f"(?!{_BOUNDARY})"), at + 2
    member, end = _class_escape(pattern, at)
    return (f"\\U{member:08x}" if isinstance(member, int) else f"[{member}]"), end


def _class_escape(pattern: str, at: int) -> tuple[int | str, int]:
    """The code point, or the members of the set, that the escape at `at` stands for, and where it ends."""
    letter = pattern[at + 1 : at + 2]
    if letter and letter in _SETS:
        return _SETS[letter], at + 2
    if letter in _CONTROLS:
        return _CONTROLS[letter], at + 2
    if point := _CODE_POINT.match(pattern, at):
        if point[2]:
            return 0x10000 + ((int(point[2], 16) & 0x3FF) << 10) + (int(point[3], 16) & 0x3FF), point.end()
        value = int(point[1] or point[4] or point[5], 16)
        if value <= _LAST:
            return value, point.end()
    if named := _PROPERTY.match(pattern, at):
        return named[0], named.end()
    if letter == "c" and re.match("[A-Za-z]", pattern[at + 2 : at + 3]):
        return ord(pattern[at + 2]) % 32, at + 3
    if letter == "0" and not pattern[at + 2 : at + 3].isdigit():
        return 0, at + 2
    if letter and not letter.isalnum():
        return ord(letter), at + 2
    raise NotAPattern(f"pattern {pattern[:80]!r}: {pattern[at : at + 2]!r} is not an escape of ECMA-262")


def _class(pattern: str, at: int) -> tuple[str, int]:
    """The class whose `[` ends at `at`, and where it ends."""
    negated = pattern[at : at + 1] == "^"
    at += negated
    members: list[str] = []
    while pattern[at : at + 1] != "]":
        low, at = _class_member(pattern, at)
        if pattern[at : at + 1] == "-" and pattern[at + 1 : at + 2] not in ("]", ""):
            high, end = _class_member(pattern, at + 1)
            if isinstance(low, int) and isinstance(high, int):
                if low > high:
                    raise NotAPattern(f"pattern {pattern[:80]!r}: a range runs backwards")
                low, at = _ranges([(low, high)]), end
        members.append(low if isinstance(low, str) else f"\\U{low:08x}")
    if not members:
        return (f"[{_ranges([(0, _LAST)])}]" if negated else "(?!)"), at + 1
    return f"[{'^' if negated else ''}{''.join(members)}]", at + 1


def _class_member(pattern: str, at: int) -> tuple[int | str, int]:
    if at >= len(pattern):
        raise NotAPattern(f"pattern {pattern[:80]!r}: a class does not end")
    if pattern[at] != "\\":
        return ord(pattern[at]), at + 1
    if pattern[at + 1 : at + 2] == "b":
        return 8, at + 2
    return _class_escape(pattern, at)
