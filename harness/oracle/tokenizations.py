"""Spells a text in other tokens than the tokenizer's own, and measures how far emitted tokens are from the
tokenizer's own.

Everything is drawn from one seeded source, so that the same seed gives the same tokens.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from harness.backend.vocabulary import Vocabulary

STRUCTURE = b'{}[]":,'
"""The bytes before and behind which a grammar usually has a boundary."""

HEAD = 3
"""How many leading bytes are used to look up the lengths of tokens."""


@dataclass(frozen=True)
class Tokenization:
    """One spelling of a text, and the way in which it was made (`characters`, `random`, ...)."""

    kind: str
    tokens: tuple[int, ...]


class TokenIndex:
    """The plain-text tokens of a vocabulary, with all ids of the same bytes."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.first = vocabulary.ids_by_bytes
        again: dict[bytes, list[int]] = defaultdict(list)
        for token, text in vocabulary.plain_tokens().items():
            if self.first[text] != token:
                again[text].append(token)
        self._all = {text: (self.first[text], *others) for text, others in again.items()}
        lengths: dict[bytes, set[int]] = defaultdict(set)
        for text in self.first:
            lengths[text[:HEAD]].add(len(text))
        self._lengths = {head: sorted(lengths_of_head) for head, lengths_of_head in lengths.items()}

    def ids(self, text: bytes) -> tuple[int, ...]:
        """Returns all ids with these bytes, ascending."""
        return self._all.get(text) or ((self.first[text],) if text in self.first else ())

    def ends(self, text: bytes, start: int) -> list[int]:
        """Returns the ascending offsets at which tokens end that match the text at `start`."""
        heads = [text[start : start + size] for size in range(1, HEAD + 1) if start + size <= len(text)]
        # A head of fewer bytes than HEAD is a whole token; the lengths of longer ones stand under the full
        # head.
        candidates = [start + length for head in heads for length in self._lengths.get(head, ())]
        return [end for end in candidates if end <= len(text) and text[start:end] in self.first]


@lru_cache(maxsize=4)
def index_of(vocabulary: Vocabulary) -> TokenIndex:
    """Returns the vocabulary's index, made once (0.2 s for 131,072 tokens)."""
    return TokenIndex(vocabulary)


class Lattice:
    """All spellings of one text. `ends` holds, for each byte position, where the tokens end that match there
    and lead on to the text's end."""

    def __init__(self, vocabulary: Vocabulary, text: bytes) -> None:
        self.text = text
        self._index = index_of(vocabulary)
        self.ends: list[list[int]] = [[] for _ in range(len(text) + 1)]
        self._counts = [0] * len(text) + [1]
        for start in range(len(text) - 1, -1, -1):
            self.ends[start] = [end for end in self._index.ends(text, start) if self._counts[end]]
            self._counts[start] = sum(
                len(self.ids(start, end)) * self._counts[end] for end in self.ends[start]
            )

    @property
    def count(self) -> int:
        """Returns how many spellings there are; different ids of the same bytes count apart."""
        return self._counts[0]

    def ids(self, start: int, end: int) -> tuple[int, ...]:
        """Returns the tokens that spell this part of the text."""
        return self._index.ids(self.text[start:end])

    def spelling(self, number: int) -> tuple[int, ...]:
        """Returns the spelling with this number, from 0; different numbers have different spellings."""
        tokens: list[int] = []
        start = 0
        while start < len(self.text):
            for end in self.ends[start]:
                ids, behind = self.ids(start, end), self._counts[end]
                if number < len(ids) * behind:
                    which, number = divmod(number, behind)
                    tokens.append(ids[which])
                    start = end
                    break
                number -= len(ids) * behind
        return tuple(tokens)

    def along(self, cuts: Sequence[int], source: random.Random) -> tuple[int, ...] | None:
        """Returns one token from each position to the next; among several ids of the same bytes one is drawn.
        None where the vocabulary has no such token."""
        tokens = []
        for start, end in pairwise(cuts):
            ids = self.ids(start, end)
            if not ids:
                return None
            tokens.append(ids[0] if len(ids) == 1 else source.choice(ids))
        return tuple(tokens)

    def cuts(self, start: int, stop: int, source: random.Random) -> list[int] | None:
        """Boundaries from `start` to `stop`, each chosen uniformly among the ends of the tokens that match
        there. None if no tokens lead to `stop`."""
        leads = {stop}
        for position in range(stop - 1, start - 1, -1):
            if any(end in leads for end in self.ends[position]):
                leads.add(position)
        if start not in leads:
            return None
        cuts = [start]
        while cuts[-1] < stop:
            # Each id is one of the choices, so bytes that two tokens have come twice as often.
            choices = [end for end in self.ends[cuts[-1]] if end in leads for _ in self.ids(cuts[-1], end)]
            cuts.append(source.choice(choices))
        return cuts

    def through(self, stops: Sequence[int], source: random.Random) -> tuple[int, ...] | None:
        """Returns a random spelling with a boundary at each of these positions."""
        cuts = [0]
        for stop in [*stops, len(self.text)]:
            part = self.cuts(cuts[-1], stop, source)
            if part is None:
                return None
            cuts += part[1:]
        return self.along(cuts, source)


