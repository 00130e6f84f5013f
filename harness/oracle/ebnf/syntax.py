"""Reads the EBNF form of docs/ebnf.md into plain productions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, pairwise

from harness.oracle.automaton import NoOracle
from harness.oracle.ebnf.productions import Body, Builder, Productions, count_of
from harness.oracle.regex.char_classes import complement
from harness.oracle.utf8 import LAST, SURROGATES, Ranges, merged

MAX_CHARACTERS = 500_000

_NAME = r"[a-zA-Z_][a-zA-Z0-9_-]*+"
_LAYOUT = r"(?:[ \t\r\n]|#[^\r\n]*+)"
_BLANK = r"[ \t\r\n]*+"
_TOKEN = re.compile(
    rf"(?P<layout>{_LAYOUT}++)|(?P<head>{_NAME}(?={_LAYOUT}*+::=))|(?P<define>::=)|(?P<name>{_NAME})|(?P<mark>[()|])"
    r'|(?P<literal>"(?:[^"\\\r\n]|\\[^\r\n])*+")|(?P<class>\[(?:[^]\\\r\n]|\\[^\r\n])++\])'
    rf"|(?P<operator>[*+?]|\{{{_BLANK}[0-9]++{_BLANK}(?:,{_BLANK}(?:[0-9]++{_BLANK})?+)?+\}})|(?P<end>\Z)"
)
_CHARACTER = r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)|[^\\]"
_CHARACTERS = re.compile(_CHARACTER)
_MEMBERS = re.compile(f"({_CHARACTER})(?:-({_CHARACTER}))?")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"'}
_CLASS_ESCAPES = _ESCAPES | {mark: mark for mark in "[]-^"}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    position: int


@dataclass
class _Alternatives:
    """The alternatives of a rule or a group: those already read, and the items of the one that is being
    read."""

    read: list[Body] = field(default_factory=list)
    items: list[Body] = field(default_factory=list)


def productions(text: str) -> Productions:
    """Returns the productions of a grammar's text. Raises NoOracle for a text that is not of the form, or
    that is too large with its counts written out.
    """
    if len(text) > MAX_CHARACTERS:
        raise NoOracle(f"the grammar has more than {MAX_CHARACTERS:,} characters")
    return _Reader(text).productions()


def tokens(text: str) -> Iterator[tuple[str, str]]:
    """Returns the parts of the text without layout, each as its kind (`head`, `define`, `name`, `mark`,
    `literal`, `class`, `operator`) and its text."""
    return ((token.kind, token.text) for token in _Reader(text).tokens() if token.kind != "end")


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.builder = Builder("root")

    def productions(self) -> Productions:
        tokens = list(self.tokens())
        starts = [place for place, token in enumerate(tokens) if token.kind in ("head", "end")]
        if starts[0] > 0:
            raise self.error(tokens[0], "expected `name ::=`")
        defined: set[str] = set()
        for first, after in pairwise(starts):
            self.read_rule(tokens[first:after], tokens[after], defined)
        for token in tokens:
            if token.kind == "name" and token.text not in defined:
                raise self.error(token, f"rule {token.text} is not defined")
        if "root" not in defined:
            raise self.error(tokens[-1], "there is no rule root")
        return self.builder.productions()

    def tokens(self) -> Iterator[_Token]:
        """Yields the tokens without layout; the last one marks the end of the text."""
        position = 0
        kind = ""
        while kind != "end":
            match = _TOKEN.match(self.text, position)
            if match is None:
                raise self.error(
                    _Token("", "", position), f"cannot read {self.text[position : position + 20]!a}"
                )
            kind = match.lastgroup or ""
            if kind != "layout":
                yield _Token(kind, match[0], position)
            position = match.end()

    def read_rule(self, tokens: list[_Token], end: _Token, defined: set[str]) -> None:
        """Reads one rule, whose tokens begin with its name; `end` is the token behind it."""
        head = tokens[0]
        line = 1 + max(self.text.rfind("\n", 0, head.position), self.text.rfind("\r", 0, head.position))
        if self.text[line : head.position].strip(" \t"):
            raise self.error(head, f"rule {head.text} must begin on a line of its own")
        if head.text in defined:
            raise self.error(head, f"rule {head.text} is defined twice")
        defined.add(head.text)
        self.builder.define(head.text, self.alternatives(tokens[2:], end))

    def alternatives(self, tokens: list[_Token], end: _Token) -> list[Body]:
        """Returns the alternatives of a whole rule. Open groups are kept in a list and not by recursion,
        because a text may open thousands."""
        groups = [_Alternatives()]
        before = ""
        for token in tokens:
            group = groups[-1]
            if token.text == "(":
                groups.append(_Alternatives())
            elif token.text == "|":
                self.end_alternative(group, token)
            elif token.text == ")":
                if len(groups) == 1:
                    raise self.error(token, "no group is open here")
                self.end_alternative(groups.pop(), token)
                groups[-1].items.append(self.builder.choice(group.read))
            elif token.kind == "operator":
                if before not in (")", "name", "literal", "class"):
                    raise self.error(token, f"{token.text[:20]} follows nothing that it can repeat")
                group.items.append(self.repeated(group.items.pop(), token))
            else:
                group.items.append(self.item(token))
            before = token.text if token.kind == "mark" else token.kind
        if len(groups) > 1:
            raise self.error(end, "a group is not closed")
        self.end_alternative(groups[0], end)
        return groups[0].read

    def end_alternative(self, group: _Alternatives, token: _Token) -> None:
        if not group.items:
            raise self.error(token, 'an alternative is empty; write "" for the empty string')
        group.read.append(tuple(chain.from_iterable(group.items)))
        group.items = []

    def item(self, token: _Token) -> Body:
        if token.kind == "name":
            return self.builder.grown((self.builder.rule(token.text),))
        if token.kind == "literal":
            points = [
                self.point(match[0], _ESCAPES, token)
                for match in _CHARACTERS.finditer(token.text, 1, len(token.text) - 1)
            ]
            return self.builder.grown(tuple(self.builder.class_of(((point, point),)) for point in points))
        if token.kind == "class":
            return self.builder.grown((self.builder.class_of(self.ranges(token)),))
        raise self.error(token, f"{token.text} does not belong here")

    def ranges(self, token: _Token) -> Ranges:
        negated = token.text.startswith("[^")
        ranges: list[tuple[int, int]] = []
        for match in _MEMBERS.finditer(token.text, 2 if negated else 1, len(token.text) - 1):
            first = self.point(match[1], _CLASS_ESCAPES, token)
            last = first if match[2] is None else self.point(match[2], _CLASS_ESCAPES, token)
            if last < first:
                raise self.error(token, f"the range {match[0]!a} is the wrong way round")
            ranges.append((first, last))
        if not ranges:
            raise self.error(token, "a class is empty")
        return complement(merged(ranges)) if negated else merged(ranges)

    def point(self, spelling: str, escapes: dict[str, str], token: _Token) -> int:
        """Returns the one code point that is spelled plainly or as an escape."""
        if len(spelling) > 2:
            point = int(spelling[2:], 16)
        elif len(spelling) == 2 and spelling[1] not in escapes:
            raise self.error(token, f"unknown escape {spelling!a}")
        else:
            point = ord(escapes[spelling[1]] if len(spelling) == 2 else spelling)
        if point > LAST or SURROGATES[0] <= point <= SURROGATES[1]:
            raise self.error(token, f"{spelling!a} is no Unicode scalar value")
        return point

    def repeated(self, item: Body, operator: _Token) -> Body:
        counts = {"*": "{0,}", "+": "{1,}", "?": "{0,1}"}.get(
            operator.text, re.sub(r"[ \t\r\n]", "", operator.text)
        )
        lowest, comma, highest = counts[1:-1].partition(",")
        low = count_of(lowest)
        high = count_of(highest or lowest)
        if high < low:
            raise self.error(operator, f"the count {operator.text} is the wrong way round")
        return self.builder.repeated(item, low, None if comma and not highest else high)

    def error(self, token: _Token, message: str) -> NoOracle:
        line = 1 + len(re.findall(r"\r\n|\r|\n", self.text[: token.position]))
        return NoOracle(f"not of the form, line {line}: {message}"[:200])
