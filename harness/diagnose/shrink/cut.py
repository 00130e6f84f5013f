"""Cuts pieces out of sequences, big pieces first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

Part = TypeVar("Part")


def spans(length: int) -> Iterator[tuple[int, int]]:
    """Yields the begin and end of each piece to take out: everything, then halves, quarters, ... and single
    elements; fewer than `2 * length` in all."""
    size = length
    while size:
        for start in range(0, length, size):
            yield start, min(length, start + size)
        size //= 2


def cuts(parts: Sequence[Part]) -> Iterator[tuple[Part, ...]]:
    """Yields the sequence without each of those pieces in turn."""
    for start, end in spans(len(parts)):
        yield (*parts[:start], *parts[end:])


def text_cuts(text: str) -> Iterator[str]:
    """Yields the text without each of those pieces in turn."""
    for start, end in spans(len(text)):
        yield text[:start] + text[end:]


def content_cuts(content: bytes) -> Iterator[bytes]:
    """Yields the content without each of those pieces in turn: pieces of characters, or of bytes where it is
    no UTF-8."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        for start, end in spans(len(content)):
            yield content[:start] + content[end:]
    else:
        yield from (cut.encode() for cut in text_cuts(text))


def holes(content: bytes) -> Iterator[bytes]:
    """Yields the content with one hole: at its beginning, at its end, then anywhere, small holes first."""
    try:
        unit: Sequence[bytes] = [character.encode() for character in content.decode()]
    except UnicodeDecodeError:
        unit = [bytes([byte]) for byte in content]
    for start, end in _hole_spans(len(unit)):
        yield b"".join((*unit[:start], *unit[end:]))


def _hole_spans(length: int) -> Iterator[tuple[int, int]]:
    for size in range(1, length + 1):
        yield 0, size
        if size < length:
            yield length - size, length
    for size in range(1, length - 1):
        for start in range(1, length - size):
            yield start, start + size
