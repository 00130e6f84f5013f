"""Adapters that are each wrong at one boundary: where a draft is taken back, where the output ends inside a
draft, where ids are taken up anew, and where the thinking ends; and exactly the checks that must notice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harness.backend.bridge.reasoning import ReasoningObject
from harness.backend.bridge.thinking import Thinking
from harness.backend.grammar import Adapter, Bitmask, CompiledGrammar, Grammar, GrammarObject
from harness.oracle.reference import Reference, ReferenceGrammar, ReferenceObject

ANOTHER_WAY = "another_way_is_open_behind_a_rejected_draft"
ENDS = "a_draft_ends_at_end_of_sequence"
ANEW = "ids_taken_up_anew_lead_to_the_same_place"
OPEN = "reasoning_is_not_constrained"
NO_END = "the_output_does_not_end_while_it_reasons"
BEGINS = "the_answer_begins_behind_the_end_of_reasoning"
FIRST = "only_the_first_end_of_reasoning_counts"
DRAFT = "a_draft_may_cross_the_end_of_reasoning"
ROLLBACK = "rollback_crosses_the_end_of_reasoning"
REASONS_ANEW = "a_request_that_reasons_is_taken_up_anew"

MUTANTS: dict[type[Adapter], frozenset[str]] = {}
"""Each wrong adapter, and the names of exactly the checks on boundaries that fail on it."""


class _Starting(ReferenceGrammar):
    """A grammar whose objects are of another class."""

    def __init__(self, kind: type[ReferenceObject], *parts: Any) -> None:
        super().__init__(*parts)
        self.kind = kind

    def start(self) -> ReferenceObject:
        return self.kind(self._adapter, self._language)


def object_breaks(*checks: str) -> Callable[[type[ReferenceObject]], type[ReferenceObject]]:
    """Registers an adapter whose objects are of the class."""

    def register(wrong: type[ReferenceObject]) -> type[ReferenceObject]:
        def compile(self: Reference, grammar: Grammar) -> ReferenceGrammar:
            return _Starting(wrong, self, self._language(grammar))

        MUTANTS[type(wrong.__name__, (Reference,), {"compile": compile})] = frozenset(checks)
        return wrong

    return register


def reasoning_breaks(*checks: str) -> Callable[[type[ReasoningObject]], type[ReasoningObject]]:
    """Registers a right adapter whose objects that think are of the class."""

    def register(wrong: type[ReasoningObject]) -> type[ReasoningObject]:
        class Thinks(CompiledGrammar):
            def __init__(self, inner: CompiledGrammar, thinking: Thinking) -> None:
                self.inner, self.thinking = inner, thinking

            def start(self) -> GrammarObject:
                return wrong(self.inner.start(), self.thinking, (), None)

        def reasoning(self: Reference, compiled: CompiledGrammar, end: Sequence[int]) -> CompiledGrammar:
            return Thinks(compiled, Thinking(self.vocabulary, end))

        MUTANTS[type(wrong.__name__, (Reference,), {"reasoning": reasoning})] = frozenset(checks)
        return wrong

    return register


# Drafts that are taken back


@object_breaks(ANOTHER_WAY)
class RemembersTheWayTakenBack(ReferenceObject):
    """What was behind a position once is there for good, whichever token leads there the next time."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.seen: dict[int, int] = {}

    def accept_token(self, token: int) -> bool:
        if not super().accept_token(token):
            return False
        if not self._is_terminated:
            self._states[-1] = self.seen.setdefault(len(self._states), self._states[-1])
        return True


