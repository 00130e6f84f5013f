"""How worker and coordinator talk: frames of JSON with bytes behind it on one pipe, one short line on another."""

from __future__ import annotations

import json
import os
import struct
from typing import Any

HEADER = struct.Struct(">4sII")
MAGIC = b"GBF1"
LONGEST = 1 << 28


class BrokenChannel(Exception):
    """The bytes on the reply pipe are no frames: somebody else wrote there."""


def send(fd: int, message: dict[str, Any], blob: bytes = b"") -> None:
    """Write one frame, whole."""
    text = json.dumps(message).encode()
    data = memoryview(HEADER.pack(MAGIC, len(text), len(blob)) + text + blob)
    while data:
        data = data[os.write(fd, data) :]


class Frames:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self.buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[dict[str, Any], bytes]]:
        """The frames that are whole now. Raises BrokenChannel."""
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
                message = json.loads(self.buffer[HEADER.size : HEADER.size + text_size])
            except ValueError as error:
                raise BrokenChannel from error
            if not isinstance(message, dict):
                raise BrokenChannel
            frames.append((message, bytes(self.buffer[HEADER.size + text_size : end])))
            del self.buffer[:end]
        if self.buffer and not MAGIC.startswith(bytes(self.buffer[:4])) and not self.buffer.startswith(MAGIC):
            raise BrokenChannel
        return frames
