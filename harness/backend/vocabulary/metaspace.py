"""Tokenizers that write a space as `▁` (SentencePiece and its descendants)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

MARKER = "▁"
_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def byte_of_piece(piece: str) -> bytes | None:
    """Returns the byte that a byte-fallback piece such as `<0x0A>` stands for; None for any other piece."""
    match = _BYTE_PIECE.fullmatch(piece)
    return bytes.fromhex(match[1]) if match else None


def spelling_markers(
    tokenize: Callable[[str], list[int]], marker_tokens: Sequence[int]
) -> Callable[[str], list[int]]:
    """Returns a `tokenize` that writes `▁` in the text as `marker_tokens`: the tokenizer itself would turn it
    into a space."""

    def tokenize_text(text: str) -> list[int]:
        first, *others = text.split(MARKER)
        tokens = tokenize(first) if first else []
        for part in others:
            tokens += marker_tokens
            tokens += tokenize(part) if part else []
        return tokens

    return tokenize_text
