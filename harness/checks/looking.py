"""What can be seen of an object without moving it, and the places where checks look at objects."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from harness.backend.grammar import GrammarObject, unpack_mask
from harness.backend.vocabulary import Vocabulary
from harness.checks.subject import NotApplicable, Place, Subject
from harness.oracle.trie import TokenSet
from harness.rows.row import Finding
from harness.text import counted

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
        return unpack_mask(np.frombuffer(self.mask, np.uint8), subject.vocabulary.size)


def look(subject: Subject, grammar_object: GrammarObject) -> Look:
    mask = np.packbits(subject.allowed(grammar_object), bitorder="little").tobytes()
    return Look(mask, bool(grammar_object.is_accepting()), bool(grammar_object.is_terminated()))


def change(subject: Subject, before: Look, after: Look) -> str:
    """Returns what is different, as the end of a sentence."""
    changes = []
    old, new = before.allowed(subject), after.allowed(subject)
    for word, tokens in (("more", np.flatnonzero(new & ~old)), ("fewer", np.flatnonzero(old & ~new))):
        if len(tokens):
            names = ", ".join(name_of(subject, int(token)) for token in tokens[:3])
            number = counted(len(tokens), f"{word} token")
            changes.append(f"{number} {'is' if len(tokens) == 1 else 'are'} allowed, e.g. {names}")
    if before.accepting != after.accepting:
        changes.append(f"is_accepting() is {after.accepting}")
    if before.terminated != after.terminated:
        changes.append(f"is_terminated() is {after.terminated}")
    return " and ".join(changes)


def name_of(subject: Subject, token: int) -> str:
    vocabulary = subject.vocabulary
    if token in vocabulary.special_tokens:
        return vocabulary.special_tokens[token]
    return f"padding {token}" if token in vocabulary.padding_tokens else repr(vocabulary.tokens[token][:60])


def finding(
    subject: Subject, place: Place, text: str, further: Sequence[int] = (), cause: str = ""
) -> Finding:
    """Returns a finding at a place; `further` are the tokens in question, which follow those that lead
    there."""
    return Finding(
        position=place.position,
        text=f"after {place.text[-60:]!r} {text}",
        cause=cause,
        instance=place.instance,
        examples=subject.hex_of(further[:6]),
        walk=(*place.tokens, *further),
    )


def few(subject: Subject) -> int | None:
    """Returns half of the effort, but no less than two: for checks that move several objects at each
    place, or for which one place says less."""
    return None if subject.effort is None else min(subject.effort, max(2, subject.effort // 2))


def walkable(subject: Subject) -> int:
    """Returns the length, in tokens, up to which a check walks an object repeatedly: 64, or less for
    little effort."""
    return LONGEST if subject.effort is None else min(64, 16 * subject.effort)


def spread(subject: Subject, purpose: str, most: int | None) -> list[Place]:
    """Returns the start and a seeded sample of the positions within `walkable()` tokens, `most` places in
    all; None stands for all places."""
    if most is None:
        return list(subject.places(purpose, sys.maxsize))
    return list(subject.places(purpose, most, walkable(subject)))


def standing(subject: Subject, purpose: str, most: int | None) -> Iterator[tuple[Place, GrammarObject]]:
    """Yields such places, each with a fresh object there. Whether an object gets there is a check of its
    own (`objects_of_one_grammar_are_independent`)."""
    for place in spread(subject, purpose, most):
        grammar_object = subject.reach(place.tokens)
        if grammar_object is not None:
            yield place, grammar_object


def standing_deep(subject: Subject, purpose: str) -> Iterator[tuple[Place, GrammarObject]]:
    """Yields one such place, not the start where there is another, with a fresh object; nothing if the
    object does not get there."""
    place = spread(subject, purpose, 2)[-1]
    grammar_object = subject.reach(place.tokens)
    if grammar_object is not None:
        yield place, grammar_object


def place_on(subject: Subject, number: int, tokens: Sequence[int], position: int) -> Place:
    taken = tuple(tokens[:position])
    return Place(number, taken, subject.vocabulary.decode(taken))


def walked(
    subject: Subject, grammar_object: GrammarObject, tokens: Sequence[int], wanted: set[int]
) -> dict[int, Look]:
    """Returns what is seen at the wanted positions, as far as the tokens are accepted."""
    looks = {0: look(subject, grammar_object)} if 0 in wanted else {}
    for position, token in enumerate(tokens, 1):
        if not grammar_object.accept_token(token):
            break
        if position in wanted:
            looks[position] = look(subject, grammar_object)
    return looks


def stops(subject: Subject, purpose: str, length: int) -> set[int]:
    """Returns where along a path to look: everywhere, or at the start, the end and a few others."""
    most = few(subject)
    others = range(1, length)
    return {
        0,
        length,
        *(
            others
            if most is None
            else subject.random(purpose).sample(others, min(len(others), max(0, most - 2)))
        ),
    }


def end_name(subject: Subject, token: int) -> str:
    """Returns what a sentence calls an id of end-of-sequence: with its name where there are several."""
    several = len(subject.vocabulary.eos_tokens) > 1
    return f"end-of-sequence {name_of(subject, token)}" if several else "end-of-sequence"


def endings(subject: Subject, purpose: str) -> Iterator[tuple[Place, GrammarObject, int]]:
    """Yields a few places where the output may end, ends of instances first, each with an object there and an
    id of end-of-sequence: a place comes once for each of these ids.

    Raises NotApplicable if none is found.
    """
    along = (place_on(subject, number, tokens, len(tokens)) for number, tokens in enumerate(subject.paths))
    ends = {subject.key_of(place): place for place in along}
    candidates = list(ends.values())
    subject.random(purpose).shuffle(candidates)
    candidates.sort(
        key=lambda place: (
            subject.case.instances[place.instance].valid is not True,
            place.position > walkable(subject),
        )
    )
    most = few(subject)
    candidates += [place for place in spread(subject, purpose, most) if subject.key_of(place) not in ends]
    count = 0
    for place in candidates if most is None else candidates[: most * 3]:
        grammar_object = subject.reach(place.tokens)
        if grammar_object is not None and grammar_object.is_accepting():
            count += 1
            first, *others = subject.vocabulary.eos_tokens
            yield place, grammar_object, first
            for end in others:
                grammar_object = subject.reach(place.tokens)
                if grammar_object is not None:
                    yield place, grammar_object, end
            if count == most:
                return
    if not count:
        raise NotApplicable("the output may end at none of the places")


def next_token(subject: Subject, place: Place, mask: TokenSet) -> int | None:
    """Returns the token that comes next along the instance, else one of text that the mask allows."""
    path = subject.paths[place.instance] if subject.paths else []
    if len(path) > place.position and tuple(path[: place.position]) == place.tokens:
        return path[place.position]
    tokens = np.flatnonzero(mask & (first_bytes(subject.vocabulary) >= 0))
    return int(subject.random(f"next {place.text!r}").choice(tokens)) if len(tokens) else None


def prepare(vocabulary: Vocabulary) -> None:
    """Builds the tables that are made once per vocabulary, before any child is forked."""
    first_bytes(vocabulary)
    by_first_byte(vocabulary)


@lru_cache(maxsize=4)
def first_bytes(vocabulary: Vocabulary) -> NDArray[np.int16]:
    """Returns the first byte of each plain-text token; -1 for specials, padding and empty tokens."""
    firsts = np.full(vocabulary.size, -1, dtype=np.int16)
    for token, text in vocabulary.plain_tokens().items():
        firsts[token] = text[0]
    return firsts


@lru_cache(maxsize=4)
def by_first_byte(vocabulary: Vocabulary) -> list[list[int]]:
    """Returns the plain-text tokens that begin with each byte."""
    firsts = first_bytes(vocabulary)
    order = np.argsort(firsts, kind="stable")
    bounds = np.searchsorted(firsts[order], np.arange(257))
    return [order[start:end].tolist() for start, end in pairwise(bounds)]
