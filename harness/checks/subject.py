"""What a check looks at: one case, compiled by one backend, and the truth about it where there is a reference."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from harness.case import Case
from harness.contract.place import NotApplicable as NotApplicable
from harness.grammar import Adapter, CompiledGrammar, GrammarObject, allocate_bitmask
from harness.oracle.automaton import Automaton, NoOracle
from harness.oracle.language import language_of
from harness.oracle.trie import TokenSet, TokenTrie, trie_of
from harness.vocabulary import Vocabulary

LONGEST_WALK = 400
"""Tokens of an instance along which places are sought."""


@dataclass(frozen=True)
class Place:
    """A position along one instance: `tokens` were accepted, and `text` is their bytes."""

    instance: int
    tokens: tuple[int, ...]
    text: bytes

    @property
    def position(self) -> int:
        return len(self.tokens)


def nobody_watches(phase: str = "") -> None:
    """The default of `Subject.enter` and `Subject.go_on`."""


@dataclass(frozen=True, eq=False)
class Subject:
    """One case, compiled. `effort` is how many places each check looks at in the case; None: all of them."""

    adapter: Adapter
    case: Case
    compiled: CompiledGrammar
    effort: int | None = None
    compile_ns: int = 0
    """What the compile took: a check that compiles again leaves slow grammars out."""
    enter: Callable[[str], None] = field(default=nobody_watches)
    """Told `oracle` before work of ours that may take long, and `check` after it, so that a lost child is booked rightly."""
    go_on: Callable[[], None] = field(default=nobody_watches)
    """Told between the parts of a long check, each of which may take as long as a call of the backend."""
    counted: dict[str, dict[str, int]] = field(default_factory=dict)
    """What a check counted beside its findings, by check."""

    @property
    def vocabulary(self) -> Vocabulary:
        return self.adapter.vocabulary

    def random(self, purpose: str) -> random.Random:
        """The same numbers each time for the same case, vocabulary and purpose."""
        return random.Random(f"{purpose} {self.case.id} {self.vocabulary.name}")

    # The backend's side

    def reach(self, tokens: tuple[int, ...]) -> GrammarObject | None:
        """A fresh object that has accepted the tokens; None if it refuses one of them."""
        grammar_object = self.compiled.start()
        return grammar_object if all(grammar_object.accept_token(token) for token in tokens) else None

    def allowed(self, grammar_object: GrammarObject) -> TokenSet:
        """The object's mask, in whichever format the adapter has: True = allowed."""
        size = self.vocabulary.size
        if self.adapter.mask_format == "bool":
            forbidden = np.ones(size, dtype=np.bool_)
            grammar_object.fill_bool_mask(forbidden)
            return ~forbidden
        bitmask = allocate_bitmask(size)
        grammar_object.fill_bitmask(bitmask)
        return np.unpackbits(bitmask.view(np.uint8), bitorder="little")[:size].view(np.bool_)

    @cached_property
    def paths(self) -> list[list[int]]:
        """For each instance its canonical tokens, as far as the backend accepts them (and no further than LONGEST_WALK)."""
        paths = []
        for instance in self.case.instances:
            try:
                tokens = self.vocabulary.encode(instance.content)[:LONGEST_WALK]
            except ValueError:  # the vocabulary cannot spell it
                tokens = []
            grammar_object = self.compiled.start()
            paths.append(tokens[: next((at for at, token in enumerate(tokens) if not grammar_object.accept_token(token)), len(tokens))])
        return paths

    def places(self, purpose: str, effort: int | None = None) -> Iterator[Place]:
        """The start, and a seeded sample of the other positions that the backend reaches along the instances; each text once.

        At most `effort` places, by default the subject's.
        """
        start, *others = self._all_places
        most = self.effort if effort is None else effort
        if most is not None and len(others) > most - 1:
            chosen = set(self.random(purpose).sample(range(len(others)), max(0, most - 1)))
            others = [each for at, each in enumerate(others) if at in chosen]
        yield start
        yield from others

    @cached_property
    def _all_places(self) -> list[Place]:
        found = {b"": Place(0, (), b"")}
        for number, tokens in enumerate(self.paths):
            text = b""
            for end, token in enumerate(tokens, 1):
                text += self.vocabulary.tokens[token]
                if text not in found:
                    found[text] = Place(number, tuple(tokens[:end]), text)
        return list(found.values())

    # The truth

    @cached_property
    def trie(self) -> TokenTrie:
        with self.ours():
            return trie_of(self.vocabulary)

    @cached_property
    def language(self) -> Automaton[Any]:
        """The reference automaton. Raises NotApplicable where there is none."""
        with self.ours():
            try:
                return language_of(self.case.grammar)
            except NoOracle as why:
                raise NotApplicable(str(why)) from why

    def truth(self, state: int) -> TokenSet:
        """The true mask of a state of `language`. Raises NotApplicable where it becomes too large."""
        with self.ours():
            try:
                return self.trie.mask(self.language, state)
            except NoOracle as why:
                raise NotApplicable(str(why)) from why

    def state_of(self, text: bytes) -> int:
        """The state of `language` after a text; 0 (DEAD) if no sentence begins so."""
        with self.ours():
            try:
                return self.language.run(self.language.start, text)
            except NoOracle as why:
                raise NotApplicable(str(why)) from why

    @contextmanager
    def ours(self) -> Iterator[None]:
        """What happens inside is our work, and no fault of the backend."""
        self.enter("oracle")
        try:
            yield
        finally:
            self.enter("check")

    def valid(self) -> list[int]:
        """The numbers of the instances that are known to be valid."""
        return [number for number, each in enumerate(self.case.instances) if each.valid]
