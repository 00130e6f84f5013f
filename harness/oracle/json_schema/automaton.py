"""The documents of a JSON Schema as an automaton over bytes: a state is a stack of values that were begun.

Each value on the stack has a formula that is true of exactly those completions with which the values around
it can still be completed as the schema wants. So a state is kept only if its topmost value can be completed,
and a dead end is never entered. A layout says which spellings are allowed: of white space, the order of
members, escapes, and forms of numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from harness.backend.layout import EVERY_SPELLING, Layout
from harness.oracle.automaton import Automaton, NoOracle
from harness.oracle.json_schema import numbers
from harness.oracle.json_schema.atoms import AtLeastCharacters, InLanguage
from harness.oracle.json_schema.budget import SECONDS, Budget
from harness.oracle.json_schema.formula import FALSE, TRUE, Formula, conjunction, disjunction, negation
from harness.oracle.json_schema.layout import ESCAPES, escaped
from harness.oracle.json_schema.schemas import Schemas
from harness.oracle.json_schema.spellable import spellable_values
from harness.oracle.json_schema.values import (
    Names,
    Part,
    Values,
    array_holds,
    behind,
    boolean_holds,
    listed_names,
    names_in_order,
    next_item,
    object_holds,
    simple_items,
)
from harness.oracle.utf8 import Ranges, byte_sequences, common

HEX = b"0123456789abcdefABCDEF"

Formulas: TypeAlias = tuple[Formula, ...]
"""First what is wanted of the value, then what the value around it asks about it."""
Space: TypeAlias = int | bytes
"""How many characters of white space were read in front of what comes next, while a layout counts them; or
what is still to be read of a separator."""


class Start(NamedTuple):
    """A value comes next."""

    formulas: Formulas
    """Empty for an item of the array around it, which says what is asked of the item."""
    may_close: bool = False
    """Instead, the array may end here: nothing is in it yet."""
    space: Space = 0


class Word(NamedTuple):
    """`true`, `false` or `null` was begun."""

    rest: bytes
    answers: tuple[bool, ...]


class Number(NamedTuple):
    formulas: Formulas
    literal: numbers.Literal


class Text(NamedTuple):
    """A string was begun."""

    formulas: Formulas
    within: int = 0
    """What must follow within a character, as in `strings.UTF8`."""
    escape: tuple[int, ...] = ()
    """The escape that was begun, empty outside one. It is `(0,)` behind the backslash and `(1, bits, count)`
    behind so many hexadecimal digits; behind a high surrogate it is `(2, high)` before the second backslash,
    `(3, high)` before its `u`, and `(4, bits, count, high)` in its digits."""
    name: bytes | None = None
    """For the name of a member: what was read of it, while a listed name begins so."""
    is_name: bool = False


class Array(NamedTuple):
    """An item has ended."""

    formulas: Formulas
    space: Space = 0


class Items(NamedTuple):
    """Waits for an item to end."""

    part: Part


class Object(NamedTuple):
    """A member has ended, or (`is_empty`) the object has just begun."""

    formulas: Formulas
    listed: Names
    seen: Names
    """The listed names that may not come any more."""
    is_empty: bool = False
    order: tuple[str, ...] = ()
    """The listed names as the layout orders them; empty if it does not."""
    space: Space = 0


class Comma(NamedTuple):
    """A name comes next."""

    object: Object
    space: Space = 0


class Colon(NamedTuple):
    """A name has ended."""

    part: Part
    listed: Names
    seen: Names
    order: tuple[str, ...] = ()
    space: Space = 0


class Member(NamedTuple):
    """Waits for the value of a member to end."""

    part: Part
    listed: Names
    seen: Names
    order: tuple[str, ...] = ()


class Done(NamedTuple):
    """The document has ended."""

    space: Space = 0


Gap: TypeAlias = Start | Array | Object | Comma | Colon | Done
"""Between two tokens of JSON, where white space may stand."""
Frame: TypeAlias = Gap | Word | Number | Text
Place: TypeAlias = Literal["string", "name", "escape", "number", "between"]
Key: TypeAlias = tuple[Frame, Any]
"""The topmost value, and the key of those around it (None: it is the document)."""


class JsonSchemaAutomaton(Automaton[Key]):
    """All documents of a schema, in the spellings of a layout."""

    def __init__(
        self,
        schemas: Schemas,
        repeats_names: bool = False,
        budget: Budget | None = None,
        layout: Layout = EVERY_SPELLING,
    ) -> None:
        self.schemas = schemas
        self.keywords = schemas.keywords
        self.budget = budget or Budget()
        self.layout = layout
        self._repeats_names = repeats_names
        self._behind_comma, self._behind_colon = (text or 0 for text in layout.separators or (b"", b""))
        self._longest_inside = layout.longest_run if layout.separators is None else 0
        self._hex = HEX if layout.hex_digits == "any" else HEX[:16]
        self._escaped = escaped(layout)
        self._has_all_hex = layout.hex_escapes == EVERY_SPELLING.hex_escapes
        self.values = Values(schemas, layout, self.budget)
        self._names: dict[tuple[Formulas, Names, Names, tuple[str, ...]], Formula | None] = {}
        self._items: dict[Formulas, Part | None] = {}
        self._beginnings: dict[Names, frozenset[bytes]] = {}
        self._ranges: dict[tuple[Formula, int, int], bool] = {}
        with self.budget.spending():
            root = conjunction([schemas.root, spellable_values(schemas, layout)])
            exists = self.values.exists(root)
        super().__init__((Start((root,)), None) if exists else None)

    def place(self, state: int) -> Place:
        """Where in a document the state is: what may be broken there besides the schema."""
        key = self._keys[state]
        frame = key[0] if key is not None else None
        if isinstance(frame, Text):
            return "escape" if frame.escape else "name" if frame.is_name else "string"
        return "number" if isinstance(frame, Number) else "between"

    # --------------------------------------------------------------------------------------------- automaton

    def _is_accepting(self, key: Key) -> bool:
        frame, around = key
        if isinstance(frame, Done):
            return True
        return (
            around is None
            and isinstance(frame, Number)
            and numbers.ends_well(frame.formulas[0], frame.literal)
        )

    def _successors(self, key: Key) -> Iterator[tuple[int, int, Key]]:
        try:
            with self.budget.spending():
                after = list(self._after(key))
                self.budget.check()
        except RecursionError as error:
            raise NoOracle("the schema nests too deeply") from error
        for byte, following in after:
            yield byte, byte, following

    def _after(self, key: Key) -> Iterator[tuple[int, Key]]:
        frame, around = key
        if isinstance(frame, Word):
            rest = frame.rest[1:]
            yield (
                frame.rest[0],
                (Word(rest, frame.answers), around) if rest else self._ended(frame.answers, around),
            )
        elif isinstance(frame, Number):
            yield from self._number(frame, around)
        elif isinstance(frame, Text):
            yield from self._text(frame, around)
        elif isinstance(frame.space, bytes):
            yield frame.space[0], (_with_space(frame, frame.space[1:] or 0), around)
        else:
            yield from self._whitespace(frame, frame.space, key)
            if isinstance(frame, Start):
                yield from self._start(frame, around)
            else:
                yield from self._between(frame, around)

    def _whitespace(self, frame: Gap, read: int, key: Key) -> Iterator[tuple[int, Key]]:
        """What follows behind one more character of white space, of which so many were read."""
        around = key[1]
        is_outside = isinstance(frame, Done) or (isinstance(frame, Start) and around is None)
        most = self.layout.longest_run if is_outside else self._longest_inside
        if is_outside and not self.layout.is_surrounded:
            return
        if most is None:
            yield from ((byte, key) for byte in self.layout.whitespace)
        elif read < most:
            after = (_with_space(frame, read + 1), around)
            yield from ((byte, after) for byte in self.layout.whitespace)

    def _start(self, frame: Start, around: Any) -> Iterator[tuple[int, Key]]:
        if not frame.formulas:
            array, outside = around
            if frame.may_close:
                yield 0x5D, self._ended(tuple(map(array_holds, array.formulas[1:])), outside)
            part = self._item(array.formulas)
            if part is None:
                return
            around, frame = (Items(part), outside), Start((part.wanted, *part.asked))
        wanted, *asked = frame.formulas
        if self._of_type(wanted, "null") is TRUE:
            yield 0x6E, (Word(b"ull", tuple(self._of_type(each, "null") is TRUE for each in asked)), around)
        for word, value in ((b"true", True), (b"false", False)):
            if boolean_holds(self._of_type(wanted, "boolean"), value):
                answers = tuple(boolean_holds(self._of_type(each, "boolean"), value) for each in asked)
                yield word[0], (Word(word[1:], answers), around)
        formulas = tuple(self._of_type(each, "number") for each in frame.formulas)
        if formulas[0] is not FALSE:
            yield from self._number(Number(formulas, numbers.Literal()), around)
        formulas = tuple(self.values.strings.simple(self._of_type(each, "string")) for each in frame.formulas)
        if self.values.strings.can_end(formulas[0]):
            yield 0x22, (Text(formulas), around)
        formulas = tuple(self._of_type(each, "array") for each in frame.formulas)
        if self.values.array_can_end(formulas[0]):
            yield 0x5B, self._opened(formulas, around)
        formulas = tuple(self._of_type(each, "object") for each in frame.formulas)
        listed = listed_names(*formulas)
        if self.values.object_can_end(formulas[0], listed, frozenset()):
            order = (
                ()
                if self.layout.order == "any"
                else names_in_order(formulas, self.layout.order == "required_first")
            )
            yield 0x7B, (Object(formulas, listed, frozenset(), True, order), around)

    def _opened(self, formulas: Formulas, around: Any) -> Key:
        formulas = tuple(map(simple_items, formulas))
        return (Start((), array_holds(formulas[0])), (Array(formulas), around))

    def _of_type(self, formula: Formula, kind: Any) -> Formula:
        return self.schemas.restricted(formula, kind)

    def _ended(self, answers: tuple[bool, ...], around: Any) -> Key:
        """The key behind a value that has ended, by what was asked about it."""
        if around is None:
            return (Done(), None)
        frame, outside = around
        part: Part = frame.part
        known = dict(part.settled) | dict(zip(part.asked, answers, strict=True))
        formulas = tuple(map(simple_items, behind(part, known)))
        if isinstance(frame, Items):
            return (Array(formulas), outside)
        return (Object(formulas, frame.listed, frame.seen, False, frame.order), outside)

    # ---------------------------------------------------------------------------------- between the values

    def _between(self, frame: Gap, around: Any) -> Iterator[tuple[int, Key]]:
        if isinstance(frame, Array):
            if self._item(frame.formulas) is not None:
                yield 0x2C, (Start((), False, self._behind_comma), (frame._replace(space=0), around))
            if array_holds(frame.formulas[0]):
                yield 0x5D, self._ended(tuple(map(array_holds, frame.formulas[1:])), around)
        elif isinstance(frame, Object):
            if object_holds(frame.formulas[0]):
                yield 0x7D, self._ended(tuple(map(object_holds, frame.formulas[1:])), around)
            name = self._name(frame)
            if name is not None:
                if frame.is_empty:
                    yield 0x22, self._named(frame, name, around)
                else:
                    yield 0x2C, (Comma(frame._replace(space=0), self._behind_comma), around)
        elif isinstance(frame, Comma):
            name = self._name(frame.object)
            assert name is not None
            yield 0x22, self._named(frame.object, name, around)
        elif isinstance(frame, Colon):
            part = frame.part
            value = Start((part.wanted, *part.asked), False, self._behind_colon)
            yield 0x3A, (value, (Member(part, frame.listed, frame.seen, frame.order), around))

    def _item(self, formulas: Formulas) -> Part | None:
        """The next item of an array; None if no further item may come."""
        if formulas not in self._items:
            self._items[formulas] = self.values.wanted(next_item(formulas), self.values.array_can_end)
        return self._items[formulas]

    def _named(self, frame: Object, name: Formula, around: Any) -> Key:
        questions = self.values.name_questions(frame.formulas)
        text = Text((name, *questions), name=b"" if frame.listed else None, is_name=True)
        return (text, (frame._replace(is_empty=False, space=0), around))

    def _name(self, frame: Object) -> Formula | None:
        """The formula of the names that may come next; None if there is none."""
        key = (frame.formulas, frame.listed, frame.seen, frame.order)
        if key not in self._names:
            values = self.values
            good = frozenset(
                name for name in frame.listed - frame.seen if self._member(frame, name, None) is not None
            )
            parts = [self.schemas.is_one_of(good)] if good else []
            questions = values.name_questions(frame.formulas)
            other = values.unlisted(frame.listed)
            for answers in values.answers(questions, other, values.string_exists):
                if self._member(frame, None, dict(zip(questions, answers, strict=True))) is not None:
                    signs = [
                        each if answer else negation(each)
                        for each, answer in zip(questions, answers, strict=True)
                    ]
                    parts.append(conjunction([other, *signs]))
            formula = values.strings.simple(disjunction(parts))
            self._names[key] = formula if values.strings.can_end(formula) else None
        return self._names[key]

    def _member(self, frame: Object, name: str | None, answers: dict[Formula, bool] | None) -> Part | None:
        """What is asked of the value behind a name; None if the object cannot be completed with any."""
        values = self.values
        if name is not None:
            answers = values.answers_of(frame.formulas, name)
        assert answers is not None
        seen = self._seen(frame, name)
        part = values.next_member(frame.formulas, name, answers)
        return values.wanted(part, lambda formula: values.object_can_end(formula, frame.listed, seen))

    def _seen(self, frame: Object, name: str | None) -> Names:
        """The listed names that may not come behind a name (None: one that is not listed)."""
        if name is None:
            return frame.listed if self.layout.unlisted == "last" else frame.seen
        if frame.order:
            return frame.seen | {*frame.order[: frame.order.index(name) + 1]}
        return frame.seen | {name}

    # ----------------------------------------------------------------------------------------------- numbers

    def _number(self, frame: Number, around: Any) -> Iterator[tuple[int, Key]]:
        for character in numbers.CHARACTERS:
            literal = self.values.numbers.after(frame.literal, character, frame.formulas)
            if literal is not None and self.values.numbers.can_end(frame.formulas[0], literal):
                yield ord(character), (Number(frame.formulas, literal), around)
        if numbers.ends_well(frame.formulas[0], frame.literal):
            answers = tuple(numbers.ends_well(each, frame.literal) for each in frame.formulas[1:])
            # A number ends where something else begins.
            yield from self._after(self._ended(answers, around))

    # ----------------------------------------------------------------------------------------------- strings

    def _text(self, frame: Text, around: Any) -> Iterator[tuple[int, Key]]:
        if frame.escape:
            yield from self._escape(frame, around)
            return
        strings = self.values.strings
        if frame.within == 0:
            if strings.holds(frame.formulas[0]):
                yield 0x22, self._text_ended(frame, around)
            if self._some_of(frame.formulas[0], self._escaped):
                yield 0x5C, (frame._replace(escape=(0,)), around)
        kinds = self._kinds(frame.formulas)
        begun = self._begun(around[0].listed) if frame.name is not None else frozenset()
        after: dict[Any, Key | None] = {}
        for byte, within in enumerate(strings.within[frame.within] if frame.within else strings.first):
            if within < 0:
                continue
            name = frame.name + bytes((byte,)) if frame.name is not None else None
            if name is not None and name not in begun:
                name = None
            kind = (within, name, *(row[byte] for row in kinds))
            if kind not in after:
                formulas = tuple(strings.after_byte(each, byte, frame.within == 0) for each in frame.formulas)
                is_good = strings.can_end(formulas[0], within)
                after[kind] = (Text(formulas, within, (), name, frame.is_name), around) if is_good else None
            key = after[kind]
            if key is not None:
                yield byte, key

    def _kinds(self, formulas: Formulas) -> list[list[int]]:
        """For each automaton of the formulas, the state behind each byte."""
        rows = {}
        for formula in formulas:
            for value in formula.atoms:
                if isinstance(value, InLanguage) and value not in rows:
                    automaton = self.schemas.automata[value.automaton]
                    automaton.expand(np.array([value.state], dtype=np.int32))
                    rows[value] = automaton.table[value.state].tolist()
                assert isinstance(value, InLanguage | AtLeastCharacters)
        return list(rows.values())

    def _begun(self, names: Names) -> frozenset[bytes]:
        """Every beginning of the UTF-8 of these names."""
        found = self._beginnings.get(names)
        if found is None:
            texts = [name.encode("utf-8", "surrogatepass") for name in names]
            found = self._beginnings[names] = frozenset(
                text[:end] for text in texts for end in range(len(text) + 1)
            )
        return found

    def _text_ended(self, frame: Text, around: Any) -> Key:
        strings = self.values.strings
        if not frame.is_name:
            return self._ended(tuple(map(strings.holds, frame.formulas[1:])), around)
        owner, outside = around
        name = frame.name.decode() if frame.name is not None else None
        if name not in owner.listed:
            name = None
        questions = self.values.name_questions(owner.formulas)
        answers = dict(zip(questions, map(strings.holds, frame.formulas[1:]), strict=True))
        part = self._member(owner, name, answers)
        assert part is not None
        seen = owner.seen if self._repeats_names else self._seen(owner, name)
        return (Colon(part, owner.listed, seen, owner.order), outside)

    def _escape(self, frame: Text, around: Any) -> Iterator[tuple[int, Key]]:
        stage, *begun = frame.escape
        wanted = frame.formulas[0]
        is_free = (
            self._has_all_hex and frame.name is None and not any(formula.atoms for formula in frame.formulas)
        )
        if stage == 0:
            for byte, point in ESCAPES.items():
                if byte in self.layout.short_escapes and self._some(wanted, point, point):
                    yield byte, self._character(frame, point, around)
            if self._some_of(wanted, self.layout.hex_escapes):
                yield 0x75, (frame._replace(escape=(1, 0, 0)), around)
        elif stage == 2:
            yield 0x5C, (frame._replace(escape=(3, *begun)), around)
        elif stage == 3:
            yield 0x75, (frame._replace(escape=(4, 0, 0, *begun)), around)
        else:
            bits, count, *high = begun
            for byte in self._hex:
                value, left = bits * 16 + int(chr(byte), 16), 3 - count
                first, last = value << 4 * left, ((value + 1) << 4 * left) - 1
                if not self._some_of(wanted, common(_points(first, last, *high), self.layout.hex_escapes)):
                    continue
                if is_free:
                    value = _surrogate(value, count + 1)
                if left:
                    yield byte, (frame._replace(escape=(stage, value, count + 1, *high)), around)
                elif high:
                    point = 0x10000 + ((high[0] - 0xD800) << 10) + (value - 0xDC00)
                    yield byte, self._character(frame, point, around)
                elif 0xD800 <= value <= 0xDBFF:
                    yield byte, (frame._replace(escape=(2, value)), around)
                else:
                    yield byte, self._character(frame, value, around)

    def _character(self, frame: Text, point: int, around: Any) -> Key:
        text = chr(point).encode()
        formulas = tuple(self.values.strings.after_text(each, text) for each in frame.formulas)
        name = frame.name + text if frame.name is not None else None
        if name is not None and name not in self._begun(around[0].listed):
            name = None
        return (Text(formulas, 0, (), name, frame.is_name), around)

    def _some_of(self, formula: Formula, ranges: Ranges) -> bool:
        return any(self._some(formula, first, last) for first, last in ranges)

    def _some(self, formula: Formula, first: int, last: int) -> bool:
        """May the string go on with a character between these two, both included, and be completed?"""
        if not formula.atoms:
            return formula is TRUE and first <= last
        key = (formula, first, last)
        if key not in self._ranges:
            self._ranges[key] = any(self._sequence(formula, each, 0) for each in byte_sequences(first, last))
        return self._ranges[key]

    def _sequence(self, formula: Formula, ranges: tuple[tuple[int, int], ...], place: int) -> bool:
        strings = self.values.strings
        if place == len(ranges):
            return strings.can_end(formula)
        first, last = ranges[place]
        tried = set()
        for byte in range(first, last + 1):
            after = strings.after_byte(formula, byte, place == 0)
            if after is not FALSE and after not in tried:
                tried.add(after)
                if self._sequence(after, ranges, place + 1):
                    return True
        return False


def _with_space(frame: Gap, space: Space) -> Gap:
    return frame._replace(space=space)


def _surrogate(bits: int, count: int) -> int:
    """The first `count` hexadecimal digits of a UTF-16 unit, or those of one that is a surrogate, or none,
    as well as it."""
    if count == 1:
        return bits if bits == 0xD else 0
    begins = bits >> 4 * (count - 2)
    return (begins & 0xFC) << 4 * (count - 2) if begins >= 0xD8 and begins <= 0xDF else 0


def _points(first: int, last: int, high: int | None = None) -> Ranges:
    """The characters that a UTF-16 unit between these two begins or, behind a high surrogate, ends."""
    if high is not None:
        low, up = max(first, 0xDC00), min(last, 0xDFFF)
        base = 0x10000 + ((high - 0xD800) << 10) - 0xDC00
        return ((base + low, base + up),) if low <= up else ()
    found = [(first, min(last, 0xD7FF))] if first <= 0xD7FF else []
    if max(first, 0xD800) <= min(last, 0xDBFF):
        low, up = max(first, 0xD800) - 0xD800, min(last, 0xDBFF) - 0xD800
        found.append((0x10000 + (low << 10), 0x10000 + (up << 10) + 0x3FF))
    if last >= 0xE000:
        found.append((max(first, 0xE000), last))
    return tuple(found)


def json_schema_automaton(
    text: str,
    draft: str | None = None,
    asserts_formats: bool = False,
    without: frozenset[str] = frozenset(),
    repeats_names: bool = False,
    seconds: float = SECONDS,
    layout: Layout | None = None,
) -> JsonSchemaAutomaton:
    """The automaton of the schema's documents, as `language.documents_of` describes it. Raises NoOracle with
    the reason where there is none."""
    try:
        schemas = Schemas(text, draft, asserts_formats, without)
        return JsonSchemaAutomaton(schemas, repeats_names, Budget(seconds), layout or EVERY_SPELLING)
    except RecursionError as error:
        raise NoOracle("the schema nests too deeply") from error
