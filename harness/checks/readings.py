"""Other readings of a regular expression or a Lark grammar: is a backend that differs from the reference
right by one of them?
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from harness.backend.unicode_age import unicode_version
from harness.checks.subject import Subject
from harness.oracle.automaton import Automaton, NoOracle
from harness.oracle.readings import Reading, depends_on_unicode, other_readings


def reading_of(subject: Subject, explains: Callable[[Automaton[Any]], bool]) -> str:
    """Returns the cause of what the backend does, if the automaton of another reading explains it; else
    empty.

    A reading that the backend states as its own comes before others, and one of another version of Unicode
    only where it is the backend's.
    """
    return next((reading.cause for reading, language in readings(subject) if _holds(explains, language)), "")


def _holds(explains: Callable[[Automaton[Any]], bool], language: Automaton[Any]) -> bool:
    try:
        return explains(language)
    except NoOracle:
        return False


def readings(subject: Subject) -> Iterator[tuple[Reading, Automaton[Any]]]:
    """Yields the other readings of the case's grammar that there is an automaton of."""
    grammar = subject.case.grammar
    if grammar.dialect not in ("regex", "lark"):
        return
    unicode = unicode_version(subject.adapter) if depends_on_unicode(grammar) else ""
    for reading in other_readings(grammar, [unicode], subject.adapter.documented):
        try:
            language = reading.automaton(grammar)
        except NoOracle:
            continue
        yield reading, language
