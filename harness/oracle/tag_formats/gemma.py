"""The automaton of the documents of a schema as Gemma's models write them.

They are JSON, but that a name stands without quotes and a string as it is between two `<|"|>`, at every
depth (docs/structural_tags.md).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from harness.oracle.automaton import DEAD
from harness.oracle.completion import short_completion
from harness.oracle.json_schema.automaton import JsonSchemaAutomaton
from harness.oracle.tag_formats.written import WrittenAutomaton, borders, nearer_to_its_end, runs

QUOTE = b'<|"|>'
"""What stands before and behind a string. It does not end as it begins, so that two cannot overlap."""
QUOTED = borders(QUOTE)
NOT_IN_NAMES = b":{}[]"
"""What reads a call takes these for what they are outside of names."""
WHITE = b" \t\n\r"
STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
"""A string of JSON."""


@dataclass(frozen=True, order=True)
class Outside:
    """The place is outside of names and strings."""

    json: int


@dataclass(frozen=True, order=True)
class Name:
    """The place is in a name; after white space, it does not end there."""

    json: int
    after_space: bool


@dataclass(frozen=True, order=True)
class Opening:
    """The place is in the mark before a string, of which `read` bytes were read. The automaton of JSON is at
    the beginning of the string already."""

    json: int
    read: int


@dataclass(frozen=True, order=True)
class Text:
    """The place is in a string; `held` counts its last bytes that may begin the mark behind it."""

    json: int
    held: int


@dataclass(frozen=True, order=True)
class Closing:
    """The place is in the mark behind a string, of which `read` bytes were read. The automaton of JSON is
    behind the string already."""

    json: int
    read: int


Item = Outside | Name | Opening | Text | Closing
"""One way to read what was read so far. `json` is the state of the automaton of JSON."""


class GemmaAutomaton(WrittenAutomaton[Item]):
    """All documents of a schema as Gemma writes them."""

    in_value, behind_value = Text, Closing

    def __init__(self, documents: JsonSchemaAutomaton) -> None:
        super().__init__(documents, None if documents.start == DEAD else Outside(documents.start))

    def _is_inside(self, item: Item) -> bool:
        return isinstance(item, Outside | Name | Text)

    def _ends(self, item: Item) -> bool:
        return isinstance(item, Outside) and self.documents.accepting(item.json)

    def _following(self, item: Item) -> Iterator[tuple[int, int, Item]]:
        match item:
            case Outside():
                return self._outside(item)
            case Name():
                return self._name(item)
            case Opening(state, read):
                after = Text(state, 0) if read + 1 == len(QUOTE) else Opening(state, read + 1)
                return iter([(QUOTE[read], QUOTE[read], after)])
            case Text():
                return self._text(item)
            case Closing(state, read):
                behind = Outside(state) if read + 1 == len(QUOTE) else Closing(state, read + 1)
                return iter([(QUOTE[read], QUOTE[read], behind)])

    def _outside(self, item: Outside) -> Iterator[tuple[int, int, Item]]:
        def after(byte: int) -> tuple[int, int]:
            return (DEAD if byte == 0x22 else self.documents.step(item.json, byte)), 0

        for first, last, state, _ in sorted(runs(after, 1), key=nearer_to_its_end):
            yield first, last, Outside(state)
        begun = self.documents.step(item.json, 0x22)
        if begun == DEAD:
            return
        if self.documents.place(begun) == "name":
            yield from self._in_name(Name(begun, False), but=b"," + WHITE)
        else:
            yield QUOTE[0], QUOTE[0], Opening(begun, 1)

    def _name(self, item: Name) -> Iterator[tuple[int, int, Item]]:
        if not item.after_space:
            for byte in WHITE:
                if (ended := self.documents.run(item.json, bytes([0x22, byte]))) != DEAD:
                    yield byte, byte, Outside(ended)
        yield from self._in_name(item)

    def _in_name(self, item: Name, but: bytes = b"") -> Iterator[tuple[int, int, Item]]:
        """Yields the moves by one more character of a name, but for these, and by the colon that ends it."""
        ended = DEAD if item.after_space else self.documents.run(item.json, b'":')
        if ended != DEAD:
            yield 0x3A, 0x3A, Outside(ended)

        def after(byte: int) -> tuple[int, int]:
            is_none = byte in NOT_IN_NAMES or byte in but
            return (DEAD if is_none else self._spelled(item.json, byte)), int(byte in WHITE)

        for first, last, state, is_space in runs(after, 2):
            yield first, last, Name(state, bool(is_space))

    def _text(self, item: Text) -> Iterator[tuple[int, int, Item]]:
        ended = self.documents.step(item.json, 0x22)
        if ended != DEAD:
            yield QUOTE[0], QUOTE[0], Closing(ended, 1)
        row = QUOTED[item.held]
        for first, last, state, held in runs(
            lambda byte: (self._spelled(item.json, byte), row[byte]), len(QUOTE)
        ):
            yield first, last, Text(state, held)

    def _ended(self, item: Item) -> Item | None:
        if not isinstance(item, Outside):
            return None
        here: set[Item] = {item}
        for byte in self._rest(item.json):
            here = {
                after for each in here for first, last, after in self._moves(each) if first <= byte <= last
            }
        return min((each for each in here if self._ends(each)), default=None)

    def _rest(self, state: int) -> bytes:
        """Returns how the rest of a document is written that the automaton of JSON finds, if it finds one."""
        rest = short_completion(self.documents, state) or b""
        written, at = bytearray(), 0
        while at < len(rest):
            string = STRING.match(rest, at)
            piece = string[0] if string else rest[at : at + 1]
            if string:
                mark = b"" if self.documents.place(self.documents.step(state, 0x22)) == "name" else QUOTE
                written += mark + json.loads(piece).encode("utf-8", "surrogatepass") + mark
            else:
                written += piece
            state, at = self.documents.run(state, piece), at + len(piece)
        return bytes(written)
