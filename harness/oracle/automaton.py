"""A language over bytes as a deterministic automaton whose states are found when they are asked for.

States are small integers. 0 is DEAD; from every other state some sentence can still be finished, so "not
dead" says exactly that a continuation exists.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator
from itertools import pairwise
from threading import RLock
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

DEAD = 0
MAX_STATES = 50_000
MAX_FORCED = 4096
"""Most bytes of forced text that are looked for; a language without a shortest end has no last forced byte
either."""

States = NDArray[np.int32]
Key = TypeVar("Key", bound=Hashable)


class NoOracle(Exception):
    """There is no reference automaton for this grammar; the message says why in one line. Nothing is
    concluded about a backend then."""


def byte_runs(rows: States) -> Iterator[tuple[int, int]]:
    """Yields each range of bytes in which every one of these rows of a table stays the same: its first byte
    and its end."""
    changes = np.flatnonzero((rows[:, 1:] != rows[:, :-1]).any(axis=0)) + 1
    return pairwise([0, *changes.tolist(), 256])


class Automaton(ABC, Generic[Key]):
    """An automaton over bytes. Subclasses define what a state is (a hashable key), what follows it, and
    whether a sentence may end there.
    """

    def __init__(self, start: Key | None) -> None:
        """`start` is None for the empty language."""
        self.table = np.zeros((64, 256), dtype=np.int32)
        """The next state in row `state` and column `byte`; a row is valid only where `expanded` is true."""
        self.expanded = np.zeros(64, dtype=np.bool_)
        self._accepting = np.zeros(64, dtype=np.bool_)
        self._keys: list[Key | None] = [None]
        self._states: dict[Key, int] = {}
        self._lock = RLock()
        self.expanded[DEAD] = True
        self.start = DEAD if start is None else self._state(start)

    @abstractmethod
    def _successors(self, key: Key) -> Iterable[tuple[int, int, Key]]:
        """Returns the transitions of a state as `(first byte, last byte, key)`: disjoint byte ranges, both
        ends included, and only keys from which a sentence can still be finished."""

    @abstractmethod
    def _is_accepting(self, key: Key) -> bool:
        """Is what was read so far a sentence?"""

    def __len__(self) -> int:
        """Returns how many states were found so far, DEAD included."""
        return len(self._keys)

    def step(self, state: int, byte: int) -> int:
        """Returns the state after one more byte."""
        if not self.expanded[state]:
            self._expand_once(state)
        return int(self.table[state, byte])

    def run(self, state: int, text: bytes) -> int:
        """Returns the state after more bytes."""
        for byte in text:
            state = self.step(state, byte)
            if state == DEAD:
                break
        return state

    def after_token(self, state: int, token: int, text: bytes) -> int:
        """Returns the state after a token with these bytes; DEAD if it has none, unless its id is meant."""
        return self.run(state, text) if text else DEAD

    @property
    def reads_tokens(self) -> bool:
        """Are tokens meant by their ids anywhere?"""
        return False

    def ids_allowed(self, state: int) -> NDArray[np.bool_] | None:
        """Returns the tokens that may come by their ids, whatever their bytes are, as an array of shape
        `[vocabulary.size]`; None where no id is meant."""
        return None

    def accepting(self, state: int) -> bool:
        """May the output end here?"""
        return bool(self._accepting[state])

    def accepts(self, text: bytes) -> bool:
        """Is the whole text a sentence?"""
        return self.accepting(self.run(self.start, text))

    def viable(self, text: bytes) -> int:
        """Returns how many leading bytes of the text are the beginning of some sentence; -1 if the language
        is empty."""
        state = self.start
        if state == DEAD:
            return -1
        for position, byte in enumerate(text):
            state = self.step(state, byte)
            if state == DEAD:
                return position
        return len(text)

    def forced(self, state: int, limit: int = MAX_FORCED) -> bytes:
        """Returns the bytes that must come next, at most `limit`: at each of them exactly one byte can follow
        and the output cannot end instead."""
        out = bytearray()
        while state != DEAD and len(out) < limit and not self._accepting[state]:
            self.expand(np.array([state], dtype=np.int32))
            following = np.flatnonzero(self.table[state])
            if len(following) != 1:
                break
            out.append(int(following[0]))
            state = int(self.table[state, following[0]])
        return bytes(out)

    def expand(self, states: States) -> None:
        """Fills the rows of these states in `table`; duplicates are fine."""
        if self.expanded.take(states).all():
            return
        wanted = np.zeros(len(self._keys), dtype=np.bool_)
        wanted[states] = True
        for state in np.flatnonzero(wanted & ~self.expanded[: len(wanted)]).tolist():
            self._expand_once(state)

    def _expand_once(self, state: int) -> None:
        """Fills the row of a state that has none. Objects of one grammar share the automaton, and a decode
        loop may fill their masks on several threads: one fills a row, the others wait for it."""
        with self._lock:
            if not self.expanded[state]:
                self._expand(state)

    def _expand(self, state: int) -> None:
        key = self._keys[state]
        assert key is not None
        transitions = [(first, last, self._state(after)) for first, last, after in self._successors(key)]
        row = self.table[state]  # after the last growth of the table
        for first, last, after in transitions:
            row[first : last + 1] = after
        self.expanded[state] = True

    def _state(self, key: Key) -> int:
        state = self._states.get(key)
        if state is None:
            state = len(self._keys)
            if state > MAX_STATES:
                raise NoOracle(f"the reference automaton has more than {MAX_STATES:,} states")
            if state == len(self.table):
                self.table = np.concatenate([self.table, np.zeros_like(self.table)])
                self.expanded = np.concatenate([self.expanded, np.zeros_like(self.expanded)])
                self._accepting = np.concatenate([self._accepting, np.zeros_like(self._accepting)])
            self._keys.append(key)
            self._states[key] = state
            self._accepting[state] = self._is_accepting(key)
        return state
