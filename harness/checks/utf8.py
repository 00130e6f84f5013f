"""All text is UTF-8: what can be no part of it is refused at its first impossible byte.

No reference is needed for it. With an effort of e, the check fills at most 10 e masks.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from harness.backend.grammar import GrammarObject
from harness.backend.vocabulary import Vocabulary
from harness.checks.looking import first_bytes, name_of
from harness.checks.subject import NotApplicable, Place, Subject
from harness.oracle.automaton import DEAD, Automaton
from harness.oracle.trie import TokenSet, trie_of
from harness.oracle.utf8 import LAST, ByteRange, byte_sequences
from harness.rows.row import Finding
from harness.text import counted
from harness.walk.watched import collecting

CATEGORY = "UTF-8"

LEADS = tuple(map(bytes.fromhex, ("c3", "e0", "ed", "e282", "f0", "f4", "f09f98")))
"""Beginnings of characters, each with other bytes that cannot follow."""

BAD = bytes.fromhex("224180 8f909f a0bfc0 c1c3f5 feff")
"""Bytes that are tried with `accept_token` where they are impossible; the mask is asked for every token."""

MOST_ORDERED = 10_000
"""Places that are put in order, with all that is before them."""
EXAMPLES = 6


class Utf8(Automaton[tuple[ByteRange, ...]]):
    """Any text. A state is the bytes that its last character lacks."""

    def __init__(self) -> None:
        super().__init__(())

    def _successors(self, key: tuple[ByteRange, ...]) -> Iterable[tuple[int, int, tuple[ByteRange, ...]]]:
        for (first, last), *rest in [key] if key else byte_sequences(0, LAST):
            yield first, last, tuple(rest)

    def _is_accepting(self, key: tuple[ByteRange, ...]) -> bool:
        return not key


class Impossible:
    """For each state of the text, the tokens of a vocabulary with which it would be no UTF-8."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.text = Utf8()
        self._trie = trie_of(vocabulary)
        self._plain = first_bytes(vocabulary) >= 0
        self._found: dict[int, TokenSet] = {}

    def after(self, state: int) -> TokenSet:
        if state not in self._found:
            self._found[state] = self._plain & (self._trie.states(self.text, state) == DEAD)
        return self._found[state]

    def state(self, text: bytes) -> int:
        return self.text.run(self.text.start, text)


@lru_cache(maxsize=4)
def impossible_of(vocabulary: Vocabulary) -> Impossible:
    """Returns the vocabulary's table, which is made once."""
    return Impossible(vocabulary)


