"""Every short text over a few letters, for what is held against a definition by trying all of them."""

from __future__ import annotations

from itertools import product


def all_texts(letters: str, longest: int) -> list[str]:
    """Returns every text of these letters up to this length, the shorter ones first."""
    return [
        "".join(characters) for length in range(longest + 1) for characters in product(letters, repeat=length)
    ]
