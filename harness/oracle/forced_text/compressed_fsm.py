"""The compressed finite state machine of SGLang (2024), over a byte-level automaton: chains of singular
transitions become one jump.

It has two levels. At byte level a transition is singular if exactly one byte can follow and the output cannot
end instead. At symbol level it is a whole character, and one that has not begun yet; a class of characters is
never jumped, even where it has one byte in front of all its members (`[é-ï]`: 0xC3, which only the byte level
jumps). Every outgoing byte counts: SGLang's own map skipped the wildcard of a class like `[^ab]` instead of
counting it, and so jumped past a choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.oracle.automaton import DEAD, MAX_FORCED, Automaton


@dataclass(frozen=True)
class Jump:
    """Forced bytes in three parts, in the order in which an engine hands them on."""

    continuation: bytes = b""
    """The rest of a character that has already begun. It is no text by itself, so an engine spells it with
    byte tokens."""
    text: str = ""
    """Whole characters."""
    begun: bytes = b""
    """The first bytes of a character whose end is not forced."""


class JumpMap:
    """The jumps of an automaton's states, found when they are asked for.

    States that lie on one chain share it, so that each state of the automaton is looked at once.
    """

    def __init__(self, automaton: Automaton[Any], limit: int = MAX_FORCED) -> None:
        """No jump is longer than `limit` bytes."""
        self.automaton = automaton
        self._limit = limit
        self._places: dict[int, tuple[bytes, int]] = {}
        """The bytes of the chain that each state lies on, and how many of them come before it."""

    def byte_edge(self, state: int) -> tuple[int, int] | None:
        """Returns the singular transition of a state as `(byte, next state)`. None at an end, at a possible
        end, and where there is a choice."""
        if state == DEAD or self.automaton.accepting(state):
            return None
        self.automaton.expand(np.array([state], dtype=np.int32))
        row = self.automaton.table[state]
        following = np.flatnonzero(row)
        return (int(following[0]), int(row[following[0]])) if len(following) == 1 else None

    def jump_bytes(self, state: int) -> bytes:
        """Returns the bytes of the byte-level jump, which may begin inside a character and end inside one."""
        chain, at = self._place(state)
        return chain[at : at + self._limit]

    def _place(self, state: int) -> tuple[bytes, int]:
        known = self._places.get(state)
        if known is not None:
            return known
        path, text, end = [state], bytearray(), state
        while len(text) < self._limit and end not in self._places and (edge := self.byte_edge(end)):
            text.append(edge[0])
            end = edge[1]
            path.append(end)
        cut = len(text) == self._limit
        rest, at = self._places.get(end, (b"", 0))
        chain = bytes(text) + rest[at:]
        # A chain that the limit has cut is the first state's alone: seen from the others it goes on.
        for before, passed in enumerate(path[:1] if cut else path):
            self._places.setdefault(passed, (chain, before))
        return chain, 0


def split_jump(forced: bytes) -> Jump:
    """Returns the forced bytes, cut where characters begin and end. Bytes that are no UTF-8 count as
    begun."""
    start = next((at for at, byte in enumerate(forced) if not 0x80 <= byte < 0xC0), len(forced))
    try:
        return Jump(forced[:start], forced[start:].decode())
    except UnicodeDecodeError as error:
        end = start + error.start
        return Jump(forced[:start], forced[start:end].decode(), forced[end:])
