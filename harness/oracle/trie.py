"""A vocabulary's trie, laid out level by level in arrays, and the true mask of a state from one pass
over it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.backend.vocabulary import Vocabulary
from harness.oracle.automaton import DEAD, Automaton, States

TokenSet = NDArray[np.bool_]
"""A mask of shape `[vocabulary.size]`; True means allowed."""

SPARSE = 4  # below one node in so many alive, only their children are looked at


@dataclass(frozen=True)
class Level:
    """The nodes at one depth, sorted by parent and then by byte. A parent is an index into the level above;
    the root stands alone above the first level."""

    parents: NDArray[np.intp]
    bytes: NDArray[np.intp]
    first_child: NDArray[np.intp]
    """`first_child[i] : first_child[i + 1]` are the children of node i, in the level below."""
    token_nodes: NDArray[np.intp]
    tokens: NDArray[np.intp]
    """Token `tokens[i]` ends at node `token_nodes[i]`."""


class TokenTrie:
    """A trie of all plain-text tokens of a vocabulary; special, padding and empty tokens have no node."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        texts = sorted((text, token) for token, text in vocabulary.plain_tokens().items())
        self.levels = _levels(texts)
        self._size = 1 + sum(len(level.bytes) for level in self.levels)
        self._node = np.zeros(vocabulary.size, dtype=np.intp)
        """The node of each token, counted level by level from 1; 0 for tokens without text."""
        first = 1
        for level in self.levels:
            self._node[level.tokens] = level.token_nodes + first
            first += len(level.bytes)

    def states(self, automaton: Automaton[Any], state: int) -> States:
        """Returns the automaton's state after each token, as an array of shape `[vocabulary.size]`. It is
        DEAD where no sentence goes on so, and for tokens without text."""
        states = np.zeros(self._size, dtype=np.int32)  # of each node, level by level from 1
        here = np.array([state], dtype=np.int32)  # of the level above
        children = np.array([0, len(self.levels[0].bytes)]) if self.levels else np.zeros(2, np.intp)
        first = 1
        for level in self.levels:
            alive = np.count_nonzero(here)
            if not alive:
                break
            below = states[first : first + len(level.bytes)]
            if alive * SPARSE < len(here):
                places = np.flatnonzero(here)
                automaton.expand(here[places])
                nodes = _ranges(children[places], children[places + 1])
                below[nodes] = automaton.table[here[level.parents[nodes]], level.bytes[nodes]]
            else:
                automaton.expand(here)
                cells = (here.astype(np.intp) << 8).take(level.parents)
                cells += level.bytes
                below[:] = automaton.table.reshape(-1).take(cells)
            here, children = below, level.first_child
            first += len(below)
        after: States = states.take(self._node)
        return after

    def mask(self, automaton: Automaton[Any], state: int) -> TokenSet:
        """Returns the tokens that may come next, as a mask. Each id of end-of-sequence is allowed exactly at
        an accepting state; other special and empty tokens only where the automaton allows their ids, and
        padding never."""
        allowed: TokenSet = self.states(automaton, state) != DEAD
        if (ids := automaton.ids_allowed(state)) is not None:
            allowed |= ids
        allowed[list(self.vocabulary.eos_tokens)] = automaton.accepting(state)
        return allowed


@lru_cache(maxsize=4)
def trie_of(vocabulary: Vocabulary) -> TokenTrie:
    """Returns the vocabulary's trie, made once (under a second for 131,072 tokens)."""
    return TokenTrie(vocabulary)


def _ranges(starts: NDArray[np.intp], ends: NDArray[np.intp]) -> NDArray[np.intp]:
    """Returns the numbers from each start up to, but without, its end, one range after another."""
    counts = ends - starts
    offsets = np.cumsum(counts) - counts
    return np.repeat(starts - offsets, counts) + np.arange(counts.sum())


def _levels(texts: list[tuple[bytes, int]]) -> list[Level]:
    """Returns the levels of the trie of sorted texts. It works on arrays throughout: a node is a distinct
    prefix of some text."""
    levels: list[Level] = []
    if not texts:
        return levels
    lengths = np.array([len(text) for text, _ in texts])
    tokens = np.array([token for _, token in texts])
    matrix_start = np.cumsum(lengths) - lengths
    joined = np.frombuffer(b"".join(text for text, _ in texts), dtype=np.uint8)
    node = np.zeros(len(texts), dtype=np.intp)  # each text's node in the level above
    rows = np.arange(len(texts))  # the texts that reach the level, in order
    for depth in range(int(lengths.max())):
        longer = lengths[rows] > depth
        rows = rows[longer]
        parents, column = node[rows], joined[matrix_start[rows] + depth].astype(np.intp)
        new = np.ones(len(rows), dtype=np.bool_)
        new[1:] = (parents[1:] != parents[:-1]) | (column[1:] != column[:-1])
        node[rows] = np.cumsum(new) - 1
        ending = rows[lengths[rows] == depth + 1]
        level_parents = parents[new]
        if levels:
            above = len(levels[-1].bytes)
            levels[-1] = _with_children(levels[-1], np.searchsorted(level_parents, np.arange(above + 1)))
        levels.append(Level(level_parents, column[new], np.zeros(0, np.intp), node[ending], tokens[ending]))
    levels[-1] = _with_children(levels[-1], np.zeros(len(levels[-1].bytes) + 1, np.intp))
    return levels


def _with_children(level: Level, first_child: Any) -> Level:
    return Level(level.parents, level.bytes, first_child.astype(np.intp), level.token_nodes, level.tokens)
