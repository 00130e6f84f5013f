"""Backends that are right while one object goes on by itself, and wrong in a decode loop, each in one way."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np

from harness.backend.grammar import Adapter, Bitmask
from miniatures.wrong_jumps import (
    ExactObject,
    GivesText,
    GivesTokensThatAreNone,
    HasStringsOnly,
    JumpsPastAChoice,
    RollsBackOneTooFew,
    registers,
)

DECODERS: dict[type[Adapter], dict[str, set[str]]] = {}
"""Each wrong adapter, and the strategies under which something is found, with the causes."""


spoils = partial(registers, DECODERS)


@spoils(stepwise="refused", speculative="refused")
class FillsForWhoMovedLast(ExactObject):
    """One buffer for all objects of the process."""

    last: ClassVar[ExactObject | None] = None

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        type(self).last = self

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        last = type(self).last
        assert last is not None
        ExactObject.fill_bitmask(last, bitmask)

    def accept_token(self, token: int) -> bool:
        type(self).last = self
        return super().accept_token(token)


@spoils(stepwise="fill")
class HasRoomForTwo(ExactObject):
    """A third object takes the place of the first."""

    alive: ClassVar[list[ExactObject]] = []

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.alive[:] = [*self.alive[-1:], self]

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        if not any(other is self for other in self.alive):
            raise RuntimeError("evicted")
        super().fill_bitmask(bitmask)


for wrong, strategies in {
    JumpsPastAChoice: {"jump_forward": "refused"},
    HasStringsOnly: {"jump_forward": "jump_forward"},
    GivesText: {"jump_forward": "jump_forward"},
    GivesTokensThatAreNone: {"jump_forward": "jump_forward"},
    RollsBackOneTooFew: {"jump_forward": "accept refused", "speculative": "accept", "interleaved": "accept"},
}.items():
    spoils(**strategies)(wrong)


@spoils(speculative="refused")
class IsBehindAfterALongRollback(ExactObject):
    """Going back by more than one token leaves the mask of that place, until two tokens have
    been accepted.
    """

    stale: Bitmask | None = None
    accepted = 0

    def rollback(self, count: int) -> None:
        super().rollback(count)
        self.stale = None
        if count > 1:
            self.stale = np.zeros((self.vocabulary.size + 31) // 32, dtype=np.int32)
            super().fill_bitmask(self.stale)
            self.accepted = 0

    def accept_token(self, token: int) -> bool:
        accepted = super().accept_token(token)
        self.accepted += accepted
        return accepted

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        if self.stale is None or self.accepted > 1:
            super().fill_bitmask(bitmask)
        else:
            bitmask[:] = self.stale
