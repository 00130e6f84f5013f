"""Sets of characters as ranges of code points, and the characters that a class of the `regex` library stands
for.

The library is asked, over every scalar value that there is: its tables of Unicode are the ones that the regex
suite is judged by.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache

import numpy as np

from harness.backend.unicode_age import VERSIONS, newer_than, version_of
from harness.oracle.automaton import NoOracle
from harness.oracle.regex import ecma_classes
from harness.oracle.utf8 import EVERY as EVERY
from harness.oracle.utf8 import LAST, common, merged

Ranges = tuple[tuple[int, int], ...]
"""Ranges of scalar values, both ends included: in order, disjoint, and as few as possible."""

DIGITS: Ranges = ecma_classes.DIGITS
ASCII_WORD: Ranges = ecma_classes.WORD
NEWLINE: Ranges = ((10, 10),)


def ranges_of(pairs: Iterable[tuple[int, int]]) -> Ranges:
    """Returns the ranges in order and merged, without surrogates."""
    return merged(part for pair in pairs for part in common((pair,), EVERY))


@lru_cache(maxsize=4096)
def one(point: int) -> Ranges:
    """Returns the set of a single character; empty if it is a surrogate."""
    return ranges_of([(point, point)])


def union(*sets: Ranges) -> Ranges:
    return ranges_of(pair for ranges in sets for pair in ranges)


def complement(ranges: Ranges) -> Ranges:
    starts = [0, *(last + 1 for _, last in ranges)]
    ends = [*(first - 1 for first, _ in ranges), LAST]
    return ranges_of(pair for pair in zip(starts, ends, strict=True) if pair[0] <= pair[1])


def intersection(left: Ranges, right: Ranges) -> Ranges:
    return complement(union(complement(left), complement(right)))


def partition(classes: dict[int, Ranges]) -> list[tuple[Ranges, frozenset[int]]]:
    """Returns the characters that are in any of the classes, split into parts whose members are in the same
    classes; each part comes with the names of these classes."""
    turns: dict[int, list[int]] = {}
    for name, ranges in classes.items():
        for first, last in ranges:
            turns.setdefault(first, []).append(name)
            turns.setdefault(last + 1, []).append(name)
    parts: dict[frozenset[int], list[tuple[int, int]]] = {}
    inside: frozenset[int] = frozenset()
    start = 0
    for point in sorted(turns):
        if inside:
            parts.setdefault(inside, []).append((start, point - 1))
        inside, start = inside.symmetric_difference(turns[point]), point
    return [(ranges_of(pairs), names) for names, pairs in parts.items()]


_as_of: ContextVar[str] = ContextVar("_as_of", default="")

UNASSIGNED = 0x5FFFE - 0x2000
"""A code point that no version assigns and that is in no block. What a class says of it, the class says of
every code point that is not yet assigned."""


@cache
def own_version() -> str:
    """Returns the version of Unicode of the library's tables, by which all is judged where nothing else is
    said."""
    return version_of(lambda letter: any(first <= ord(letter) <= last for first, last in _asked(r"\w")))


@contextmanager
def unicode_version(version: str) -> Iterator[None]:
    """While it is entered, classes are those of that version (one of VERSIONS). If it is empty or newer than
    the library's, they are the library's own."""
    older = version and version in VERSIONS[: VERSIONS.index(own_version())]
    token = _as_of.set(version if older else "")
    try:
        yield
    finally:
        _as_of.reset(token)


def asked(text: str) -> Ranges:
    """Returns the characters that a class matches, in the library's syntax; the text must match single
    characters only. Raises NoOracle.

    The version of Unicode that is set decides: a character that is newer counts as an unassigned one. That an
    old character's properties may have changed since is ignored; no letter became one or ceased to be one
    from 14.0 to 18.0.
    """
    return _as_asked_in(text, version) if (version := _as_of.get()) else _asked(text)


@lru_cache(maxsize=2048)
def _as_asked_in(text: str, version: str) -> Ranges:
    ranges, newer = _asked(text), newer_than(version)
    unassigned_too = any(first <= UNASSIGNED <= last for first, last in ranges)
    return union(ranges, newer) if unassigned_too else intersection(ranges, complement(newer))


@lru_cache(maxsize=2048)
def _asked(text: str) -> Ranges:
    import regex

    try:
        matches = regex.compile(f"(?:{text})+").finditer(_every_scalar())
        return ranges_of((_scalar_at(match.start()), _scalar_at(match.end() - 1)) for match in matches)
    except regex.error as error:
        raise NoOracle(f"class {text[:80]!r}: {error}") from error


@cache
def _every_scalar() -> str:
    return b"".join(np.arange(first, last + 1, dtype="<u4").tobytes() for first, last in EVERY).decode(
        "utf-32-le"
    )


def _scalar_at(index: int) -> int:
    """Returns the scalar value at this index of `_every_scalar()`."""
    return index if index <= EVERY[0][1] else index + EVERY[1][0] - EVERY[0][1] - 1


def with_simple_cases(ranges: Ranges) -> Ranges:
    """Returns the characters and those with the same simple case folding (one character to one): k, K and the
    Kelvin sign belong together, but not ss and sharp s."""
    with_cases = _with_simple_cases(ranges)
    if version := _as_of.get():
        with_cases = union(ranges, intersection(with_cases, complement(newer_than(version))))
    return with_cases


@lru_cache(maxsize=1024)
def _with_simple_cases(ranges: Ranges) -> Ranges:
    cased = [
        group
        for group in _case_groups()
        if any(first <= point <= last for first, last in ranges for point in group)
    ]
    return union(ranges, ranges_of((point, point) for group in cased for point in group))


@cache
def _case_groups() -> list[list[int]]:
    """Returns the characters that have the same simple case folding, where there are several, by the tables
    of the library: those of this Python may be older, and leave out the foldings beside a longer one."""
    import regex

    cased = [
        point
        for first, last in _asked(r"[\p{Changes_When_Casefolded}\p{Changes_When_Casemapped}]")
        for point in range(first, last + 1)
        if point not in _WITHOUT_SIMPLE_FOLDING
    ]
    text = "".join(map(chr, cased))
    alike = (regex.findall(f"(?i:\\U{point:08x})", text) for point in cased)
    groups = dict.fromkeys(tuple(map(ord, characters)) for characters in alike)
    return [list(group) for group in groups if len(group) > 1]


_WITHOUT_SIMPLE_FOLDING = (0x130, 0x131)
"""The capital I with a dot and the small one without: the library takes them for an i in either case, but
simple folding leaves them as they are (Unicode's CaseFolding.txt has a full and a Turkic folding of the
first, and none of the second)."""
