"""The thinking part of an output: the ids that end it, and what may come before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache

import numpy as np

from harness.backend.grammar import Bitmask, BoolMask, pack_mask
from harness.backend.vocabulary import Vocabulary
from harness.errors import BadInput

NAMES = ("</think>", "[/THINK]", "<|/think|>")
"""What models call the special token that ends their thinking."""


class Thinking:
    """The ids that end the thinking, and the masks of the thinking part; one for each vocabulary and end.

    The thinking ends with the first token that completes the sequence of ids, wherever that began. Ids count
    and not text, as in SGLang's `TokenSequenceMatcher` and vLLM's parsers: the same text in other tokens does
    not end it.
    """

    def __init__(self, vocabulary: Vocabulary, end: Sequence[int]) -> None:
        """`end` are the ids, one or several in this order. Raises BadInput if one of them can do no such
        thing, or if there is none."""
        never = (*vocabulary.padding_tokens, *vocabulary.eos_tokens)
        if wrong := [token for token in end if not 0 <= token < vocabulary.size or token in never]:
            raise BadInput(
                f"token {wrong[0]} of vocabulary {vocabulary.name} cannot end the thinking; give a "
                "token other than end-of-sequence"
            )
        if not end:
            raise BadInput("nothing ends the thinking; give the ids that do, one at least")
        self.end = tuple(end)
        self._after = [_matched_after(self.end[:matched], self.end) for matched in range(len(self.end))]
        self.forbidden: BoolMask = np.zeros(vocabulary.size, dtype=np.bool_)
        self.forbidden[[*vocabulary.special_tokens, *vocabulary.padding_tokens]] = True
        self.forbidden[list(self.end)] = False
        self.bitmask: Bitmask = pack_mask(~self.forbidden)
        self._is_forbidden = self.forbidden.tobytes()  # a byte is read faster than a cell of an array

    def allows(self, token: int) -> bool:
        """Returns whether the token may come next."""
        return 0 <= token < len(self._is_forbidden) and not self._is_forbidden[token]

    def advance(self, matched: int, token: int) -> int:
        """Returns how many ids of the end stand at the end of the text behind this token, where `matched` of
        them stood before it; all of them mean that the thinking is over."""
        return self._after[matched].get(token, 0)

    def end_in(self, tokens: Sequence[int]) -> int | None:
        """Returns how many of these tokens, which begin with the thinking, are of the thinking part, its end
        included; None if it does not end in them."""
        matched = 0
        for count, token in enumerate(tokens, 1):
            matched = self.advance(matched, token)
            if matched == len(self.end):
                return count
        return None


def _matched_after(read: tuple[int, ...], end: tuple[int, ...]) -> dict[int, int]:
    """Returns for each id of the end the length of the longest beginning of the end that stands at the end
    of what was read and this id."""
    return {
        token: max(
            length
            for length in range(len(read) + 2)
            if (*read, token)[len(read) + 1 - length :] == end[:length]
        )
        for token in set(end)
    }


@lru_cache(maxsize=16)
def thinking_up_to(vocabulary: Vocabulary, end: tuple[int, ...]) -> Thinking:
    """Returns the thinking part that these ids end. Raises BadInput as `Thinking` does."""
    return Thinking(vocabulary, end)


def think_end_id(vocabulary: Vocabulary, text: str) -> int:
    """Returns the special of that name, or else the one plain token of that text.

    Raises BadInput if there is neither.
    """
    named = [token for token, name in vocabulary.special_tokens.items() if name == text]
    token_id = named[0] if named else vocabulary.ids_by_bytes.get(text.encode())
    if token_id is None:
        raise BadInput(
            f"vocabulary {vocabulary.name} has no token {text!r} to end the thinking; name one that it has"
        )
    return token_id


def think_end(vocabulary: Vocabulary) -> int:
    """Returns the id that ends the thinking: the special token for that, else a reserved one, else the end of
    a line. No end of sequence and no padding is among them, whatever its name. Raises BadInput if the
    vocabulary has none of these."""
    never = {*vocabulary.eos_tokens, *vocabulary.padding_tokens}
    for name in NAMES:
        with suppress(BadInput):
            if (token := think_end_id(vocabulary, name)) not in never:
                return token
    words = ("special_", "control_", "reserved", "unused", "extra")
    reserve = [
        token
        for token, name in vocabulary.special_tokens.items()
        if token not in never and any(word in name.lower() for word in words)
    ]
    if reserve:
        return min(reserve)
    if (token := think_end_id(vocabulary, "\n")) not in never:
        return token
    raise BadInput(f"of vocabulary {vocabulary.name} only ends of sequence could end the thinking")


SPELLED = b"</</think>"
"""An end that is written as text, of several ids. It begins with its own beginning twice, so that who looks
for it from the start again after each wrong id passes over it."""


def ends_to_try(vocabulary: Vocabulary) -> Iterator[tuple[int, ...]]:
    """Yields ends of the thinking for checks: one of a single id, and one of several, as far as the
    vocabulary has them."""
    with suppress(BadInput):
        yield (think_end(vocabulary),)
    ids = vocabulary.ids_by_bytes
    if all(bytes([byte]) in ids for byte in SPELLED):
        yield tuple(ids[bytes([byte])] for byte in SPELLED)
