"""Outputs that think first, for the checks of reasoning: what each thinks, and what must be seen along it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from harness.backend.bridge.reasoning import ReasoningGrammar, reasoning_of
from harness.backend.bridge.thinking import ends_to_try, thinking_up_to
from harness.backend.contract.place import accepted
from harness.backend.grammar import CompiledGrammar, GrammarObject, UnsupportedGrammar
from harness.checks.looking import Look, change, few, first_bytes, look, name_of
from harness.checks.subject import NotApplicable, Subject
from harness.oracle.trie import TokenSet
from harness.rows.row import Finding
from harness.text import counted

MOST_ANSWERED = 12
"""Tokens of an answer that are written behind the end of the thinking."""
MOST_QUOTED = 40
"""Tokens of an output that stand in the thinking."""


class Answer:
    """The beginning of an instance, and what an object without any thinking looks like along it."""

    def __init__(self, subject: Subject, instance: int | None) -> None:
        self.instance = instance
        path = [] if instance is None else subject.paths[instance]
        self.quoted, self.tokens = path[:MOST_QUOTED], tuple(path[:MOST_ANSWERED])
        self.is_whole = len(path) == len(self.tokens)
        """Whether these are all tokens of the instance that the backend takes."""
        self._subject = subject
        self._looks: dict[int, Look] = {}

    def look(self, position: int) -> Look:
        """Returns what is seen once so many of the tokens were accepted."""
        if position not in self._looks:
            grammar_object = self._subject.reach(self.tokens[:position])
            if grammar_object is None:
                raise NotApplicable("the same tokens are refused the second time")
            self._looks[position] = look(self._subject, grammar_object)
        return self._looks[position]

    @cached_property
    def allowed(self) -> int:
        """Returns how many of the first four tokens the masks allow: of forced text some backends allow one
        spelling only, and take others."""
        for at, token in enumerate(self.tokens[:4]):
            if not self.look(at).allowed(self._subject)[token]:
                return at
        return min(4, len(self.tokens))


@dataclass(frozen=True)
class Thought:
    """One output that thinks first: what it thinks, which ids end that, and the answer."""

    subject: Subject
    compiled: CompiledGrammar
    """What was compiled, for requests that think first."""
    end: tuple[int, ...]
    thinking: tuple[int, ...]
    answer: Answer

    @property
    def tokens(self) -> tuple[int, ...]:
        return (*self.thinking, *self.end, *self.answer.tokens)

    @property
    def begun(self) -> int:
        """Returns where the answer begins in `tokens`."""
        return len(self.thinking) + len(self.end)

    def reach(self, position: int) -> GrammarObject | None:
        """Returns a fresh object that has accepted so many of the tokens; None if it refuses one of them."""
        grammar_object = self.compiled.start()
        return grammar_object if accepted(grammar_object, self.tokens[:position]) == position else None

    def wrong(self, position: int, grammar_object: GrammarObject, how: str) -> Iterator[Finding]:
        """Yields a finding if the object, which has accepted so many of the tokens, does not look as it
        must there."""
        yield from self.wrong_mask(position, self.subject.allowed(grammar_object), how)
        if position >= self.begun:
            there, now = self.answer.look(position - self.begun), look(self.subject, grammar_object)
            if now != there and now.mask == there.mask:
                yield self.finding(position, f"{how}: {change(self.subject, there, now)}")
        elif grammar_object.is_terminated():
            yield self.finding(position, f"{how}: terminated, while it thinks")

    def wrong_mask(self, position: int, allowed: TokenSet, how: str) -> Iterator[Finding]:
        """Yields a finding if the mask is not that of the place: all text while it thinks, and else what the
        grammar allows without any thinking."""
        plain = first_bytes(self.subject.vocabulary) >= 0
        if position < self.begun:
            missing = np.flatnonzero(plain & ~allowed)
            if len(missing):
                example = name_of(self.subject, int(missing[0]))
                text = f"{how}: it forbids {counted(len(missing), 'token')} of thinking, e.g. {example}"
                yield self.finding(position, text, cause="constrained")
            return
        there = self.answer.look(position - self.begun)
        now = Look(np.packbits(allowed, bitorder="little").tobytes(), there.accepting, there.terminated)
        if now != there:
            cause = "unconstrained" if bool(allowed[plain].all()) else ""
            yield self.finding(position, f"{how}: {change(self.subject, there, now)}", cause=cause)

    def finding(
        self, position: int, text: str, further: Sequence[int] = (), cause: str = "", walk: Sequence[int] = ()
    ) -> Finding:
        walk = (*(walk or self.tokens[:position]), *further)
        decode = self.subject.vocabulary.decode
        before, end = decode(walk[: len(walk) - len(further)])[-60:], self.subject.hex_of(self.end)
        name = name_of(self.subject, self.end[0]) if len(self.end) == 1 else repr(decode(self.end))
        return Finding(
            position=position,
            text=f"thinking up to {name}, after {before!r} {text}",
            cause=cause,
            instance=self.answer.instance,
            examples=end,
            walk=tuple(walk),
        )


def thoughts(subject: Subject, purpose: str, *, ours: bool = False) -> Iterator[Thought]:
    """Yields outputs that think, with each end: one that thinks nothing, and others whose thinking quotes an
    output whole, triggers and all, and begins its own end without ending it. With `ours`, a backend that does
    not think by itself has one such output, by our means.

    Raises NotApplicable if the backend can think with no such end, or does not by itself and must.
    """
    thinks, compiled = _compiled(subject)
    if not thinks and not ours:
        raise NotApplicable("the backend does not think by itself")
    numbers = [number for number, path in enumerate(subject.paths) if path]
    subject.random(purpose).shuffle(numbers)
    most = few(subject)
    chosen: Sequence[int | None] = numbers if most is None else numbers[: max(1, most // 2)]
    for at, number in enumerate(chosen or (None,)):  # without an instance the start is looked at
        answer = Answer(subject, number)
        for end, reasoning in compiled:
            quoted = _quoting(subject, end, answer.quoted)
            for thinking in ((), quoted) if at == 0 and thinks else (quoted,):
                yield Thought(subject, reasoning, end, thinking, answer)
        if not thinks:
            return


def thoughts_reached(
    subject: Subject, purpose: str, position: Callable[[Thought], int], *, ours: bool = False
) -> Iterator[tuple[Thought, GrammarObject]]:
    """Yields such outputs, each with an object that has accepted so many of its tokens, where it gets there:
    what is refused on the way, reasoning_is_not_constrained and the_answer_begins_behind_the_end_of_reasoning
    report. Raises NotApplicable, too, if none gets there."""
    is_reached = False
    for thought in thoughts(subject, purpose, ours=ours):
        grammar_object = thought.reach(position(thought))
        if grammar_object is not None:
            is_reached = True
            yield thought, grammar_object
    if not is_reached:
        raise NotApplicable("a token of the thinking, of its end or of the answer is refused")


def _compiled(subject: Subject) -> tuple[bool, list[tuple[tuple[int, ...], CompiledGrammar]]]:
    """Returns whether the backend thinks by itself, and for each end to try, or for the last where it is ours
    that thinks, the subject's grammar for requests that think up to it."""
    compiled, reason = [], "the vocabulary has no token to end the thinking"
    thinks = True
    for end in ends_to_try(subject.vocabulary):
        try:
            found = reasoning_of(subject.adapter, subject.compiled, end)
        except UnsupportedGrammar as why:
            reason = str(why)
            continue
        thinks = thinks and not isinstance(found, ReasoningGrammar)
        compiled.append((end, found))
    if not compiled:
        raise NotApplicable(reason)
    return thinks, compiled if thinks else compiled[-1:]


def _quoting(subject: Subject, end: tuple[int, ...], path: Sequence[int]) -> tuple[int, ...]:
    """Returns a thinking that holds the path and the beginning of the end, and does not end itself."""
    begun = end[: max(1, len(end) - 1)] if len(end) > 1 else ()
    return without_an_end(subject, end, (), (*path, *begun, *path[:2], *begun[:2]))


def without_an_end(
    subject: Subject, end: tuple[int, ...], before: Sequence[int], tokens: Sequence[int]
) -> tuple[int, ...]:
    """Returns the tokens, less those that may not come in the thinking, as special ids, and those with which
    it would end if it goes on with them behind what it holds already (`before`)."""
    thinking, matched, kept = thinking_up_to(subject.vocabulary, end), 0, list[int]()
    for token in before:
        matched = thinking.advance(matched, token)
    for token in tokens:
        after = thinking.advance(matched, token)
        if thinking.allows(token) and after < len(end):
            matched = after
            kept.append(token)
    return tuple(kept)