class Remembers(ReferenceObject):
    """Knows its ids."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.ids: list[int] = []

    def accept_token(self, token: int) -> bool:
        taken = super().accept_token(token)
        self.ids += [token] * (taken and not self._is_terminated)
        return taken

    def rollback(self, count: int) -> None:
        before = self._adapter.vocabulary.decode(self.ids)
        super().rollback(count)
        del self.ids[len(self._states) - 1 :]
        self.went_back(before, self._adapter.vocabulary.decode(self.ids))

    def went_back(self, before: bytes, now: bytes) -> None:
        """Called behind each rollback, with the text before it and the text that is left."""


@object_breaks(ANOTHER_WAY)
class KeepsMasksByTheNumberOfBytes(Remembers):
    """The mask behind so many bytes stays what it was in a draft of two tokens that was taken back."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.masks: dict[int, Bitmask] = {}
        self.kept: dict[int, Bitmask] = {}

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        length = len(self._adapter.vocabulary.decode(self.ids))
        super().fill_bitmask(bitmask)
        self.masks[length] = bitmask.copy()
        bitmask[:] = self.kept.pop(length, bitmask)

    def rollback(self, count: int) -> None:
        before = len(self._adapter.vocabulary.decode(self.ids))
        super().rollback(count)
        self.kept = {before: self.masks[before]} if count == 2 and before in self.masks else {}


@object_breaks(ANOTHER_WAY, ANEW)
class ForgetsATriggerThatIsHalfWritten(Remembers):
    """Taken back into the middle of a tag's beginning, it is in free text."""

    def went_back(self, before: bytes, now: bytes) -> None:
        begun = now.rfind(b"<f")
        if begun >= 0 and b">" not in now[begun:]:
            self._states[-1] = self._language.start


@object_breaks(ANOTHER_WAY, ANEW, ENDS)
class NeverComesBackIntoATag(Remembers):
    """Taken back over the end of a tag, it stays behind it."""

    def went_back(self, before: bytes, now: bytes) -> None:
        if before.count(b"</f>") > now.count(b"</f>"):
            self._states[-1] = self._language.run(self._language.start, before[: before.rfind(b"</f>") + 4])


@object_breaks(ANOTHER_WAY, ANEW, ROLLBACK)
class LosesHalfACharacter(Remembers):
    """Taken back into the middle of a character, it forgets the bytes of it that are left."""

    def went_back(self, before: bytes, now: bytes) -> None:
        whole = now.decode(errors="ignore").encode()
        self._states[-1] = self._language.run(self._language.start, whole)


# The end inside a draft


@object_breaks(ENDS, DRAFT)
class TakesWhatComesBehindTheEnd(ReferenceObject):
    def accept_tokens(self, tokens: Sequence[int]) -> int:
        taken = super().accept_tokens(tokens)
        return len(tokens) if self._is_terminated else taken


@object_breaks(ENDS, DRAFT)
class TakesOneTokenOfTextBehindTheEnd(ReferenceObject):
    """It takes a token of text behind end-of-sequence, and nothing else."""

    def accept_tokens(self, tokens: Sequence[int]) -> int:
        taken = super().accept_tokens(tokens)
        goes_on = self._is_terminated and tokens[taken : taken + 1]
        return taken + bool(goes_on and goes_on[0] not in self._adapter.vocabulary.eos_tokens)


@object_breaks(ENDS)
class CountsNoEnd(ReferenceObject):
    """Its rollback does not count end-of-sequence."""

    def rollback(self, count: int) -> None:
        super().rollback(min(count + self._is_terminated, len(self._states) - 1 + self._is_terminated))


@object_breaks(ENDS, DRAFT)
class GoesOnBehindTheEnd(ReferenceObject):
    """In a draft, end-of-sequence is taken, and does not end the output."""

    def accept_tokens(self, tokens: Sequence[int]) -> int:
        taken = super().accept_tokens(tokens)
        self._is_terminated = False
        return taken


# Ids that are taken up anew


@object_breaks(ANEW, DRAFT)
class LeavesOutTheLastOfMany(ReferenceObject):
    """Fed many ids at once, it says that it has taken the last one, too."""

    def accept_tokens(self, tokens: Sequence[int]) -> int:
        return super().accept_tokens(tokens[:-1] if len(tokens) > 6 else tokens) + (len(tokens) > 6)


@object_breaks(ANEW)
class ForcesOnlyOnceItWentBack(ReferenceObject):
    """A fresh object says of no text that it must come."""

    went_back = False

    def rollback(self, count: int) -> None:
        super().rollback(count)
        self.went_back = True

    def jump_forward(self) -> bytes:
        return super().jump_forward() if self.went_back else b""


