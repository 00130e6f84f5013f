"""Adapters that are right on short outputs, or alone, and wrong in one way further on; and the checks that
must notice."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from weakref import ref

import numpy as np

from harness.backend.grammar import Adapter, Bitmask, Grammar, GrammarObject, InvalidGrammar

from .reference import Reference, ReferenceGrammar, ReferenceObject
from .registering import registering
from .wrong import WritesPastAShortBitmask

MUTANTS: dict[type[Adapter], frozenset[str]] = {}
"""Each wrong adapter, and the names of exactly the checks on states that fail on it."""

DEEP = 3
"""The number of tokens from which on most of these adapters are wrong."""


object_breaks, breaks = registering(MUTANTS)


def flip(bitmask: Bitmask, token: int) -> None:
    bits = np.unpackbits(bitmask.view(np.uint8), bitorder="little")
    bits[token] ^= 1
    bitmask[:] = np.packbits(bits, bitorder="little").view(np.int32)


# Masks


class Flips(ReferenceObject):
    """From the third token on, one bit says the opposite of what `accept_token` does."""

    token: int

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        super().fill_bitmask(bitmask)
        if len(self.taken) >= DEEP:
            flip(bitmask, self.token)


@object_breaks("the_mask_says_what_accept_does")
class FlipsATilde(Flips):
    token = ord("~")


@object_breaks("the_mask_says_what_accept_does")
class FlipsTheEnd(Flips):
    token = 257


@object_breaks("the_mask_says_what_accept_does", "a_token_without_text_is_never_allowed")
class AllowsASpecialThatItRefuses(Flips):
    token = 258


@object_breaks("the_mask_says_what_accept_does", "a_token_without_text_is_never_allowed")
class AllowsPaddingThatItRefuses(Flips):
    token = 275


@object_breaks("a_token_without_text_is_never_allowed")
class TakesPaddingInTheEnd(ReferenceObject):
    def may_take(self, token: int) -> bool:
        return (token == 275 and len(self.taken) >= DEEP) or super().may_take(token)


@object_breaks("the_mask_says_what_accept_does", "end_of_sequence_is_refused_before_the_end")
class EndsTooEarly(ReferenceObject):
    def may_take(self, token: int) -> bool:
        return (token == self.vocabulary.eos_token and len(self.taken) >= DEEP) or super().may_take(token)


@object_breaks("the_mask_says_what_accept_does", "a_refused_token_does_not_move")
class SulksAfterThreeRefusals(ReferenceObject):
    refused = 0

    def accept_token(self, token: int) -> bool:
        if self.refused >= DEEP or not super().accept_token(token):
            self.refused += 1
            return False
        self.refused = 0
        return True


@object_breaks("the_mask_says_what_accept_does", "a_refused_token_does_not_move")
class MovesOnTheThirdRefusal(ReferenceObject):
    refused = 0

    def accept_token(self, token: int) -> bool:
        taken = super().accept_token(token)
        self.refused += not taken
        if self.refused == DEEP:
            self.taken.append(ord("~"))
        return taken


@object_breaks("end_of_sequence_is_refused_before_the_end", "a_refused_token_does_not_move")
class TerminatesOnARefusedEnd(ReferenceObject):
    refused_end = False

    def accept_token(self, token: int) -> bool:
        taken = super().accept_token(token)
        self.refused_end = self.refused_end or (token == self.vocabulary.eos_token and not taken)
        return taken

    def is_terminated(self) -> bool:
        return self.refused_end or super().is_terminated()


@object_breaks("end_of_sequence_is_refused_before_the_end")
class HasEndedWhenItMust(ReferenceObject):
    """Terminated where nothing but end-of-sequence can follow."""

    def is_terminated(self) -> bool:
        return self.has_ended() or (
            self.is_accepting() and not any(self.may_follow(bytes([byte])) for byte in range(256))
        )


# What a fill does


@object_breaks("looking_does_not_move")
class GoesAstrayWhenFilledTwice(ReferenceObject):
    fills = 0

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        super().fill_bitmask(bitmask)
        self.fills += 1

    def accept_token(self, token: int) -> bool:
        taken = super().accept_token(token)
        if taken and self.fills > 1 and token != self.vocabulary.eos_token:
            self.taken[-1] = ord("~")
        self.fills = 0 if taken else self.fills
        return taken

    def rollback(self, count: int) -> None:
        super().rollback(count)
        self.fills = 0


@object_breaks("a_filler_fills_as_a_fill_does")
class FillsByTheFillerUpToTheThirdToken(ReferenceObject):
    def filler(self, bitmask: Bitmask) -> Callable[[], object]:
        return lambda: self.fill_bitmask(bitmask) if len(self.taken) < DEEP else None


@breaks("a_batch_is_filled_row_by_row")
class FillsOneRowTwice(Reference):
    def fill_bitmasks(self, objects: Sequence[GrammarObject], bitmasks: Bitmask) -> None:
        super().fill_bitmasks(objects, bitmasks)
        if len(objects) > 2:
            bitmasks[-1] = bitmasks[0]


@breaks("a_batch_is_filled_row_by_row")
class FillsOneRowTwiceOnThreads(Reference):
    threads = 1

    def fill_bitmasks(self, objects: Sequence[GrammarObject], bitmasks: Bitmask) -> None:
        super().fill_bitmasks(objects, bitmasks)
        if self.threads != 1 and len(objects) > 2:
            bitmasks[-1] = bitmasks[0]


@breaks("a_fill_never_writes_outside")
class FillsARowForEachObject(Reference):
    """However many rows there are."""

    def fill_bitmasks(self, objects: Sequence[GrammarObject], bitmasks: Bitmask) -> None:
        words = bitmasks.shape[1]
        for number, grammar_object in enumerate(objects):
            row = np.zeros(words, dtype=np.int32)
            grammar_object.fill_bitmask(row)
            ctypes.memmove(bitmasks.ctypes.data + number * row.nbytes, row.ctypes.data, row.nbytes)


@breaks("a_batch_is_filled_row_by_row")
class FillsARowTooMany(Reference):
    def fill_bitmasks(self, objects: Sequence[GrammarObject], bitmasks: Bitmask) -> None:
        super().fill_bitmasks(objects, bitmasks)
        row = bitmasks[-1:].nbytes
        ctypes.memset(bitmasks.ctypes.data + bitmasks.nbytes, 0, row)


@object_breaks("a_batch_is_filled_row_by_row", "a_fill_never_writes_outside")
class FillsAWordTooMany(ReferenceObject):
    """Only where the array is part of a larger one, so as not to harm the process."""

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        super().fill_bitmask(bitmask)
        whole = bitmask
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        end = bitmask.ctypes.data + bitmask.nbytes
        if end + 4 <= whole.ctypes.data + whole.nbytes:
            ctypes.memset(end, 0, 4)


@object_breaks("a_fill_never_writes_outside")
class DoesNotLookAtTheMask(WritesPastAShortBitmask):
    """Takes any array for what it should be, as native code does."""


@object_breaks("a_fill_never_writes_outside")
class SaysNothingOfAReadOnlyMask(ReferenceObject):
    def fill_bitmask(self, bitmask: Bitmask) -> None:
        if bitmask.flags.writeable:
            super().fill_bitmask(bitmask)


@object_breaks("a_fill_never_writes_outside")
class FillsEveryOtherWordWrongly(ReferenceObject):
    """Copies an array that is not contiguous, and fills the copy."""

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        super().fill_bitmask(np.ascontiguousarray(bitmask))


# Going back


@object_breaks("rollback_restores_every_mask", "rollback_takes_back_the_end")
class RollsBackEightAtMost(ReferenceObject):
    def rollback(self, count: int) -> None:
        super().rollback(min(count, 8))


@object_breaks("rollback_restores_every_mask", "rollback_takes_back_the_end")
class CannotGoForthAgain(ReferenceObject):
    """Once more than two tokens were taken back, the digit one is not accepted any more."""

    spoilt = False

    def rollback(self, count: int) -> None:
        super().rollback(count)
        self.spoilt = count > 2

    def accept_token(self, token: int) -> bool:
        return not (self.spoilt and token == ord("3")) and super().accept_token(token)


@object_breaks("rollback_takes_back_the_end")
class ForgetsTheEndWhenMoreIsTakenBack(ReferenceObject):
    def rollback(self, count: int) -> None:
        super().rollback(count + (count > 1 and self.has_ended()))


@object_breaks("rollback_takes_back_the_end", "a_copy_of_an_ended_object_has_ended")
class StaysEnded(ReferenceObject):
    ended = False

    def accept_token(self, token: int) -> bool:
        taken = super().accept_token(token)
        self.ended = self.ended or self.has_ended()
        return taken

    def copy(self) -> ReferenceObject:
        clone = super().copy()
        assert isinstance(clone, StaysEnded)
        clone.ended = self.ended
        return clone

    def is_terminated(self) -> bool:
        return self.ended


@object_breaks("a_copy_is_independent")
class CopiesOfCopiesStandAtTheStart(ReferenceObject):
    is_copy = False

    def copy(self) -> ReferenceObject:
        clone = super().copy()
        assert isinstance(clone, CopiesOfCopiesStandAtTheStart)
        clone.is_copy = True
        if self.is_copy:
            clone.taken.clear()
        return clone


@object_breaks("a_copy_is_independent")
class CopiesCannotGoBackBehindTheirBirth(ReferenceObject):
    born = 0

    def copy(self) -> ReferenceObject:
        clone = super().copy()
        assert isinstance(clone, CopiesCannotGoBackBehindTheirBirth)
        clone.born = len(self.taken) - self.has_ended()
        return clone

    def rollback(self, count: int) -> None:
        super().rollback(min(count, len(self.taken) - self.born))


@object_breaks("a_copy_is_independent")
class TakesItsCopiesBackToo(ReferenceObject):
    copies: tuple[ReferenceObject, ...] = ()

    def copy(self) -> ReferenceObject:
        clone = super().copy()
        self.copies = (*self.copies, clone)
        return clone

    def rollback(self, count: int) -> None:
        super().rollback(count)
        for each in self.copies:
            each.rollback(count)


@object_breaks("a_copy_is_independent")
class CannotGoBackBehindACopy(ReferenceObject):
    least = 0

    def copy(self) -> ReferenceObject:
        self.least = len(self.taken)
        return super().copy()

    def rollback(self, count: int) -> None:
        super().rollback(min(count, len(self.taken) - self.least))


@object_breaks("a_copy_is_independent")
class CopiesNeedTheirOriginal(ReferenceObject):
    original: ref[ReferenceObject] | None = None

    def copy(self) -> ReferenceObject:
        clone = super().copy()
        assert isinstance(clone, CopiesNeedTheirOriginal)
        clone.original = ref(self)
        return clone

    def may_take(self, token: int) -> bool:
        is_lost = self.original is not None and self.original() is None
        return not is_lost and super().may_take(token)


@object_breaks("a_copy_is_independent", "a_copy_of_an_ended_object_has_ended")
class CopiesShareWhatTheyTake(ReferenceObject):
    def copy(self) -> ReferenceObject:
        clone = super().copy()
        clone.taken = self.taken
        return clone


@object_breaks("a_copy_of_an_ended_object_has_ended")
class CopiesForgetTheEnd(ReferenceObject):
    def copy(self) -> ReferenceObject:
        clone = super().copy()
        if clone.has_ended():
            clone.taken.pop()
        return clone


class SharingGrammar(ReferenceGrammar):
    """Counts how often its objects move by turns; from the fourth time on they refuse the digit three."""

    turns = 0
    last: ReferenceObject | None = None

    def start(self) -> ReferenceObject:
        self.turns = 0
        return MovesByTurns(self)


class MovesByTurns(ReferenceObject):
    compiled: SharingGrammar

    def accept_token(self, token: int) -> bool:
        taken = super().accept_token(token)
        self.compiled.turns += taken and self.compiled.last is not self
        self.compiled.last = self
        return taken

    def may_take(self, token: int) -> bool:
        return not (self.compiled.turns > 3 and b"3" in self.vocabulary.tokens[token]) and super().may_take(
            token
        )


@breaks("objects_of_one_grammar_are_independent")
class IsConfusedByTurns(Reference):
    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return SharingGrammar(self, super().compile(grammar).pattern)


class NotedGrammar(ReferenceGrammar):
    adapter: UsesTheGrammarStartedLast

    def start(self) -> ReferenceObject:
        self.adapter.started_last = self
        return OfTheGrammarStartedLast(self)


class OfTheGrammarStartedLast(ReferenceObject):
    compiled: NotedGrammar

    def may_follow(self, more: bytes) -> bool:
        self.pattern = self.compiled.adapter.started_last.pattern
        return super().may_follow(more)


@breaks("two_grammars_do_not_disturb_each_other")
class UsesTheGrammarStartedLast(Reference):
    started_last: ReferenceGrammar

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return NotedGrammar(self, super().compile(grammar).pattern)


# Ending


@object_breaks("a_terminated_object_takes_nothing")
class GoesOnAfterTheEnd(ReferenceObject):
    """Takes, and allows, after end-of-sequence what it took before."""

    def has_ended(self) -> bool:
        return False

    def is_terminated(self) -> bool:
        return super().has_ended()

    def is_accepting(self) -> bool:
        return not super().has_ended() and super().is_accepting()


@object_breaks("a_terminated_object_takes_nothing")
class EndsTwice(ReferenceObject):
    def accept_token(self, token: int) -> bool:
        return (self.has_ended() and token == self.vocabulary.eos_token) or super().accept_token(token)


@object_breaks("a_terminated_object_takes_nothing")
class AllowsEverythingAfterTheEnd(ReferenceObject):
    def fill_bitmask(self, bitmask: Bitmask) -> None:
        if self.has_ended():
            bitmask.fill(-1)
        else:
            super().fill_bitmask(bitmask)


@object_breaks("an_id_outside_the_vocabulary_is_refused")
class CountsIdsFromBehind(ReferenceObject):
    def accept_token(self, token: int) -> bool:
        return super().accept_token(ord("1") if token == -1 else token)


@object_breaks("an_id_outside_the_vocabulary_is_refused")
class MovesOnAnIdOutside(ReferenceObject):
    def accept_token(self, token: int) -> bool:
        if 0 <= token < self.vocabulary.size:
            return super().accept_token(token)
        self.taken.append(ord("~"))
        return False


@object_breaks("accept_tokens_stops_where_accept_token_does")
class AcceptsTokensPastARefusal(ReferenceObject):
    def accept_tokens(self, tokens: Sequence[int]) -> int:
        return sum([self.accept_token(token) for token in tokens])


@object_breaks("accept_tokens_stops_where_accept_token_does")
class TakesBackAllOfARefusedRow(ReferenceObject):
    def accept_tokens(self, tokens: Sequence[int]) -> int:
        count = super().accept_tokens(tokens)
        if count < len(tokens):
            self.rollback(count)
        return count


# Compiling


class SpoiltGrammar(ReferenceGrammar):
    """Refuses, in objects new and old, the digit three, once it is spoilt."""

    spoilt = False

    def start(self) -> ReferenceObject:
        return MayBeSpoilt(self)


class MayBeSpoilt(ReferenceObject):
    compiled: SpoiltGrammar

    def may_take(self, token: int) -> bool:
        return not (self.compiled.spoilt and b"3" in self.vocabulary.tokens[token]) and super().may_take(
            token
        )


class Spoils(Reference):
    """Gives out grammars that can be spoilt."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.made: list[SpoiltGrammar] = []

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        self.made.append(SpoiltGrammar(self, super().compile(grammar).pattern))
        return self.made[-1]


@breaks("a_bad_grammar_harms_nothing")
class SpoilsAllByABadGrammar(Spoils):
    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        try:
            return super().compile(grammar)
        except InvalidGrammar:
            for grammar_made in self.made:
                grammar_made.spoilt = True
            raise


@breaks("the_same_compile_gives_the_same_masks")
class CompilesEachGrammarWellOnlyOnce(Spoils):
    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        compiled = super().compile(grammar)
        assert isinstance(compiled, SpoiltGrammar)
        compiled.spoilt = any(grammar_made.pattern == compiled.pattern for grammar_made in self.made[:-1])
        return compiled


@breaks("the_same_compile_gives_the_same_masks")
class DeclinesTheSecondTime(Reference):
    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        compiled_before: set[Grammar] = self.__dict__.setdefault("seen", set())
        if grammar in compiled_before:
            raise InvalidGrammar("not again")
        compiled_before.add(grammar)
        return super().compile(grammar)
