"""Patterns of ECMA-262 with the `u` flag, as JSON Schema uses them, as trees.

Where ECMA-262 without the flag is laxer (`\\_`, a lone `}`), so is this.
"""

from __future__ import annotations

import re

from harness.oracle.automaton import NoOracle
from harness.oracle.regex.char_classes import (
    ASCII_WORD,
    Ranges,
    asked,
    complement,
    one,
    ranges_of,
    union,
)
from harness.oracle.regex.ecma_classes import (
    GROUP,
    NO_LINE_END,
    QUANTIFIER,
    SETS,
    Groups,
    NotEcma,
    read_class,
    read_escape,
)
from harness.oracle.regex.syntax import Placeholders
from harness.oracle.regex.tree import END, START, Chars, Node, boundary, no_boundary

_SETS = {letter: ranges_of(pairs) for letter, pairs in SETS.items()}
_NODES: dict[str, Node] = {"^": START, "$": END, ".": Chars(ranges_of(NO_LINE_END))}
_BACKREFERENCE = re.compile(r"\\(?:[1-9]|k<)")


def ecma_tree(pattern: str) -> Node:
    """Returns the tree of a pattern with the `u` flag. Raises NoOracle."""
    try:
        return _parsed(pattern)
    except NotEcma as error:
        raise NoOracle(f"not a pattern: {error}") from error


def javascript_tree(pattern: str) -> Node:
    """Returns the tree of a pattern without the flag, where a letter behind a backslash that begins no escape
    is that letter. Raises NoOracle.

    Escapes that are read in another way without the flag (a property, a code point in braces, a named
    reference) have no reference.
    """
    return ecma_tree(_ESCAPED.sub(_letter_itself, pattern))


_ESCAPED = re.compile(r"\\(u\{|.)", re.DOTALL)


def _letter_itself(match: re.Match[str]) -> str:
    if match[1] in ("p", "P", "k", "u{"):
        raise NoOracle(f"without the u flag {match[0]} is read in a way that has no reference automaton")
    if match[1].isascii() and match[1].isalpha() and match[1] not in "bBcdDfnrsStuvwWx":
        return f"\\x{ord(match[1]):02x}"  # not bare, which would complete an escape that was begun before it
    return match[0]


def _parsed(pattern: str) -> Node:
    out: list[str] = []
    places, groups = Placeholders(), Groups()
    at = 0
    while at < len(pattern):
        character, begun = pattern[at], at
        if quantifier := QUANTIFIER.match(pattern, at):
            groups.quantify()
            out.append(quantifier[0])
            at = quantifier.end()
            continue
        if character == "[":
            ranges, at = _class(pattern, at + 1)
            out.append(places.of(Chars(ranges)))
        elif character == "\\":
            node, at = _escape(pattern, at)
            out.append(places.of(node))
        elif character == "(" and pattern[at + 1 : at + 2] == "?":
            group = GROUP.match(pattern, at)
            if group is None:
                raise NotEcma(f"{pattern[at : at + 4]!r} begins no group of ECMA-262")
            out.append("(?:" if group[1] else group[0])
            at = group.end()
        else:
            out.append(
                character
                if character in "()|"
                else places.of(_NODES.get(character) or Chars(one(ord(character))))
            )
            at += 1
        groups.read(pattern[begun:at])
    return places.parsed("".join(out))


def _escape(pattern: str, at: int) -> tuple[Node, int]:
    """Returns the node of the escape at `at` outside a class, and the offset behind it."""
    if _BACKREFERENCE.match(pattern, at):
        raise NoOracle("a backreference has no reference automaton")
    letter = pattern[at + 1 : at + 2]
    if letter in ("b", "B"):
        return (boundary if letter == "b" else no_boundary)(ASCII_WORD), at + 2
    member, end = read_escape(pattern, at)
    return Chars(one(member) if isinstance(member, int) else _named(member)), end


def _class(pattern: str, at: int) -> tuple[Ranges, int]:
    """Returns the characters of the class whose `[` ends at `at`, and the offset behind the class."""
    negated, members, end = read_class(pattern, at)
    ranges = union(
        *(_named(member) if isinstance(member, str) else ranges_of([member]) for member in members)
    )
    return complement(ranges) if negated else ranges, end


def _named(name: str) -> Ranges:
    """Returns the characters of a set by its name, which is that of `read_escape`."""
    if name in _SETS:
        return _SETS[name]
    return complement(asked(f"\\p{name[2:]}")) if name.startswith("\\P") else asked(name)