# Thinking


@reasoning_breaks(OPEN, NO_END, DRAFT, ROLLBACK, REASONS_ANEW)
class ConstrainsTheThinking(ReasoningObject):
    """The grammar's mask is applied from the first token on."""

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        self.inner.fill_bitmask(bitmask)


@reasoning_breaks(NO_END)
class MayEndWhileItThinks(ReasoningObject):
    """All bits are set while it thinks."""

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        if self.thinks:
            bitmask.fill(-1)
        else:
            self.inner.fill_bitmask(bitmask)


@reasoning_breaks(BEGINS, FIRST, DRAFT, ROLLBACK, REASONS_ANEW)
class ReadsTheThinking(ReasoningObject):
    """The grammar is shown what it takes of the thinking, so that a trigger in it begins a tag."""

    def accept_token(self, token: int) -> bool:
        if self.thinks and token not in self._thinking.end:
            self.inner.accept_token(token)
        return super().accept_token(token)


@reasoning_breaks(FIRST, REASONS_ANEW)
class BeginsAnewAtEachEnd(ReasoningObject):
    """The last end counts: behind a second one the grammar is at its start again."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.start = self.inner.copy()
        self.left: list[tuple[int, GrammarObject]] = []
        self.matched = 0

    def accept_token(self, token: int) -> bool:
        answers = not self.thinks
        taken = super().accept_token(token)
        if answers and taken:
            self.matched = self._thinking.advance(self.matched, token)
            if self.matched == len(self._thinking.end):
                self.left.append((self._answered or 0, self.inner))
                self.inner, self._answered, self.matched = self.start.copy(), 0, 0
        return taken

    def rollback(self, count: int) -> None:
        while self.left and count > (self._answered or 0):
            count -= self._answered or 0
            self._answered, self.inner = self.left.pop()
        self.matched = 0
        super().rollback(count)


@reasoning_breaks(DRAFT, REASONS_ANEW)
class EndsThinkingBehindTheCall(ReasoningObject):
    """Of tokens that come in one call with the end among them, all are thinking."""

    def accept_tokens(self, tokens: Sequence[int]) -> int:
        thought = self._thinking.end_in(tokens) if self.thinks else None
        if thought is None:
            return super().accept_tokens(tokens)
        super().accept_tokens(tokens[:thought])
        return len(tokens)


@reasoning_breaks(DRAFT)
class LooksForNoEndInDrafts(ReasoningObject):
    """The masks along a draft are those of the place where it begins: open, while it thinks."""

    def fill_draft(self, tokens: Sequence[int], bitmasks: Bitmask) -> int:
        taken = self.accept_tokens(tokens)
        self.rollback(taken)
        self.fill_bitmask(bitmasks[0])
        bitmasks[1:] = bitmasks[0]
        return taken


@reasoning_breaks(BEGINS, FIRST, DRAFT, ROLLBACK, REASONS_ANEW)
class LooksForTheEndFromItsStart(ReasoningObject):
    """An id that does not go on with the end, and begins it itself, is passed over."""

    def accept_token(self, token: int) -> bool:
        before = self._thought[-1] if self._thought else 0
        taken = super().accept_token(token)
        if taken and self.thinks and self._thought[-1] <= before:
            self._thought[-1] = 0
        return taken


@reasoning_breaks(DRAFT, ROLLBACK)
class LeavesTheGrammarWhereItWas(ReasoningObject):
    """A rollback over the end of the thinking does not take the grammar back."""

    def rollback(self, count: int) -> None:
        if self._answered is not None and count > self._answered:
            del self._thought[self._answered - count :]
            self._answered = None
        else:
            super().rollback(count)


@reasoning_breaks(DRAFT, ROLLBACK)
class NeverThinksAgain(ReasoningObject):
    """A rollback takes back the answer only."""

    def rollback(self, count: int) -> None:
        super().rollback(count if self._answered is None else min(count, self._answered))
