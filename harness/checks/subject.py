"""What a check looks at: one case, compiled by one backend, and the truth about it where there is a
reference."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.backend.adapter_parts import reads_tokens
from harness.backend.contract.place import NotApplicable as NotApplicable
from harness.backend.contract.place import accepted
from harness.backend.grammar import (
    Adapter,
    CompiledGrammar,
    GrammarObject,
    InvalidGrammar,
)
from harness.backend.layout import Layout
from harness.backend.masks import allowed_mask
from harness.backend.vocabulary import Vocabulary
from harness.cases.case import Case
from harness.oracle.automaton import DEAD, Automaton, NoOracle
from harness.oracle.judge import Unjudgeable, is_valid
from harness.oracle.language import language_of
from harness.oracle.trie import TokenSet, TokenTrie, trie_of
from harness.walk.watched import Progress, Watch, unwatched, watched_adapter, watched_grammar

LONGEST_WALK = 400
"""Tokens of an instance along which places are sought."""
MOST_INSTANCES = 200
"""Instances of a case along which places are sought: where a case has more, a seeded choice of them, half of
which are valid as far as there are so many."""
MOST_MASKS = 4000
"""Masks of a case that are kept for its further checks; those of other places are asked for again."""
MOST_PLACES = 200
"""Places at which masks are compared along instances that we made."""


@dataclass(frozen=True)
class Place:
    """A position along one instance: `tokens` were accepted, and `text` is their bytes."""

    instance: int
    tokens: tuple[int, ...]
    text: bytes

    @property
    def position(self) -> int:
        return len(self.tokens)


@dataclass(frozen=True, eq=False)
class Subject:
    """One case, compiled. `effort` is how many places each check looks at in the case; None: all of them."""

    adapter: Adapter
    case: Case
    compiled: CompiledGrammar
    effort: int | None = None
    compile_ns: int = 0
    """What the compile took: a check that compiles again leaves slow grammars out."""
    seconds: float = math.inf
    """What all checks of the case may take."""
    progress: Progress = field(default_factory=unwatched)
    """The cells that are told of each call of the backend, so that a deadline is one call's, and a lost child
    is booked rightly."""
    counted: dict[str, dict[str, int]] = field(default_factory=dict)
    """What a check counted beside its findings, by check."""

    def count(self, check: str, **more: int) -> None:
        """Adds to what a check has counted in the case."""
        counts = self.counted.setdefault(check, {})
        for what, number in more.items():
            counts[what] = counts.get(what, 0) + number

    def __post_init__(self) -> None:
        object.__setattr__(self, "adapter", watched_adapter(self.adapter, self.watch))
        object.__setattr__(self, "compiled", watched_grammar(self.compiled, self.watch))

    @cached_property
    def watch(self) -> Watch:
        """Returns the watch through which the backend is asked."""
        return Watch(self.progress, is_ours=self.adapter.is_ours)

    @property
    def vocabulary(self) -> Vocabulary:
        return self.adapter.vocabulary

    def hex_of(self, tokens: Sequence[int]) -> tuple[str, ...]:
        """Returns the bytes of each token as hex, the form in which a finding holds its examples."""
        return tuple(self.vocabulary.tokens[token].hex() for token in tokens)

    def random(self, purpose: str) -> random.Random:
        """Returns the same numbers each time for the same case, vocabulary and purpose."""
        return random.Random(f"{purpose} {self.case.id} {self.vocabulary.name}")

    # The backend's side

    def reach(self, tokens: tuple[int, ...]) -> GrammarObject | None:
        """Returns a fresh object that has accepted the tokens; None if it refuses one of them."""
        grammar_object = self.compiled.start()
        return grammar_object if all(grammar_object.accept_token(token) for token in tokens) else None

    def allowed(self, grammar_object: GrammarObject) -> TokenSet:
        """Returns the object's mask, in whichever format the adapter has: True = allowed."""
        return allowed_mask(grammar_object, self.vocabulary.size, self.adapter.mask_format)

    @property
    def layout(self) -> Layout | None:
        """Returns how the backend says that it writes JSON in the case's dialect; None if it does not say."""
        is_tag = self.case.grammar.dialect == "structural_tag"
        return self.adapter.layout_in_tags if is_tag else self.adapter.layout

    def spell(self, text: bytes) -> tuple[int, ...] | None:
        """Returns the canonical tokens of a text; None where the vocabulary cannot spell it."""
        try:
            return tuple(self.vocabulary.encode(text))
        except ValueError:
            return None

    @cached_property
    def numbers(self) -> list[int]:
        """Returns the numbers of the instances that the checks look at, in order: all, or MOST_INSTANCES."""
        instances = self.case.instances
        numbers = list(range(len(instances)))
        if len(numbers) <= MOST_INSTANCES:
            return numbers
        self.random("instances to look at").shuffle(numbers)
        valid = [number for number in numbers if instances[number].valid][: MOST_INSTANCES // 2]
        return sorted(list(dict.fromkeys((*valid, *numbers)))[:MOST_INSTANCES])

    @cached_property
    def paths(self) -> list[list[int]]:
        """Returns for each instance its canonical tokens, as far as the backend accepts them (and no further
        than LONGEST_WALK); none for an instance that is not looked at."""
        paths: list[list[int]] = [[] for _ in self.case.instances]
        for number in self.numbers:
            try:
                tokens = self.case.instances[number].ids(self.vocabulary)[:LONGEST_WALK]
            except ValueError:  # the vocabulary cannot spell it
                continue
            paths[number] = tokens[: accepted(self.compiled.start(), tokens)]
        return paths

    def places(self, purpose: str, effort: int | None = None, longest: int = sys.maxsize) -> Iterator[Place]:
        """Yields the start, and a seeded sample of the other positions that the backend reaches along the
        instances within the `longest` so many tokens; each text once, or where tokens are meant by their ids,
        each row of tokens.

        At most `effort` places, by default the subject's.
        """
        others = [(number, end) for number, end in self._ends if end <= longest]
        most = self.effort if effort is None else effort
        if most is not None and len(others) > most - 1:
            chosen = set(self.random(purpose).sample(range(len(others)), max(0, most - 1)))
            others = [other for at, other in enumerate(others) if at in chosen]
        yield Place(0, (), b"")
        for number, end in others:
            tokens = tuple(self.paths[number][:end])
            yield Place(number, tokens, b"".join(map(self.vocabulary.tokens.__getitem__, tokens)))

    def masks(self) -> Iterator[tuple[Place, TokenSet]]:
        """Yields places with the backend's mask there: True = allowed.

        Of a case whose instances were made by us, these are all places, up to MOST_PLACES: nobody else has
        said what its outputs are. Of others, they are as many as each check looks at. One object goes along
        an instance, as in use, so that each token is accepted once. Every check of the case gets the same
        places, and the same masks: some backends need a second for each.
        """
        instance, position, grammar_object, is_lost = -1, 0, None, False
        for place in self._looked_at:
            if place.instance != instance:
                instance, position, grammar_object, is_lost = place.instance, 0, None, False
            packed = self._masks.get(place.tokens)
            if place.tokens not in self._masks and not is_lost:
                grammar_object = grammar_object or self.compiled.start()
                steps, position = place.tokens[position:], place.position
                is_there = all(grammar_object.accept_token(token) for token in steps)
                packed = np.packbits(self.allowed(grammar_object)) if is_there else None
                if len(self._masks) < MOST_MASKS:
                    self._masks[place.tokens] = packed
            is_lost = packed is None
            if packed is not None:
                yield place, np.unpackbits(packed, count=self.vocabulary.size).astype(np.bool_)

    @cached_property
    def _looked_at(self) -> list[Place]:
        is_made = any(instance.made_for for instance in self.case.instances)
        effort = max(self.effort, MOST_PLACES) if self.effort is not None and is_made else self.effort
        return list(self.places("masks", effort))

    @cached_property
    def _masks(self) -> dict[tuple[int, ...], npt.NDArray[np.uint8] | None]:
        """Returns the packed masks that were asked for, by the tokens before them; None where one of the
        tokens was refused."""
        return {}

    @cached_property
    def _ends(self) -> list[tuple[int, int]]:
        """Returns instance and number of tokens of each place but the start.

        Neither their tokens nor their texts are kept: those of all places together grow with the square of an
        instance's length.
        """
        seen, ends = {blake2b(digest_size=16).digest()}, []
        for number in self.numbers:
            before = blake2b(digest_size=16)
            for end, token in enumerate(self.paths[number], 1):
                before.update(
                    token.to_bytes(4, "little") if self.is_about_tokens else self.vocabulary.tokens[token]
                )
                key = before.digest()
                if key not in seen:
                    seen.add(key)
                    ends.append((number, end))
        return ends

    def key_of(self, place: Place) -> Hashable:
        """Returns what two places share that are the same: the text, or where tokens are meant by their ids,
        the tokens."""
        return place.tokens if self.is_about_tokens else place.text

    def require_text(self) -> None:
        """Raises NotApplicable where the grammar is not about text alone: there it matters in which tokens a
        text is written, and ids without text may come."""
        if self.is_about_tokens:
            raise NotApplicable("its tokens are meant by their ids")

    @cached_property
    def is_about_tokens(self) -> bool:
        """Whether tokens are meant by their ids, so that ids without text may come too."""
        try:
            return reads_tokens(self.case.grammar)
        except InvalidGrammar:
            return False

    # The truth

    @cached_property
    def trie(self) -> TokenTrie:
        return trie_of(self.vocabulary)

    @cached_property
    def language(self) -> Automaton[Any]:
        """Returns the reference automaton. Raises NotApplicable where there is none."""
        try:
            return language_of(self.case.grammar)
        except NoOracle as why:
            raise NotApplicable(str(why)) from why

    def state_behind(self, automaton: Automaton[Any], tokens: Sequence[int]) -> int:
        """Returns the state of an automaton after these tokens."""
        texts, state = self.vocabulary.tokens, automaton.start
        for token in tokens:
            state = automaton.after_token(state, token, texts[token])
            if state == DEAD:
                break
        return state

    def truth(self, state: int) -> TokenSet:
        """Returns the true mask of a state of `language`. Raises NotApplicable where it becomes too large."""
        try:
            return self.trie.mask(self.language, state)
        except NoOracle as why:
            raise NotApplicable(str(why)) from why

    def state_of(self, text: bytes) -> int:
        """Returns the state of `language` after a text; 0 (DEAD) if no sentence begins so."""
        try:
            return self.language.run(self.language.start, text)
        except NoOracle as why:
            raise NotApplicable(str(why)) from why

    def judged(self, text: bytes) -> bool | None:
        """Returns whether the judge calls the text valid; None where there is no verdict."""
        case = self.case
        try:
            return is_valid(case.grammar, text, draft=case.draft, assert_formats=case.asserts_formats)
        except (Unjudgeable, RecursionError):
            return None

    def valid(self) -> list[int]:
        """Returns the numbers of the texts that are known to be valid, of those that are looked at; an
        instance that is said by its tokens is none."""
        instances = self.case.instances
        return [number for number in self.numbers if instances[number].valid and not instances[number].tokens]
