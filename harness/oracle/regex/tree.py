"""A pattern as a tree of five kinds of nodes, whatever dialect it was written in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from harness.oracle.automaton import NoOracle
from harness.oracle.regex.char_classes import EVERY, NEWLINE, Ranges

Width = tuple[int, int | None]
"""The fewest and the most characters of a match (None: any number), if the node can match at all."""


@dataclass(frozen=True, eq=False)
class Chars:
    """Matches one character out of these."""

    ranges: Ranges
    width: Width = (1, 1)


@dataclass(frozen=True, eq=False)
class Sequence:
    """Matches all parts, one after the other; without parts, the empty text."""

    parts: tuple[Node, ...]

    @cached_property
    def width(self) -> Width:
        longest = [part.width[1] for part in self.parts]
        return sum(part.width[0] for part in self.parts), None if None in longest else sum(
            most or 0 for most in longest
        )


@dataclass(frozen=True, eq=False)
class Choice:
    """Matches any of the branches, the first one preferred; without branches, nothing."""

    branches: tuple[Node, ...]

    @cached_property
    def width(self) -> Width:
        shortest, longest = (
            [branch.width[0] for branch in self.branches],
            [branch.width[1] for branch in self.branches],
        )
        return min(shortest, default=0), None if None in longest else max(
            (most or 0 for most in longest), default=0
        )


@dataclass(frozen=True, eq=False)
class Repeat:
    body: Node
    low: int
    high: int | None
    lazy: bool = False

    @cached_property
    def width(self) -> Width:
        least, most = self.body.width
        endless = most is None or (self.high is None and most > 0)
        return least * self.low, None if endless else (most or 0) * (self.high or 0)


@dataclass(frozen=True, eq=False)
class Look:
    """Matches the empty text where the body matches (negative: does not match) what follows, or what came
    before."""

    body: Node
    behind: bool
    negative: bool
    width: Width = (0, 0)


Node = Chars | Sequence | Choice | Repeat | Look

EMPTY = Sequence(())
NOTHING = Choice(())
_ANY = Chars(EVERY)
_NEWLINE = Chars(NEWLINE)

START = Look(_ANY, behind=True, negative=True)
END = Look(_ANY, behind=False, negative=True)
LAST_LINE_END = Choice((END, Look(Sequence((_NEWLINE, END)), behind=False, negative=False)))
LINE_START = Choice((START, Look(_NEWLINE, behind=True, negative=False)))
LINE_END = Choice((END, Look(_NEWLINE, behind=False, negative=False)))


def word_start(word: Ranges) -> Node:
    return Sequence(
        (Look(Chars(word), behind=True, negative=True), Look(Chars(word), behind=False, negative=False))
    )


def word_end(word: Ranges) -> Node:
    return Sequence(
        (Look(Chars(word), behind=True, negative=False), Look(Chars(word), behind=False, negative=True))
    )


def boundary(word: Ranges) -> Node:
    return Choice((word_start(word), word_end(word)))


def no_boundary(word: Ranges) -> Node:
    within = Sequence(
        (Look(Chars(word), behind=True, negative=False), Look(Chars(word), behind=False, negative=False))
    )
    without = Sequence(
        (Look(Chars(word), behind=True, negative=True), Look(Chars(word), behind=False, negative=True))
    )
    return Choice((within, without))


def atomic(node: Node) -> Node:
    """Returns a tree that matches what an atomic group does: only the first match counts, without a way back
    into it. It is expressed by lookahead, where that is possible.

    Raises NoOracle.

    Where all matches have the same length there is only one. Otherwise the first branch that matches counts,
    or, in a repetition of such nodes, the longest match (lazy: the shortest).
    """
    if node.width[0] == node.width[1]:
        return node
    if isinstance(node, Sequence):
        head, rest = node.parts[0], Sequence(node.parts[1:])
        if head.width[0] == head.width[1]:
            return Sequence((head, atomic(rest)))
        if not rest.parts:
            return atomic(head)
    if isinstance(node, Choice):
        before = [Look(branch, behind=False, negative=True) for branch in node.branches]
        return Choice(
            tuple(Sequence((*before[:place], atomic(branch))) for place, branch in enumerate(node.branches))
        )
    if isinstance(node, Repeat) and node.body.width[0] == node.body.width[1]:
        if node.lazy:
            return Repeat(node.body, node.low, node.low)
        stop = Look(node.body, behind=False, negative=True)
        if node.high is None:
            return Sequence((Repeat(node.body, node.low, None), stop))
        return Choice(
            (
                Repeat(node.body, node.high, node.high),
                Sequence((Repeat(node.body, node.low, node.high - 1), stop)),
            )
        )
    raise NoOracle("an atomic group whose first match cannot be told")
