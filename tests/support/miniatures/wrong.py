"""Adapters that break the contract in one way each, and the checks that must notice."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from harness.backend.grammar import (
    Adapter,
    Bitmask,
    BoolMask,
    Dialect,
    Grammar,
    GrammarObject,
    InvalidGrammar,
)

from .reference import Reference, ReferenceGrammar, ReferenceObject
from .registering import registering

MUTANTS: dict[type[Adapter], frozenset[str]] = {}
"""Each wrong adapter, and the names of exactly the checks that fail on it with `small_vocabulary`."""


object_breaks, breaks = registering(MUTANTS)


# What it says of itself


@breaks("distribution_and_dialects_are_declared")
class SaysNoDistribution(Reference):
    distribution: ClassVar[Any] = None


@breaks(
    "distribution_and_dialects_are_declared",
    "a_malformed_grammar_is_declined",
    "a_malformed_grammar_harms_nothing",
)
class HasAnUnknownDialect(Reference):
    dialects: ClassVar[Any] = Reference.dialects | {"peg"}


# Accepting and ending


@object_breaks("a_valid_output_is_accepted_to_its_end")
class RefusesTheDigitTwo(ReferenceObject):
    def may_take(self, token: int) -> bool:
        return b"2" not in self.vocabulary.tokens[token] and super().may_take(token)


@object_breaks("answers_are_bools_and_counts")
class AcceptsWithANumber(ReferenceObject):
    def accept_token(self, token: int) -> Any:
        return int(super().accept_token(token))


@object_breaks("answers_are_bools_and_counts")
class RefusesWithANumber(ReferenceObject):
    def accept_token(self, token: int) -> Any:
        return super().accept_token(token) or 0


@object_breaks("answers_are_bools_and_counts")
class RefusesTheEndWithNothing(ReferenceObject):
    def accept_token(self, token: int) -> Any:
        return super().accept_token(token) or (None if token == self.vocabulary.eos_token else False)


@object_breaks("answers_are_bools_and_counts")
class CountsWithAFraction(ReferenceObject):
    def accept_tokens(self, tokens: Sequence[int]) -> Any:
        return float(super().accept_tokens(tokens))


@object_breaks("answers_are_bools_and_counts")
class AnswersWithANumber(ReferenceObject):
    def is_accepting(self) -> Any:
        return int(super().is_accepting())


@object_breaks(
    "a_refused_token_does_not_move",
    "a_right_token_is_accepted_after_a_refused_one",
    "accept_tokens_stops_at_a_refusal",
    "a_refused_end_of_sequence_does_not_move",
    "the_mask_says_what_accept_token_does",
)
class MovesOnRefusal(ReferenceObject):
    def accept_token(self, token: int) -> bool:
        if super().accept_token(token):
            return True
        self.taken.append(token)
        return False


@object_breaks("a_right_token_is_accepted_after_a_refused_one", "the_mask_says_what_accept_token_does")
class SulksAfterARefusal(ReferenceObject):
    sulking = False

    def accept_token(self, token: int) -> bool:
        if self.sulking:
            self.sulking = False
            return False
        taken = super().accept_token(token)
        self.sulking = not taken
        return taken


@object_breaks("accept_tokens_stops_at_a_refusal")
class AcceptsTokensPastARefusal(ReferenceObject):
    def accept_tokens(self, tokens: Sequence[int]) -> int:
        return sum([self.accept_token(token) for token in tokens])


@object_breaks("accepting_is_not_terminated")
class TerminatesWhenAccepting(ReferenceObject):
    def is_terminated(self) -> bool:
        return self.has_ended() or self.is_accepting()


@object_breaks(
    "end_of_sequence_is_accepted_exactly_when_accepting", "end_of_sequence_is_allowed_exactly_when_accepting"
)
class EndsAnywhere(ReferenceObject):
    def may_take(self, token: int) -> bool:
        return token == self.vocabulary.eos_token or super().may_take(token)


@object_breaks("end_of_sequence_is_accepted_exactly_when_accepting", "the_mask_says_what_accept_token_does")
class RefusesTheEndThatItAllows(ReferenceObject):
    def accept_token(self, token: int) -> bool:
        return token != self.vocabulary.eos_token and super().accept_token(token)


@object_breaks("a_refused_end_of_sequence_does_not_move", "the_mask_says_what_accept_token_does")
class MovesOnARefusedEnd(ReferenceObject):
    def accept_token(self, token: int) -> bool:
        taken = super().accept_token(token)
        if token == self.vocabulary.eos_token and not taken:
            self.taken.append(ord("~"))
        return taken


@object_breaks("end_of_sequence_terminates")
class NeverTerminates(ReferenceObject):
    def is_terminated(self) -> bool:
        return False


# Going back


@object_breaks("rollback_restores", "rollback_past_end_of_sequence_restores")
class ForgetsRollback(ReferenceObject):
    def rollback(self, count: int) -> None:
        pass


@object_breaks("rollback_restores", "rollback_past_end_of_sequence_restores")
class RollsBackOneAtMost(ReferenceObject):
    def rollback(self, count: int) -> None:
        super().rollback(min(count, 1))


@object_breaks("rollback_past_end_of_sequence_restores")
class DoesNotCountTheEndInRollback(ReferenceObject):
    def rollback(self, count: int) -> None:
        super().rollback(count + self.has_ended())


@object_breaks(
    "a_copy_is_at_the_current_position",
    "moving_a_copy_does_not_move_the_original",
    "moving_the_original_does_not_move_a_copy",
)
class CopiesTheStart(ReferenceObject):
    def copy(self) -> ReferenceObject:
        return type(self)(self.compiled)


@object_breaks("moving_a_copy_does_not_move_the_original", "moving_the_original_does_not_move_a_copy")
class CopiesNothing(ReferenceObject):
    def copy(self) -> ReferenceObject:
        return self


@object_breaks("moving_a_copy_does_not_move_the_original")
class CopiesPullTheOriginalAlong(ReferenceObject):
    original: ReferenceObject | None = None

    def copy(self) -> ReferenceObject:
        clone = super().copy()
        assert isinstance(clone, CopiesPullTheOriginalAlong)
        clone.original = self
        return clone

    def accept_token(self, token: int) -> bool:
        if self.original is not None:
            self.original.accept_token(token)
        return super().accept_token(token)


@object_breaks("moving_the_original_does_not_move_a_copy")
class CopiesWhenTheCopyMoves(ReferenceObject):
    borrowed = False

    def copy(self) -> ReferenceObject:
        clone = super().copy()
        assert isinstance(clone, CopiesWhenTheCopyMoves)
        clone.taken, clone.borrowed = self.taken, True
        return clone

    def accept_token(self, token: int) -> bool:
        if self.borrowed:
            self.taken, self.borrowed = list(self.taken), False
        return super().accept_token(token)


# Compiling


@breaks("a_right_grammar_is_not_called_invalid")
class CallsADeclaredDialectInvalid(Reference):
    dialects: ClassVar[frozenset[Dialect]] = Reference.dialects | {"ebnf"}

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        if grammar.dialect == "ebnf":
            raise InvalidGrammar("not yet")
        return super().compile(grammar)


@breaks("an_undeclared_dialect_is_unsupported")
class CallsAnUndeclaredDialectInvalid(Reference):
    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        if grammar.dialect not in self.dialects:
            raise InvalidGrammar(grammar.dialect)
        return super().compile(grammar)


@breaks("a_malformed_grammar_is_declined")
class LetsTheParsersErrorOut(Reference):
    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        try:
            return super().compile(grammar)
        except InvalidGrammar as error:
            raise RuntimeError(str(error)) from error


class GrammarWithoutTwo(ReferenceGrammar):
    """A grammar that was compiled wrongly."""

    def start(self) -> ReferenceObject:
        return RefusesTheDigitTwo(self)


@breaks("a_malformed_grammar_harms_nothing")
class IsHarmedByAMalformedGrammar(Reference):
    harmed = False

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        try:
            compiled = super().compile(grammar)
        except InvalidGrammar:
            self.harmed = True
            raise
        return GrammarWithoutTwo(self, compiled.pattern) if self.harmed else compiled


@breaks(
    "compiling_twice_gives_the_same_masks",
    "a_malformed_grammar_harms_nothing",
    "an_object_outlives_its_compiled_grammar",
)
class CompilesEachGrammarWellOnlyOnce(Reference):
    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        compiled = super().compile(grammar)
        compiled_before: set[Grammar] = self.__dict__.setdefault("seen", set())
        if grammar in compiled_before:
            return GrammarWithoutTwo(self, compiled.pattern)
        compiled_before.add(grammar)
        return compiled


@object_breaks(
    "the_same_question_has_one_answer",
    "moving_a_copy_does_not_move_the_original",
    "moving_the_original_does_not_move_a_copy",
)
class FillsTheFifthMaskAtAPlaceWrongly(ReferenceObject):
    def fill_bitmask(self, bitmask: Bitmask) -> None:
        super().fill_bitmask(bitmask)
        place, filled = self.compiled.__dict__.get("filled", ([], []))
        filled = filled if place == self.taken else []
        filled += [self] * all(self is not each for each in filled)
        self.compiled.__dict__["filled"] = list(self.taken), filled
        if len(filled) == 5:
            bitmask[ord("1") >> 5] ^= 1 << (ord("1") & 31)


class SharingGrammar(ReferenceGrammar):
    """Hands out an object again as long as it has not moved."""

    last: ReferenceObject | None = None

    def start(self) -> ReferenceObject:
        if self.last is None or self.last.taken:
            self.last = super().start()
        return self.last


@breaks("starts_are_independent", "a_malformed_grammar_harms_nothing")
class HandsOutAnUnmovedObjectAgain(Reference):
    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return SharingGrammar(self, super().compile(grammar).pattern)


class EndingGrammar(ReferenceGrammar):
    """Ends for all its objects at once."""

    ended = False

    def start(self) -> ReferenceObject:
        return EndsForAll(self)


class EndsForAll(ReferenceObject):
    compiled: EndingGrammar

    def accept_token(self, token: int) -> bool:
        taken = super().accept_token(token)
        self.compiled.ended = self.compiled.ended or self.has_ended()
        return taken

    def is_terminated(self) -> bool:
        return self.compiled.ended


@breaks(
    "an_ended_object_ends_no_other",
    "moving_a_copy_does_not_move_the_original",
    "moving_the_original_does_not_move_a_copy",
)
class EndsAllObjectsAtOnce(Reference):
    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return EndingGrammar(self, super().compile(grammar).pattern)


class HoldsItsGrammarWeakly(ReferenceObject):
    def __init__(self, compiled: ReferenceGrammar) -> None:
        super().__init__(compiled)
        self.owner = weakref.ref(compiled)
        del self.compiled

    def copy(self) -> ReferenceObject:
        owner = self.owner()
        assert owner is not None
        clone = type(self)(owner)
        clone.taken = list(self.taken)
        return clone

    def may_take(self, token: int) -> bool:
        return self.owner() is not None and super().may_take(token)


class WeaklyHeldGrammar(ReferenceGrammar):
    def start(self) -> ReferenceObject:
        return HoldsItsGrammarWeakly(self)


@breaks("an_object_outlives_its_compiled_grammar")
class DropsTheGrammarUnderItsObjects(Reference):
    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return WeaklyHeldGrammar(self, super().compile(grammar).pattern)


# Masks


@object_breaks("a_fill_overwrites_every_bit", "a_batch_is_filled_row_by_row")
class OrsIntoTheMask(ReferenceObject):
    def fill_bitmask(self, bitmask: Bitmask) -> None:
        before = bitmask.copy()
        super().fill_bitmask(bitmask)
        bitmask |= before


@object_breaks("a_filler_fills_as_a_fill_does")
class BindsItsFirstMask(ReferenceObject):
    def filler(self, bitmask: Bitmask) -> Callable[[], object]:
        first = bitmask.copy()
        self.fill_bitmask(first)
        return lambda: np.copyto(bitmask, first)


@object_breaks(
    "a_fill_does_not_move",
    "a_fill_overwrites_every_bit",
    "a_batch_is_filled_row_by_row",
    "the_bool_mask_is_the_inverted_bitmask",
)
class SkipsAFillRightAfterAFill(ReferenceObject):
    filled = False

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        if not self.filled:
            super().fill_bitmask(bitmask)
        self.filled = True

    def accept_token(self, token: int) -> bool:
        self.filled = False
        return super().accept_token(token)

    def is_accepting(self) -> bool:
        self.filled = False
        return super().is_accepting()


@object_breaks("the_mask_says_what_accept_token_does")
class MasksOutTokensThatItAccepts(ReferenceObject):
    def fill_bitmask(self, bitmask: Bitmask) -> None:
        super().fill_bitmask(bitmask)
        bitmask[ord("2") >> 5] &= ~(1 << (ord("2") & 31))


@object_breaks("the_mask_says_what_accept_token_does", "jump_forward_bytes_are_forced")
class AllowsTokensThatItRefuses(ReferenceObject):
    def fill_bitmask(self, bitmask: Bitmask) -> None:
        super().fill_bitmask(bitmask)
        bitmask[ord("~") >> 5] |= 1 << (ord("~") & 31)


@object_breaks("end_of_sequence_is_allowed_exactly_when_accepting", "the_mask_says_what_accept_token_does")
class MasksOutTheEnd(ReferenceObject):
    def fill_bitmask(self, bitmask: Bitmask) -> None:
        super().fill_bitmask(bitmask)
        bitmask[self.vocabulary.eos_token >> 5] &= ~(1 << (self.vocabulary.eos_token & 31))


@object_breaks("special_and_padding_tokens_are_never_allowed")
class AllowsSpecials(ReferenceObject):
    def may_take(self, token: int) -> bool:
        special = token in self.vocabulary.special_tokens and token != self.vocabulary.eos_token
        return special or super().may_take(token)


@object_breaks("special_and_padding_tokens_are_never_allowed")
class AllowsPadding(ReferenceObject):
    def may_take(self, token: int) -> bool:
        return token in self.vocabulary.padding_tokens or super().may_take(token)


@object_breaks("a_fill_stays_inside_its_bitmask")
class WritesPastAShortBitmask(ReferenceObject):
    def fill_bitmask(self, bitmask: Bitmask) -> None:
        whole = np.zeros((self.vocabulary.size + 31) // 32, dtype=np.int32)
        super().fill_bitmask(whole)
        ctypes.memmove(bitmask.ctypes.data, whole.ctypes.data, whole.nbytes)


@breaks("a_batch_is_filled_row_by_row")
class FillsEveryRowFromTheFirstObject(Reference):
    def fill_bitmasks(self, objects: Sequence[GrammarObject], bitmasks: Bitmask) -> None:
        super().fill_bitmasks([objects[0] for _ in objects], bitmasks)


@object_breaks("the_bool_mask_is_the_inverted_bitmask")
class DoesNotInvertTheBoolMask(ReferenceObject):
    def fill_bool_mask(self, mask: BoolMask) -> None:
        super().fill_bool_mask(mask)
        mask ^= True


# Forced text


@object_breaks("jump_forward_does_not_move")
class MovesOnJumpForward(ReferenceObject):
    def jump_forward(self) -> bytes:
        forced = super().jump_forward()
        self.taken += self.vocabulary.encode(forced)
        return forced


@object_breaks("jump_forward_bytes_are_forced")
class JumpsTooFar(ReferenceObject):
    def jump_forward(self) -> bytes:
        forced = super().jump_forward()
        return forced + b"c" if forced else b""


@object_breaks("jump_forward_bytes_are_forced")
class JumpsPastAPossibleEnd(ReferenceObject):
    def jump_forward(self) -> bytes:
        return super().jump_forward() or (b"2" if self.is_accepting() and self.may_follow(b"2") else b"")


@object_breaks("jump_forward_does_not_move", "jump_forward_bytes_are_forced")
class JumpsByText(ReferenceObject):
    def jump_forward(self) -> Any:
        return super().jump_forward().decode()


@object_breaks("fast_forward_does_not_move", "fast_forward_tokens_are_accepted")
class FastForwardsByATuple(ReferenceObject):
    def fast_forward_tokens(self) -> Any:
        return tuple(super().fast_forward_tokens())


@object_breaks("fast_forward_does_not_move", "fast_forward_tokens_are_accepted")
class FastForwardsByNothing(ReferenceObject):
    def fast_forward_tokens(self) -> Any:
        return super().fast_forward_tokens() or None


@object_breaks("fast_forward_does_not_move")
class MovesOnFastForward(ReferenceObject):
    def fast_forward_tokens(self) -> list[int]:
        tokens = super().fast_forward_tokens()
        self.taken += tokens
        return tokens


@object_breaks("fast_forward_tokens_are_accepted")
class FastForwardsTooFar(ReferenceObject):
    def fast_forward_tokens(self) -> list[int]:
        tokens = super().fast_forward_tokens()
        return [*tokens, ord("~")] if tokens else []
