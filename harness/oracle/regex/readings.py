"""The other ways to read a regular expression: in another dialect, or with the tables of an older version of
Unicode.

The reference reads it as the `regex` library does, with the newest tables. Where a backend differs from that
and is right by another reading, the reading is the cause of the difference; whether the backend states that
reading as its own is told apart.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import get_args

from harness.backend.grammar import UNICODE_VERSION, are_documented
from harness.backend.unicode_age import VERSIONS
from harness.oracle.automaton import NoOracle
from harness.oracle.regex.automaton import RegexAutomaton, RegexDialect, regex_automaton
from harness.oracle.regex.char_classes import own_version

DIALECT = "regex_dialect_"


@dataclass(frozen=True)
class Reading:
    """A dialect of regular expressions, and a version of Unicode (empty: the newest)."""

    dialect: RegexDialect
    unicode: str = ""

    @property
    def name(self) -> str:
        return f"{self.dialect} {self.unicode}".rstrip()

    @property
    def cause(self) -> str:
        """Returns the cause of a difference that vanishes when the expression is read so."""
        parts = [DIALECT + self.dialect] if self.dialect != "python" else []
        return "+".join(parts + [UNICODE_VERSION] * bool(self.unicode))

    def automaton(self, pattern: str) -> RegexAutomaton:
        """Returns the automaton of the pattern in this reading. Raises NoOracle where the pattern is none in
        this dialect, or has no automaton."""
        return _automaton(pattern, self)


@lru_cache(maxsize=16)
def _automaton(pattern: str, reading: Reading) -> RegexAutomaton:
    return regex_automaton(pattern, reading.dialect, reading.unicode)


def other_readings(
    pattern: str, unicode: Collection[str] = (), documented: Collection[str] = ()
) -> list[Reading]:
    """Returns all readings but the reference's, with the newest tables and with those of these versions.
    Those that a backend documents come first.

    A version is left out where it changes nothing in the pattern, where it is unknown, and where it is not
    older than the newest.
    """
    older = [
        version
        for version in VERSIONS[: VERSIONS.index(own_version())]
        if version in unicode and depends_on_unicode(pattern)
    ]
    every = [Reading(dialect, version) for version in ("", *older) for dialect in get_args(RegexDialect)]
    return sorted(every[1:], key=lambda reading: not are_documented(reading.cause, documented))


def depends_on_unicode(pattern: str) -> bool:
    """May the pattern have a class whose members differ between versions of Unicode?"""
    return bool(_CLASSES.search(pattern))


_CLASSES = re.compile(r"\\[wWdDsSpPbBNX<>mM]|\[:|\(\?[a-zA-Z]*i")


def readings_against(pattern: str, content: bytes, valid: bool, unicode: Collection[str]) -> Iterator[str]:
    """Yields the names of the readings by which the output is not as valid as is said."""
    for reading in other_readings(pattern, unicode):
        try:
            if reading.automaton(pattern).accepts(content) is not valid:
                yield reading.name
        except NoOracle:
            continue
