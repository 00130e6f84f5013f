"""A vocabulary with several ids of end-of-sequence, adapters that are wrong about the second of them, and the
checks that must notice."""

from __future__ import annotations

from dataclasses import replace

from harness.backend.grammar import Adapter, Bitmask
from harness.backend.vocabulary import Vocabulary

from .reference import Reference, ReferenceObject, small_vocabulary
from .registering import registering
from .wrong_states import flip

FIRST, SECOND = 257, 258
"""The ids `</s>` and `<tool>` of the small vocabulary."""

MUTANTS: dict[type[Adapter], frozenset[str]] = {}
"""Each wrong adapter, and the names of exactly the checks that fail on it: of the contract, and on cases."""


object_breaks, breaks = registering(MUTANTS)


def several_ends() -> Vocabulary:
    """Returns the small vocabulary, in which an output may end with either of two ids."""
    return replace(small_vocabulary(), name="several ends", eos_tokens=(FIRST, SECOND))


@object_breaks(
    "each_id_of_end_of_sequence_ends_alike",
    "end_of_sequence_is_accepted_exactly_when_accepting",
    "end_of_sequence_is_allowed_exactly_when_accepting",
    "end_of_sequence_is_refused_before_the_end",
    "the_mask_is_exact",
    "the_mask_says_what_accept_does",
)
class AllowsTheSecondTooEarly(ReferenceObject):
    """Behind the first token."""

    def may_take(self, token: int) -> bool:
        return (token == SECOND and bool(self.taken)) or super().may_take(token)


@object_breaks(
    "each_id_of_end_of_sequence_ends_alike",
    "end_of_sequence_is_accepted_exactly_when_accepting",
    "end_of_sequence_is_allowed_exactly_when_accepting",
    "the_mask_is_exact",
    "the_mask_says_what_accept_does",
)
class NeverAllowsTheSecond(ReferenceObject):
    def may_take(self, token: int) -> bool:
        return token != SECOND and super().may_take(token)


@object_breaks(
    "end_of_sequence_is_allowed_exactly_when_accepting",
    "the_mask_is_exact",
    "the_mask_says_what_accept_does",
    "the_mask_says_what_accept_token_does",
)
class ForbidsTheSecondInItsMask(ReferenceObject):
    """And takes it nevertheless."""

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        super().fill_bitmask(bitmask)
        if self.is_accepting():
            flip(bitmask, SECOND)


@object_breaks(
    "each_id_of_end_of_sequence_ends_alike",
    "a_copy_of_an_ended_object_has_ended",
    "a_terminated_object_takes_nothing",
    "end_of_sequence_terminates",
)
class DoesNotTerminateWithTheSecond(ReferenceObject):
    def is_terminated(self) -> bool:
        return self.taken[-1:] == [FIRST]


@object_breaks(
    "a_copy_of_an_ended_object_has_ended",
    "rollback_past_end_of_sequence_restores",
    "rollback_takes_back_the_end",
)
class LosesTheSecondOnRollback(ReferenceObject):
    """It takes the second back together with the token before it."""

    def rollback(self, count: int) -> None:
        super().rollback(count + (self.taken[-1:] == [SECOND] and len(self.taken) > count))


class TakesBoth(ReferenceObject):
    """Ends with the second id too, whatever the vocabulary says."""

    def may_take(self, token: int) -> bool:
        return super().may_take(FIRST if token == SECOND else token)

    def has_ended(self) -> bool:
        return self.taken[-1:] in ([FIRST], [SECOND])


@breaks(
    "special_and_padding_tokens_are_never_allowed",
    "a_token_without_text_is_never_allowed",
    "the_mask_is_exact",
)
class KnowsMoreThanItSays(Reference):
    """It says that it knows one id."""

    knows_one_end = "The toy takes one id (its manual)."
    object_class = TakesBoth


class KnowsOneEnd(Reference):
    """Is right, with a library that takes one id."""

    knows_one_end = "The toy takes one id (its manual)."
