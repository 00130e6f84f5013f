"""Gives forced text to a backend that has none: objects around the backend's own follow the output with a
jump map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from harness.backend.grammar import Bitmask, BoolMask, CompiledGrammar, GrammarObject
from harness.backend.vocabulary import Vocabulary
from harness.oracle.automaton import DEAD, Automaton, NoOracle
from harness.oracle.forced_text.compressed_fsm import JumpMap
from harness.oracle.forced_text.retokenize import follows_from, retokenize


def with_jumps(
    compiled: CompiledGrammar, language: Callable[[], Automaton[Any]], vocabulary: Vocabulary
) -> CompiledGrammar:
    """Returns the grammar with forced text from a jump map of its automaton; the grammar as it is where
    `language` raises NoOracle."""
    try:
        return _JumpingGrammar(compiled, JumpMap(language()), vocabulary)
    except NoOracle:
        return compiled


def without_jumps(objects: Sequence[GrammarObject]) -> list[GrammarObject]:
    """Returns the backend's own objects, for calls that take several of them at once."""
    return [
        grammar_object.inner if isinstance(grammar_object, JumpingObject) else grammar_object
        for grammar_object in objects
    ]


class _JumpingGrammar(CompiledGrammar):
    def __init__(self, inner: CompiledGrammar, jumps: JumpMap, vocabulary: Vocabulary) -> None:
        self.inner = inner
        self.jumps = jumps
        self.vocabulary = vocabulary

    def start(self) -> GrammarObject:
        return _around(self, self.inner.start(), [])


class JumpingObject(GrammarObject):
    """An object around the backend's own that remembers the accepted tokens; the automaton is stepped only
    when a jump is asked for."""

    def __init__(self, grammar: _JumpingGrammar, inner: GrammarObject, taken: list[int]) -> None:
        self.inner = inner
        self._grammar = grammar
        self._taken = taken
        self._states = [grammar.jumps.automaton.start]
        """The automaton's states after each of the first tokens, up to the last one at which a jump was asked
        for."""

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        self.inner.fill_bitmask(bitmask)

    def filler(self, bitmask: Bitmask) -> Callable[[], object]:
        return self.inner.filler(bitmask)

    def fill_bool_mask(self, mask: BoolMask) -> None:
        self.inner.fill_bool_mask(mask)

    def accept_token(self, token: int) -> bool:
        accepted = self.inner.accept_token(token)
        if accepted:
            self._taken.append(token)
        return accepted

    def accept_tokens(self, tokens: Sequence[int]) -> int:
        count = self.inner.accept_tokens(tokens)
        self._taken += tokens[:count]
        return count

    def is_accepting(self) -> bool:
        return self.inner.is_accepting()

    def is_terminated(self) -> bool:
        return self.inner.is_terminated()

    def rollback(self, count: int) -> None:
        self.inner.rollback(count)
        left = len(self._taken) - count
        del self._taken[left:], self._states[left + 1 :]

    def copy(self) -> GrammarObject:
        return _around(self._grammar, self.inner.copy(), self._taken.copy())

    def jump_forward(self) -> bytes:
        if self.inner.is_terminated():
            return b""
        try:
            return self._grammar.jumps.jump_bytes(self._state())
        except NoOracle:  # the automaton has become too large: unknown
            return b""

    def fast_forward_tokens(self) -> list[int]:
        forced = self.jump_forward()
        if not forced:
            return []
        automaton = self._grammar.jumps.automaton
        try:
            follows = follows_from(automaton, automaton.run(self._state(), forced))
            keep, ids = retokenize(self._grammar.vocabulary, self._taken, forced, follows=follows)
        except (NoOracle, ValueError):  # the automaton has become too large, or no token spells the text
            return []
        return ids if keep == len(self._taken) else []

    def _state(self) -> int:
        automaton = self._grammar.jumps.automaton
        for token in self._taken[len(self._states) - 1 :]:
            state = self._states[-1]
            self._states.append(
                state if state == DEAD else automaton.run(state, self._grammar.vocabulary.tokens[token])
            )
        return self._states[-1]


def _around(grammar: _JumpingGrammar, inner: GrammarObject, taken: list[int]) -> GrammarObject:
    return _kind(type(inner))(grammar, inner, taken)


@lru_cache(maxsize=64)
def _kind(inner: type[GrammarObject]) -> type[JumpingObject]:
    """Returns the class of the objects around objects of this class. It leaves undefined what the inner class
    does not define, so that asking for it gives a true answer."""
    lacking = {
        name: getattr(GrammarObject, name)
        for name in ("rollback", "copy")
        if getattr(inner, name) is getattr(GrammarObject, name)
    }
    return type(f"{inner.__name__}WithJumpMap", (JumpingObject,), lacking)
