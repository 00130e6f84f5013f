"""An adapter around an adapter that gives any backend the forced text of a jump map; it proves the checks of
forced text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from harness.backend.grammar import Adapter, Bitmask, CompiledGrammar, Grammar, GrammarObject
from harness.oracle.automaton import Automaton
from harness.oracle.forced_text.jumping import with_jumps, without_jumps
from harness.oracle.language import language_of
from harness.oracle.regex.automaton import regex_automaton

LanguageOf = Callable[[Grammar], Automaton[Any]]


def language_in_rust(grammar: Grammar) -> Automaton[Any]:
    """Returns the automaton for a backend whose regular expressions are those of Rust."""
    return regex_automaton(grammar.text, "rust") if grammar.dialect == "regex" else language_of(grammar)


class JumpingAdapter(Adapter):
    """Compiles with the inner adapter, and makes a jump map beside each grammar that has an automaton.

    Where there is none (other dialects, or `language` raises NoOracle) the inner grammar is returned as it
    is.
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
    """Returns the adapter, with a compressed FSM for its forced text; what the backend itself says is forced
    is not asked for.

    `language` makes the automaton of a grammar; its sentences must be those of the backend
    (`language_in_rust`, for regular expressions of Rust), or else a jump leads past what the backend allows.
    """
    described = {name: getattr(adapter, name) for name in ("distribution", "dialects", "documented")}
    kind = type(
        f"{type(adapter).__name__}WithJumpMap", (JumpingAdapter,), {**described, "__module__": __name__}
    )
    return cast(JumpingAdapter, kind(adapter, language))
