"""Tokenizers that write each byte as one letter (GPT-2 and its descendants)."""

from __future__ import annotations


def _byte_level_alphabet() -> dict[int, int]:
    """Returns the byte for each code point by which byte-level tokenizers write one; for other code points
    below 256, a code point that Latin-1 lacks."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: 0xFFFF for byte in others} | {256 + place: byte for place, byte in enumerate(others)}


_BYTE_LEVEL = _byte_level_alphabet()


def bytes_of_letters(piece: str) -> bytes:
    """Returns the bytes that the letters of a byte-level tokenizer stand for; the text's own UTF-8 where one
    of its characters is no such letter."""
    try:
        return piece.translate(_BYTE_LEVEL).encode("latin-1")
    except UnicodeEncodeError:
        return piece.encode()


_LETTERS = {byte: letter for letter, byte in _BYTE_LEVEL.items() if letter > 255}


def letters_of_bytes(text: bytes) -> str:
    """Returns the letters by which a byte-level tokenizer writes these bytes."""
    return text.decode("latin-1").translate(_LETTERS)
