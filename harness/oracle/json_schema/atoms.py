"""What formulas are made of: facts about a JSON value of one type.

Atoms of arrays, objects and strings are rewritten while a value is read: `AtLeastItems(3)` is
`AtLeastItems(2)` behind one item. So a formula over atoms is all that is to be known of what was read.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

from harness.oracle.json_schema.formula import Formula, IsOneOf

JsonType = Literal["null", "boolean", "number", "string", "array", "object"]
TYPES: tuple[JsonType, ...] = ("null", "boolean", "number", "string", "array", "object")


@dataclass(frozen=True)
class IsType:
    type: JsonType


@dataclass(frozen=True)
class IsTrue:
    """The boolean is `true`."""


@dataclass(frozen=True)
class AtLeast:
    """The number is not below `bound`."""

    bound: Fraction


@dataclass(frozen=True)
class Above:
    """The number is above `bound`."""

    bound: Fraction


@dataclass(frozen=True)
class IsMultiple:
    """The number is an integer times `divisor`, which is above 0."""

    divisor: Fraction


@dataclass(frozen=True)
class IsOneOfNumbers(IsOneOf):
    """The number is one of these fractions."""

    values: frozenset[Fraction]


@dataclass(frozen=True)
class IsSpelledInteger:
    """The number has neither a fraction nor an exponent: an integer by the drafts before 6."""


@dataclass(frozen=True)
class IsMinusZero:
    """The number is zero, with the sign `-`."""


@dataclass(frozen=True)
class AtLeastCharacters:
    """The string has at least `count` more characters."""

    count: int


@dataclass(frozen=True)
class InLanguage:
    """The rest of the string leads automaton `automaton` from `state` to where a sentence may end."""

    automaton: int
    state: int


@dataclass(frozen=True)
class IsOneOfTexts(IsOneOf):
    """The rest of the string, as UTF-8, is one of these."""

    values: frozenset[bytes]

    @cached_property
    def behind(self) -> dict[int, IsOneOfTexts]:
        """Returns what is asked of the rest behind each byte that may come next."""
        rests: dict[int, set[bytes]] = {}
        for text in self.values:
            if text:
                rests.setdefault(text[0], set()).add(text[1:])
        return {byte: IsOneOfTexts(frozenset(found)) for byte, found in rests.items()}


@dataclass(frozen=True)
class AtLeastItems:
    """The array has at least `count` more items."""

    count: int


@dataclass(frozen=True)
class AllItems:
    """Every further item satisfies its formula: the next ones those of `prefix`, all behind them `rest`."""

    prefix: tuple[Formula, ...]
    rest: Formula


@dataclass(frozen=True)
class AskedItem:
    """The item that was begun satisfies `formula`, and all behind it are as `rest` says."""

    formula: Formula
    rest: AllItems


@dataclass(frozen=True)
class Contains:
    """At least `count` further items satisfy `formula`."""

    formula: Formula
    count: int


@dataclass(frozen=True)
class AtLeastProperties:
    """The object has at least `count` more members."""

    count: int


@dataclass(frozen=True)
class HasName:
    """A further member of the object has this name."""

    name: str


@dataclass(frozen=True)
class AllMembers:
    """Every further member satisfies what its name asks of its value.

    A name that is listed asks the formula beside it; a name that a pattern matches asks the pattern's formula
    too; a name for which neither holds asks `others`.
    """

    named: tuple[tuple[str, Formula], ...]
    patterns: tuple[tuple[int, Formula], ...]
    """Numbers of automata, and the formulas of the names that they accept."""
    others: Formula
    is_default: bool = False
    """Nothing is asked by `others` because no keyword says anything of these names."""

    @cached_property
    def by_name(self) -> dict[str, Formula]:
        """Returns the formula beside each listed name."""
        return dict(self.named)

    @cached_property
    def _hash(self) -> int:
        return hash((self.named, self.patterns, self.others))

    def __hash__(self) -> int:
        """A schema can list many names, so the hash is counted once."""
        return self._hash


@dataclass(frozen=True)
class AllNames:
    """Every further name, as a string, satisfies `formula`."""

    formula: Formula
