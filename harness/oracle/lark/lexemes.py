"""What a terminal matches, as a tree of a regular expression."""

from __future__ import annotations

import re

from harness.oracle.automaton import NoOracle
from harness.oracle.lark.tree import (
    Either,
    Every,
    Expression,
    LarkGrammar,
    Literal,
    Name,
    Pattern,
    Span,
    Times,
)
from harness.oracle.regex.automaton import TREES, RegexDialect
from harness.oracle.regex.char_classes import Ranges, one, ranges_of, union, with_simple_cases
from harness.oracle.regex.syntax import parsed
from harness.oracle.regex.tree import EMPTY, Chars, Choice, Look, Node, Repeat, Sequence

_ASCII_CASES: tuple[RegexDialect, ...] = ("ecma", "javascript")
"""The dialects whose `i` folds the letters of ASCII alone."""
_PART_OF_ECMA = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\(\?.?|\.", re.DOTALL)
_PART = re.compile(r"\\.|\[\^?\]?(?:\\.|\[:\^?[a-z]+:\]|[^\]\\])*\]|\(\?.?", re.DOTALL)
"""A part of an expression whose dots and groups are told from those in a class; of Rust's nested classes the
rest is looked at too, which can only refuse more."""


class Lexemes:
    """The trees of a grammar's terminals and literals, in one dialect of regular expressions."""

    def __init__(self, grammar: LarkGrammar, dialect: RegexDialect) -> None:
        self._terminals = grammar.terminals
        self._dialect = dialect
        self._nodes: dict[Expression, Node] = {}

    def node_of(self, expression: Expression) -> Node:
        """Returns the tree of a terminal's expression. Raises NoOracle for one that has none."""
        if expression not in self._nodes:
            node = self._node(expression)
            # Where terminals name one another twice, no limit on symbols ends the doubling of what is empty.
            self._nodes[expression] = EMPTY if node.width == (0, 0) else node
        return self._nodes[expression]

    def _node(self, expression: Expression) -> Node:
        match expression:
            case Name():
                return self.node_of(self._terminals[expression.name])
            case Literal():
                characters = [one(ord(character)) for character in expression.text]
                if expression.folds:
                    characters = list(map(self._with_cases, characters))
                return Sequence(tuple(map(Chars, characters)))
            case Span():
                return Chars(ranges_of([(ord(expression.first), ord(expression.last))]))
            case Pattern():
                return self._of_pattern(expression)
            case Every():
                return Sequence(tuple(map(self.node_of, expression.parts)))
            case Either():
                return Choice(tuple(map(self.node_of, expression.branches)))
            case Times():
                return Repeat(self.node_of(expression.body), expression.low, expression.high)

    def _of_pattern(self, expression: Pattern) -> Node:
        folds, ascii_only = "i" in expression.flags, self._dialect in _ASCII_CASES
        if folds and ascii_only and re.search(r"\[\^|\\[DWSPdwsp]", expression.pattern):
            raise NoOracle("a class without case has no reference in this dialect")
        pattern = _with_its_dots(expression.pattern, "s" in expression.flags, self._dialect)
        if folds and self._dialect == "python":
            return self._plain(parsed(pattern, folds=True), False)
        tree = TREES[self._dialect](f"(?i){pattern}" if folds and not ascii_only else pattern)
        return self._plain(tree, folds and ascii_only)

    def _plain(self, node: Node, folds: bool) -> Node:
        """Returns the tree in which each letter has both cases where `folds`. Raises NoOracle for what is not
        in the form."""
        match node:
            case Chars():
                return Chars(self._with_cases(node.ranges)) if folds else node
            case Sequence():
                return Sequence(tuple(self._plain(part, folds) for part in node.parts))
            case Choice() if not node.branches:
                raise NoOracle("what never matches has no reference")
            case Choice():
                return Choice(tuple(self._plain(branch, folds) for branch in node.branches))
            case Repeat():
                if node.lazy:
                    raise NoOracle("a lazy quantifier has no reference")
                return Repeat(self._plain(node.body, folds), node.low, node.high)
            case Look():
                raise NoOracle("an anchor, a word boundary or a lookaround has no reference")

    def _with_cases(self, ranges: Ranges) -> Ranges:
        if self._dialect not in _ASCII_CASES:
            return with_simple_cases(ranges)
        letters = [
            point ^ 0x20
            for first, last in ranges
            for point in range(first, min(last, 0x7A) + 1)
            if chr(point).isalpha() and point < 0x80
        ]
        return union(ranges, *map(one, letters))


def _with_its_dots(pattern: str, every: bool, dialect: RegexDialect) -> str:
    """Returns the pattern in which a dot is any character but a line feed, or `every` one: the libraries'
    pages on Lark agree there. So it is in Python and Rust; for ECMA-262, whose dot leaves out more, the
    dots become classes. Raises NoOracle for a group of another kind than `(?:`."""

    def written(found: re.Match[str]) -> str:
        if found[0].startswith("(?") and found[0] != "(?:":
            raise NoOracle(f"{found[0]} in a regular expression has no reference")
        if found[0] != ".":
            return found[0]
        return r"(?:\n|[^\n])" if every else r"[^\n]"

    if dialect in _ASCII_CASES:
        return _PART_OF_ECMA.sub(written, pattern)
    _PART.sub(written, pattern)
    return f"(?s){pattern}" if every else pattern


def may_be_empty(node: Node) -> bool:
    """Returns whether the tree, which holds no lookaround, matches the empty text."""
    return node.width[0] == 0
