"""Reads patterns of Rust's `regex` crate, with Unicode on, into trees."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from harness.oracle.automaton import NoOracle
from harness.oracle.regex.char_classes import (
    ASCII_WORD,
    DIGITS,
    EVERY,
    NEWLINE,
    Ranges,
    asked,
    complement,
    intersection,
    one,
    ranges_of,
    union,
    with_simple_cases,
)
from harness.oracle.regex.syntax import Placeholders
from harness.oracle.regex.tree import (
    END,
    LINE_END,
    LINE_START,
    START,
    Chars,
    Look,
    Node,
    boundary,
    no_boundary,
    word_end,
    word_start,
)
from harness.oracle.utf8 import LAST

_GROUP = re.compile(r"\((?:\?(?:P?<(?P<name>[^>]*)>|([A-Za-z]*)(?:-([A-Za-z]+))?([:)])))?")
_BLANK = r"[^\S\x1c-\x1f]"
"""What Unicode calls white space, as Rust does: to Python four control characters more are."""
_GAP = rf"(?:{_BLANK}|#[^\n]*\n)*"
"""What verbose mode leaves out between two characters."""
_COUNT = re.compile(rf"\{{{_BLANK}*([0-9]+){_BLANK}*(?:(,)(?:{_BLANK}*([0-9]+){_BLANK}*)?)?\}}")
_COUNT_WITH_GAPS = re.compile(
    rf"\{{{_GAP}([0-9]+)(?:{_BLANK}{_GAP})?(?:(,){_GAP}(?:([0-9]+)(?:{_BLANK}{_GAP})?)?)?\}}"
)
_BOUNDARY_NAME = re.compile(r"\{([A-Za-z-]+)(\}?)")
_BOUNDARY_NAME_WITH_GAPS = re.compile(rf"\{{{_GAP}((?:[A-Za-z-]{_GAP})+)(\}}?)")
_BEHIND_A_DASH = re.compile(rf"{_BLANK}*(?:#{_BLANK}*)?")
"""What verbose mode looks past for the character that tells whether a `-` is the middle of a range. It does
not look past a comment, but past its `#`."""
_HEX = re.compile(r"[xuU]\{([0-9A-Fa-f]+)\}|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})")
_PROPERTY = re.compile(r"[pP](?:([A-Z])|\{([^}:=!^]+)(?:(=|:|!=)([^}]+))?\})")
_CONTROLS = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_POSIX = re.compile(r"\[:(\^?)([a-z]+):\]")
_ASCII = {
    "alnum": ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)), "alpha": ((0x41, 0x5A), (0x61, 0x7A)), "ascii": ((0,
    0x7F),),
    "blank": ((9, 9), (32, 32)), "cntrl": ((0, 31), (0x7F, 0x7F)), "digit": DIGITS, "graph": ((0x21, 0x7E),),
    "lower": ((0x61, 0x7A),),
    "print": ((0x20, 0x7E),), "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)), "space": ((9,
    13), (32, 32)),
    "upper": ((0x41, 0x5A),), "word": ASCII_WORD, "xdigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
}  # fmt: skip
_OPERATORS = ("&&", "--", "~~")


def rust_tree(pattern: str) -> Node:
    """Returns the tree of the pattern. Raises NoOracle."""
    return _Reader(pattern).tree()


def _wrong(what: str) -> NoOracle:
    return NoOracle(f"not a pattern: {what}")


@dataclass
class _Reader:
    """Reads one pattern. Flags and classes are worked out here; groups, alternatives and counts are left to
    the parser of the `regex` library."""

    pattern: str
    at: int = 0
    flags: frozenset[str] = frozenset()
    out: list[str] = field(default_factory=list)
    atom: int | None = None
    """The index in `out` at which that begins which a quantifier would repeat; None where there is nothing to
    repeat."""
    repeated: bool = False
    """Is that a repetition already? Rust repeats it once more, where other dialects read a lazy or possessive
    quantifier."""
    names: set[str] = field(default_factory=set)
    """The names of the groups."""
    groups: list[tuple[int, frozenset[str]]] = field(default_factory=list)
    places: Placeholders = field(default_factory=Placeholders)

    def tree(self) -> Node:
        while self.blanks() < len(self.pattern):
            match self.pattern[self.at]:
                case "(":
                    self.group()
                case ")":
                    if not self.groups:
                        raise _wrong("a group ends that did not begin")
                    self.atom, self.flags = self.groups.pop()
                    self.repeated = False
                    self.skip(")")
                case "|":
                    self.atom = None
                    self.skip("|")
                case "*" | "+" | "?" | "{":
                    self.quantifier()
                case _:
                    self.atom, self.repeated = len(self.out), False
                    self.out.append(self.places.of(self.single()))
        if self.groups:
            raise _wrong("a group does not end")
        return self.places.parsed("".join(self.out))

    def skip(self, text: str) -> None:
        self.out.append(text)
        self.at += 1

    def blanks(self) -> int:
        """Skips what verbose mode leaves out; returns the position behind it."""
        while "x" in self.flags and self.at < len(self.pattern):
            if self.pattern[self.at] == "#":
                end = self.pattern.find("\n", self.at)
                self.at = end if end >= 0 else len(self.pattern)
            elif not re.match(_BLANK, self.pattern[self.at]):
                break
            else:
                self.at += 1
        return self.at

    def next_is(self, text: str) -> bool:
        """Does the text come next? If so, it is skipped."""
        is_next = self.pattern.startswith(text, self.at)
        self.at += len(text) * is_next
        return is_next

    def group(self) -> None:
        match = _GROUP.match(self.pattern, self.at)
        if match is None or (self.pattern.startswith("(?", self.at) and len(match[0]) == 1):
            raise NoOracle(f"{self.pattern[self.at : self.at + 4]!r} begins no group of Rust's")
        name, on, off, end = match.groups()
        if name is not None:
            if not re.fullmatch(r"[^\W\d][\w.\[\]]*", name) or name in self.names:
                raise _wrong(f"a group's name that is none, or stands twice: {name!r:.40}")
            self.names.add(name)
        if not {*(on or "")} <= {*"imsxuUR"} or not {*(off or "")} <= {*"imsxUR"}:
            raise NoOracle("a flag that has no reference automaton")
        before = self.flags
        self.at = match.end()
        self.flags = (self.flags | {*(on or "")}) - {*(off or "")}
        if end == ")":
            self.atom = None
            return
        self.groups.append((len(self.out), before))
        self.out.append("(?:")
        self.atom = None

    def quantifier(self) -> None:
        if self.atom is None:
            raise _wrong("nothing to repeat")
        if self.repeated:
            self.out.insert(self.atom, "(?:")
            self.out.append(")")
        if self.pattern[self.at] == "{":
            count = (_COUNT_WITH_GAPS if "x" in self.flags else _COUNT).match(self.pattern, self.at)
            if count is None:
                raise _wrong("a brace that begins no count")
            self.out.append("{" + "".join(part or "" for part in count.groups()) + "}")
            self.at = count.end()
        else:
            self.skip(self.pattern[self.at])
        self.repeated = True
        if self.blanks() < len(self.pattern):
            self.next_is("?")  # as few as possible: the same language

    def single(self) -> Node:
        character = self.pattern[self.at]
        self.at += 1
        match character:
            case "[":
                return Chars(self.bracketed())
            case "\\":
                return self.assertion() or Chars(self.escape())
            case ".":
                line_end = ((10, 10), (13, 13)) if "R" in self.flags else NEWLINE
                return Chars(EVERY if "s" in self.flags else complement(line_end))
            case "^" | "$" if {"m", "R"} <= self.flags:
                raise NoOracle("ends of lines of CRLF mode have no reference automaton")
            case "^":
                return LINE_START if "m" in self.flags else START
            case "$":
                return LINE_END if "m" in self.flags else END
        return Chars(self.cases(one(ord(character))))

    def cases(self, ranges: Ranges) -> Ranges:
        return with_simple_cases(ranges) if "i" in self.flags else ranges

    def assertion(self) -> Node | None:
        word = asked(r"\w")
        if self.next_is("A"):
            return START
        if self.next_is("z"):
            return END
        if self.next_is("<"):
            return word_start(word)
        if self.next_is(">"):
            return word_end(word)
        if self.next_is("b"):
            return self.word_boundary(word)
        return no_boundary(word) if self.next_is("B") else None

    def word_boundary(self, word: Ranges) -> Node:
        """Returns the node of the `\\b` that was read. A brace behind it begins a name if a letter or `-`
        comes next; else it begins a count, which is left to `quantifier`."""
        pattern = _BOUNDARY_NAME_WITH_GAPS if "x" in self.flags else _BOUNDARY_NAME
        named = pattern.match(self.pattern, self.at)
        if named is None:
            return boundary(word)
        self.at = named.end()
        match re.sub(_GAP, "", named[1]) + named[2]:
            case "start}":
                return word_start(word)
            case "end}":
                return word_end(word)
            case "start-half}":
                return Look(Chars(word), behind=True, negative=True)
            case "end-half}":
                return Look(Chars(word), behind=False, negative=True)
        raise _wrong(r"an unknown \b{...}")

    def escape(self) -> Ranges:
        """Returns the characters of the escape whose backslash was read; a literal stands for one character,
        or for its cases."""
        letter = self.pattern[self.at : self.at + 1]
        if letter and letter in "dswDSW":
            self.at += 1
            return asked(f"\\{letter}")
        if letter and letter in "pP":
            match = _PROPERTY.match(self.pattern, self.at)
            if match is None:
                raise _wrong("an incomplete property")
            if match[3] == "!=":
                # To the crate's documentation that is an inequality, but up to regex-syntax 0.8.9, which
                # backends hold, its code reads it as `=`.
                raise NoOracle("versions of the crate read `!=` in a property differently")
            self.at = match.end()
            ranges = self.cases(
                asked(f"\\p{{{match[1] or '='.join(part for part in (match[2], match[4]) if part)}}}")
            )
            return ranges if letter == "p" else complement(ranges)
        return self.cases(one(self.point()))

    def point(self) -> int:
        letter = self.pattern[self.at : self.at + 1]
        if match := _HEX.match(self.pattern, self.at):
            self.at = match.end()
            value = int(next(filter(None, match.groups())), 16)
            if value > LAST or 0xD800 <= value <= 0xDFFF:
                raise _wrong("not a scalar value")
            return value
        self.at += 1
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter and letter.isascii() and not letter.isalnum() and letter not in "<>":
            return ord(letter)
        raise _wrong(f"\\{letter} is not an escape of Rust's")

    def bracketed(self) -> Ranges:
        """Returns the characters of the class whose `[` was read; the position moves behind its `]`."""
        self.blanks()
        negated = self.next_is("^")
        ranges: Ranges = ()
        operator = ""
        members: list[Ranges] = []
        while self.blanks() < len(self.pattern) and self.next_is("-"):
            members.append(((0x2D, 0x2D),))
        if not members and self.next_is("]"):
            members.append(((0x5D, 0x5D),))
        while True:
            if self.blanks() >= len(self.pattern):
                raise _wrong("a class does not end")
            ends = self.next_is("]")
            following = (
                next((operator for operator in _OPERATORS if self.next_is(operator)), "") if not ends else ""
            )
            if ends or following:
                ranges = _combined(operator, ranges, self.cases(union(*members)))
                operator, members = following, []
                if ends:
                    return complement(ranges) if negated else ranges
            else:
                members.append(self.member())

    def member(self) -> Ranges:
        posix = _POSIX.match(self.pattern, self.at)
        if posix and posix[2] in _ASCII:  # else a class within the class
            self.at = posix.end()
            ranges = self.cases(_ASCII[posix[2]])
            return complement(ranges) if posix[1] else ranges
        if self.next_is("["):
            return self.bracketed()
        if re.match(r"\\[dswDSWpP]", self.pattern[self.at : self.at + 2]):
            self.at += 1
            ranges = self.escape()
            if self.is_before_dash():
                raise _wrong("a class begins no range")
            return ranges
        first = self.class_point()
        if not self.is_before_dash():
            return ((first, first),)
        self.at += 1
        self.blanks()
        last = self.class_point()
        if first > last:
            raise _wrong("a range runs backwards")
        return ranges_of([(first, last)])

    def is_before_dash(self) -> bool:
        """Does a `-` come next that is the middle of a range?"""
        if not self.pattern.startswith("-", self.blanks()):
            return False
        behind = self.at + 1
        if "x" in self.flags and (skipped := _BEHIND_A_DASH.match(self.pattern, behind)):
            behind = skipped.end()
        return self.pattern[behind : behind + 1] not in ("-", "]", "")

    def class_point(self) -> int:
        if self.at >= len(self.pattern):
            raise _wrong("a class does not end")
        self.at += 1
        return self.point() if self.pattern[self.at - 1] == "\\" else ord(self.pattern[self.at - 1])


def _combined(operator: str, left: Ranges, right: Ranges) -> Ranges:
    if operator == "&&":
        return intersection(left, right)
    if operator == "--":
        return intersection(left, complement(right))
    if operator == "~~":
        return union(intersection(left, complement(right)), intersection(right, complement(left)))
    return right
