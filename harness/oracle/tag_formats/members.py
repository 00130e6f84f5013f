"""The automaton of the objects of a schema in a style of XML.

A text stands for a JSON document, which is walked through the schema's automaton of JSON while the text is
read: a member's name and a string are handed to it with the escapes that JSON needs, another value as it
stands. So every keyword counts as it does for JSON, and the order of members is that of the layout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import pairwise

from harness.oracle.automaton import DEAD, Automaton, NoOracle
from harness.oracle.completion import short_completion
from harness.oracle.json_schema.automaton import JsonSchemaAutomaton
from harness.oracle.json_schema.automaton import Place as PlaceInDocument
from harness.oracle.tag_formats.styles import Middle, Style, first_bytes

FEW, MOST_LOOKED_AT = 300, 20_000
"""Places that are looked at for an end of the object, at first and at most."""

SHORT = {0x22: b'\\"', 0x5C: b"\\\\", 0x08: b"\\b", 0x0C: b"\\f", 0x0A: b"\\n", 0x0D: b"\\r", 0x09: b"\\t"}
"""The bytes that JSON writes with two characters in a string."""


@dataclass(frozen=True, order=True)
class Between:
    """The place is before, between or behind members. `read` counts the bytes that were read of what begins a
    member, and `space` the white space before it, where that is counted."""

    json: int
    read: int
    space: int


@dataclass(frozen=True, order=True)
class Name:
    """The place is in a name. `held` counts its last bytes that may begin what ends it, and `read` the bytes
    that were read of the entity of the number `entity` (0: of none)."""

    json: int
    held: int
    entity: int = 0
    read: int = 0


@dataclass(frozen=True, order=True)
class InMiddle:
    """The place is between name and value. `read` counts the bytes that were read of what stands there, and
    `space` the white space within it."""

    json: int
    middle: int
    read: int
    space: int


@dataclass(frozen=True, order=True)
class Before:
    """The place is before a value; `space` counts the white space that was read there."""

    json: int
    middle: int
    space: int


@dataclass(frozen=True, order=True)
class Value:
    """The place is in a value; `held` counts its last bytes that may begin what ends it."""

    json: int
    is_string: bool
    held: int


@dataclass(frozen=True, order=True)
class Behind:
    """The place is behind a value. `space` counts the white space that was read there, and `read` the bytes
    of what ends the value."""

    json: int
    space: int
    read: int = 0


Item = Between | Name | InMiddle | Before | Value | Behind
"""One way to read what was read so far. `json` is the state of the automaton of JSON; of what comes between
the members there, it has read nothing before the next name begins."""
Key = frozenset[Item]
Moves = list[tuple[int, int, Item]]
"""The first and the last byte of a range, and the item behind it."""


class MembersAutomaton(Automaton[Key]):
    """All objects of a schema in a style. A state is the set of all ways to read what was read."""

    def __init__(self, documents: JsonSchemaAutomaton, style: Style) -> None:
        self.documents = documents
        self._style = style
        self._behind_name = _borders(style.name_end)
        self._behind_value = _borders(style.behind)
        separators = documents.layout.separators or (b"", b"")
        self._comma, self._colon = b"," + separators[0], b":" + separators[1]
        self._white = documents.layout.whitespace
        self._most_white = documents.layout.longest_run
        self._moves_of: dict[Item, Moves] = {}
        self._can_end: dict[Item, bool] = {}
        begun = documents.run(documents.start, b"{") if documents.start != DEAD else DEAD
        start = Between(begun, 0, 0)
        super().__init__(frozenset({start}) if begun != DEAD and self._is_viable(start) else None)

    def place(self, state: int) -> PlaceInDocument:
        """Where in the object the state is, as of a state of the automaton of JSON."""
        places: set[PlaceInDocument] = set()
        for item in self._keys[state] or ():
            is_inside = isinstance(item, Name | Value)
            places.add(self.documents.place(item.json) if is_inside else "between")
        return min(places, default="between")

    def _is_accepting(self, key: Key) -> bool:
        return any(isinstance(item, Between) and self._ends(item) for item in key)

    def _successors(self, key: Key) -> Iterator[tuple[int, int, Key]]:
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

    def _ends(self, item: Between) -> bool:
        return item.read == 0 and self.documents.accepting(self.documents.step(item.json, 0x7D))

    # What follows an item. That with which it comes to an end stands first, because it is tried first.

    def _moves(self, item: Item) -> Moves:
        if item not in self._moves_of:
            match item:
                case Between():
                    moves = self._between(item)
                case Name():
                    moves = self._name(item)
                case InMiddle():
                    moves = self._in_middle(item)
                case Before():
                    moves = self._before(item)
                case Value():
                    moves = self._value(item)
                case Behind():
                    moves = self._behind(item)
            self._moves_of[item] = list(moves)
        return self._moves_of[item]

    def _space(self, item: Between | InMiddle | Before | Behind) -> Iterator[tuple[int, int, Item]]:
        """Yields the moves by one more character of white space."""
        if self._most_white is not None and item.space >= self._most_white:
            return
        after = replace(item, space=item.space + (self._most_white is not None))
        yield from ((byte, byte, after) for byte in self._white)

    def _between(self, item: Between) -> Iterator[tuple[int, int, Item]]:
        before, state = self._style.before, item.json
        if item.read == 0:
            yield from self._space(item)
            state = self._named(state)
            if state == DEAD:
                return
        byte, read = before[item.read], item.read + 1
        yield byte, byte, Name(state, 0) if read == len(before) else Between(state, read, 0)

    def _named(self, state: int) -> int:
        """Returns the state of the JSON in the next name; DEAD if no further member may come."""
        first = self.documents.run(state, b'"')
        return first if first != DEAD else self.documents.run(state, self._comma + b'"')

    def _name(self, item: Name) -> Iterator[tuple[int, int, Item]]:
        end = self._style.name_end
        if item.read:
            byte, text = self._style.entities[item.entity]
            read = item.read + 1
            if read < len(text):
                yield text[item.read], text[item.read], replace(item, read=read)
            elif (state := self._spelled(item.json, byte[0])) != DEAD:
                yield text[-1], text[-1], Name(state, 0)
            return
        named = self.documents.run(item.json, b'"' + self._colon)
        if named != DEAD:
            for number, middle in enumerate(self._style.middles):
                yield end[0], end[0], self._behind_middle(named, number, middle, 1)
        for number, (_, text) in enumerate(self._style.entities):
            yield text[0], text[0], Name(item.json, 0, number, 1)
        escaped = {byte[0] for byte, _ in self._style.entities}
        borders = self._behind_name[item.held]

        def after(byte: int) -> tuple[int, int]:
            return (DEAD if byte in escaped else self._spelled(item.json, byte)), borders[byte]

        for first, last, state, held in _runs(after, len(end)):
            yield first, last, Name(state, held)

    def _behind_middle(self, state: int, number: int, middle: Middle, read: int) -> Item:
        if read == len(middle.text):
            return Before(state, number, 0)
        return InMiddle(state, number, read, 0)

    def _in_middle(self, item: InMiddle) -> Iterator[tuple[int, int, Item]]:
        middle = self._style.middles[item.middle]
        byte = middle.text[item.read]
        yield byte, byte, self._behind_middle(item.json, item.middle, middle, item.read + 1)
        if item.read == middle.space_at:
            yield from self._space(item)

    def _before(self, item: Before) -> Iterator[tuple[int, int, Item]]:
        readings = self._style.middles[item.middle].readings
        if "string" in readings and (state := self.documents.step(item.json, 0x22)) != DEAD:
            yield from self._value(Value(state, True, 0))
        for byte in first_bytes(readings):
            if (state := self.documents.step(item.json, byte)) != DEAD:
                yield byte, byte, Value(state, False, self._behind_value[0][byte])
        yield from self._space(item)

    def _value(self, item: Value) -> Iterator[tuple[int, int, Item]]:
        if item.is_string:
            ended = self.documents.step(item.json, 0x22)
        else:
            ended = item.json if self.documents.ends_member(item.json) else DEAD
        if ended != DEAD:
            yield from self._behind(Behind(ended, 0))
        borders = self._behind_value[item.held]
        beyond = b",} \t\n\r" if ended != DEAD and not item.is_string else b""
        """What is no more of a value that is complete in JSON."""

        def after(byte: int) -> tuple[int, int]:
            if item.is_string:
                return self._spelled(item.json, byte), borders[byte]
            return (DEAD if byte in beyond else self.documents.step(item.json, byte)), borders[byte]

        runs = _runs(after, len(self._style.behind))
        for first, last, state, held in runs if item.is_string else sorted(runs, key=_opens):
            yield first, last, Value(state, item.is_string, held)

    def _behind(self, item: Behind) -> Iterator[tuple[int, int, Item]]:
        behind = self._style.behind
        byte, read = behind[item.read], item.read + 1
        yield byte, byte, Between(item.json, 0, 0) if read == len(behind) else Behind(item.json, 0, read)
        if item.read == 0:
            yield from self._space(item)

    def _spelled(self, state: int, byte: int) -> int:
        """Returns the state behind a byte of a string, in whichever spelling JSON has for it."""
        after = DEAD if byte in b'"\\' else self.documents.step(state, byte)
        if after == DEAD and (short := SHORT.get(byte)):
            after = self.documents.run(state, short)
        if after == DEAD and byte < 0x20:
            after = self.documents.run(state, f"\\u{byte:04x}".encode())
        return after

    # Whether the object can be completed: what ends a name or a value may stand in all that the schema wants.

    def _is_viable(self, item: Item) -> bool:
        """Returns whether the object can be completed from here."""
        if not (
            item in self._can_end
            or self._search(item, FEW, with_ends=False)
            or self._search(item, MOST_LOOKED_AT, with_ends=True)
        ):
            raise NoOracle("whether an object can be completed in this style takes too long to tell")
        return self._can_end[item]

    def _search(self, item: Item, most: int, *, with_ends: bool) -> bool:
        """Finds out whether the object can be completed from an item; returns False if too many would have to
        be looked at.

        What looks nearest is looked at first, and of that what was found last; `with_ends`, the end of each
        value that was begun as JSON, as the automaton of JSON finds it, which takes longer.
        """
        came_from: dict[Item, Item | None] = {item: None}
        waiting: list[tuple[int, int, Item]] = [(0, 0, item)]

        def found(after: Item, here: Item, distance: int) -> None:
            if after not in came_from and self._can_end.get(after) is not False:
                came_from[after] = here
                heappush(waiting, (distance, -len(came_from), after))

        while waiting:
            *_, here = heappop(waiting)
            if self._can_end.get(here) or (isinstance(here, Between) and self._ends(here)):
                each: Item | None = here
                while each is not None:
                    self._can_end[each] = True
                    each = came_from[each]
                return True
            moves = self._moves(here)
            may_end = isinstance(here, Value) and any(isinstance(after, Behind) for *_, after in moves)
            for first, _, after in reversed(moves):
                goes_on = may_end and isinstance(after, Value)
                found(after, here, self._distance(first, after, goes_on))
            if with_ends and (ended := self._value_ended(here)) is not None:
                found(ended, here, 0)
            if len(came_from) > most:
                return False
        self._can_end |= dict.fromkeys(came_from, False)
        return True

    def _value_ended(self, item: Item) -> Item | None:
        """Returns the end of a value that was begun as JSON, the shortest one if that is soon found."""
        if not isinstance(item, Value) or item.is_string or self.documents.ends_member(item.json):
            return None
        state, held = item.json, item.held
        for byte in short_completion(self.documents, state) or b"":
            state, held = self.documents.step(state, byte), self._behind_value[held][byte]
            if held == len(self._style.behind):
                return None
            if self.documents.ends_member(state):
                return Value(state, False, held)
        return None

    def _distance(self, byte: int, item: Item, goes_on: bool) -> int:
        """Returns a number that is the greater the later the place behind a byte should be looked at: in
        values within values; in escapes, of which there are many and which hardly ever are the only way; and
        where a value goes on that might end."""
        distance = self.documents.nesting(item.json) + 4 * goes_on
        if self.documents.place(item.json) == "escape":
            distance += 1 if byte == 0x5C else 8
        return distance


def _opens(run: tuple[int, int, int, int]) -> int:
    """Returns a small number for bytes with which a value of JSON comes nearer to its end."""
    ranks = {0x22: 0, 0x5D: 0, 0x7D: 0, 0x2C: 2, 0x5C: 2, 0x5B: 3, 0x7B: 3}
    return ranks.get(run[0], 1)


def _borders(text: bytes) -> list[list[int]]:
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


def _runs(after: Callable[[int], tuple[int, int]], longest: int) -> Iterator[tuple[int, int, int, int]]:
    """Yields the ranges of bytes behind which the state of the JSON and the number of bytes that may begin an
    end are the same; without those that lead nowhere, or of which the end is complete."""
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
