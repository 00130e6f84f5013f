"""Strings as JSON spells them: characters as they are, byte by byte of their UTF-8, and escapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from harness.backend.layout import EVERY_SPELLING, Layout
from harness.oracle.json_schema.formula import FALSE, TRUE, Formula
from harness.oracle.json_schema.frames import Text
from harness.oracle.json_schema.layout import ESCAPES, escaped
from harness.oracle.json_schema.strings import Strings
from harness.oracle.utf8 import Ranges, byte_sequences, common

HEX = b"0123456789abcdefABCDEF"
Beginnings: TypeAlias = Mapping[bytes, bytes]
"""Every beginning of some names, and the bytes that come behind it in them, in their order."""


class Texts:
    """The strings of one schema in the spellings of a layout."""

    def __init__(self, strings: Strings, layout: Layout) -> None:
        self._strings = strings
        self._layout = layout
        self._hex = HEX if layout.hex_digits == "any" else HEX[:16]
        self._escaped = escaped(layout)
        self._has_all_hex = layout.hex_escapes == EVERY_SPELLING.hex_escapes
        self._ranges: dict[tuple[Formula, int, int], bool] = {}

    def after(self, frame: Text, begun: Beginnings) -> Iterator[tuple[int, int, Text | None]]:
        """Yields what follows behind each byte that may come next, as the first and the last of bytes with
        the same behind them; None behind the quotation mark that ends the string. `begun` are the beginnings
        of the names that are listed, for the name of a member."""
        if frame.escape:
            yield from ((byte, byte, following) for byte, following in self._in_escape(frame, begun))
            return
        strings = self._strings
        if frame.within == 0:
            if strings.holds(frame.formulas[0]):
                yield 0x22, 0x22, None
            if self._some_of(frame.formulas[0], self._escaped):
                yield 0x5C, 0x5C, frame._replace(escape=(0,))
        kinds = strings.kinds(frozenset().union(*(formula.atoms for formula in frame.formulas)))
        after: dict[tuple[int, int], Text | None] = {}
        for first, last, within in strings.runs(kinds, frame.within):
            kind = (within, kinds[first])
            if kind not in after:
                formulas = tuple(
                    strings.after_byte(each, first, frame.within == 0) for each in frame.formulas
                )
                is_good = strings.can_end(formulas[0], within)
                after[kind] = Text(formulas, within, (), None, frame.is_name) if is_good else None
            following = after[kind]
            if following is None:
                continue
            if frame.name is not None:
                for byte in begun[frame.name]:
                    if first <= byte <= last:
                        if first < byte:
                            yield first, byte - 1, following
                        yield byte, byte, following._replace(name=frame.name + bytes((byte,)))
                        first = byte + 1
            if first <= last:
                yield first, last, following

    def _in_escape(self, frame: Text, begun: Beginnings) -> Iterator[tuple[int, Text]]:
        stage, *read = frame.escape
        wanted = frame.formulas[0]
        is_free = (
            self._has_all_hex and frame.name is None and not any(formula.atoms for formula in frame.formulas)
        )
        if stage == 0:
            for byte, point in ESCAPES.items():
                if byte in self._layout.short_escapes and self._some(wanted, point, point):
                    yield byte, self._character(frame, point, begun)
            if self._some_of(wanted, self._layout.hex_escapes):
                yield 0x75, frame._replace(escape=(1, 0, 0))
        elif stage == 2:
            yield 0x5C, frame._replace(escape=(3, *read))
        elif stage == 3:
            yield 0x75, frame._replace(escape=(4, 0, 0, *read))
        else:
            bits, count, *high = read
            for byte in self._hex:
                value, left = bits * 16 + int(chr(byte), 16), 3 - count
                first, last = value << 4 * left, ((value + 1) << 4 * left) - 1
                if not self._some_of(wanted, common(_points(first, last, *high), self._layout.hex_escapes)):
                    continue
                if is_free:
                    value = _surrogate(value, count + 1)
                if left:
                    yield byte, frame._replace(escape=(stage, value, count + 1, *high))
                elif high:
                    point = 0x10000 + ((high[0] - 0xD800) << 10) + (value - 0xDC00)
                    yield byte, self._character(frame, point, begun)
                elif 0xD800 <= value <= 0xDBFF:
                    yield byte, frame._replace(escape=(2, value))
                else:
                    yield byte, self._character(frame, value, begun)

    def _character(self, frame: Text, point: int, begun: Beginnings) -> Text:
        text = chr(point).encode()
        formulas = tuple(self._strings.after_text(each, text) for each in frame.formulas)
        name = frame.name + text if frame.name is not None else None
        return Text(formulas, 0, (), name if name in begun else None, frame.is_name)

    def _some_of(self, formula: Formula, ranges: Ranges) -> bool:
        return any(self._some(formula, first, last) for first, last in ranges)

    def _some(self, formula: Formula, first: int, last: int) -> bool:
        """May the string go on with a character between these two, both included, and be completed?"""
        if not formula.atoms:
            return formula is TRUE and first <= last
        key = (formula, first, last)
        if key not in self._ranges:
            self._ranges[key] = any(self._sequence(formula, each, 0) for each in byte_sequences(first, last))
        return self._ranges[key]

    def _sequence(self, formula: Formula, ranges: tuple[tuple[int, int], ...], place: int) -> bool:
        strings = self._strings
        if place == len(ranges):
            return strings.can_end(formula)
        first, last = ranges[place]
        kinds = strings.kinds(formula.atoms)
        tried = set()
        for byte in range(first, last + 1):
            if kinds[byte] in tried:
                continue
            tried.add(kinds[byte])
            after = strings.after_byte(formula, byte, place == 0)
            if after is not FALSE and self._sequence(after, ranges, place + 1):
                return True
        return False


def _surrogate(bits: int, count: int) -> int:
    """Returns the first `count` hexadecimal digits of a UTF-16 unit, or those of one that is a surrogate, or
    none, as well as it."""
    if count == 1:
        return bits if bits == 0xD else 0
    begins = bits >> 4 * (count - 2)
    return (begins & 0xFC) << 4 * (count - 2) if begins >= 0xD8 and begins <= 0xDF else 0


def _points(first: int, last: int, high: int | None = None) -> Ranges:
    """Returns the characters that a UTF-16 unit between these two begins or, behind a high surrogate,
    ends."""
    if high is not None:
        low, up = max(first, 0xDC00), min(last, 0xDFFF)
        base = 0x10000 + ((high - 0xD800) << 10) - 0xDC00
        return ((base + low, base + up),) if low <= up else ()
    found = [(first, min(last, 0xD7FF))] if first <= 0xD7FF else []
    if max(first, 0xD800) <= min(last, 0xDBFF):
        low, up = max(first, 0xD800) - 0xD800, min(last, 0xDBFF) - 0xD800
        found.append((0x10000 + (low << 10), 0x10000 + (up << 10) + 0x3FF))
    if last >= 0xE000:
        found.append((max(first, 0xE000), last))
    return tuple(found)
