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
    NO_LINE_END,
    QUANTIFIER,
    SETS,
    Groups,
    NotEcma,
    complement,
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
    found = _compiled(pattern).search(text) is not None
    if _refers_into_a_repetition(pattern):
        raise Unjudgeable("the pattern refers back into a group that repeats")
    return found


def is_pattern(pattern: str) -> bool:
    """Is this a pattern of ECMA-262 that can be matched here?"""
    try:
        _compiled(pattern)
    except NotAPattern:
        return False
    return True


_NAME = r"(?:[^\W\d]|\$)[\w$]*"
_GROUP = re.compile(rf"\(\?(?::|=|!|<=|<!|<({_NAME})>)")
_BACKREFERENCE = re.compile(rf"\\(?:([1-9][0-9]*)|k<({_NAME})>)")


def _ranges(pairs: Iterable[tuple[int, int]]) -> str:
    """Returns the pairs as the inside of a class."""
    return "".join(
        f"\\U{first:08x}" if first == last else f"\\U{first:08x}-\\U{last:08x}" for first, last in pairs
    )


_SETS = {letter: _ranges(pairs) for letter, pairs in SETS.items()}
_IN_WORD = f"[{_SETS['w']}]"
_BOUNDARY = f"(?:(?<={_IN_WORD})(?!{_IN_WORD})|(?<!{_IN_WORD})(?={_IN_WORD}))"
_ASSERTIONS = {"^": r"\A", "$": r"\Z", ".": f"[{_ranges(NO_LINE_END)}]"}


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    import regex

    try:
        return regex.compile(written_out(pattern))
    except regex.error as error:
        raise NotAPattern(f"pattern {pattern[:80]!r}: {error}") from error


def written_out(pattern: str) -> str:
    """Returns the same pattern in the syntax of the `regex` library, and in that of Python's `re` if it needs
    no more than that has. Raises `NotAPattern`."""
    try:
        return "".join(_pieces(pattern))
    except NotEcma as error:
        raise NotAPattern(f"pattern {pattern[:80]!r}: {error}") from error


def _pieces(pattern: str) -> Iterator[str]:
    at, groups = 0, Groups()
    while at < len(pattern):
        character, begun = pattern[at], at
        if quantifier := QUANTIFIER.match(pattern, at):
            if not groups.may_repeat:
                raise NotEcma("nothing to repeat")
            groups.may_repeat = False
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
            group = _GROUP.match(pattern, at)
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


def _plain(name: str) -> str:
    """Returns the name of a group as Python's libraries take it: without a dollar sign."""
    return name.replace("$", "_dollar_")


@lru_cache(maxsize=1024)
def _refers_into_a_repetition(pattern: str) -> bool:
    """Does a back-reference name a group that stands within one that may repeat? Such a group may be passed
    over in a later repetition, which then has no capture by ECMA-262, and in other matchers an earlier one's.
    The pattern is known to be one."""
    if _BACKREFERENCE.search(pattern) is None:
        return False
    at, count = 0, 0
    names: dict[str, int] = {}
    before: list[int] = []  # for each open group, how many captures there are before what is in it
    closed = range(0)  # the captures within the group that was closed last
    repeated: set[int] = set()
    referred: set[int | str] = set()
    while at < len(pattern):
        if quantifier := QUANTIFIER.match(pattern, at):
            if _may_repeat(quantifier[0]):
                repeated.update(closed)
            at, closed = quantifier.end(), range(0)
            continue
        closed = range(0)
        if back := _BACKREFERENCE.match(pattern, at):
            referred.add(int(back[1]) if back[1] else back[2])
            at = back.end()
        elif pattern[at] == "\\":
            at += 2
        elif pattern[at] == "[":
            at = read_class(pattern, at + 1)[2]
        elif pattern[at] == "(":
            group = _GROUP.match(pattern, at)
            if group is None or group[1]:
                count += 1
                names[group[1] if group else ""] = count
            before.append(count)
            at = group.end() if group else at + 1
        else:
            if pattern[at] == ")":
                closed = range(before.pop() + 1, count + 1)
            at += 1
    return bool({one if isinstance(one, int) else names.get(one, 0) for one in referred} & repeated)


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
        pairs, negated = [*complement(merged(pairs))], False
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