Way = Callable[[Lattice, random.Random], "tuple[int, ...] | None"]
"""A way to spell the text of a lattice; it returns None where the vocabulary cannot do so."""


def bytewise(lattice: Lattice, source: random.Random) -> tuple[int, ...] | None:
    """Spells each byte by one token."""
    return lattice.along(range(len(lattice.text) + 1), source)


def characterwise(lattice: Lattice, source: random.Random) -> tuple[int, ...] | None:
    """Spells each character by one token, or by one for each of its bytes if the vocabulary does not have
    it."""
    cuts: list[int] = [0]
    for end in [
        position
        for position in range(1, len(lattice.text) + 1)
        if not inside_character(lattice.text, position)
    ]:
        cuts += [end] if lattice.ids(cuts[-1], end) else range(cuts[-1] + 1, end + 1)
    return lattice.along(cuts, source)


def longest(lattice: Lattice, source: random.Random) -> tuple[int, ...] | None:
    """Takes at each position the longest token from which the end can still be reached."""
    cuts = [0]
    while cuts[-1] < len(lattice.text):
        if not lattice.ends[cuts[-1]]:
            return None
        cuts.append(lattice.ends[cuts[-1]][-1])
    return lattice.along(cuts, source)


def at_random(lattice: Lattice, source: random.Random) -> tuple[int, ...] | None:
    """Chooses at each position uniformly among the tokens that match."""
    return lattice.through((), source)


def inside_characters(lattice: Lattice, source: random.Random) -> tuple[int, ...] | None:
    """Places a boundary at about a quarter of the positions inside characters, and at one at least.

    Returns None for a text of ASCII."""
    text = lattice.text
    inner = [position for position in range(1, len(text)) if inside_character(text, position)]
    if not inner:
        return None
    chosen = {source.choice(inner)} | {position for position in inner if source.random() < 0.25}
    return lattice.through(sorted(chosen), source)


def across_structure(lattice: Lattice, source: random.Random) -> tuple[int, ...] | None:
    """Lets tokens lie across the grammar's boundaries, as `":` and `"},{"` do, wherever there are such
    tokens."""
    return straddling(lattice, boundaries(lattice.text), source)


def straddling(lattice: Lattice, positions: Sequence[int], source: random.Random) -> tuple[int, ...] | None:
    """Returns a random spelling whose tokens lie across these positions wherever that is possible, each
    crossed by a random token.

    Returns None if no token can lie across any of them."""
    cuts = [0]
    crossed = False
    for position in positions:
        if position <= cuts[-1]:
            continue
        reached = _reached(lattice, cuts[-1], position)
        crossing = [
            (start, end) for start in reached for end in lattice.ends[start] if start < position < end
        ]
        if crossing:
            start, end = source.choice(crossing)
            way = lattice.cuts(cuts[-1], start, source)
            assert way is not None
            cuts += [*way[1:], end]
            crossed = True
    rest = lattice.cuts(cuts[-1], len(lattice.text), source) if crossed else None
    return None if rest is None else lattice.along([*cuts, *rest[1:]], source)


