"""A Lark grammar as it is written: rules, terminals, and what is ignored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Name:
    """A rule or a terminal, by its name."""

    name: str


@dataclass(frozen=True)
class Literal:
    """A text, with `folds` in either case of each letter."""

    text: str
    folds: bool = False


@dataclass(frozen=True)
class Span:
    """One character from `first` to `last`."""

    first: str
    last: str


@dataclass(frozen=True)
class Pattern:
    """A regular expression with its flags. `/` in it is no longer escaped."""

    pattern: str
    flags: str = ""


@dataclass(frozen=True)
class Every:
    """All parts, one after the other; without parts, the empty text."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Either:
    """Any of the branches."""

    branches: tuple[Expression, ...]


@dataclass(frozen=True)
class Times:
    """The body, `low` to `high` times; None is any number of times."""

    body: Expression
    low: int
    high: int | None


Lexeme = Literal | Span | Pattern
"""What is a lexeme where it stands in a rule. An empty literal is none."""

Expression = Name | Lexeme | Every | Either | Times


@dataclass(frozen=True)
class LarkGrammar:
    """Every name in an expression is a key of one of the mappings, a terminal names terminals only, and none
    leads back to itself."""

    rules: Mapping[str, Expression]
    terminals: Mapping[str, Expression]
    ignored: tuple[Expression, ...]
