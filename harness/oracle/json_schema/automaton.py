"""The documents of a JSON Schema as an automaton over bytes: a state is a stack of values that were begun.

Each value on the stack has a formula that is true of exactly those completions with which the values around
it can still be completed as the schema wants. So a state is kept only if its topmost value can be completed,
and a dead end is never entered, except in a layout in which alternatives agree: their orders are not asked
whether some object keeps all of them. A layout says which spellings are allowed: of white space, the order of
members, escapes, and forms of numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

from harness.backend.layout import EVERY_SPELLING, Layout
from harness.oracle.automaton import Automaton, NoOracle
from harness.oracle.json_schema import numbers
from harness.oracle.json_schema.budget import SECONDS, Budget
from harness.oracle.json_schema.formula import FALSE, TRUE, Formula, conjunction
from harness.oracle.json_schema.frames import (
    Array,
    Colon,
    Comma,
    Done,
    Formulas,
    Gap,
    Items,
    Key,
    Member,
    Number,
    Object,
    Start,
    Text,
    Word,
    with_space,
)
from harness.oracle.json_schema.members import Members
from harness.oracle.json_schema.names import Order, listed_names, names_in_order, orders_of_names
from harness.oracle.json_schema.parts import (
    Part,
    array_holds,
    behind,
    boolean_holds,
    next_item,
    object_holds,
    simple_items,
)
from harness.oracle.json_schema.schemas import Schemas
from harness.oracle.json_schema.spellable import spellable_values
from harness.oracle.json_schema.texts import Texts
from harness.oracle.json_schema.values import Values

Place: TypeAlias = Literal["string", "name", "escape", "number", "between"]


class JsonSchemaAutomaton(Automaton[Key]):
    """All documents of a schema, in the spellings of a layout."""

    def __init__(
        self,
        schemas: Schemas,
        repeats_names: bool,
        budget: Budget,
        layout: Layout,
    ) -> None:
        self.schemas = schemas
        self.keywords = schemas.keywords
        self.budget = budget
        self.layout = layout
        self._repeats_names = repeats_names
        self._behind_comma, self._behind_colon = (text or 0 for text in layout.separators or (b"", b""))
        self._longest_inside = layout.longest_run if layout.separators is None else 0
        self.values = Values(schemas, layout, self.budget)
        self._texts = Texts(self.values.strings, layout)
        self._members = Members(self.values, layout)
        self._items: dict[Formulas, Part | None] = {}
        root = conjunction([schemas.root, spellable_values(schemas, layout)])
        exists = self.values.exists(root)
        super().__init__((Start((root,)), None) if exists else None)

    def place(self, state: int) -> Place:
        """Returns where in a document the state is, which tells what may be broken there besides the
        schema."""
        key = self._keys[state]
        frame = key[0] if key is not None else None
        if isinstance(frame, Text):
            return "escape" if frame.escape else "name" if frame.is_name else "string"
        return "number" if isinstance(frame, Number) else "between"

    def ends_member(self, state: int) -> bool:
        """Returns whether the value of a member is complete, the document being an object around it."""
        keys = [self._keys[self.step(state, byte)] for byte in b",}"]
        return any(key is not None and key[1] is None and isinstance(key[0], Comma | Done) for key in keys)

    def nesting(self, state: int) -> int:
        """Returns how many values are begun around the place."""
        count, key = 0, self._keys[state]
        while key is not None and key[1] is not None:
            count, key = count + 1, key[1]
        return count

    # --------------------------------------------------------------------------------------------- automaton

    def _is_accepting(self, key: Key) -> bool:
        frame, around = key
        if isinstance(frame, Done):
            return True
        if around is not None or not isinstance(frame, Number):
            return False
        return self.values.numbers.ends(frame.formulas, frame.literal) is not None

    def _expand(self, state: int) -> None:
        try:
            with self.budget.spending():
                super()._expand(state)
        except RecursionError as error:
            raise NoOracle("the schema nests too deeply") from error

    def _successors(self, key: Key) -> Iterator[tuple[int, int, Key]]:
        frame, around = key
        if isinstance(frame, Text):
            yield from self._text(frame, around)
        else:
            yield from ((byte, byte, following) for byte, following in self._after(key))
        self.budget.check()

    def _after(self, key: Key) -> Iterator[tuple[int, Key]]:
        frame, around = key
        assert not isinstance(frame, Text)
        if isinstance(frame, Word):
            rest = frame.rest[1:]
            yield (
                frame.rest[0],
                (Word(rest, frame.answers), around) if rest else self._ended(frame.answers, around),
            )
        elif isinstance(frame, Number):
            yield from self._number(frame, around)
        elif isinstance(frame.space, bytes):
            yield frame.space[0], (with_space(frame, frame.space[1:] or 0), around)
        else:
            yield from self._whitespace(frame, frame.space, key)
            if isinstance(frame, Start):
                yield from self._start(frame, around)
            else:
                yield from self._between(frame, around)

    def _whitespace(self, frame: Gap, read: int, key: Key) -> Iterator[tuple[int, Key]]:
        """Yields what follows behind one more character of white space, of which so many were read."""
        around = key[1]
        is_outside = isinstance(frame, Done) or (isinstance(frame, Start) and around is None)
        most = self.layout.longest_run if is_outside else self._longest_inside
        if is_outside and not self.layout.is_surrounded:
            return
        if most is None:
            yield from ((byte, key) for byte in self.layout.whitespace)
        elif read < most:
            after = (with_space(frame, read + 1), around)
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
            yield 0x7B, (Object(formulas, listed, frozenset(), True, self._orders(formulas)), around)

    def _orders(self, formulas: Formulas) -> tuple[Order, ...]:
        """Returns the orders of the names that the formulas list, all of which a document has to keep."""
        schemas, layout = self.schemas, self.layout
        if layout.order == "any":
            return ()
        required_first = layout.order == "required_first"
        if layout.alternatives_agree:
            return orders_of_names(formulas, schemas, required_first)
        return (Order(names_in_order(formulas, schemas.places, schemas.applied, required_first)),)

    def _opened(self, formulas: Formulas, around: Any) -> Key:
        formulas = tuple(map(simple_items, formulas))
        return (Start((), array_holds(formulas[0])), (Array(formulas), around))

    def _of_type(self, formula: Formula, kind: Any) -> Formula:
        return self.schemas.restricted(formula, kind)

    def _ended(self, answers: tuple[bool, ...], around: Any) -> Key:
        """Returns the key behind a value that has ended, by what was asked about it."""
        if around is None:
            return (Done(), None)
        frame, outside = around
        part: Part = frame.part
        known = dict(part.settled) | dict(zip(part.asked, answers, strict=True))
        formulas = tuple(map(simple_items, behind(part, known)))
        if isinstance(frame, Items):
            return (Array(formulas), outside)
        return (frame.object._replace(formulas=formulas), outside)

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
            name = self._members.name(frame)
            if name is not None:
                if frame.is_empty:
                    yield 0x22, self._named(frame, name, around)
                else:
                    yield 0x2C, (Comma(frame._replace(space=0), self._behind_comma), around)
        elif isinstance(frame, Comma):
            name = self._members.name(frame.object)
            assert name is not None
            yield 0x22, self._named(frame.object, name, around)
        elif isinstance(frame, Colon):
            value = Start((frame.part.wanted, *frame.part.asked), False, self._behind_colon)
            yield 0x3A, (value, (Member(frame.part, frame.object), around))

    def _item(self, formulas: Formulas) -> Part | None:
        """Returns the next item of an array; None if no further item may come."""
        if formulas not in self._items:
            self._items[formulas] = self.values.wanted(next_item(formulas), self.values.array_can_end)
        return self._items[formulas]

    def _named(self, frame: Object, name: Formula, around: Any) -> Key:
        questions = self.values.name_questions(frame.formulas)
        text = Text((name, *questions), name=b"" if frame.listed else None, is_name=True)
        return (text, (frame._replace(is_empty=False, space=0), around))

    def _number(self, frame: Number, around: Any) -> Iterator[tuple[int, Key]]:
        for character in numbers.CHARACTERS:
            literal = self.values.numbers.after(frame.literal, character, frame.formulas)
            if literal is not None and self.values.numbers.can_end(frame.formulas, literal):
                yield ord(character), (Number(frame.formulas, literal), around)
        answers = self.values.numbers.ends(frame.formulas, frame.literal)
        if answers is not None:
            # A number ends where something else begins.
            yield from self._after(self._ended(answers[1:], around))

    def _text(self, frame: Text, around: Any) -> Iterator[tuple[int, int, Key]]:
        listed = around[0].listed if frame.name is not None else frozenset()
        for first, last, following in self._texts.after(frame, self._members.beginnings(listed)):
            key = (following, around) if following is not None else self._text_ended(frame, around)
            yield first, last, key

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
        part = self._members.member(owner, name, answers)
        assert part is not None
        seen = owner.seen if self._repeats_names else self._members.seen_behind(owner, name)
        # Its formulas are those of the part, so that objects in which these are alike are one state.
        return (Colon(part, owner._replace(formulas=(), seen=seen)), outside)


def json_schema_automaton(
    text: str,
    draft: str | None = None,
    asserts_formats: bool = False,
    without: frozenset[str] = frozenset(),
    repeats_names: bool = False,
    seconds: float = SECONDS,
    layout: Layout | None = None,
) -> JsonSchemaAutomaton:
    """Returns the automaton of the schema's documents, as `language.documents_of` describes it. Raises
    NoOracle with the reason where there is none."""
    budget = Budget(seconds)
    try:
        with budget.spending():
            schemas = Schemas(text, draft, asserts_formats, without, budget)
            return JsonSchemaAutomaton(schemas, repeats_names, budget, layout or EVERY_SPELLING)
    except RecursionError as error:
        raise NoOracle("the schema nests too deeply") from error