def cause_of(text: bytes) -> str:
    """Returns what is wrong at the first byte that no UTF-8 has there; `truncated` too if the text ends
    inside a character."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        lead, following = text[error.start], text[error.start + 1 : error.start + 2]
        if lead < 0xC0:
            return "lone_continuation"
        if (
            lead < 0xC2
            or (lead == 0xE0 and b"\x80" <= following <= b"\x9f")
            or (lead == 0xF0 and b"\x80" <= following <= b"\x8f")
        ):
            return "overlong"
        if lead == 0xED and b"\xa0" <= following <= b"\xbf":
            return "surrogate"
        return "beyond" if lead > 0xF4 or (lead == 0xF4 and b"\x90" <= following <= b"\xbf") else "truncated"
    return ""


@dataclass
class Hits:
    """How often one cause was seen, and the first time: what was walked there, and the tokens that may
    follow."""

    place: Place
    walk: tuple[int, ...]
    tokens: list[int]
    who: str
    times: int = 0


def prepare(vocabulary: Vocabulary) -> None:
    """Builds the tables that are made once per vocabulary, before any child is forked."""
    impossible_of(vocabulary)


def check_invalid_utf8_is_refused_at_once(subject: Subject) -> Iterator[Finding]:
    """At no place a token may follow with which the text can be no UTF-8, nor may the output end inside a
    character."""
    subject.require_text()
    vocabulary = subject.vocabulary
    impossible = impossible_of(vocabulary)
    start = impossible.text.start
    if not impossible.after(start).any():
        raise NotApplicable("every token is made of whole characters")
    leads = [tuple(vocabulary.ids_by_bytes.get(bytes([byte]), -1) for byte in lead) for lead in LEADS]
    leads = [lead for lead in leads if -1 not in lead]
    hits: dict[str, Hits] = {}
    opened = 0
    with collecting() as late:
        for visited, place in enumerate(_strings_first(subject)):
            if subject.effort is not None and (opened == subject.effort or visited == 3 * subject.effort):
                break
            if impossible.state(place.text) == DEAD:
                _went_wrong(subject, place, hits)
                continue
            mask = _look(subject, place, (), hits)
            if mask is not None and impossible.state(place.text) == start:
                allowed = [lead for lead in leads if mask[lead[0]]]
                opened += bool(allowed)
                for lead in allowed:
                    _look(subject, place, lead, hits)
    for cause, hit in hits.items():
        sentence = (
            f"seen {counted(hit.times, 'time')}; after {vocabulary.decode(hit.walk[:-1])[-40:]!r} {hit.who} "
            f"{name_of(subject, hit.walk[-1])}"
        )
        sentence += f", one of {len(hit.tokens)} such tokens" if len(hit.tokens) > 1 else ""
        examples = hit.tokens[:: -(-len(hit.tokens) // EXAMPLES)]
        yield Finding(
            position=len(hit.walk) - 1,
            text=sentence,
            cause=cause,
            instance=hit.place.instance,
            under=len(hit.tokens),
            examples=subject.hex_of(examples or hit.walk[-1:]),
            walk=hit.walk,
        )
    late.again()


def _strings_first(subject: Subject) -> list[Place]:
    """Returns places in a seeded order, those inside of quotes before the others: all of them, or a seeded
    choice of MOST_ORDERED where the effort has a bound."""
    places = list(subject.places("utf8", sys.maxsize if subject.effort is None else MOST_ORDERED))
    subject.random("utf8").shuffle(places)
    return sorted(
        places, key=lambda place: re.sub(rb"\\.", b"", place.text, flags=re.DOTALL).count(b'"') % 2 == 0
    )


def _look(subject: Subject, place: Place, added: tuple[int, ...], hits: dict[str, Hits]) -> TokenSet | None:
    """Asks, behind more bytes, the mask for every token and `accept_token` for some. Returns the mask; None
    where these bytes are refused."""
    vocabulary = subject.vocabulary
    walk = (*place.tokens, *added)
    grammar_object = subject.reach(walk)
    if grammar_object is None:
        return None
    impossible = impossible_of(vocabulary)
    state = impossible.state(place.text + vocabulary.decode(added))
    bad = impossible.after(state)
    mask = subject.allowed(grammar_object)
    wrong = np.flatnonzero(mask & bad).tolist()
    if state != impossible.text.start:
        ends = [end for end in vocabulary.eos_tokens if mask[end]]
        wrong += ends or ([vocabulary.eos_token] if grammar_object.is_accepting() else [])
    _record(subject, place, walk, wrong or _taken(subject, grammar_object, bad), hits)
    return mask


def _went_wrong(subject: Subject, place: Place, hits: dict[str, Hits]) -> None:
    """Records where along the instance the backend took what is no UTF-8."""
    impossible = impossible_of(subject.vocabulary)
    ends = (
        end
        for end in range(len(place.tokens))
        if impossible.state(subject.vocabulary.decode(place.tokens[: end + 1])) == DEAD
    )
    end = next(ends)
    _record(subject, place, place.tokens[:end], [place.tokens[end]], hits)


def _record(
    subject: Subject, place: Place, walk: tuple[int, ...], wrong: list[int], hits: dict[str, Hits]
) -> None:
    """Notes the tokens that may wrongly follow, by cause."""
    text = subject.vocabulary.decode(walk)
    by_cause: dict[str, list[int]] = {}
    for token in wrong:
        by_cause.setdefault(cause_of(text + subject.vocabulary.tokens[token]), []).append(token)
    for cause, tokens in by_cause.items():
        if cause not in hits:
            grammar_object = subject.reach(walk)
            if grammar_object is None:
                continue  # it was reached before: what a repetition shows is another check's
            by_mask = "the mask allows" if subject.allowed(grammar_object)[tokens[0]] else ""
            by_accept = "accept_token takes" if grammar_object.accept_token(tokens[0]) else ""
            who = " and ".join(filter(None, (by_mask, by_accept))) or "is_accepting allows"
            hits[cause] = Hits(place, (*walk, tokens[0]), tokens, who)
        hits[cause].times += 1


def _taken(subject: Subject, grammar_object: GrammarObject, bad: TokenSet) -> list[int]:
    """Returns the first impossible token that `accept_token` takes, if it takes any of those that are
    tried."""
    ids = subject.vocabulary.ids_by_bytes
    single = [ids[bytes([byte])] for byte in BAD if bytes([byte]) in ids]
    several = np.flatnonzero(bad)
    tried = [*(token for token in single if bad[token]), *several[:: max(1, len(several) // 8)].tolist()]
    return next(([token] for token in tried if grammar_object.accept_token(token)), [])
