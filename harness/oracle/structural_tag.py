"""The outputs of a structural tag (docs/structural_tags.md) as an automaton over bytes.

An output can often be read in several ways: `<` is free text and may be the first byte of a tag; white space
behind a document belongs to it or to the end of the tag. So a state is the set of all readings of what was
read so far with which some output goes on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from harness.backend.adapter_parts import structural_tag_of
from harness.backend.grammar import InvalidGrammar
from harness.backend.tag_formats import has_format
from harness.oracle.automaton import DEAD, Automaton, NoOracle
from harness.oracle.json_schema.automaton import JsonSchemaAutomaton
from harness.oracle.json_schema.automaton import Place as PlaceInDocument
from harness.oracle.json_schema.budget import Budget
from harness.oracle.json_schema.strings import UTF8
from harness.oracle.tag_formats.load import with_any_documents

Pending: TypeAlias = frozenset[bytes]
"""What is still to come of the triggers that began in free text. None of them may be completed: the free text
would have ended where that trigger began."""
NOTHING: Pending = frozenset()


@dataclass(frozen=True, slots=True)
class Outside:
    """The output is in free text."""

    within: int
    """What must follow within a character, as in `UTF8`; 0 between characters."""
    pending: Pending


@dataclass(frozen=True, slots=True)
class Begin:
    """The output is in the `begin` of some structure, of which `read` was read."""

    read: bytes
    pending: Pending


@dataclass(frozen=True, slots=True)
class Inside:
    """The output is in a structure's document, at this state of the automaton of its documents."""

    structure: int
    state: int
    pending: Pending


@dataclass(frozen=True, slots=True)
class End:
    """A document has ended, and this much of the `end` of its structure is still to come."""

    rest: bytes
    pending: Pending


Reading: TypeAlias = Outside | Begin | Inside | End
Key: TypeAlias = frozenset[Reading]
Place: TypeAlias = Literal["outside_tag", "begin", "end"] | PlaceInDocument


@dataclass(frozen=True)
class Structure:
    begin: bytes
    documents: JsonSchemaAutomaton
    end: bytes


