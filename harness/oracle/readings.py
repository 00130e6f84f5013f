"""The other ways to read a grammar: its regular expressions in another dialect, or with the tables of an
older version of Unicode; and a Lark grammar with a lexer.

The reference reads expressions as the `regex` library does, with the newest tables, and splits a text into
lexemes in any way. Where a backend differs from that and is right by another reading, the reading is the
cause of the difference; whether the backend states that reading as its own is told apart.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, get_args

from harness.backend.grammar import UNICODE_VERSION, Grammar, are_documented
from harness.backend.unicode_age import VERSIONS
from harness.oracle.automaton import Automaton, NoOracle
from harness.oracle.lark.automaton import lark_automaton
from harness.oracle.lark.plain import are_read_alike
from harness.oracle.regex.automaton import RegexDialect, regex_automaton
from harness.oracle.regex.char_classes import own_version

DIALECT = "regex_dialect_"
LEXER = "lark_lexer"
"""The cause of a difference that vanishes when a Lark grammar is read with a lexer."""


@dataclass(frozen=True)
class Reading:
    """A dialect of regular expressions, and a version of Unicode (empty: the newest). `lexer` says that a
    Lark grammar's lexemes are as long as possible (docs/lark.md)."""

    dialect: RegexDialect
    unicode: str = ""
    lexer: bool = False

    @property
    def name(self) -> str:
        return " ".join(filter(None, (self.dialect, self.unicode, "lexer" if self.lexer else "")))

    @property
    def cause(self) -> str:
        """Returns the cause of a difference that vanishes when the expression is read so."""
        parts = [DIALECT + self.dialect] if self.dialect != "python" else []
        return "+".join(parts + [UNICODE_VERSION] * bool(self.unicode) + [LEXER] * self.lexer)

    def automaton(self, grammar: Grammar) -> Automaton[Any]:
        """Returns the automaton of a regular expression or a Lark grammar in this reading. Raises NoOracle
        where its text is none in this dialect, or has no automaton."""
        return _automaton(grammar, self)


@lru_cache(maxsize=16)
def _automaton(grammar: Grammar, reading: Reading) -> Automaton[Any]:
    if grammar.dialect == "lark":
        return lark_automaton(grammar.text, reading.dialect, reading.unicode, reading.lexer)
    return regex_automaton(grammar.text, reading.dialect, reading.unicode)


def other_readings(
    grammar: Grammar, unicode: Collection[str] = (), documented: Collection[str] = ()
) -> list[Reading]:
    """Returns all readings but the reference's, with the newest tables and with those of these versions; none
    of a grammar that is neither a regular expression nor Lark's. Those that a backend documents come first.

    A version is left out where it changes nothing in the grammar, where it is unknown, and where it is not
    older than the newest. So are the dialects of a Lark grammar that they read alike.
    """
    if grammar.dialect not in ("regex", "lark"):
        return []
    is_lark = grammar.dialect == "lark"
    older = [
        version
        for version in VERSIONS[: VERSIONS.index(own_version())]
        if version in unicode and depends_on_unicode(grammar)
    ]
    dialects = get_args(RegexDialect)
    if is_lark and not depends_on_unicode(grammar) and are_read_alike(grammar.text):
        dialects = dialects[:1]
    every = [
        Reading(dialect, version, lexer)
        for version in ("", *older)
        for dialect in dialects
        for lexer in ((False, True) if is_lark else (False,))
    ]
    return sorted(every[1:], key=lambda reading: not are_documented(reading.cause, documented))


def depends_on_unicode(grammar: Grammar) -> bool:
    """May the regular expression or Lark grammar have a class whose members differ between versions of
    Unicode?"""
    folds = grammar.dialect == "lark" and _FOLDS.search(grammar.text)
    return bool(folds or _CLASSES.search(grammar.text))


_FOLDS = re.compile(r'["/][su]*i')
"""The end of a literal or an expression of Lark in either case (or what looks so)."""
_CLASSES = re.compile(r"\\[wWdDsSpPbBNX<>mM]|\[:|\(\?[a-zA-Z]*i")


def readings_against(
    grammar: Grammar, content: bytes, valid: bool, unicode: Collection[str]
) -> Iterator[str]:
    """Yields the names of the readings by which the output is not as valid as is said."""
    for reading in other_readings(grammar, unicode):
        try:
            if reading.automaton(grammar).accepts(content) is not valid:
                yield reading.name
        except NoOracle:
            continue
