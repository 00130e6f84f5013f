"""Texts that finish a sentence that was begun, such as the shortest one: a witness that a state is viable."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.oracle.automaton import DEAD, Automaton

MOST_LOOKED_AT = 20_000
"""States that are looked at before no witness is given."""
FEW_STATES = 500
"""States that are looked at for the shortest document."""
RARE = b" \t\n\r\\[{-." + bytes(range(0x80, 0x100))
"""White space, escapes, containers where something else can be, signs, fractions, and what is not ASCII: most
documents are found without, and each of them multiplies the states that are looked at."""
CLOSING_FIRST = b'}]",:1' + bytes(byte for byte in range(256) if byte not in b'}]",:1' + RARE) + RARE
"""The order in which bytes are tried for a document that is too long to be found so. A 1 comes before a 0,
because `0.000` leads to no number above 0."""


def shortest_completion(
    automaton: Automaton[Any], state: int, most_states: int = MOST_LOOKED_AT, avoided: bytes = b""
) -> bytes | None:
    """Returns the shortest text that leads from a state to the end of a sentence; of texts of one length, the
    first by the values of its bytes. It is empty where the output may end at once.

    Bytes that are `avoided` are taken only where no other can be. That leaves far fewer states to look at;
    the text is the shortest of those that are left.

    Returns None for a dead state, and where more than `most_states` states would have to be looked at, or no
    text is left. Raises NoOracle where the automaton does.
    """
    if state == DEAD:
        return None
    behind: dict[int, tuple[int, int] | None] = {state: None}
    waiting = [state]
    for here in waiting:  # in the order of the texts that lead there: by length, then by bytes
        if automaton.accepting(here):
            return _text_to(here, behind)
        automaton.expand(np.array([here], dtype=np.int32))
        row = automaton.table[here]
        following_bytes = np.flatnonzero(row).tolist()
        for byte in [byte for byte in following_bytes if byte not in avoided] or following_bytes:
            following = int(row[byte])
            if following not in behind:
                if len(behind) == most_states:
                    return None
                behind[following] = (here, byte)
                waiting.append(following)
    return None


def some_completion(
    automaton: Automaton[Any], state: int, order: bytes, most_states: int = MOST_LOOKED_AT
) -> bytes | None:
    """Returns a text that leads from a state to the end of a sentence, where the shortest is too far to be
    found: at each place the first byte in `order` is tried first, bytes that are not in it behind the others,
    and only a place from which nothing new is reached is left again.

    Returns None and raises NoOracle as `shortest_completion` does.
    """
    if state == DEAD:
        return None
    ranks = {byte: rank for rank, byte in enumerate(order)}
    behind: dict[int, tuple[int, int] | None] = {state: None}
    waiting = [state]
    while waiting:
        here = waiting.pop()
        if automaton.accepting(here):
            return _text_to(here, behind)
        automaton.expand(np.array([here], dtype=np.int32))
        row = automaton.table[here]
        found: list[int] = []
        for byte in sorted(np.flatnonzero(row).tolist(), key=lambda byte: ranks.get(byte, len(order))):
            following = int(row[byte])
            if following not in behind:
                if len(behind) == most_states:
                    return None
                behind[following] = (here, byte)
                found.append(following)
        waiting += reversed(found)  # the last one is looked at next
    return None


def short_completion(automaton: Automaton[Any], state: int) -> bytes | None:
    """Returns a text of JSON that leads from a state to the end of a document: the shortest without what is
    rare, where that is soon found, or else some text that closes what is open as early as it can.

    Returns None and raises NoOracle as `shortest_completion` does.
    """
    rest = shortest_completion(automaton, state, FEW_STATES, RARE)
    return some_completion(automaton, state, CLOSING_FIRST) if rest is None else rest


def _text_to(state: int, behind: dict[int, tuple[int, int] | None]) -> bytes:
    """Returns the bytes on the way to a state; each state has the one before it and the byte between."""
    text = bytearray()
    while (step := behind[state]) is not None:
        state, byte = step
        text.append(byte)
    return bytes(reversed(text))
