"""Sets of characters as ranges of code points, and which characters a class of the `regex` library stands for.

The library is asked, over every scalar value that there is: its tables of Unicode are the ones that the regex suite is judged by.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache

import numpy as np

from harness.oracle.automaton import NoOracle
from harness.oracle.utf8 import LAST, SURROGATES

Ranges = tuple[tuple[int, int], ...]
"""Scalar values, both ends included; in order, disjoint, and as few ranges as possible."""

EVERY: Ranges = ((0, SURROGATES[0] - 1), (SURROGATES[1] + 1, LAST))
DIGITS: Ranges = ((0x30, 0x39),)
ASCII_WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
NEWLINE: Ranges = ((10, 10),)


def ranges_of(pairs: Iterable[tuple[int, int]]) -> Ranges:
    """Any ranges, merged; surrogates are left out."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(part for pair in pairs for part in _scalar(*pair)):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(merged[-1][1], last)
        else:
            merged.append((first, last))
    return tuple(merged)


@lru_cache(maxsize=4096)
def one(point: int) -> Ranges:
    """A single character; nothing if it is a surrogate."""
    return ranges_of([(point, point)])


def _scalar(first: int, last: int) -> Iterator[tuple[int, int]]:
    for low, high in EVERY:
        if max(first, low) <= min(last, high):
            yield max(first, low), min(last, high)


def union(*sets: Ranges) -> Ranges:
    return ranges_of(pair for each in sets for pair in each)


def complement(ranges: Ranges) -> Ranges:
    starts = [0, *(last + 1 for _, last in ranges)]
    ends = [*(first - 1 for first, _ in ranges), LAST]
    return ranges_of(pair for pair in zip(starts, ends, strict=True) if pair[0] <= pair[1])


def intersection(left: Ranges, right: Ranges) -> Ranges:
    return complement(union(complement(left), complement(right)))


def partition(classes: dict[int, Ranges]) -> list[tuple[Ranges, frozenset[int]]]:
    """The characters that are in any of the classes, by which classes they are in."""
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


@lru_cache(maxsize=2048)
def asked(text: str) -> Ranges:
    """The characters that a class matches, in the library's syntax; the text must match single characters only. Raises NoOracle."""
    import regex

    try:
        found = regex.compile(f"(?:{text})+").finditer(_every_scalar())
        return ranges_of((_scalar_at(match.start()), _scalar_at(match.end() - 1)) for match in found)
    except regex.error as error:
        raise NoOracle(f"class {text[:80]!r}: {error}") from error


@cache
def _every_scalar() -> str:
    return b"".join(np.arange(first, last + 1, dtype="<u4").tobytes() for first, last in EVERY).decode("utf-32-le")


def _scalar_at(index: int) -> int:
    """What stands there in `_every_scalar()`."""
    return index if index <= EVERY[0][1] else index + EVERY[1][0] - EVERY[0][1] - 1


@lru_cache(maxsize=1024)
def with_simple_cases(ranges: Ranges) -> Ranges:
    """And what has the same simple case folding (one character to one): k, K and the Kelvin sign, but not ss for sharp s."""
    cased = [group for group in _case_groups() if any(first <= point <= last for first, last in ranges for point in group)]
    return union(ranges, ranges_of((point, point) for group in cased for point in group))


@cache
def _case_groups() -> list[list[int]]:
    groups: dict[str, list[int]] = {}
    for first, last in asked(r"[\p{Changes_When_Casefolded}\p{Changes_When_Casemapped}]"):
        for point in range(first, last + 1):
            groups.setdefault(_simple_fold(chr(point)), []).append(point)
    return [group for group in groups.values() if len(group) > 1]


def _simple_fold(character: str) -> str:
    """Where the full folding is longer, the simple one is the lower case, or the character itself where that is longer too."""
    return next((text for text in (character.casefold(), character.lower()) if len(text) == 1), character)
