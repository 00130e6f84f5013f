"""Texts that finish a sentence that was begun, such as the shortest one: a witness that a state is viable."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import numpy as np

from harness.oracle.automaton import DEAD, Automaton

MOST_LOOKED_AT = 20_000
"""States that are looked at before no witness is given."""
FEW_STATES = 2_000
"""States that are looked at for the shortest document."""
AVOIDED_COUNT = 20
"""A byte that is to be avoided counts as this many others."""
CHOICE_COUNT = 4
"""A byte where another can be counts as this many that are forced, where a short text is enough. So the way
through a long name is not held against every number and string that is as long as that."""
RARE = b" \t\n\r\\[{-.eE" + bytes(range(0x80, 0x100))
"""White space, escapes, containers where something else can be, signs, fractions, exponents, and what is not
ASCII: most documents are found without, and each of them multiplies the states that are looked at. Exponents
come behind fractions, because there are thousands of states behind one."""
CLOSING_FIRST = b'}]",:1' + bytes(byte for byte in range(256) if byte not in b'}]",:1' + RARE) + RARE
"""The order in which bytes are tried for a document that is too long to be found so. A 1 comes before a 0,
because `0.000` leads to no number above 0."""


def shortest_completion(
    automaton: Automaton[Any],
    state: int,
    most_states: int = MOST_LOOKED_AT,
    avoided: bytes = b"",
    choice: int = 1,
) -> bytes | None:
    """Returns the shortest text that leads from a state to the end of a sentence; of texts of one length, the
    first by the values of its bytes. It is empty where the output may end at once.

    Bytes that are `avoided` count as many where another byte can be, and each byte where another one can be
    counts as `choice`: the text is then the shortest by that count, and far fewer states have to be looked
    at.

    Returns None for a dead state, and where more than `most_states` states would have to be looked at, or no
    text is left. Raises NoOracle where the automaton does.
    """
    if state == DEAD:
        return None
    behind: dict[int, tuple[int, int] | None] = {state: None}
    lengths = {state: 0}
    waiting = [(0, 0, state)]  # in the order of the texts that lead there: by length, then by bytes
    done: set[int] = set()
    number = 0
    while waiting:
        length, _, here = heappop(waiting)
        if here in done:
            continue
        done.add(here)
        if automaton.accepting(here):
            return _text_to(here, behind)
        automaton.expand(np.array([here], dtype=np.int32))
        row = automaton.table[here]
        following_bytes = np.flatnonzero(row).tolist()
        has_others = any(byte not in avoided for byte in following_bytes)
        one = choice if len(following_bytes) > 1 else 1
        for byte in following_bytes:
            following = int(row[byte])
            longer = length + (AVOIDED_COUNT * one if has_others and byte in avoided else one)
            if longer < lengths.get(following, longer + 1):
                if following not in behind and len(behind) == most_states:
                    return None
                number += 1
                behind[following], lengths[following] = (here, byte), longer
                heappush(waiting, (longer, number, following))
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
    """Returns a text of JSON that leads from a state to the end of a document: a short one with little that
    is rare, where that is soon found, or else some text that closes what is open as early as it can.

    Returns None and raises NoOracle as `shortest_completion` does.
    """
    rest = shortest_completion(automaton, state, FEW_STATES, RARE, CHOICE_COUNT)
    return some_completion(automaton, state, CLOSING_FIRST) if rest is None else rest


def _text_to(state: int, behind: dict[int, tuple[int, int] | None]) -> bytes:
    """Returns the bytes on the way to a state; each state has the one before it and the byte between."""
    text = bytearray()
    while (step := behind[state]) is not None:
        state, byte = step
        text.append(byte)
    return bytes(reversed(text))
