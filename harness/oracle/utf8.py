"""UTF-8: ranges of code points as ranges of bytes, and whether a text is whole."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from harness.backend.layout import LAST as LAST
from harness.backend.layout import Ranges as Ranges

ByteRange = tuple[int, int]
"""The first and the last byte of a range, both included."""

SURROGATES = (0xD800, 0xDFFF)
EVERY: Ranges = ((0, SURROGATES[0] - 1), (SURROGATES[1] + 1, LAST))
"""Every Unicode scalar value, and so every character that UTF-8 spells."""

# Where the encoding changes its length.
_BANDS = ((0, 0x7F), (0x80, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF), (0x10000, LAST))


def merged(pairs: Iterable[tuple[int, int]]) -> Ranges:
    """Returns the same code points as ranges that are in order, disjoint, and as few as possible."""
    ranges: list[tuple[int, int]] = []
    for first, last in sorted(pairs):
        if ranges and first <= ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], max(last, ranges[-1][1]))
        else:
            ranges.append((first, last))
    return tuple(ranges)


def common(ranges: Ranges, others: Ranges) -> Ranges:
    """Returns the code points that are in both, for short lists of ranges that are each disjoint."""
    return tuple(
        (max(first, low), min(last, high))
        for first, last in ranges
        for low, high in others
        if max(first, low) <= min(last, high)
    )


def is_whole(text: bytes) -> bool:
    """Returns whether the text is valid UTF-8 from end to end."""
    if text.isascii():
        return True
    if len(text) == 1:  # without an exception, which takes longer than all else
        return False
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


@cache
def byte_sequences(first: int, last: int) -> tuple[tuple[ByteRange, ...], ...]:
    """Returns the UTF-8 of all scalar values from `first` to `last`, as disjoint sequences of byte ranges, in
    order.

    A sequence stands for every combination of one byte out of each of its ranges; a character's bytes are in
    exactly one sequence.
    """
    sequences: list[tuple[ByteRange, ...]] = []
    for low, high in _BANDS:
        low, high = max(low, first), min(high, last)
        if low <= high:
            sequences += _split(chr(low).encode(), chr(high).encode())
    return tuple(sequences)


def _split(low: bytes, high: bytes) -> list[tuple[ByteRange, ...]]:
    """Returns the sequences of byte ranges between two encodings of the same length."""
    if len(low) == 1:
        return [((low[0], high[0]),)]
    if low[0] == high[0]:
        return [((low[0], low[0]), *rest) for rest in _split(low[1:], high[1:])]
    smallest, largest = b"\x80" * (len(low) - 1), b"\xbf" * (len(low) - 1)
    first, last = low[0], high[0]
    before: list[tuple[ByteRange, ...]] = []
    after: list[tuple[ByteRange, ...]] = []
    if low[1:] != smallest:
        before = [((first, first), *rest) for rest in _split(low[1:], largest)]
        first += 1
    if high[1:] != largest:
        after = [((last, last), *rest) for rest in _split(smallest, high[1:])]
        last -= 1
    middle = [((first, last), *((0x80, 0xBF),) * (len(low) - 1))] if first <= last else []
    return before + middle + after
