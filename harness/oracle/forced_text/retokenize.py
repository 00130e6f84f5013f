"""Turns forced text into tokens: the tokenizer's own ids of everything so far, keeping those that were
already accepted."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from harness.backend.grammar import shared_length
from harness.backend.vocabulary import Vocabulary
from harness.oracle.automaton import DEAD, Automaton

Follows = Callable[[bytes], int]
"""A function of a text that returns how many of its leading bytes may follow. Where the whole text may
follow, what comes after it is open."""


def retokenize(
    vocabulary: Vocabulary,
    history: Sequence[int],
    forced: bytes,
    *,
    hold: bool = True,
    follows: Follows | None = None,
) -> tuple[int, list[int]]:
    """Returns how many tokens of the history stay, and the ids that follow them, once the forced text has
    come.

    The ids are the canonical ones of the text of `history` and `forced` together: `history[:keep] + ids`.
    With `hold`, as a decoder needs it, the tokens at the end that may merge with what follows are left out (a
    character that is not complete, for one, where a token has the whole of it); the model chooses there,
    under the mask. What the history says is never taken back: where leaving out would reach into it, nothing
    changes (`len(history), []`). Without `hold` the ids spell all of the text. `follows` says what may come
    after the forced text; without it anything may. Raises ValueError if the vocabulary cannot spell the text.
    """
    written = vocabulary.decode(history)
    text = written + forced
    ids = vocabulary.encode(text)
    if hold:
        ids, length = _tokens_within(vocabulary, ids, settled_bytes(vocabulary, text, follows))
        if length < len(written):
            return len(history), []
    keep = shared_length(history, ids)
    return keep, ids[keep:]


def settled_bytes(vocabulary: Vocabulary, text: bytes, follows: Follows | None = None) -> int:
    """Returns how many leading bytes of the text no token can cover together with bytes that follow the text.

    For tokenization by longest match that is enough: the tokens within these bytes stay, whatever follows.
    Merges (BPE) may in rare cases change more.
    """
    spelled, beginnings, lengths = _spelled(vocabulary)
    for length in (*lengths.get(text[-2:], ()), 1):
        suffix = text[-length:]
        if len(suffix) == length and suffix in beginnings and _may_merge(spelled, suffix, follows):
            return len(text) - length
    return len(text)


def follows_from(automaton: Automaton[Any], state: int) -> Follows:
    """Returns what may follow at this state of the automaton."""

    def follows(text: bytes) -> int:
        here = state
        for count, byte in enumerate(text):
            here = automaton.step(here, byte)
            if here == DEAD:
                return count
        return len(text)

    return follows


def _may_merge(spelled: list[bytes], suffix: bytes, follows: Follows | None) -> bool:
    """Does a token begin with the suffix and go on with what may follow?

    Tokens that share an impossible beginning are skipped.
    """
    at = bisect_right(spelled, suffix)
    while at < len(spelled) and spelled[at].startswith(suffix):
        rest = spelled[at][len(suffix) :]
        possible = len(rest) if follows is None else follows(rest)
        if possible == len(rest):
            return True
        beyond = _after_all_beginning_with(suffix + rest[: possible + 1])
        at = len(spelled) if beyond is None else bisect_left(spelled, beyond, at + 1)
    return False


def _after_all_beginning_with(text: bytes) -> bytes | None:
    """Returns the smallest text that is greater than every text with this beginning; None if there is
    none."""
    text = text.rstrip(b"\xff")
    return text[:-1] + bytes([text[-1] + 1]) if text else None


def _tokens_within(vocabulary: Vocabulary, ids: list[int], limit: int) -> tuple[list[int], int]:
    """Returns the leading tokens that lie within the first `limit` bytes, and their length in bytes."""
    length = 0
    for count, token in enumerate(ids):
        if length + len(vocabulary.tokens[token]) > limit:
            return ids[:count], length
        length += len(vocabulary.tokens[token])
    return ids, length


@lru_cache(maxsize=4)
def _spelled(vocabulary: Vocabulary) -> tuple[list[bytes], frozenset[bytes], dict[bytes, tuple[int, ...]]]:
    """Returns the tokens' texts, sorted; every text with which a token begins and after which it goes on: a
    look into these is twenty times as fast as a search, and few suffixes are among them; and how long those
    are that end with the same two bytes, longest first."""
    texts = vocabulary.ids_by_bytes
    beginnings = frozenset(text[:end] for text in texts for end in range(1, len(text)))
    found: defaultdict[bytes, set[int]] = defaultdict(set)
    for beginning in beginnings:
        found[beginning[-2:]].add(len(beginning))
    lengths = {end: tuple(sorted(every, reverse=True)) for end, every in found.items()}
    return sorted(texts), beginnings, lengths
