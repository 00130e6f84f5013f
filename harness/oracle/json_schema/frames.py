"""The values that were begun: what a state of the automaton is a stack of."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from harness.oracle.json_schema.formula import Formula
from harness.oracle.json_schema.names import Names, Order
from harness.oracle.json_schema.numbers import Literal
from harness.oracle.json_schema.parts import Part

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
    """A number was begun."""

    formulas: Formulas
    literal: Literal


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
    orders: tuple[Order, ...] = ()
    """The listed names as the layout orders them; empty if it does not, several where it asks that all
    alternatives of the schema agree on their order."""
    space: Space = 0


class Comma(NamedTuple):
    """A name comes next."""

    object: Object
    space: Space = 0


class Colon(NamedTuple):
    """A name has ended."""

    part: Part
    object: Object
    """The object as it is behind the name, but for its formulas: these are those of `part`."""
    space: Space = 0


class Member(NamedTuple):
    """Waits for the value of a member to end."""

    part: Part
    object: Object
    """The object as it is behind the name, but for its formulas: these are those of `part`."""


class Done(NamedTuple):
    """The document has ended."""

    space: Space = 0


Gap: TypeAlias = Start | Array | Object | Comma | Colon | Done
"""Between two tokens of JSON, where white space may stand."""
Frame: TypeAlias = Gap | Word | Number | Text
Key: TypeAlias = tuple[Frame, Any]
"""The topmost value, and the key of those around it (None: it is the document)."""


def with_space(frame: Gap, space: Space) -> Gap:
    """Returns the frame with another count of white space."""
    return frame._replace(space=space)
