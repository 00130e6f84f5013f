"""Writes GGUF files byte by byte, as the format's description has them, without any library."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9


def write_gguf(path: Path, metadata: Mapping[str, object]) -> Path:
    """Writes a file of version 3 without tensors. Texts and lists of texts, whole numbers, and lists of
    numbers are known."""
    content = struct.pack("<4sIQQ", b"GGUF", 3, 0, len(metadata))
    for key, value in metadata.items():
        content += _text(key) + _value(value)
    path.write_bytes(content)
    return path


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def _value(value: object) -> bytes:
    if isinstance(value, bool):
        return struct.pack("<I?", BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", UINT32, value)
    if isinstance(value, str):
        return struct.pack("<I", STRING) + _text(value)
    assert isinstance(value, list)
    if isinstance(value[0], str):
        return struct.pack("<IIQ", ARRAY, STRING, len(value)) + b"".join(map(_text, value))
    kind, letter = (INT32, "i") if isinstance(value[0], int) else (FLOAT32, "f")
    return struct.pack(f"<IIQ{len(value)}{letter}", ARRAY, kind, len(value), *value)
