"""What a format of a structural tag is made of: automata over bytes with exits, and single tokens.

An exit is a number for one way in which the part's text may be over. From every state but DEAD some exit can
be reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.oracle.automaton import DEAD, Automaton, States
from harness.oracle.choice import ChoiceAutomaton
from harness.oracle.json_schema.automaton import JsonSchemaAutomaton
from harness.oracle.json_schema.automaton import Place as PlaceInDocument
from harness.oracle.json_schema.strings import UTF8
from harness.oracle.tag_formats.written import WrittenAutomaton

Place: TypeAlias = Literal["free_text", "fixed_text", "pattern", "token"] | PlaceInDocument
"""Where in a format something stands: in free text, in a text that the format gives, in what a regex or a
grammar describes, at a token, or in a document."""

MOST_BEGINNINGS = 20_000_000
"""Most bytes in the beginnings of all texts that are looked for in a format's free text: one text of 4,400
bytes has as many, or 500 of 200."""

Exits: TypeAlias = tuple[int, ...]
ONLY: Exits = (0,)
"""The exits of a part that has one."""


class Described:
    """The sentences of another automaton: its one exit is at its accepting states."""

    def __init__(self, automaton: Automaton[Any]) -> None:
        self._automaton = automaton
        self.start = automaton.start

    @property
    def table(self) -> NDArray[np.int32]:
        return self._automaton.table

    def expand(self, states: States) -> None:
        self._automaton.expand(states)

    def exits(self, state: int) -> Exits:
        return ONLY if self._automaton.accepting(state) else ()

    def place_of(self, state: int) -> Place:
        automaton = self._automaton
        if isinstance(automaton, JsonSchemaAutomaton | WrittenAutomaton):
            return automaton.place(state)
        return "pattern"


class Texts(ChoiceAutomaton):
    """Some texts, each with its number as its exit; a text may come twice."""

    def __init__(self, texts: Sequence[bytes]) -> None:
        self._numbers: dict[bytes, Exits] = {}
        for number, text in enumerate(texts):
            self._numbers[text] = (*self._numbers.get(text, ()), number)
        super().__init__(frozenset(texts))

    def exits(self, state: int) -> Exits:
        key = self._keys[state]
        return self._numbers[self._choices[key[0]]] if key is not None and self._is_accepting(key) else ()

    def place_of(self, state: int) -> Place:
        return "fixed_text"


class Reading(NamedTuple):
    """Where one is in free text."""

    within: int
    """What must follow within a character, as in UTF8; 0 between characters."""
    begun: frozenset[bytes]
    """The beginnings of patterns with which the text ends. Once a pattern stands in it, only those that began
    no later are left."""
    banned: frozenset[bytes]
    """The beginnings of excluded texts with which the text ends."""
    is_free: bool
    """No pattern stands in the text."""
    completed: bytes
    """The pattern that is complete here and may end the free text; empty if there is none."""
    characters: int
    """How many characters began, where they are counted."""


class FreeText(Automaton[Reading]):
    """Text in which no pattern and nothing excluded stands (its exit is the number of patterns), or such a
    text up to and with a pattern (its exit is the pattern's number).

    Of patterns that overlap it is the place where one begins that counts: none may stand in the text that
    begins before the one with which it ends. `is_possible` says of each pattern whether something can follow
    it.
    """

    def __init__(
        self,
        patterns: Sequence[bytes],
        is_possible: Sequence[bool],
        excluded: Sequence[bytes],
        most_characters: int | None,
    ) -> None:
        self._free = (len(patterns),)
        self._most = most_characters
        self._numbers: dict[bytes, Exits] = {}
        for number, pattern in enumerate(patterns):
            self._numbers[pattern] = self._numbers.get(pattern, ()) + (number,) * is_possible[number]
        self._excluded = frozenset(excluded)
        self._pattern_begins = _beginnings(self._numbers)
        self._excluded_begins = _beginnings(self._excluded)
        self._next: dict[bytes, set[int]] = {}
        """Every beginning of a pattern or an excluded text, and the bytes that go on with it."""
        for text in (*self._numbers, *self._excluded):
            for end, byte in enumerate(text):
                self._next.setdefault(text[:end], set()).add(byte)
        self._viable: dict[Reading, bool] = {}
        super().__init__(Reading(0, frozenset(), frozenset(), True, b"", 0))

    def place_of(self, state: int) -> Place:
        return "free_text"

    def exits(self, state: int) -> Exits:
        reading = self._keys[state]
        if reading is None:
            return ()
        free = self._free if self._is_accepting(reading) else ()
        return (*free, *self._numbers.get(reading.completed, ()))

    def _is_accepting(self, key: Reading) -> bool:
        return key.is_free and key.within == 0

    def _successors(self, key: Reading) -> Iterator[tuple[int, int, Reading]]:
        for first, last, after in self._after(key):
            if self._is_viable(after):
                yield first, last, after

    def _after(self, key: Reading) -> Iterator[tuple[int, int, Reading]]:
        is_counted = self._most is not None and key.within == 0
        if is_counted and key.characters == self._most:
            return
        special = {byte for text in (b"", *key.begun, *key.banned) for byte in self._next.get(text, ())}
        edges = [edge for byte in special for edge in (byte, byte + 1)]
        for first, last, within in RUNS[key.within]:
            cuts = sorted({first, last + 1, *(edge for edge in edges if first < edge <= last)})
            for start, end in pairwise(cuts):
                after = self._behind(key, bytes((start,)), within, key.characters + is_counted)
                if after is not None:
                    yield start, end - 1, after

    def _behind(self, key: Reading, byte: bytes, within: int, characters: int) -> Reading | None:
        """The reading behind one more byte; None if the free text cannot go on so."""
        banned = {text + byte for text in (b"", *key.banned)}
        if not banned.isdisjoint(self._excluded):
            return None
        begun = {text + byte for text in ((b"", *key.begun) if key.is_free else key.begun)}
        completed = max(begun & self._numbers.keys(), key=len, default=b"")
        held = {text for text in begun & self._pattern_begins if len(text) >= len(completed)}
        is_free = key.is_free and not completed
        if not (is_free or completed or held):
            return None
        still_banned = frozenset(banned & self._excluded_begins)
        return Reading(within, frozenset(held), still_banned, is_free, completed, characters)

    def _is_viable(self, reading: Reading) -> bool:
        """Can the text be over some time?"""
        if reading not in self._viable:
            found, waiting = {reading}, [reading]
            self._viable[reading] = False
            while waiting:
                here = waiting.pop()
                if (here.is_free and here.within == 0) or self._numbers.get(here.completed):
                    self._viable[reading] = True
                    break
                for _, _, after in self._after(here):
                    if after not in found:
                        found.add(after)
                        waiting.append(after)
        return self._viable[reading]


class TokenPart:
    """One token of some, read by its id and not by its bytes. Its states are the start and what is behind
    it."""

    waiting, behind = 1, 2

    def __init__(self, allowed: NDArray[np.bool_]) -> None:
        self.start = self.waiting if allowed.any() else DEAD
        self.allowed = allowed
        """Shape `[vocabulary.size]`."""
        self.table = np.zeros((3, 256), dtype=np.int32)

    def expand(self, states: States) -> None:
        """Nothing is to be found: no byte leads anywhere."""

    def exits(self, state: int) -> Exits:
        return ONLY if state == self.behind else ()

    def place_of(self, state: int) -> Place:
        return "token"


Part: TypeAlias = Texts | FreeText | Described | TokenPart


def _beginnings(texts: Iterable[bytes]) -> set[bytes]:
    """Returns what the texts begin with, but for nothing and for all of a text."""
    return {text[:end] for text in texts for end in range(1, len(text))}


def _runs_of(row: list[int]) -> list[tuple[int, int, int]]:
    """Returns the runs of bytes with which a state of UTF8 goes on in the same way."""
    runs: list[tuple[int, int, int]] = []
    for byte, after in enumerate(row):
        if after < 0:
            continue
        if runs and runs[-1][1] == byte - 1 and runs[-1][2] == after:
            runs[-1] = (runs[-1][0], byte, after)
        else:
            runs.append((byte, byte, after))
    return runs


RUNS = [_runs_of(row) for row in UTF8]
"""In each state within a character: the bytes that may follow, as (first, last, state behind them)."""
