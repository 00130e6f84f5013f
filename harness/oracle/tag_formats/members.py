"""The automaton of the objects of a schema in a style of XML.

A text stands for a JSON document, which is walked through the schema's automaton of JSON while the text is
read: a member's name and a string are handed to it with the escapes that JSON needs, another value as it
stands. So every keyword counts as it does for JSON, and the order of members is that of the layout.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from harness.oracle.automaton import DEAD
from harness.oracle.completion import short_completion
from harness.oracle.json_schema.automaton import JsonSchemaAutomaton
from harness.oracle.tag_formats.styles import Middle, Style, first_bytes
from harness.oracle.tag_formats.written import WrittenAutomaton, borders, nearer_to_its_end, runs


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


class MembersAutomaton(WrittenAutomaton[Item]):
    """All objects of a schema in a style."""

    in_value, behind_value = Value, Behind

    def __init__(self, documents: JsonSchemaAutomaton, style: Style) -> None:
        self._style = style
        self._behind_name = borders(style.name_end)
        self._behind_value = borders(style.behind)
        separators = documents.layout.separators or (b"", b"")
        self._comma, self._colon = b"," + separators[0], b":" + separators[1]
        self._white = documents.layout.whitespace
        self._most_white = documents.layout.longest_run
        begun = documents.run(documents.start, b"{") if documents.start != DEAD else DEAD
        super().__init__(documents, None if begun == DEAD else Between(begun, 0, 0))

    def _is_inside(self, item: Item) -> bool:
        return isinstance(item, Name | Value)

    def _ends(self, item: Item) -> bool:
        is_between = isinstance(item, Between) and item.read == 0
        return is_between and self.documents.accepting(self.documents.step(item.json, 0x7D))

    def _following(self, item: Item) -> Iterator[tuple[int, int, Item]]:
        match item:
            case Between():
                return self._between(item)
            case Name():
                return self._name(item)
            case InMiddle():
                return self._in_middle(item)
            case Before():
                return self._before(item)
            case Value():
                return self._value(item)
            case Behind():
                return self._behind(item)

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
        row = self._behind_name[item.held]

        def after(byte: int) -> tuple[int, int]:
            return (DEAD if byte in escaped else self._spelled(item.json, byte)), row[byte]

        for first, last, state, held in runs(after, len(end)):
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
        row = self._behind_value[item.held]
        beyond = b",} \t\n\r" if ended != DEAD and not item.is_string else b""
        """What is no more of a value that is complete in JSON."""

        def after(byte: int) -> tuple[int, int]:
            if item.is_string:
                return self._spelled(item.json, byte), row[byte]
            return (DEAD if byte in beyond else self.documents.step(item.json, byte)), row[byte]

        found = runs(after, len(self._style.behind))
        for first, last, state, held in found if item.is_string else sorted(found, key=nearer_to_its_end):
            yield first, last, Value(state, item.is_string, held)

    def _behind(self, item: Behind) -> Iterator[tuple[int, int, Item]]:
        behind = self._style.behind
        byte, read = behind[item.read], item.read + 1
        yield byte, byte, Between(item.json, 0, 0) if read == len(behind) else Behind(item.json, 0, read)
        if item.read == 0:
            yield from self._space(item)

    def _ended(self, item: Item) -> Item | None:
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
