"""Splits the text of a Lark grammar into tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from harness.oracle.automaton import NoOracle

MAX_CHARACTERS = 500_000

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\f]++|(?://|\#)[^\n]*+)
    |(?P<line>\n)
    |(?P<string>"(?:[^"\\\n]|\\[^\n])*+"i?)
    |(?P<pattern>/(?:[^/\\\n]|\\[^\n])++/[a-z]*+)
    |(?P<rule>_?[a-z][a-z0-9_-]*+(?![A-Za-z0-9_]))
    |(?P<terminal>_?[A-Z][A-Z0-9_-]*+(?![A-Za-z0-9_]))
    |(?P<number>[0-9]++)
    |(?P<directive>%[a-z_]++)
    |(?P<special><[^>\n]*+>)
    |(?P<mark>->|\.\.|[:|()\[\]{}*+?!~,.@&=])
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is `line`, `string`, `pattern`, `rule`, `terminal`, `number`, `directive`, `special`, `mark` or
    `end`."""

    kind: str
    text: str
    line: int


def error(line: int, message: str) -> NoOracle:
    """Returns the exception for a text that is not of the form."""
    return NoOracle(f"not of the form, line {line}: {message}"[:200])


def without_reference(line: int, what: str) -> NoOracle:
    """Returns the exception for what a library may have, and the reference has not."""
    return NoOracle(f"line {line}: {what} has no reference"[:200])


def tokens_of(text: str) -> Iterator[Token]:
    """Yields the tokens without blanks and comments; the last one is an `end`.

    A line end before a line that begins with `|` is left out, so that a definition stands on one line.
    Raises NoOracle for a text that cannot be read.
    """
    if len(text) > MAX_CHARACTERS:
        raise NoOracle(f"the grammar has more than {MAX_CHARACTERS:,} characters")
    position, line, ended = 0, 1, 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise error(line, f"cannot read {text[position : position + 20]!a}")
        kind = match.lastgroup or ""
        if kind == "line":
            ended = ended or line
            line += 1
        elif kind != "blank":
            if ended and match[0] != "|":
                yield Token("line", "\n", ended)
            ended = 0
            yield Token(kind, match[0], line)
        if kind == "directive" and match[0] not in ("%import", "%ignore"):
            raise without_reference(line, match[0])
        position = match.end()
    yield Token("line", "\n", line)
    yield Token("end", "", line)
