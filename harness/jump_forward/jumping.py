"""Forced text for backends that have none: an adapter around an adapter, which follows the text with a jump map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, cast

from harness.grammar import Adapter, Bitmask, BoolMask, CompiledGrammar, Grammar, GrammarObject
from harness.jump_forward.compressed_fsm import JumpMap
from harness.jump_forward.retokenize import follows_from, retokenize
from harness.oracle.automaton import DEAD, Automaton, NoOracle
from harness.oracle.language import language_of
from harness.oracle.regex import RegexDialect, regex_automaton
from harness.vocabulary import Vocabulary

LanguageOf = Callable[[Grammar], Automaton[Any]]


def language_in(dialect: RegexDialect) -> LanguageOf:
    """The automata for a backend whose regular expressions are of that dialect."""

    def language(grammar: Grammar) -> Automaton[Any]:
        return regex_automaton(grammar.text, dialect) if grammar.dialect == "regex" else language_of(grammar)

    return language


class JumpingAdapter(Adapter):
    """Compiles with the inner adapter, and makes a jump map beside each grammar that has an automaton.

    Where there is none (other dialects, or `language` raises NoOracle) the inner grammar is returned as it is.
    """

    def __init__(self, inner: Adapter, language: LanguageOf) -> None:
        super().__init__(inner.vocabulary)
        self._inner = inner
        self._language = language
        self.mask_format = inner.mask_format
        self.threads = inner.threads

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        compiled = self._inner.compile(grammar)
        self.mask_format = self._inner.mask_format  # some know it only now
        return with_jumps(compiled, lambda: self._language(grammar), self.vocabulary)

    def script(self, grammar: Grammar) -> str:
        return self._inner.script(grammar)

    def fill_bitmasks(self, objects: Sequence[GrammarObject], bitmasks: Bitmask) -> None:
        self._inner.threads = self.threads
        self._inner.fill_bitmasks(without_jumps(objects), bitmasks)


def with_jump_map(adapter: Adapter, language: LanguageOf = language_of) -> JumpingAdapter:
    """The adapter, with a compressed FSM for its forced text; what the backend itself says is forced is not asked for.

    `language` makes the automaton of a grammar; its sentences must be those of the backend (`language_in`, for regular expressions), or
    else a jump leads past what the backend allows.
    """
    described = {name: getattr(adapter, name) for name in ("distribution", "dialects", "documented")}
    kind = type(f"{type(adapter).__name__}WithJumpMap", (JumpingAdapter,), {**described, "__module__": __name__})
    return cast(JumpingAdapter, kind(adapter, language))


def with_jumps(compiled: CompiledGrammar, language: Callable[[], Automaton[Any]], vocabulary: Vocabulary) -> CompiledGrammar:
    """The grammar, with forced text from a jump map of its automaton; where `language` raises NoOracle, the grammar as it is."""
    try:
        return _JumpingGrammar(compiled, JumpMap(language()), vocabulary)
    except NoOracle:
        return compiled


def without_jumps(objects: Sequence[GrammarObject]) -> list[GrammarObject]:
    """The backend's own objects, for what is done to several at once."""
    return [each.inner if isinstance(each, JumpingObject) else each for each in objects]


class _JumpingGrammar(CompiledGrammar):
    def __init__(self, inner: CompiledGrammar, jumps: JumpMap, vocabulary: Vocabulary) -> None:
        self.inner = inner
        self.jumps = jumps
        self.vocabulary = vocabulary

    def start(self) -> GrammarObject:
        return _around(self, self.inner.start(), [])


class JumpingObject(GrammarObject):
    """The inner object, and the tokens that it has accepted; the automaton is stepped only when a jump is asked for."""

    def __init__(self, grammar: _JumpingGrammar, inner: GrammarObject, taken: list[int]) -> None:
        self.inner = inner
        self._grammar = grammar
        self._taken = taken
        self._states = [grammar.jumps.automaton.start]
        """After each of the first tokens, as far as jumps were asked for."""

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
            self._states.append(state if state == DEAD else automaton.run(state, self._grammar.vocabulary.tokens[token]))
        return self._states[-1]


def _around(grammar: _JumpingGrammar, inner: GrammarObject, taken: list[int]) -> GrammarObject:
    return _kind(type(inner))(grammar, inner, taken)


@lru_cache(maxsize=64)
def _kind(inner: type[GrammarObject]) -> type[JumpingObject]:
    """The class of objects around such a one: it does not define what the inner class does not, so that asking tells the truth."""
    lacking = {name: getattr(GrammarObject, name) for name in ("rollback", "copy") if getattr(inner, name) is getattr(GrammarObject, name)}
    return type(f"{inner.__name__}WithJumpMap", (JumpingObject,), lacking)
