"""Plain productions of a context-free grammar over code points, and what builds them.

Groups and counts become rules of their own, in forms that keep the automaton's states few.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from harness.oracle.automaton import NoOracle
from harness.oracle.utf8 import Ranges

MAX_SYMBOLS = 100_000
"""Limit on symbols after expansion, rules, groups and repetitions included: `x{9}` counts as nine."""
MAX_INLINE = 8

Symbol = int
"""A rule's number, or `~n` for one code point out of `classes[n]`."""

Body = tuple[Symbol, ...]


@dataclass(frozen=True)
class Productions:
    """The start is rule 0; groups and repetitions are rules too."""

    bodies: tuple[tuple[int, Body], ...]
    """A rule's number and one of its alternatives."""
    classes: tuple[Ranges, ...]
    """Sets of code points. Surrogates among them mean nothing."""


class Builder:
    """Collects productions. Raises NoOracle where they are more than MAX_SYMBOLS."""

    def __init__(self, start: Hashable) -> None:
        """`start` is the key of rule 0."""
        self._bodies: list[tuple[int, Body]] = []
        self._rules: dict[Hashable, int] = {start: 0}
        """Named rules by name; groups and repetitions by what they are, so that what is written twice is one
        rule."""
        self._loops: set[Body] = set()
        """Bodies that any number of repetitions leaves as they are (`x*`)."""
        self._classes: dict[Ranges, int] = {}
        self._symbols = 0

    def productions(self) -> Productions:
        return Productions(tuple(self._bodies), tuple(self._classes))

    def define(self, key: Hashable, bodies: Iterable[Body]) -> None:
        """Gives a rule these alternatives."""
        number = self.rule(key)
        self._bodies += [(number, body) for body in bodies]

    def rule(self, key: Hashable, *bodies: Body) -> int:
        """Returns the rule's number; a new rule gets these alternatives."""
        if key not in self._rules:
            self._rules[key] = len(self._rules)
            self._grow(1)
            self._bodies += [(self._rules[key], body) for body in bodies]
        return self._rules[key]

    def class_of(self, ranges: Ranges) -> Symbol:
        return ~self._classes.setdefault(ranges, len(self._classes))

    def choice(self, bodies: list[Body]) -> Body:
        """A short sequence stands for itself; a long one would be copied into each of the groups
        around it.
        """
        return bodies[0] if len(bodies) == 1 and len(bodies[0]) <= MAX_INLINE else self._group(bodies)

    def repeated(self, item: Body, low: int, high: int | None) -> Body:
        """Returns the body of the item, `low` to `high` times; None is any number of times."""
        if not item or (item in self._loops and high != 0):
            return item
        if len(item) > 1 and (low if high is None else high) > 1:
            item = self._group([item])  # nested counts add up then, rather than multiply
        if high is None:
            return self.grown(item * low) + self._many(item)
        return self.grown(item * low) + self._up_to(item, high - low)

    def grown(self, body: Body) -> Body:
        """Returns the body, and counts its symbols."""
        self._grow(len(body))
        return body

    def _group(self, bodies: list[Body]) -> Body:
        return (self.rule(("group", frozenset(bodies)), *bodies),)

    def _many(self, item: Body) -> Body:
        """Returns the body of `item*` as a rule that recurs to the right, `many ::= "" | item many`: in `x (y
        x)*`, what follows the first x is then what follows each x."""
        key = ("many", item)
        number = self._rules.get(key, len(self._rules))
        self._loops.add((self.rule(key, (), (*item, number)),))
        return (number,)

    def _up_to(self, item: Body, count: int) -> Body:
        """Returns the body of `item{0,3}` as `(item (item item?)?)?`: a text then stands at one place in it,
        not at three."""
        rest: Body = ()
        for left in range(1, count + 1):
            rest = (self.rule(("up to", item, left), (), self.grown(item + rest)),)
        return rest

    def _grow(self, symbols: int) -> None:
        self._symbols += symbols
        if self._symbols > MAX_SYMBOLS:
            raise NoOracle(f"the grammar has more than {MAX_SYMBOLS:,} symbols")


def count_of(digits: str) -> int:
    """Returns the number of a count. Raises NoOracle where it is too large."""
    digits = digits.lstrip("0") or "0"
    if len(digits) > len(str(MAX_SYMBOLS)) or int(digits) > MAX_SYMBOLS:
        raise NoOracle(f"a count is more than {MAX_SYMBOLS:,}")
    return int(digits)
