"""Matches the patterns of JSON Schema (ECMA-262 with the `u` flag) by writing them out for the `regex`
library.

`\\d`, `\\w`, `\\s`, `\\b`, `.`, `^` and `$` mean what they mean in ECMA-262, not what they mean in Python.
Where ECMA-262 without the flag is laxer (`\\_`, a lone `}`), so is this.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from harness.oracle.judge.unjudgeable import Unjudgeable
from harness.oracle.regex.ecma_classes import (
    GROUP,
    NAME,
    NO_LINE_END,
    QUANTIFIER,
    SETS,
    Groups,
    NotEcma,
    complement_of_pairs,
    read_class,
    read_escape,
)
from harness.oracle.utf8 import merged


class NotAPattern(ValueError):
    """The text is not a pattern of ECMA-262 that can be matched here; the message says why, in one line."""


def finds(pattern: str, text: str) -> bool:
    """Does the pattern match somewhere in the text?  Raises `NotAPattern`, and `Unjudgeable` for a pattern
    that refers back into a group that repeats: ECMA-262 forgets its captures at each repetition, and no
    matcher here does."""
    compiled, captures = _compiled(pattern)
    if captures.are_forgotten:
        raise Unjudgeable("the pattern refers back into a group that repeats")
    return compiled.search(text) is not None


def is_pattern(pattern: str) -> bool:
    """Is this a pattern of ECMA-262 that can be matched here?"""
    try:
        _compiled(pattern)
    except NotAPattern:
        return False
    return True


_BACKREFERENCE = re.compile(rf"\\(?:([1-9][0-9]*)|k<({NAME})>)")


def _ranges(pairs: Iterable[tuple[int, int]]) -> str:
    """Returns the pairs as the inside of a class."""
    return "".join(
        f"\\U{first:08x}" if first == last else f"\\U{first:08x}-\\U{last:08x}" for first, last in pairs
    )


_SETS = {letter: _ranges(pairs) for letter, pairs in SETS.items()}
_IN_WORD = f"[{_SETS['w']}]"
_BOUNDARY = f"(?:(?<={_IN_WORD})(?!{_IN_WORD})|(?<!{_IN_WORD})(?={_IN_WORD}))"
_ASSERTIONS = {"^": r"\A", "$": r"\Z", ".": f"[{_ranges(NO_LINE_END)}]"}


class Captures:
    """The captures of a pattern that is read part by part: which of them stand within a group that may
    repeat, and which are referred back to."""

    def __init__(self) -> None:
        self._count = 0
        self._names: dict[str, int] = {}
        self._open: list[tuple[int, int]] = []
        """For each open group its own number, 0 if it captures nothing, and how many captures there are
        before what is in it."""
        self._closed: frozenset[int] = frozenset()
        """The captures within the group that the last part closed, and its own if it is referred to within
        it."""
        self._within: set[int] = set()
        """The captures that are referred to within their own group."""
        self._repeated: set[int] = set()
        self._referred: set[int | str] = set()

    def read(self, part: str) -> None:
        """Takes in the next part of the pattern that is no quantifier."""
        self._closed = frozenset()
        if back := _BACKREFERENCE.fullmatch(part):
            referred = int(back[1]) if back[1] else back[2]
            self._referred.add(referred)
            self._within.update({self._number(referred)} & {number for number, _ in self._open if number})
        elif part == ")" and self._open:
            number, before = self._open.pop()
            self._closed = frozenset(range(before + 1, self._count + 1)) | ({number} & self._within)
        elif part[0] == "(":
            captures = part == "(" or part.endswith(">")
            if captures:
                self._count += 1
                self._names[part[3:-1]] = self._count
            self._open.append((self._count if captures else 0, self._count))

    def quantify(self, quantifier: str) -> None:
        """Takes in a quantifier of what was read last."""
        if _may_repeat(quantifier):
            self._repeated.update(self._closed)
        self._closed = frozenset()

    def _number(self, of: int | str) -> int:
        return self._names.get(of, 0) if isinstance(of, str) else of

    @property
    def are_forgotten(self) -> bool:
        """Does the pattern refer back to a capture within a group that may repeat? A later repetition may
        pass that capture over, and then there is none by ECMA-262, where other matchers have an earlier
        one."""
        return not self._repeated.isdisjoint(map(self._number, self._referred))


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> tuple[Any, Captures]:
    import regex

    captures = Captures()
    try:
        return regex.compile(written_out(pattern, captures)), captures
    except regex.error as error:
        raise NotAPattern(f"pattern {pattern[:80]!r}: {error}") from error


def written_out(pattern: str, captures: Captures | None = None) -> str:
    """Returns the same pattern in the syntax of the `regex` library, and in that of Python's `re` if it needs
    no more than that has; `captures` takes in its parts. Raises `NotAPattern`."""
    try:
        return "".join(_pieces(pattern, captures or Captures()))
    except NotEcma as error:
        raise NotAPattern(f"pattern {pattern[:80]!r}: {error}") from error


def _pieces(pattern: str, captures: Captures) -> Iterator[str]:
    at, groups = 0, Groups()
    while at < len(pattern):
        character, begun = pattern[at], at
        if quantifier := QUANTIFIER.match(pattern, at):
            groups.quantify()
            captures.quantify(quantifier[0])
            yield quantifier[0]
            at = quantifier.end()
            continue
        if character == "[":
            piece, at = _class(pattern, at + 1)
            yield piece
        elif character == "\\":
            piece, at = _escape(pattern, at)
            yield piece
        elif character == "(" and pattern[at + 1 : at + 2] == "?":
            group = GROUP.match(pattern, at)
            if group is None:
                raise NotEcma("not a group of ECMA-262")
            yield f"(?<{_plain(group[1])}>" if group[1] else group[0]
            at = group.end()
        else:
            yield _ASSERTIONS.get(character) or (
                character if character in "()|" else f"\\U{ord(character):08x}"
            )
            at += 1
        groups.read(pattern[begun:at])
        captures.read(pattern[begun:at])


def _plain(name: str) -> str:
    """Returns the name of a group as Python's libraries take it: without a dollar sign."""
    return name.replace("$", "_dollar_")


