"""The sentences that a lexer and a parser make of a text, as an automaton.

The lexer looks for the lexemes that the parser can go on with, and for what is ignored. It reads on while
any of them can go on; then those end that can end there. Where none can, the text is no sentence. What is
ignored is looked for where some lexeme may follow, and not at the start. docs/lark.md says which library
has such a lexer.

A state from which no lexeme can be finished is DEAD. What only the lexer forbids, such as `/[a-z]+/ "ab"`,
which no text is a sentence of, is not looked ahead to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from harness.oracle.automaton import DEAD, Automaton, byte_runs

MAX_LEXEMES = 0x800
"""Most lexemes of a grammar; their numbers are spelled in one or two bytes."""

Active = tuple[tuple[int, int], ...]
"""Pairs of a lexeme's number and a state of its automaton, in order."""

Key = tuple[frozenset[int], Active]
"""The parser's states before the lexeme that is being read, and what it may be; nothing at the start."""


class LexerAutomaton(Automaton[Key]):
    """The automaton of the texts that a lexer and a parser take."""

    def __init__(
        self, parser: Automaton[Any], lexemes: Sequence[Automaton[Any]], ignored: Automaton[Any]
    ) -> None:
        """`parser` reads the numbers of lexemes as characters. `ignored` is the empty language where nothing
        is."""
        self._parser = parser
        self._automata = [*lexemes, ignored]
        self._ignored = len(lexemes)
        self._after_lexeme = lru_cache(maxsize=None)(self._parser_after)
        super().__init__(None if parser.start == DEAD else (frozenset({parser.start}), ()))

    def _is_accepting(self, key: Key) -> bool:
        return any(map(self._parser.accepting, self._ended(key)))

    def _successors(self, key: Key) -> Iterator[tuple[int, int, Key]]:
        active = [*key[1]]
        beginning = self._beginning(self._ended(key), at_start=not active)
        rows = np.array([self._row(lexeme, state) for lexeme, state in [*active, *beginning]])
        if not len(rows):
            return
        for first, end in byte_runs(rows):
            states = rows[:, first].tolist()
            if going_on := _alive(active, states[: len(active)]):
                yield first, end - 1, (key[0], going_on)
            elif begun := _alive(beginning, states[len(active) :]):
                yield first, end - 1, (self._ended(key), begun)

    def _row(self, lexeme: int, state: int) -> Any:
        automaton = self._automata[lexeme]
        automaton.expand(np.array([state], dtype=np.int32))
        return automaton.table[state].copy()

    def _ended(self, key: Key) -> frozenset[int]:
        """Returns the parser's states if what is being read ends here."""
        parsers, active = key
        if not active:
            return parsers
        ends = [lexeme for lexeme, state in active if self._automata[lexeme].accepting(state)]
        return frozenset(
            after
            for lexeme in ends
            for parser in parsers
            if (after := parser if lexeme == self._ignored else self._after_lexeme(parser, lexeme)) != DEAD
        )

    def _beginning(self, parsers: frozenset[int], at_start: bool) -> list[tuple[int, int]]:
        """Returns what may be read next, each with the first state of its automaton."""
        allowed = [
            lexeme
            for lexeme in range(self._ignored)
            if any(self._after_lexeme(parser, lexeme) != DEAD for parser in parsers)
        ]
        if allowed and not at_start:
            allowed.append(self._ignored)
        pairs = [(lexeme, self._automata[lexeme].start) for lexeme in allowed]
        return [(lexeme, state) for lexeme, state in pairs if state != DEAD]

    def _parser_after(self, parser: int, lexeme: int) -> int:
        return self._parser.run(parser, chr(lexeme).encode())


def _alive(lexemes: list[tuple[int, int]], states: list[int]) -> Active:
    return tuple((lexeme, state) for (lexeme, _), state in zip(lexemes, states, strict=True) if state != DEAD)
