"""What can be seen of an object without moving it, and where objects are looked at."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from harness.checks.subject import Place, Subject
from harness.grammar import GrammarObject
from harness.oracle.trie import TokenSet
from harness.row import Finding
from harness.vocabulary import Vocabulary

LONGEST = 220
"""Tokens of a path that is walked forth and back."""


@dataclass(frozen=True)
class Look:
    """All that can be seen of an object without moving it."""

    mask: bytes
    """One bit a token."""
    accepting: bool
    terminated: bool

    def allowed(self, subject: Subject) -> TokenSet:
        return np.unpackbits(np.frombuffer(self.mask, np.uint8), count=subject.vocabulary.size, bitorder="little").view(np.bool_)


def look(subject: Subject, grammar_object: GrammarObject) -> Look:
    mask = np.packbits(subject.allowed(grammar_object), bitorder="little").tobytes()
    return Look(mask, bool(grammar_object.is_accepting()), bool(grammar_object.is_terminated()))


def change(subject: Subject, before: Look, after: Look) -> str:
    """What is different, as the end of a sentence."""
    told = []
    old, new = before.allowed(subject), after.allowed(subject)
    for word, tokens in (("more", np.flatnonzero(new & ~old)), ("fewer", np.flatnonzero(old & ~new))):
        if len(tokens):
            names = ", ".join(name_of(subject, int(token)) for token in tokens[:3])
            told.append(f"{len(tokens)} {word} token(s) are allowed, e.g. {names}")
    if before.accepting != after.accepting:
        told.append(f"is_accepting() is {after.accepting}")
    if before.terminated != after.terminated:
        told.append(f"is_terminated() is {after.terminated}")
    return " and ".join(told)


def name_of(subject: Subject, token: int) -> str:
    vocabulary = subject.vocabulary
    if token in vocabulary.special_tokens:
        return vocabulary.special_tokens[token]
    return f"padding {token}" if token in vocabulary.padding_tokens else repr(vocabulary.tokens[token][:60])


def finding(check: str, subject: Subject, place: Place, text: str, further: Sequence[int] = (), cause: str = "") -> Finding:
    """A finding at a place; `further` are the tokens in question, which follow those that lead there."""
    return Finding(
        check,
        place.position,
        f"after {place.text[-60:]!r} {text}"[:1000],
        cause=cause,
        documented=cause in subject.adapter.documented,
        instance=place.instance if subject.case.instances else None,
        examples=tuple(subject.vocabulary.tokens[token].hex() for token in further[:6]),
        walk=(*place.tokens, *further),
    )


def few(subject: Subject) -> int | None:
    """Half of the effort, but no less than two: for checks that move several objects at each place, or say less of the place."""
    return None if subject.effort is None else min(subject.effort, max(2, subject.effort // 2))


def walkable(subject: Subject) -> int:
    """So many tokens is an object walked that is walked again and again: up to 64, and less for little effort."""
    return LONGEST if subject.effort is None else min(64, 16 * subject.effort)


def spread(subject: Subject, purpose: str, most: int | None) -> list[Place]:
    """The start and a seeded sample of the places that are not too far to walk there again and again, `most` in all; None: all places."""
    start, *others = subject.places(purpose, sys.maxsize)
    if most is None:
        return [start, *others]
    others = [place for place in others if place.position <= walkable(subject)]
    chosen = subject.random(purpose).sample(range(len(others)), min(len(others), most - 1))
    return [start, *(others[each] for each in sorted(chosen))]


def standing(subject: Subject, purpose: str, most: int | None) -> Iterator[tuple[Place, GrammarObject]]:
    """Such places with a fresh object at each; that it gets there is a check of its own (`objects_of_one_grammar_are_independent`)."""
    for place in spread(subject, purpose, most):
        grammar_object = subject.reach(place.tokens)
        if grammar_object is not None:
            yield place, grammar_object


def standing_deep(subject: Subject, purpose: str) -> Iterator[tuple[Place, GrammarObject]]:
    """One of them, not the start where there is another, with a fresh object; nothing if it does not get there."""
    place = spread(subject, purpose, 2)[-1]
    grammar_object = subject.reach(place.tokens)
    if grammar_object is not None:
        yield place, grammar_object


def next_token(subject: Subject, place: Place, mask: TokenSet) -> int | None:
    """The token that comes next along the instance, else one of text that the mask allows."""
    path = subject.paths[place.instance] if subject.paths else []
    if len(path) > place.position and tuple(path[: place.position]) == place.tokens:
        return path[place.position]
    tokens = np.flatnonzero(mask & (first_bytes(subject.vocabulary) >= 0))
    return int(subject.random(f"next {place.text!r}").choice(tokens)) if len(tokens) else None


def prepare(vocabulary: Vocabulary) -> None:
    """What is made once per vocabulary, before any child is forked."""
    first_bytes(vocabulary)
    by_first_byte(vocabulary)


@lru_cache(maxsize=4)
def first_bytes(vocabulary: Vocabulary) -> NDArray[np.int16]:
    """The first byte of each plain-text token; -1 for specials, padding and empty tokens."""
    never = {*vocabulary.special_tokens, *vocabulary.padding_tokens}
    texts = enumerate(vocabulary.tokens)
    return np.array([text[0] if text and token not in never else -1 for token, text in texts], dtype=np.int16)


@lru_cache(maxsize=4)
def by_first_byte(vocabulary: Vocabulary) -> list[list[int]]:
    """The plain-text tokens that begin with each byte."""
    firsts = first_bytes(vocabulary)
    order = np.argsort(firsts, kind="stable")
    bounds = np.searchsorted(firsts[order], np.arange(257))
    return [order[start:end].tolist() for start, end in pairwise(bounds)]
