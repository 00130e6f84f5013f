"""Reads what a GGUF file says of its tokenizer, in the keys before its tensors.

The format is that of ggml (docs/gguf.md of ggml-org/ggml), versions 2 and 3. The library `gguf` reads such
files too; it makes objects of numpy for each text, which takes ten times as long for 262,144 tokens.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.backend.vocabulary.model import MOST_IDS
from harness.errors import BadInput

MAGIC = b"GGUF"
VERSIONS = (2, 3)
TEXT, ARRAY = 8, 9
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""The types of the format that are numbers, and how `struct` writes them."""

SMALLEST = {TEXT: 8, ARRAY: 12}
"""The fewest bytes of a text and of an array: a count that cannot fit into the file is not believed."""

KEPT = "tokenizer."
"""How the keys begin whose values are kept: others are passed over, however much they hold."""


def read_metadata(path: Path) -> dict[str, Any]:
    """Returns each key of the tokenizer with its value: a number, a text as bytes, or a tuple or list of
    them. Raises BadInput for what is no whole GGUF file, or counts more than any vocabulary has."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return _metadata(content)
    except (struct.error, ValueError, IndexError, OverflowError, RecursionError) as error:
        raise BadInput(f"{path}: no whole GGUF file of version 2 or 3 ({error})") from error
    except MemoryError as error:
        raise BadInput(f"{path}: what it says of its tokenizer is more than this machine's memory") from error
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error


def _metadata(content: mmap.mmap) -> dict[str, Any]:
    magic, version, _, count = struct.unpack_from("<4sIQQ", content)
    if magic != MAGIC or version not in VERSIONS:
        raise ValueError(f"it begins with {magic!r} and version {version}")
    if count > MOST_IDS:
        raise ValueError(f"{count} keys")
    place = 24
    kept = True
    length = len(content)
    text_length = struct.Struct("<Q").unpack_from

    def text() -> bytes:
        nonlocal place
        start = place + 8
        place = start + text_length(content, place)[0]
        if place > length:
            raise ValueError("a text goes beyond the end")
        return content[start:place] if kept else b""

    def array() -> Any:
        nonlocal place
        kind, items = struct.unpack_from("<IQ", content, place)
        place += 12
        size = struct.calcsize(NUMBERS[kind]) if kind in NUMBERS else SMALLEST.get(kind, 0)
        passed = kind in NUMBERS and not kept
        if not size or items * size > length - place or (items > MOST_IDS and not passed):
            raise ValueError(f"an array of {items} items of type {kind}")
        if passed:
            place += size * items
            return ()
        if kind not in NUMBERS:
            read = readers[kind]
            return [read() for _ in range(items)]
        values = struct.unpack_from(f"<{items}{NUMBERS[kind]}", content, place)
        place += size * items
        return values

    readers: dict[int, Callable[[], Any]] = {TEXT: text, ARRAY: array}

    def value() -> Any:
        nonlocal place
        (kind,) = struct.unpack_from("<I", content, place)
        place += 4
        if kind in readers:
            return readers[kind]()
        if kind not in NUMBERS:
            raise ValueError(f"a value of type {kind}")
        (number,) = struct.unpack_from(f"<{NUMBERS[kind]}", content, place)
        place += struct.calcsize(NUMBERS[kind])
        return number

    metadata = {}
    for _ in range(count):
        kept = True
        key = text().decode()
        kept = key.startswith(KEPT)
        said = value()
        if kept:
            metadata[key] = said
    return metadata
