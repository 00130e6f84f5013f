"""Chooses what is compared and followed up: positions along a text, and a few of the tokens that not all arms
allow there."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.backend.vocabulary import Vocabulary
from harness.checks.walks import leaning_of
from harness.oracle.trie import TokenSet

TOKENS = 4
"""How many disputed tokens are followed up at one position, besides end-of-sequence and the text's own next
token."""


@dataclass(frozen=True)
class Dispute:
    """A token behind others, the arms that allow it, and those that do not."""

    before: tuple[int, ...]
    token: int
    allowing: frozenset[str]
    forbidding: frozenset[str]


def some_positions(source: random.Random, length: int, most: int | None, always: Iterable[int]) -> list[int]:
    """Positions from 0 to `length`: both ends, those in `always`, and a sample of the others, `most` in all
    where that suffices."""
    wanted = {0, length, *always}
    others = [position for position in range(1, length) if position not in wanted]
    count = len(others) if most is None else min(len(others), max(0, most - len(wanted)))
    return sorted(wanted | {*source.sample(others, count)})


def some_disputes(
    source: random.Random,
    vocabulary: Vocabulary,
    masks: Mapping[str, TokenSet],
    before: tuple[int, ...],
    following: int | None,
) -> list[Dispute]:
    """Returns the disputes to decide behind the tokens `before`: end-of-sequence and the text's own next
    token (`following`) if they are disputed, and a few of the others, taken by turns from the sets of arms
    that allow them and from the first bytes.
    """
    names = list(masks)
    votes = np.stack([masks[name] for name in names])
    spoken = leaning_of(vocabulary).has_text.copy()
    spoken[vocabulary.eos_token] = True
    disputed = np.flatnonzero(votes.any(0) & ~votes.all(0) & spoken)
    voting = (votes[:, disputed] * (1 << np.arange(len(names)))[:, None]).sum(0)
    special_disputes: list[Dispute] = []
    queues: list[list[Dispute]] = []
    for voted in sorted({*voting.tolist()}):
        allowing = frozenset(name for at, name in enumerate(names) if voted >> at & 1)
        tokens = disputed[voting == voted]
        special = [
            token for token in (vocabulary.eos_token, following) if token is not None and token in tokens
        ]
        forbidding = frozenset(names) - allowing
        special_disputes += [Dispute(before, token, allowing, forbidding) for token in special]
        others = _spread(source, vocabulary, tokens[~np.isin(tokens, special)])
        queues.append([Dispute(before, token, allowing, forbidding) for token in others])
    by_turns = [dispute for turn in range(TOKENS) for queue in queues for dispute in queue[turn : turn + 1]]
    return special_disputes + by_turns[:TOKENS]


def _spread(source: random.Random, vocabulary: Vocabulary, tokens: NDArray[np.intp]) -> list[int]:
    """Returns at most TOKENS of the tokens, with different first bytes as long as there are any."""
    firsts = leaning_of(vocabulary).first[tokens]
    chosen: list[int] = []
    while len(chosen) < min(TOKENS, len(tokens)):
        present = np.flatnonzero(np.bincount(firsts[~np.isin(tokens, chosen)])).tolist()
        for byte in source.sample(present, min(TOKENS - len(chosen), len(present))):
            group = tokens[(firsts == byte) & ~np.isin(tokens, chosen)]
            chosen.append(int(group[source.randrange(len(group))]))
    return chosen
