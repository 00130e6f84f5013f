"""A choice among strings as an automaton: a state names the sorted strings that begin with what was read, and
how many bytes were read."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator

from harness.oracle.automaton import Automaton, NoOracle

Key = tuple[int, int, int]
"""The first string, the last one, and the bytes read; the strings between begin with the same bytes."""


class ChoiceAutomaton(Automaton[Key]):
    """The language that holds exactly these byte strings."""

    def __init__(self, choices: frozenset[bytes]) -> None:
        self._choices = sorted(choices)
        super().__init__((0, len(choices) - 1, 0) if choices else None)

    def _successors(self, key: Key) -> Iterator[tuple[int, int, Key]]:
        first, last, read = key
        first += self._is_accepting(key)
        while first <= last:
            byte = self._choices[first][read]
            after = bisect_right(self._choices, byte, first, last + 1, key=lambda choice: choice[read])
            yield byte, byte, (first, after - 1, read + 1)
            first = after

    def _is_accepting(self, key: Key) -> bool:
        """Has the first string been read whole? A string that is the beginning of others is sorted before
        them."""
        first, _, read = key
        return len(self._choices[first]) == read


def choice_automaton(text: str) -> ChoiceAutomaton:
    """Returns the automaton of a choice, whose text is a JSON array of strings. Raises NoOracle if it is
    none."""
    try:
        return ChoiceAutomaton(frozenset(choice.encode() for choice in choices_of(text)))
    except UnicodeEncodeError as error:
        raise NoOracle("a choice holds a lone surrogate, which has no UTF-8") from error
    except ValueError as error:
        raise NoOracle(str(error)[:200]) from error


def choices_of(text: str) -> list[str]:
    """Returns the strings of a choice, whose text is a JSON array of strings. Raises ValueError if it is
    none."""
    try:
        choices = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the choices are not JSON: {error}") from error
    if not isinstance(choices, list) or not all(isinstance(choice, str) for choice in choices):
        raise ValueError("the choices are not an array of strings")
    return choices
