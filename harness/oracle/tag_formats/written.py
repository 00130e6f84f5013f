"""What the automata of documents that are not written as JSON have in common.

A text stands for a JSON document, which is walked through the schema's automaton of JSON while the text is
read. A subclass says what follows each place of its form.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from harness.oracle.automaton import DEAD, Automaton, NoOracle
from harness.oracle.json_schema.automaton import JsonSchemaAutomaton
from harness.oracle.json_schema.automaton import Place as PlaceInDocument

FEW, MOST_LOOKED_AT = 300, 20_000
"""Places that are looked at for an end of the document, at first and at most."""

SHORT = {0x22: b'\\"', 0x5C: b"\\\\", 0x08: b"\\b", 0x0C: b"\\f", 0x0A: b"\\n", 0x0D: b"\\r", 0x09: b"\\t"}
"""The bytes that JSON writes with two characters in a string."""


class InDocument(Hashable, Protocol):
    """One way to read what was read so far. Items of one class can be sorted."""

    @property
    def json(self) -> int:
        """The state of the automaton of JSON."""


Item = TypeVar("Item", bound=InDocument)


class WrittenAutomaton(Automaton[frozenset[Item]], Generic[Item]):
    """All documents of a schema in a form. A state is the set of all ways to read what was read."""

    in_value: ClassVar[type[Any]]
    """The class of an item inside a value."""
    behind_value: ClassVar[type[Any]]
    """The class of an item behind one."""

    def __init__(self, documents: JsonSchemaAutomaton, first: Item | None) -> None:
        self.documents = documents
        # Tags with one schema share its documents, and must not use up the time of one another.
        self._budget = documents.budget.another()
        self._moves_of: dict[Item, list[tuple[int, int, Item]]] = {}
        self._can_end: dict[Item, bool] = {}
        super().__init__(None if first is None or not self._is_viable(first) else frozenset({first}))

    @abstractmethod
    def _following(self, item: Item) -> Iterator[tuple[int, int, Item]]:
        """Yields the moves from an item: the first and the last byte of a range, and the item behind it. That
        with which it comes to an end stands first, because it is tried first."""

    @abstractmethod
    def _ends(self, item: Item) -> bool:
        """May the output end at the item?"""

    @abstractmethod
    def _ended(self, item: Item) -> Item | None:
        """Returns an item that is reached from this one and nearer to an end, as the automaton of JSON finds
        it, if that is soon found."""

    @abstractmethod
    def _is_inside(self, item: Item) -> bool:
        """Is the item where the automaton of JSON is, and not in what the form writes in between?"""

    def place(self, state: int) -> PlaceInDocument:
        """Returns where in the document the state is, as of a state of the automaton of JSON."""
        places: set[PlaceInDocument] = {
            self.documents.place(item.json) if self._is_inside(item) else "between"
            for item in self._keys[state] or ()
        }
        return min(places, default="between")

    def _is_accepting(self, key: frozenset[Item]) -> bool:
        return any(self._ends(item) for item in key)

    def _successors(self, key: frozenset[Item]) -> Iterator[tuple[int, int, frozenset[Item]]]:
        moves = [
            move
            for item in sorted(key, key=lambda item: (type(item).__name__, item))
            for move in self._moves(item)
            if self._is_viable(move[2])
        ]
        cuts = sorted({edge for first, last, _ in moves for edge in (first, last + 1)})
        for first, end in pairwise(cuts):
            items = frozenset(item for low, high, item in moves if low <= first <= high)
            if items:
                yield first, end - 1, items

    def _moves(self, item: Item) -> list[tuple[int, int, Item]]:
        if item not in self._moves_of:
            self._moves_of[item] = list(self._following(item))
        return self._moves_of[item]

    def _spelled(self, state: int, byte: int) -> int:
        """Returns the state behind a byte of a string, in whichever spelling JSON has for it."""
        after = DEAD if byte in b'"\\' else self.documents.step(state, byte)
        if after == DEAD and (short := SHORT.get(byte)):
            after = self.documents.run(state, short)
        if after == DEAD and byte < 0x80:  # a layout may have U+007F escaped only
            after = self.documents.run(state, f"\\u{byte:04x}".encode())
        return after

    # Whether the document can be completed: what ends a name or a value may stand in all that is wanted.

    def _is_viable(self, item: Item) -> bool:
        """Returns whether the document can be completed from here."""
        if not (
            item in self._can_end
            or self._search(item, FEW, with_ends=False)
            or self._search(item, MOST_LOOKED_AT, with_ends=True)
        ):
            raise NoOracle("whether a document can be completed in this style takes too long to tell")
        return self._can_end[item]

    def _search(self, item: Item, most: int, *, with_ends: bool) -> bool:
        """Finds out whether the document can be completed from an item; returns False if too many would have
        to be looked at.

        What looks nearest is looked at first, and of that what was found last; `with_ends`, what `_ended`
        finds, which takes longer.
        """
        with self._budget.spending():
            return self._searched(item, most, with_ends)

    def _searched(self, item: Item, most: int, with_ends: bool) -> bool:
        came_from: dict[Item, Item | None] = {item: None}
        waiting: list[tuple[int, int, Item]] = [(0, 0, item)]

        def found(after: Item, here: Item, distance: int) -> None:
            if after not in came_from and self._can_end.get(after) is not False:
                came_from[after] = here
                heappush(waiting, (distance, -len(came_from), after))

        while waiting:
            self._budget.check_now()
            *_, here = heappop(waiting)
            if self._can_end.get(here) or self._ends(here):
                each: Item | None = here
                while each is not None:
                    self._can_end[each] = True
                    each = came_from[each]
                return True
            moves = self._moves(here)
            may_end = isinstance(here, self.in_value) and any(
                isinstance(after, self.behind_value) for *_, after in moves
            )
            for first, _, after in reversed(moves):
                goes_on = may_end and isinstance(after, self.in_value)
                found(after, here, self._distance(first, after, goes_on))
            if with_ends and (ended := self._ended(here)) is not None:
                found(ended, here, 0)
            if len(came_from) > most:
                return False
        self._can_end |= dict.fromkeys(came_from, False)
        return True

    def _distance(self, byte: int, item: Item, goes_on: bool) -> int:
        """Returns a number that is the greater the later the place behind a byte should be looked at: in
        values within values; in escapes, of which there are many and which hardly ever are the only way; and
        where a value goes on that might end."""
        distance = self.documents.nesting(item.json) + 4 * goes_on
        if self.documents.place(item.json) == "escape":
            distance += 1 if byte == 0x5C else 8
        return distance


def nearer_to_its_end(run: tuple[int, int, int, int]) -> int:
    """Returns a small number for a run of bytes with which a value of JSON comes nearer to its end."""
    ranks = {0x22: 0, 0x5D: 0, 0x7D: 0, 0x2C: 2, 0x5C: 2, 0x5B: 3, 0x7B: 3}
    return ranks.get(run[0], 1)


def borders(text: bytes) -> list[list[int]]:
    """Returns for each number of bytes that were read of a text, but for all of them, and for each next byte,
    how many bytes of the text are read then at most."""
    table = []
    for read in range(len(text)):
        row = []
        for byte in range(256):
            seen = text[:read] + bytes([byte])
            row.append(max(length for length in range(len(seen) + 1) if seen.endswith(text[:length])))
        table.append(row)
    return table


def runs(after: Callable[[int], tuple[int, int]], longest: int) -> Iterator[tuple[int, int, int, int]]:
    """Yields the ranges of bytes behind which the state of the JSON and the number of bytes that may begin an
    end are the same, with both; without those that lead nowhere, or of which the end is complete."""
    run: tuple[int, int, tuple[int, int]] | None = None
    for byte in range(257):
        state, held = after(byte) if byte < 256 else (DEAD, 0)
        if held == longest:
            state = DEAD
        if run is not None and run[2] == (state, held):
            run = run[0], byte, run[2]
            continue
        if run is not None and run[2][0] != DEAD:
            yield run[0], run[1], *run[2]
        run = byte, byte, (state, held)
