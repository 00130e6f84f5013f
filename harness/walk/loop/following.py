"""Where an output is in a template: in a block, whose rest is known, or in the value of a slot."""

from __future__ import annotations

from typing import Literal

from harness.walk.loop.template import Template

_LITERALS = (b"true", b"false", b"null")
_NUMBER = frozenset(b"0123456789+-.eE")
_BLANKS = frozenset(b" \t\r\n")


class Following:
    """Reads an output byte by byte.

    An output in another style than the template's (other blanks, other order) leaves it for good.
    """

    def __init__(self, template: Template) -> None:
        self._template = template
        self._block = 0
        self._within = 0
        """How many bytes of the block have been read."""
        self._value: _Value | None = None
        """The value that is being read; None within a block."""
        self.is_lost = False

    @property
    def is_done(self) -> bool:
        """Returns whether the last block has been read."""
        return self._block == len(self._template.blocks)

    def read(self, text: bytes) -> None:
        """Reads on; `text` is what the output continues with."""
        for byte in text:
            if self.is_lost:
                return
            self._read(byte)

    def rest(self) -> bytes:
        """Returns the bytes that come next whatever the values are; empty inside a value, at the end, and
        where the output has left the template."""
        if self.is_lost or self.is_done or self._value is not None:
            return b""
        return self._template.blocks[self._block][self._within :]

    def _read(self, byte: int) -> None:
        if self._value is not None:
            state = self._value.read(byte)
            if state == "more":
                return
            self._value = None
            self._block += 1
            if state == "complete":
                return
        if self.is_done or self._template.blocks[self._block][self._within] != byte:
            self.is_lost = True
            return
        self._within += 1
        if self._within == len(self._template.blocks[self._block]):
            self._within = 0
            if self._block == len(self._template.slots):
                self._block += 1
            else:
                self._value = _Value()


class _Value:
    """One JSON value. Only its end is found; what it is and whether it is right is not looked at."""

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._is_escaped = False
        self._scalar = b""

    def read(self, byte: int) -> Literal["more", "complete", "over"]:
        """`complete` if the value ends with this byte, `over` if it ended before it (only a number does),
        else `more`."""
        if self._in_string:
            if self._is_escaped:
                self._is_escaped = False
            elif byte == ord("\\"):
                self._is_escaped = True
            elif byte == ord('"'):
                self._in_string = False
                return "more" if self._depth else "complete"
            return "more"
        if self._scalar:
            return self._read_scalar(byte)
        if byte == ord('"'):
            self._in_string = True
        elif byte in b"{[":
            self._depth += 1
        elif byte in b"}]":
            self._depth -= 1
            return "more" if self._depth > 0 else "complete"
        elif not self._depth and byte not in _BLANKS:
            self._scalar = bytes([byte])
        return "more"

    def _read_scalar(self, byte: int) -> Literal["more", "complete", "over"]:
        longer = self._scalar + bytes([byte])
        if longer in _LITERALS:
            return "complete"
        if byte in _NUMBER or any(literal.startswith(longer) for literal in _LITERALS):
            self._scalar = longer
            return "more"
        return "over"