def _reached(lattice: Lattice, start: int, stop: int) -> list[int]:
    """Returns the positions before `stop` to which tokens lead from `start`."""
    reached = {start}
    for position in range(start, stop):
        if position in reached:
            reached.update(lattice.ends[position])
    return sorted(position for position in reached if position < stop)


def boundaries(text: bytes) -> list[int]:
    """Returns the positions inside the text with a byte of STRUCTURE on one side."""
    return [at for at in range(1, len(text)) if text[at - 1] in STRUCTURE or text[at] in STRUCTURE]


def inside_character(text: bytes, position: int) -> bool:
    """Is this position inside a character, that is, does a continuation byte follow?"""
    return position < len(text) and text[position] & 0xC0 == 0x80


WAYS: dict[str, Way] = {
    "inside_characters": inside_characters,
    "across_structure": across_structure,
    "random": at_random,
    "longest": longest,
    "bytes": bytewise,
    "characters": characterwise,
}

DRAWN: dict[str, Way] = {name: WAYS[name] for name in ("random", "inside_characters", "across_structure")}
"""The ways that depend on chance."""


def tokenizations(
    vocabulary: Vocabulary, text: bytes, count: int, source: random.Random
) -> Iterator[Tokenization]:
    """Yields `count` spellings of the text, all different and none the canonical one; fewer where there are
    not so many.

    Each way is used once, then the ways that depend on chance by turns. Raises ValueError where the
    vocabulary cannot spell the text. A vocabulary without tokens of single bytes may have spellings and no
    canonical one.
    """
    lattice = Lattice(vocabulary, text)
    try:
        listed = {tuple(vocabulary.encode(text))}
    except ValueError:
        if not lattice.count:
            raise
        listed = set()
    most = count + len(listed)
    for kind, tokens in _candidates(lattice, count, source):
        if len(listed) >= most:
            return
        if tokens is not None and tokens not in listed:
            listed.add(tokens)
            yield Tokenization(kind, tokens)


def _candidates(
    lattice: Lattice, count: int, source: random.Random
) -> Iterator[tuple[str, tuple[int, ...] | None]]:
    for kind, way in WAYS.items():
        yield kind, way(lattice, source)
    for _ in range(count):
        for kind, way in DRAWN.items():
            yield kind, way(lattice, source)
    # Chance found too few different ones: there are few, or most of them are improbable. By number each one
    # comes up.
    few = lattice.count <= 4 * count
    for number in (
        range(lattice.count) if few else (source.randrange(lattice.count) for _ in range(64 * count))
    ):
        yield "random", lattice.spelling(number)


def spans(vocabulary: Vocabulary, tokens: Sequence[int]) -> list[tuple[int, int]]:
    """Returns the offsets at which each token begins and ends in the text of all."""
    bounds: list[tuple[int, int]] = []
    end = 0
    for token in tokens:
        start, end = end, end + len(vocabulary.tokens[token])
        bounds.append((start, end))
    return bounds


def drift(vocabulary: Vocabulary, tokens: Sequence[int]) -> int:
    """Returns how many of the emitted ids are not those that the tokenizer itself would have put over the
    same bytes of the emitted text.

    It is 0 exactly for canonical output. Special tokens (end-of-sequence among them) are no text and are left
    out. Raises ValueError where the vocabulary cannot spell the text.
    """
    plain = [token for token in tokens if token not in vocabulary.special_tokens]
    canonical = vocabulary.encode(vocabulary.decode(plain))
    own = set(zip(spans(vocabulary, canonical), canonical, strict=True))
    return sum(span not in own for span in zip(spans(vocabulary, plain), plain, strict=True))
