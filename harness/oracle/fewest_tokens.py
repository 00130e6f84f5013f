"""How many tokens it takes at least until an output may end: the shortest path over a vocabulary's tokens.

A request whose `max_tokens` is smaller is cut off before its document is complete, whatever the model says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.oracle.automaton import DEAD, Automaton, NoOracle
from harness.oracle.completion import CLOSING_FIRST, RARE, shortest_completion, some_completion
from harness.oracle.trie import TokenTrie

MOST_STATES = 300
"""States from which every token is tried before bounds are returned instead of the number."""


@dataclass(frozen=True)
class FewestTokens:
    """The smallest number of tokens with which an output may end, end-of-sequence not counted.

    It is not below `least`, and an output with `most` tokens is known (None: no output is). They are equal
    where the number itself is known.
    """

    least: int
    most: int | None


def fewest_tokens(
    automaton: Automaton[Any], state: int, trie: TokenTrie, most_states: int = MOST_STATES
) -> FewestTokens | None:
    """Returns how many tokens lead at least from a state of the automaton to a place where the output may
    end; None for a dead state, from which no output goes on, and where the vocabulary cannot spell an end.

    Breadth first: every state that so many tokens reach is looked at before one more is tried, so that the
    first end that is found is the nearest. Where more than `most_states` states would have to be tried, what
    is returned are bounds. Tokens are taken for the text that they are: raises NoOracle where ids are meant.
    """
    if state == DEAD:
        return None
    if automaton.reads_tokens:
        raise NoOracle("its tokens are meant by their ids")
    if automaton.accepting(state):
        return FewestTokens(0, 0)
    known = _tokens_of_some_completion(automaton, state, trie)
    seen, here, count, tried = {state}, [state], 0, 0
    try:
        while here and (known is None or count + 1 < known):
            following: set[int] = set()
            for each in here:
                tried += 1
                if tried > most_states:
                    return FewestTokens(count + 1, known)
                following.update(np.unique(trie.states(automaton, each)).tolist())
            count += 1
            following -= {DEAD, *seen}
            if any(automaton.accepting(each) for each in following):
                return FewestTokens(count, count)
            seen |= following
            here = sorted(following)
    except NoOracle:
        return FewestTokens(count + 1, known)
    # No end is nearer than the one that is known; without any, the vocabulary cannot spell one.
    return FewestTokens(known, known) if known is not None else None


def _tokens_of_some_completion(automaton: Automaton[Any], state: int, trie: TokenTrie) -> int | None:
    """Returns in how many tokens a short text that ends the output can be written at least; None where no
    such text is found soon, or the vocabulary cannot spell it."""
    try:
        text = shortest_completion(automaton, state, avoided=RARE)
        if text is None:
            text = some_completion(automaton, state, CLOSING_FIRST)
    except NoOracle:
        return None
    return None if text is None else fewest_tokens_of(text, trie)


def fewest_tokens_of(text: bytes, trie: TokenTrie) -> int | None:
    """Returns in how many tokens of plain text the text can be written at least; None where the vocabulary
    cannot spell it."""
    ids, longest = trie.vocabulary.ids_by_bytes, trie.vocabulary.longest_token
    counts: list[int | None] = [0]
    for end in range(1, len(text) + 1):
        before = (counts[start] for start in range(max(0, end - longest), end) if text[start:end] in ids)
        counts.append(min((count + 1 for count in before if count is not None), default=None))
    return counts[-1]
