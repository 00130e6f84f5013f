"""The automaton of a format's outputs, over bytes and over the ids of tokens."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from harness.backend.tag_formats.forms import Format
from harness.backend.vocabulary import Vocabulary
from harness.oracle.automaton import DEAD, MAX_FORCED, Automaton, byte_runs
from harness.oracle.json_schema.budget import Budget
from harness.oracle.tag_formats.graph import END, DocumentsOf, Graph
from harness.oracle.tag_formats.parts import Place, TokenPart

Item = tuple[int, int]
"""A node, and a state of its part; at the end there is no part and the state is 0."""
Key = frozenset[Item]
OVER: Item = (END, 0)
_RANKS = {"fixed_text": 0, "pattern": 2, "token": 3, "free_text": 4}


class FormatAutomaton(Automaton[Key]):
    """All outputs of a format. A state is the set of all places in which the parts may be.

    A format about tokens is read by `after_token`; `step` and what is built on it read bytes, which are never
    a token's id.
    """

    def __init__(
        self,
        format: Format,
        documents_of: DocumentsOf,
        budget: Budget,
        vocabulary: Vocabulary | None,
    ) -> None:
        self._budget = budget
        with budget.spending():
            self._graph = Graph(format, documents_of, budget, vocabulary)
        self._nodes = self._graph.nodes
        self.keywords = {word: None for each in self._graph.documents for word in each.keywords}
        """The keywords of the schemas that ask something, in the order in which they were read."""
        self._behind: dict[Item, Key] = {}
        start = self._graph.start
        super().__init__(None if start is None else self._enter([start]))

    @property
    def reads_tokens(self) -> bool:
        return self._graph.has_tokens

    def place(self, state: int) -> Place:
        """Where in an output the state is. Of several places it is a text that the format gives, or else one
        in a document, and free text only where there is nothing else."""
        places: set[Place] = set()
        for node, inside in self._keys[state] or ():
            part = self._nodes[node].part
            if part is not None:
                places.add(part.place_of(inside))
        return min(places, key=lambda place: (_RANKS.get(place, 1), place), default="fixed_text")

    def _is_accepting(self, key: Key) -> bool:
        return OVER in key

    def _successors(self, key: Key) -> Iterator[tuple[int, int, Key]]:
        with self._budget.spending():
            items = [item for item in key if item != OVER]
            rows = np.zeros((len(items), 256), dtype=np.int32)
            for number, (node, state) in enumerate(items):
                part = self._nodes[node].part
                assert part is not None
                part.expand(np.array([state], dtype=np.int32))
                rows[number] = part.table[state]
            after: list[tuple[int, int, Key]] = []
            if len(items):
                found: dict[bytes, Key] = {}
                for first, end in byte_runs(rows):
                    column = rows[:, first]
                    if not column.any():
                        continue
                    name = column.tobytes()
                    if name not in found:
                        found[name] = self._all_behind(items, column.tolist())
                    after.append((first, end - 1, found[name]))
            self._budget.check()
        yield from after

    def _all_behind(self, items: list[Item], states: list[int]) -> Key:
        """The items where each part has come to the state that stands in its place, if that is not DEAD."""
        behind = [
            self._through((node, state))
            for (node, _), state in zip(items, states, strict=True)
            if state != DEAD
        ]
        return frozenset().union(*behind)

    def _through(self, item: Item) -> Key:
        """The item, and all that the exits of its part lead to here."""
        if item not in self._behind:
            self._budget.check_now()  # of a long repetition each has much behind it
            node, state = item
            part = self._nodes[node].part
            assert part is not None
            exits = part.exits(state)
            entries = [entry for number in exits for entry in self._nodes[node].after.get(number, ())]
            self._behind[item] = frozenset({item}) | self._enter(entries)
        return self._behind[item]

    def _enter(self, entries: list[int]) -> Key:
        """The items at the starts of these nodes and of all that can follow them without a byte."""
        found: set[Item] = set()
        seen, waiting = set(entries), list(entries)
        while waiting:
            here = waiting.pop()
            part = self._nodes[here].part
            if here == END:
                found.add(OVER)
                continue
            if part is None:
                following = self._nodes[here].after.get(0, [])
            else:
                found.add((here, part.start))
                exits = part.exits(part.start)
                following = [entry for number in exits for entry in self._nodes[here].after.get(number, ())]
            for entry in following:
                if entry not in seen:
                    seen.add(entry)
                    waiting.append(entry)
        return frozenset(found)

    # Tokens

    def _token_parts(self, state: int) -> list[tuple[int, TokenPart]]:
        """Returns the parts that wait for a token, with their nodes."""
        parts = [(node, self._nodes[node].part, inside) for node, inside in self._keys[state] or ()]
        return [
            (node, part)
            for node, part, inside in parts
            if isinstance(part, TokenPart) and inside == part.start
        ]

    def ids_allowed(self, state: int) -> NDArray[np.bool_] | None:
        parts = self._token_parts(state) if self.reads_tokens else []
        if not parts:
            return None
        allowed: NDArray[np.bool_] = np.logical_or.reduce([part.allowed for _, part in parts])
        return allowed

    def after_token(self, state: int, token: int, text: bytes) -> int:
        read = super().after_token(state, token, text)
        items: set[Item] = set(self._keys[read] or ())
        for node, part in self._token_parts(state) if self.reads_tokens else []:
            if 0 <= token < len(part.allowed) and part.allowed[token]:
                items |= self._enter(self._nodes[node].after[0])
        return self._state(frozenset(items)) if items else DEAD

    def forced(self, state: int, limit: int = MAX_FORCED) -> bytes:
        """Returns the bytes that must come next; where a token may come by its id, no byte must."""
        forced = super().forced(state, limit)
        if not self.reads_tokens:
            return forced
        for length in range(len(forced) + 1):
            if self._token_parts(state):
                return forced[:length]
            if length < len(forced):
                state = self.step(state, forced[length])
        return forced