class StructuralTagAutomaton(Automaton[Key]):
    """All outputs of a structural tag, with documents in the spellings that the automata of its structures
    have."""

    def __init__(self, triggers: list[bytes], structures: list[Structure], budget: Budget) -> None:
        self._triggers = triggers
        self._structures = [each for each in structures if each.documents.start != DEAD]
        self.keywords = {word: None for each in structures for word in each.documents.keywords}
        """The keywords of the schemas that ask something, in the order in which they were read."""
        self._budget = budget
        self._behind: dict[bytes, set[int]] = {}
        """Every beginning of a `begin`, and the bytes that go on with it."""
        self._begun: dict[bytes, list[int]] = {}
        """Every whole `begin`, and the structures that have it."""
        for number, structure in enumerate(self._structures):
            self._begun.setdefault(structure.begin, []).append(number)
            for place, byte in enumerate(structure.begin):
                self._behind.setdefault(structure.begin[:place], set()).add(byte)
        self._viable: dict[Reading, bool] = {}
        self._readings: dict[Reading, Key] = {}
        super().__init__(self._all_readings(Outside(0, NOTHING)))

    def place(self, state: int) -> Place:
        """Where in an output the state is. Of several readings it is the one that is farthest in a tag."""
        readings = self._keys[state] or frozenset()
        if any(isinstance(reading, End) for reading in readings):
            return "end"
        for reading in readings:
            if isinstance(reading, Inside):
                return self._structures[reading.structure].documents.place(reading.state)
        return "outside_tag" if any(isinstance(reading, Outside) for reading in readings) else "begin"

    def _is_accepting(self, key: Key) -> bool:
        return any(isinstance(reading, Outside) and reading.within == 0 for reading in key)

    def _successors(self, key: Key) -> Iterator[tuple[int, int, Key]]:
        with self._budget.spending():
            after: dict[int, list[Reading]] = {}
            for reading in key:
                for byte, following in self._after(reading):
                    after.setdefault(byte, []).append(following)
            keys: dict[tuple[Reading, ...], Key] = {}
            for together in map(tuple, after.values()):
                if together not in keys:
                    keys[together] = frozenset().union(*map(self._all_readings, together))
            self._budget.check()
        for byte, readings in after.items():
            if after_byte := keys[tuple(readings)]:
                yield byte, byte, after_byte

    def _after(self, reading: Reading) -> Iterator[tuple[int, Reading]]:
        """The readings behind one more byte, without those in which a trigger is completed too late."""
        begins_here = self._triggers if isinstance(reading, Outside) else ()
        pending = _pending_behind(*reading.pending, *begins_here)
        match reading:
            case Outside(within):
                for byte, after in enumerate(UTF8[within]):
                    if after >= 0 and (later := pending.get(byte, NOTHING)) is not None:
                        yield byte, Outside(after, later)
            case Begin(read):
                for byte in self._behind.get(read, ()):
                    if (later := pending.get(byte, NOTHING)) is not None:
                        yield byte, Begin(read + bytes((byte,)), later)
            case Inside(number, state):
                documents = self._structures[number].documents
                documents.expand(np.array([state], dtype=np.int32))
                row = documents.table[state]
                for byte in np.flatnonzero(row).tolist():
                    if (later := pending.get(byte, NOTHING)) is not None:
                        yield byte, Inside(number, int(row[byte]), later)
            case End(rest) if rest:
                if (later := pending.get(rest[0], NOTHING)) is not None:
                    yield rest[0], End(rest[1:], later)

    def _without_a_byte(self, reading: Reading) -> Iterator[Reading]:
        """What else the same bytes may be read as: free text or a document may end here."""
        pending = reading.pending
        match reading:
            case Outside(0):
                yield Begin(b"", pending)
            case Begin(read):
                for number in self._begun.get(read, ()):
                    yield Inside(number, self._structures[number].documents.start, pending)
            case Inside(number, state) if self._structures[number].documents.accepting(state):
                yield End(self._structures[number].end, pending)
            case End(b""):
                yield Outside(0, pending)

    def _all_readings(self, reading: Reading) -> Key:
        """The reading, and those that stand for the same bytes, as far as some output goes on so."""
        if reading not in self._readings:
            found, waiting = {reading}, [reading]
            while waiting:
                for other in self._without_a_byte(waiting.pop()):
                    if other not in found:
                        found.add(other)
                        waiting.append(other)
            self._readings[reading] = frozenset(
                each for each in found if each != End(b"", each.pending) and self._is_viable(each)
            )
        return self._readings[reading]

    def _is_viable(self, reading: Reading) -> bool:
        """Does some output go on so? Where no trigger is pending one does: a begin and an end can be written
        out, and the automata of the documents have no dead ends."""
        if reading not in self._viable:
            self._viable[reading] = self._find_viable(reading)
        return self._viable[reading]

    def _find_viable(self, reading: Reading) -> bool:
        found, waiting = {reading}, [reading]
        while waiting:
            here = waiting.pop()
            is_out = isinstance(here, Outside) and here.within == 0
            can_begin = not isinstance(here, Begin) or here.read in self._begun or here.read in self._behind
            if is_out or (not here.pending and can_begin):
                return True
            for other in (*self._without_a_byte(here), *(after for _, after in self._after(here))):
                if other not in found:
                    found.add(other)
                    waiting.append(other)
        return False


def _pending_behind(*rests: bytes) -> dict[int, Pending | None]:
    """What is pending of these triggers behind each byte with which one goes on; None if one is completed."""
    after: dict[int, set[bytes]] = {}
    for rest in rests:
        after.setdefault(rest[0], set()).add(rest[1:])
    return {byte: None if b"" in behind else frozenset(behind) for byte, behind in after.items()}


def structural_tag_automaton(
    text: str, documents_of: Callable[[str], JsonSchemaAutomaton], seconds: float
) -> StructuralTagAutomaton:
    """The automaton of a structural tag, where `documents_of` makes that of a schema; it may take so many
    seconds of processor time in all. Raises NoOracle where there is none."""
    try:
        triggers, tags = structural_tag_of(text)
        parts = dict.fromkeys(
            (tag.begin.encode(), json.dumps(tag.schema, allow_nan=False), tag.end.encode()) for tag in tags
        )
        starts = tuple(trigger.encode() for trigger in triggers)
    except (InvalidGrammar, ValueError, RecursionError) as error:
        raise NoOracle(f"no structural tag: {error}"[:200]) from error
    if not (parts and starts and all(starts)):
        raise NoOracle("a structural tag has structures, and triggers that are not empty")
    if not all(begin.startswith(starts) for begin, _, _ in parts):
        raise NoOracle("a structure begins with none of the triggers")
    budget = Budget(seconds)
    with budget.spending():
        structures = [Structure(begin, documents_of(schema), end) for begin, schema, end in parts]
        return StructuralTagAutomaton([*dict.fromkeys(starts)], structures, budget)


def tag_of_any_documents(text: str) -> str:
    """The structural tag in which every JSON document is valid."""
    form = json.loads(text)
    if has_format(form):
        return json.dumps(with_any_documents(form))
    structures = [structure | {"schema": True} for structure in form["structures"]]
    return json.dumps(form | {"structures": structures})
