"""Reads the Lark form of docs/lark.md."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from harness.oracle.automaton import NoOracle
from harness.oracle.ebnf.productions import count_of
from harness.oracle.lark.common import COMMON
from harness.oracle.lark.tokens import Token, error, tokens_of, without_reference
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

START = "start"
EMPTY = Every(())
_OPERATORS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_OTHERS = {"@": "a named grammar", "&": "an intersection of terminals", "~": "the complement of a terminal"}
"""What begins with these marks where an item is expected."""


def read_lark(text: str) -> LarkGrammar:
    """Returns the grammar of a text. Raises NoOracle for a text that is not of the form of docs/lark.md."""
    try:
        return _Reader(text).grammar()
    except RecursionError as why:
        raise NoOracle("the grammar is nested too deeply") from why


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens = list(tokens_of(text))
        self.place = 0
        self.rules: dict[str, Expression] = {}
        self.terminals: dict[str, Expression] = {}
        self.ignored: list[Expression] = []
        self.uses: list[tuple[Token, str]] = []
        """The names that are used, each with where it stands: in the terminal of this name, in `%ignore`, or
        in a rule (empty)."""
        self.within = ""

    def grammar(self) -> LarkGrammar:
        while self.here.kind != "end":
            if not self.take("line"):
                self.read_item()
                self.need("line", "the end of the line")
        if START not in self.rules:
            raise error(self.here.line, "there is no rule start")
        for token, within in self.uses:
            if token.text not in (self.terminals if token.kind == "terminal" else self.rules):
                raise error(token.line, f"{token.text} is not defined")
            if within and token.kind == "rule":
                raise error(token.line, f"{within} uses the rule {token.text}, and no terminal may")
        self.refuse_circles()
        return LarkGrammar(self.rules, self.terminals, tuple(self.ignored))

    def refuse_circles(self) -> None:
        """A terminal that leads back to itself is no regular expression."""
        left: dict[str, set[str]] = {name: set() for name in self.terminals}
        for token, within in self.uses:
            if within in left:
                left[within].add(token.text)
        while done := {name for name, names in left.items() if not names & left.keys()}:
            for name in done:
                del left[name]
        if left:
            raise error(self.tokens[-1].line, f"the terminal {min(left)} leads back to itself")

    @property
    def here(self) -> Token:
        return self.tokens[self.place]

    def take(self, kind: str, text: str = "") -> Token | None:
        """Returns the next token and moves past it if it is of the kind, and has the text where one is
        given."""
        token = self.here
        if token.kind != kind or (text and token.text != text):
            return None
        self.place += 1
        return token

    def need(self, kind: str, what: str, text: str = "") -> Token:
        token = self.take(kind, text)
        if token is None:
            found = "the line's end" if self.here.kind in ("line", "end") else f"{self.here.text[:20]!a}"
            raise error(self.here.line, f"expected {what}, and there is {found}")
        return token

    def read_item(self) -> None:
        """Reads a definition or a directive."""
        if self.take("directive", "%import"):
            self.read_import()
        elif self.take("directive", "%ignore"):
            self.within = "%ignore"
            self.ignored.append(self.alternatives())
        elif name := self.take("terminal"):
            self.define(self.terminals, name, name.text)
        else:
            while self.take("mark", "?") or self.take("mark", "!"):
                pass  # they shape a tree, and no language
            self.define(self.rules, self.need("rule", "a rule, a terminal or a directive"), "")

    def define(self, definitions: dict[str, Expression], name: Token, within: str) -> None:
        for mark, what in (("[", "an attribute"), (".", "a priority"), ("{", "a template")):
            if self.here.text == mark:
                raise without_reference(name.line, f"{what} of {name.text}")
        if name.text in definitions:
            raise error(name.line, f"{name.text} is defined twice")
        self.need("mark", "':' after the name", ":")
        self.within = within
        definitions[name.text] = EMPTY  # for a terminal that names itself
        definitions[name.text] = self.alternatives()

    def read_import(self) -> None:
        if self.take("mark", ".") or not self.take("rule", "common"):
            raise without_reference(self.here.line, "an import from elsewhere than common")
        if self.take("mark", "."):
            name = self.need("terminal", "a terminal")
            self.take_in(name, self.need("terminal", "a terminal") if self.take("mark", "->") else name)
            return
        self.need("mark", "'.' or '('", "(")
        while True:
            name = self.need("terminal", "a terminal")
            self.take_in(name, name)
            if not self.take("mark", ","):
                break
        self.need("mark", "')'", ")")

    def take_in(self, name: Token, here: Token) -> None:
        if name.text not in COMMON:
            raise error(name.line, f"common has no {name.text}")
        if here.text in self.terminals:
            raise error(here.line, f"{here.text} is defined twice")
        self.terminals[here.text] = Pattern(COMMON[name.text])

    def alternatives(self) -> Expression:
        branches = [self.sequence()]
        while self.take("mark", "|"):
            branches.append(self.sequence())
        return branches[0] if len(branches) == 1 else Either(tuple(branches))

    def sequence(self) -> Expression:
        parts: list[Expression] = []
        while self.here.kind != "line" and self.here.text not in ("|", ")", "]", "->"):
            parts.append(self.repeated(self.item()))
        if self.take("mark", "->"):
            self.need("rule", "the alias of an alternative")
        return parts[0] if len(parts) == 1 else Every(tuple(parts))

    def item(self) -> Expression:
        token = self.here
        self.place += 1
        if token.kind in ("rule", "terminal"):
            self.uses.append((token, self.within))
            return Name(token.text)
        if token.kind == "pattern":
            return _pattern(token)
        if token.kind == "string":
            return self.span(token) if self.take("mark", "..") else _literal(token)
        if token.text in ("(", "["):
            inner = self.alternatives()
            self.need("mark", f"the end of the {token.text!r}", ")" if token.text == "(" else "]")
            return inner if token.text == "(" else Times(inner, 0, 1)
        if token.text in _OTHERS:
            raise without_reference(token.line, _OTHERS[token.text])
        if token.kind == "special":
            raise without_reference(token.line, "a special token")
        raise error(token.line, f"{token.text!a} does not belong here")

    def span(self, first: Token) -> Expression:
        last = self.need("string", "the last character of the range")
        ends = [_literal(token) for token in (first, last)]
        if any(end.folds or len(end.text) != 1 for end in ends) or ends[1].text < ends[0].text:
            raise error(first.line, "a range is from one character to a later one, without a flag")
        return Span(ends[0].text, ends[1].text)

    def repeated(self, item: Expression) -> Expression:
        token = self.here
        if token.text == "{":
            low, high = self.counts_in_braces()
        elif token.text == "~":
            self.place += 1
            low = high = self.count()
            if self.take("mark", ".."):
                high = self.count()
        elif token.kind == "mark" and token.text in _OPERATORS:
            self.place += 1
            low, high = _OPERATORS[token.text]
        else:
            return item
        if high is not None and high < low:
            raise error(token.line, "a count is the wrong way round")
        if self.here.kind == "mark" and self.here.text in ("*", "+", "?", "~", "{"):
            raise error(token.line, "an item has two operators; put the first into parentheses")
        return Times(item, low, high)

    def counts_in_braces(self) -> tuple[int, int | None]:
        brace = self.need("mark", "'{'", "{")
        if self.here.kind != "number" and self.here.text != ",":
            raise without_reference(brace.line, "a template")
        low = self.take("number")
        high: Token | None = low
        if self.take("mark", ","):
            high = self.take("number")
        if low is None and high is None:
            raise error(brace.line, "a count is expected within the braces")
        self.need("mark", "'}'", "}")
        return count_of(low.text) if low else 0, count_of(high.text) if high else None

    def count(self) -> int:
        return count_of(self.need("number", "a count").text)


def _literal(token: Token) -> Literal:
    """Returns the text that a string of the form of JSON spells."""
    folds = token.text.endswith("i")
    try:
        text = json.loads(token.text.removesuffix("i"), strict=False)
        text.encode()
    except ValueError as why:
        raise error(token.line, f"{token.text[:40]!a} is no string of JSON") from why
    return Literal(text, folds)


def _pattern(token: Token) -> Pattern:
    end = token.text.rindex("/")
    pattern, flags = token.text[1:end], token.text[end + 1 :]
    if strange := sorted({*flags} - {*"isu"}):
        raise without_reference(token.line, f"the flag {strange[0]} of an expression")
    unescaped: Callable[[re.Match[str]], str] = lambda found: "/" if found[0] == r"\/" else found[0]  # noqa: E731
    return Pattern(re.sub(r"\\.", unescaped, pattern), flags)
