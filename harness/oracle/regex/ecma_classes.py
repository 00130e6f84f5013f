"""The classes, escapes and groups of ECMA-262 with the `u` flag, read once for both of their users.

The judge writes a pattern out for the `regex` library (`harness.oracle.judge.pattern`); the oracle makes a
tree of it (`harness.oracle.regex.ecma`). Where ECMA-262 without the flag is laxer (`\\_`, a lone `}`), so is
this.
"""

from __future__ import annotations

import re

from harness.oracle.regex.ecma_properties import property_for_regex

LAST = 0x10FFFF
"""The last code point of Unicode."""

Pairs = tuple[tuple[int, int], ...]
"""Ranges of code points in ascending order, both ends included."""

Member = int | str
"""What stands in a class: a code point, or the name of a set, which is a key of `SETS` or a property as the
`regex` library writes it (`\\p{Script=Greek}`)."""


class NotEcma(ValueError):
    """The text is not a pattern of ECMA-262; the message says why, in the middle of a sentence."""


def complement_of_pairs(pairs: Pairs) -> Pairs:
    """Returns every other code point, surrogates too."""
    starts = [0, *(last + 1 for _, last in pairs)]
    ends = [*(first - 1 for first, _ in pairs), LAST]
    return tuple((start, end) for start, end in zip(starts, ends, strict=True) if start <= end)


DIGITS: Pairs = ((0x30, 0x39),)
WORD: Pairs = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
SPACE: Pairs = (
    (9, 13), (32, 32), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F),
    (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF),
)  # fmt: skip
NO_LINE_END = complement_of_pairs(((10, 10), (13, 13), (0x2028, 0x2029)))
"""What `.` matches."""
SETS = {
    "d": DIGITS,
    "w": WORD,
    "s": SPACE,
    "D": complement_of_pairs(DIGITS),
    "W": complement_of_pairs(WORD),
    "S": complement_of_pairs(SPACE),
}
"""The code points of `\\d` and its siblings, by the letter behind the backslash."""

QUANTIFIER = re.compile(r"(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\??")
NAME = r"(?:[^\W\d]|\$)[\w$]*"
"""The name of a group."""
GROUP = re.compile(rf"\(\?(?::|=|!|<=|<!|<({NAME})>)")
"""The beginning of a group that has a `?`, and the group's name if it has one."""
_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_CODE_POINT = re.compile(
    r"\\(?:u\{([0-9A-Fa-f]+)\}|u([Dd][89ABab][0-9A-Fa-f]{2})\\u([Dd][C-Fc-f][0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2}))"
)
_PROPERTY = re.compile(r"\\([pP])\{([A-Za-z0-9_=]+)\}")


class Groups:
    """The groups that are open where a pattern was read to, and the names that are taken there."""

    def __init__(self) -> None:
        self._may_repeat = False
        """May a quantifier come next?"""
        self._may_repeat_behind: list[bool] = []
        """Whether one may come behind each open group."""
        self._names: list[tuple[set[str], set[str]]] = [(set(), set())]
        """For the whole pattern and for each open group, the names of groups that its last alternative has so
        far, and the names that the alternatives before that one have."""

    def read(self, part: str) -> None:
        """Takes in the next part of the pattern that is no quantifier. Raises NotEcma."""
        taken, before = self._names[-1]
        self._may_repeat = part not in ("^", "$", "\\b", "\\B", "|") and part[0] != "("
        if part == "|":
            self._names[-1] = (set(), before | taken)
        elif part == ")" and self._may_repeat_behind:
            self._may_repeat = self._may_repeat_behind.pop()
            del self._names[-1]
            self._names[-1][0].update(taken, before)
        elif part[0] == "(":
            if part.endswith(">"):
                if any(part in names for names, _ in self._names):
                    raise NotEcma(f"the group {part[3:-1]} twice in one alternative")
                taken.add(part)
            self._may_repeat_behind.append(part not in ("(?<=", "(?<!"))
            self._names.append((set(), set()))

    def quantify(self) -> None:
        """Takes in a quantifier of what was read last. Raises NotEcma."""
        if not self._may_repeat:
            raise NotEcma("nothing to repeat")
        self._may_repeat = False


def read_escape(pattern: str, at: int) -> tuple[Member, int]:
    """Returns what the escape that begins at `at` stands for in a class, and the offset behind it. Raises
    NotEcma."""
    letter = pattern[at + 1 : at + 2]
    if letter and letter in SETS:
        return letter, at + 2
    if letter in _CONTROLS:
        return _CONTROLS[letter], at + 2
    if point := _CODE_POINT.match(pattern, at):
        if point[2]:
            return 0x10000 + ((int(point[2], 16) & 0x3FF) << 10) + (int(point[3], 16) & 0x3FF), point.end()
        value = int(point[1] or point[4] or point[5], 16)
        if value <= LAST:
            return value, point.end()
    if named := _PROPERTY.match(pattern, at):
        name = property_for_regex(named[2])
        if name is None:
            raise NotEcma(f"{named[0]} names no property of ECMA-262")
        return f"\\{named[1]}{{{name}}}", named.end()
    if letter == "c" and re.match("[A-Za-z]", pattern[at + 2 : at + 3]):
        return ord(pattern[at + 2]) % 32, at + 3
    if letter == "0" and not pattern[at + 2 : at + 3].isdigit():
        return 0, at + 2
    if letter and not letter.isalnum():
        return ord(letter), at + 2
    raise NotEcma(f"{pattern[at : at + 2]!r} is not an escape of ECMA-262")


def read_class(pattern: str, at: int) -> tuple[bool, list[tuple[int, int] | str], int]:
    """Returns whether the class whose `[` ends at `at` is negated, its members, and the offset behind its
    `]`.

    A member is a range of code points, or the name of a set (see `Member`). A set is no end of a range: as
    Annex B of ECMA-262 has it, such a set, the `-` and what stands on its other side are each themselves, and
    what follows begins anew (`[\\d-a-z]` has `\\d`, `-`, `a`, `-` and `z`). Raises NotEcma.
    """
    negated = pattern[at : at + 1] == "^"
    at += negated
    members: list[tuple[int, int] | str] = []
    while pattern[at : at + 1] != "]":
        first, at = _read_member(pattern, at)
        atoms = [first]
        if pattern[at : at + 1] == "-" and pattern[at + 1 : at + 2] not in ("]", ""):
            last, at = _read_member(pattern, at + 1)
            if isinstance(first, int) and isinstance(last, int):
                if first > last:
                    raise NotEcma("a range runs backwards")
                members.append((first, last))
                continue
            atoms = [first, ord("-"), last]
        members += [(atom, atom) if isinstance(atom, int) else atom for atom in atoms]
    return negated, members, at + 1


def _read_member(pattern: str, at: int) -> tuple[Member, int]:
    if at >= len(pattern):
        raise NotEcma("a class does not end")
    if pattern[at] != "\\":
        return ord(pattern[at]), at + 1
    if pattern[at + 1 : at + 2] == "b":
        return 8, at + 2
    return read_escape(pattern, at)
