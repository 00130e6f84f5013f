"""How many tokens it takes at least until an output may end: the shortest path over a vocabulary's tokens.

A request whose `max_tokens` is smaller is cut off before its document is complete, whatever the model says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.oracle.automaton import DEAD, Automaton, NoOracle
from harness.oracle.completion import CLOSING_FIRST, RARE, shortest_completion, some_completion
from harness.oracle.trie import TokenTrie

MOST_STATES = 300
"""States from which every token is tried before bounds are returned instead of the number."""

Ways = dict[int, tuple[int, int] | None]
"""It maps each state that was reached to the state before it and the token that leads from there; the state
at which the search began is mapped to None."""


@dataclass(frozen=True)
class FewestTokens:
    """The smallest number of tokens with which an output may end, end-of-sequence not counted.

    It is not below `least`, and an output with `most` tokens is known (None: no output is). They are equal
    where the number itself is known.
    """

    least: int
    most: int | None


def any_text(_: bytes) -> bool:
    """Takes every text for an output."""
    return True


def fewest_tokens(
    automaton: Automaton[Any],
    state: int,
    trie: TokenTrie,
    most_states: int = MOST_STATES,
    is_output: Callable[[bytes], bool] = any_text,
) -> FewestTokens | None:
    """Returns how many tokens lead at least from a state of the automaton to a place where the output may
    end; None for a dead state, from which no output goes on, and where the vocabulary cannot spell an end.

    Breadth first: every state that so many tokens reach is looked at before one more is tried, so that the
    first end that is found is the nearest. Where more than `most_states` states would have to be tried, what
    is returned are bounds. Tokens are taken for the text that they are: raises NoOracle where ids are meant.

    An automaton may take some texts that are no outputs. A number of tokens is therefore known only if
    `is_output` is true of a text, from the state on, that takes so many; `least` does not depend on it.
    """
    if state == DEAD:
        return None
    if automaton.reads_tokens:
        raise NoOracle("its tokens are meant by their ids")
    if automaton.accepting(state):
        return FewestTokens(0, 0 if is_output(b"") else None)
    text = _some_completion(automaton, state)
    known = None if text is None or not is_output(text) else fewest_tokens_of(text, trie)
    ways: Ways = {state: None}
    here, count, tried = [state], 0, 0
    try:
        while here and (known is None or count + 1 < known):
            following: list[int] = []
            for each in here:
                tried += 1
                if tried > most_states:
                    return FewestTokens(count + 1, known)
                following += _reached(automaton, each, trie, ways)
            count += 1
            ends = [each for each in following if automaton.accepting(each)]
            if ends:
                is_known = any(is_output(_text_to(end, ways, trie)) for end in ends)
                return FewestTokens(count, count if is_known else known)
            here = sorted(following)
    except NoOracle:
        return FewestTokens(count + 1, known)
    # No end is nearer than the one that is known; without any, the vocabulary cannot spell one.
    return FewestTokens(known, known) if known is not None else None


def _reached(automaton: Automaton[Any], state: int, trie: TokenTrie, ways: Ways) -> list[int]:
    """Returns the states that one token reaches first, from this one; each gets its way."""
    states, tokens = np.unique(trie.states(automaton, state), return_index=True)
    first = {
        each: (state, token)
        for each, token in zip(states.tolist(), tokens.tolist(), strict=True)
        if each != DEAD and each not in ways
    }
    ways |= first
    return [*first]


def _text_to(state: int, ways: Ways, trie: TokenTrie) -> bytes:
    """Returns the text of the tokens on the way to a state."""
    texts = []
    while (way := ways[state]) is not None:
        state, token = way
        texts.append(trie.vocabulary.tokens[token])
    return b"".join(reversed(texts))


def _some_completion(automaton: Automaton[Any], state: int) -> bytes | None:
    """Returns a short text that ends the output; None where none is found soon."""
    try:
        text = shortest_completion(automaton, state, avoided=RARE)
        return some_completion(automaton, state, CLOSING_FIRST) if text is None else text
    except NoOracle:
        return None


def fewest_tokens_of(text: bytes, trie: TokenTrie) -> int | None:
    """Returns in how many tokens of plain text the text can be written at least; None where the vocabulary
    cannot spell it."""
    ids, longest = trie.vocabulary.ids_by_bytes, trie.vocabulary.longest_token
    counts: list[int | None] = [0]
    for end in range(1, len(text) + 1):
        before = (counts[start] for start in range(max(0, end - longest), end) if text[start:end] in ids)
        counts.append(min((count + 1 for count in before if count is not None), default=None))
    return counts[-1]
