"""How our processes talk: frames on a pipe, each of them a JSON object with bytes behind it."""

from __future__ import annotations

import struct

# Bound before a backend is imported, which may put something else in their place.
from json import dumps, loads
from os import write
from typing import Any

HEADER = struct.Struct(">4sII")
MAGIC = b"GBF1"
LONGEST = 1 << 28


class BrokenChannel(Exception):
    """The bytes on a pipe are no frames, because somebody else wrote there; or the pipe was closed."""


def frame(message: dict[str, Any], blob: bytes = b"") -> bytes:
    """Returns the bytes of one frame."""
    text = dumps(message).encode()
    return HEADER.pack(MAGIC, len(text), len(blob)) + text + blob


def send(fd: int, message: dict[str, Any], blob: bytes = b"") -> None:
    """Write one frame, whole."""
    data = memoryview(frame(message, blob))
    while data:
        data = data[write(fd, data) :]


class Frames:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self.buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[dict[str, Any], bytes]]:
        """Take these bytes, and return the frames that are whole now. Raises BrokenChannel."""
        self.buffer += data
        frames = []
        while len(self.buffer) >= HEADER.size:
            magic, text_size, blob_size = HEADER.unpack_from(self.buffer)
            if magic != MAGIC or text_size > LONGEST or blob_size > LONGEST:
                raise BrokenChannel
            end = HEADER.size + text_size + blob_size
            if len(self.buffer) < end:
                break
            try:
                message = loads(self.buffer[HEADER.size : HEADER.size + text_size])
            except ValueError as error:
                raise BrokenChannel from error
            if not isinstance(message, dict):
                raise BrokenChannel
            frames.append((message, bytes(self.buffer[HEADER.size + text_size : end])))
            del self.buffer[:end]
        if self.buffer and not MAGIC.startswith(bytes(self.buffer[:4])) and not self.buffer.startswith(MAGIC):
            raise BrokenChannel
        return frames
