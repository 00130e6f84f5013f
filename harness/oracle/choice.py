"""A choice among strings as an automaton: a state is what was read so far."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property

from harness.oracle.automaton import Automaton, NoOracle


class ChoiceAutomaton(Automaton[bytes]):
    """Exactly these byte strings."""

    def __init__(self, choices: frozenset[bytes]) -> None:
        self._choices = choices
        super().__init__(b"" if choices else None)

    @cached_property
    def _following(self) -> dict[bytes, set[int]]:
        """The bytes that come next, by what was read."""
        following: dict[bytes, set[int]] = {}
        for choice in self._choices:
            for end, byte in enumerate(choice):
                following.setdefault(choice[:end], set()).add(byte)
        return following

    def _successors(self, key: bytes) -> Iterator[tuple[int, int, bytes]]:
        for byte in self._following.get(key, ()):
            yield byte, byte, key + bytes([byte])

    def _is_accepting(self, key: bytes) -> bool:
        return key in self._choices


def choice_automaton(text: str) -> ChoiceAutomaton:
    """Of the JSON array of strings that a choice is. Raises NoOracle if it is none."""
    try:
        choices = json.loads(text)
        return ChoiceAutomaton(frozenset(choice.encode() for choice in choices))
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise NoOracle(f"not an array of texts: {error}"[:200]) from error