def _may_repeat(quantifier: str) -> bool:
    """May what is quantified so come more than once?"""
    if quantifier[0] != "{":
        return quantifier[0] != "?"
    most = quantifier.rstrip("?")[1:-1].rpartition(",")[2]
    return not most or int(most) > 1


def _escape(pattern: str, at: int) -> tuple[str, int]:
    """Returns what the escape at `at` becomes outside a class, and the offset behind it."""
    letter = pattern[at + 1 : at + 2]
    if back := _BACKREFERENCE.match(pattern, at):
        group = back[1] or _plain(back[2])
        # A group that took no part matches the empty text in ECMA-262; it does not fail.
        return f"(?({group})(?:\\g<{group}>))", back.end()
    if letter in ("b", "B"):
        return (_BOUNDARY if letter == "b" else f"(?!{_BOUNDARY})"), at + 2
    member, end = read_escape(pattern, at)
    return (f"\\U{member:08x}" if isinstance(member, int) else f"[{_SETS.get(member, member)}]"), end


def _class(pattern: str, at: int) -> tuple[str, int]:
    """Returns what the class whose `[` ends at `at` becomes, and the offset behind it.

    A negated class becomes the characters that it leaves, because version 2026.11.15 of the library takes
    `[^a]|[^b]` for `[^ab]`. With a property in it, it stays negated, which that version mistakes only where
    nothing is left.
    """
    negated, members, end = read_class(pattern, at)
    pairs: list[tuple[int, int]] = []
    properties = ""
    for member in members:
        if isinstance(member, tuple):
            pairs.append(member)
        elif member in SETS:
            pairs += SETS[member]
        else:
            properties += member
    if negated and not properties:
        pairs, negated = [*complement_of_pairs(merged(pairs))], False
    inside = _ranges(pairs) + properties
    if not inside or (negated and _is_taken_for_every_character(inside)):
        return "(?!)", end
    return f"[{'^' if negated else ''}{inside}]", end


def _is_taken_for_every_character(inside: str) -> bool:
    r"""Does the library take the negated class for every character, as `[^\p{L}\P{L}]`, which has none?"""
    import regex

    try:
        return all(regex.fullmatch(f"[{sign}{inside}]", "a") for sign in ("", "^"))
    except regex.error:  # said by whoever compiles the whole pattern
        return False
