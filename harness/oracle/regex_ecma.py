"""Patterns of ECMA-262 with the `u` flag, as JSON Schema uses them, as trees.

Where ECMA-262 without the flag is laxer (`\\_`, a lone `}`), so is this.
"""

from __future__ import annotations

import re

from harness.oracle.automaton import NoOracle
from harness.oracle.char_classes import ASCII_WORD, DIGITS, Ranges, asked, complement, one, ranges_of, union
from harness.oracle.regex_syntax import Placeholders
from harness.oracle.regex_tree import END, START, Chars, Node, boundary, no_boundary
from harness.oracle.utf8 import LAST

_SPACE = ((9, 13), (32, 32), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F),
          (0x3000, 0x3000), (0xFEFF, 0xFEFF))  # fmt: skip
_NO_LINE_END = complement(((10, 10), (13, 13), (0x2028, 0x2029)))
_SETS = {"d": DIGITS, "w": ASCII_WORD, "s": _SPACE, "D": complement(DIGITS), "W": complement(ASCII_WORD), "S": complement(_SPACE)}
_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_NODES: dict[str, Node] = {"^": START, "$": END, ".": Chars(_NO_LINE_END)}
_GROUP = re.compile(r"\(\?(:|=|!|<=|<!|<[A-Za-z_$][A-Za-z0-9_$]*>)")
_QUANTIFIER = re.compile(r"(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\??")
_BACKREFERENCE = re.compile(r"\\(?:[1-9]|k<)")
_CODE_POINT = re.compile(
    r"\\(?:u\{([0-9A-Fa-f]+)\}|u([Dd][89ABab][0-9A-Fa-f]{2})\\u([Dd][C-Fc-f][0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2}))"
)
_PROPERTY = re.compile(r"\\([pP])\{([A-Za-z0-9_=]+)\}")


def ecma_tree(pattern: str) -> Node:
    """Raises NoOracle."""
    out: list[str] = []
    places = Placeholders()
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if quantifier := _QUANTIFIER.match(pattern, at):
            at = quantifier.end()
            if pattern[at : at + 1] in ("+", "*", "?"):
                raise _wrong("nothing to repeat")
            out.append(quantifier[0])
        elif character == "[":
            ranges, at = _class(pattern, at + 1)
            out.append(places.of(Chars(ranges)))
        elif character == "\\":
            node, at = _escape(pattern, at)
            out.append(places.of(node))
        elif character == "(" and pattern[at + 1 : at + 2] == "?":
            group = _GROUP.match(pattern, at)
            if group is None:
                raise _wrong(f"{pattern[at : at + 4]!r} begins no group of ECMA-262")
            out.append("(?:" if group[1].endswith((":", ">")) else group[0])
            at = group.end()
        else:
            out.append(character if character in "()|" else places.of(_NODES.get(character) or Chars(one(ord(character)))))
            at += 1
    return places.parsed("".join(out))


def _wrong(what: str) -> NoOracle:
    return NoOracle(f"not a pattern: {what}")


def _escape(pattern: str, at: int) -> tuple[Node, int]:
    """What the escape at `at` is outside a class, and where it ends."""
    if _BACKREFERENCE.match(pattern, at):
        raise NoOracle("a backreference has no reference automaton")
    letter = pattern[at + 1 : at + 2]
    if letter in ("b", "B"):
        return (boundary if letter == "b" else no_boundary)(ASCII_WORD), at + 2
    member, end = _class_escape(pattern, at)
    return Chars(one(member) if isinstance(member, int) else member), end


def _class_escape(pattern: str, at: int) -> tuple[int | Ranges, int]:
    """The code point, or the set, that the escape at `at` stands for, and where it ends."""
    letter = pattern[at + 1 : at + 2]
    if letter in _SETS:
        return _SETS[letter], at + 2
    if letter in _CONTROLS:
        return _CONTROLS[letter], at + 2
    if point := _CODE_POINT.match(pattern, at):
        if point[2]:
            return 0x10000 + ((int(point[2], 16) & 0x3FF) << 10) + (int(point[3], 16) & 0x3FF), point.end()
        value = int(point[1] or point[4] or point[5], 16)
        if value <= LAST:
            return value, point.end()
    if named := _PROPERTY.match(pattern, at):
        ranges = asked(f"\\p{{{named[2]}}}")
        return ranges if named[1] == "p" else complement(ranges), named.end()
    if letter == "c" and re.match("[A-Za-z]", pattern[at + 2 : at + 3]):
        return ord(pattern[at + 2]) % 32, at + 3
    if letter == "0" and not pattern[at + 2 : at + 3].isdigit():
        return 0, at + 2
    if letter and not letter.isalnum():
        return ord(letter), at + 2
    raise _wrong(f"{pattern[at : at + 2]!r} is not an escape of ECMA-262")


def _class(pattern: str, at: int) -> tuple[Ranges, int]:
    """The class whose `[` ends at `at`, and where it ends."""
    negated = pattern[at : at + 1] == "^"
    at += negated
    members: list[Ranges] = []
    while pattern[at : at + 1] != "]":
        low, at = _class_member(pattern, at)
        if pattern[at : at + 1] == "-" and pattern[at + 1 : at + 2] not in ("]", ""):
            high, end = _class_member(pattern, at + 1)
            if isinstance(low, int) and isinstance(high, int):
                if low > high:
                    raise _wrong("a range runs backwards")
                low, at = ranges_of([(low, high)]), end
        members.append(one(low) if isinstance(low, int) else low)
    ranges = union(*members)
    return complement(ranges) if negated else ranges, at + 1


def _class_member(pattern: str, at: int) -> tuple[int | Ranges, int]:
    if at >= len(pattern):
        raise _wrong("a class does not end")
    if pattern[at] != "\\":
        return ord(pattern[at]), at + 1
    if pattern[at + 1 : at + 2] == "b":
        return 8, at + 2
    return _class_escape(pattern, at)
