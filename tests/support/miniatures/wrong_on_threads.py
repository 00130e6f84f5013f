"""Adapters that are right on one thread, and wrong on several."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from typing import ClassVar

from harness.backend.grammar import Adapter, Bitmask, Grammar

from .reference import Reference, ReferenceGrammar, ReferenceObject

MEETING_SECONDS = 0.001
"""How long what all share is in use, so that threads meet there."""


class _Shares(ReferenceObject):
    """What all objects write into, one after the other."""

    mask: ClassVar[list[Bitmask]] = []

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        super().fill_bitmask(bitmask)
        self.mask[:] = [bitmask.copy()]
        time.sleep(MEETING_SECONDS)
        bitmask[:] = self.mask[0]


class SharesAMask(Reference):
    object_class = _Shares


class _RaisesBesideOthers(ReferenceObject):
    inside: ClassVar[list[int]] = []

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        if self.inside:
            raise RuntimeError("already\n\x1b[31mborrowed")
        self.inside.append(1)
        try:
            time.sleep(MEETING_SECONDS)
            super().fill_bitmask(bitmask)
        finally:
            self.inside.clear()


class RaisesBesideOthers(Reference):
    object_class = _RaisesBesideOthers


class _RefusesOnAThread(ReferenceObject):
    def accept_token(self, token: int) -> bool:
        return super().accept_token(token) and threading.current_thread() is threading.main_thread()


class RefusesOnAThread(Reference):
    object_class = _RefusesOnAThread


class _DiesOnAThread(ReferenceObject):
    def accept_token(self, token: int) -> bool:
        if threading.current_thread() is not threading.main_thread():
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().accept_token(token)


class DiesOnAThread(Reference):
    object_class = _DiesOnAThread


class _Unsteady(ReferenceObject):
    def fill_bitmask(self, bitmask: Bitmask) -> None:
        bitmask[:] = random.getrandbits(31)


class IsNeverTheSame(Reference):
    object_class = _Unsteady


class MixesUpCompiles(Reference):
    """Is wrong only where two compile at once."""

    under_way: ClassVar[list[Grammar]] = []

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        self.under_way.append(grammar)
        try:
            time.sleep(MEETING_SECONDS)
            is_alone = len(self.under_way) == 1
            return super().compile(grammar if is_alone else Grammar("choice", '["a", "b"]'))
        finally:
            time.sleep(MEETING_SECONDS)
            self.under_way.remove(grammar)


EVERY_WAY = {"objects of one grammar", "objects of several grammars", "objects beside compiles"}

WRONG: dict[type[Adapter], tuple[set[str], str]] = {
    SharesAMask: (EVERY_WAY, "allows"),
    RaisesBesideOthers: (EVERY_WAY, "raises RuntimeError"),
    RefusesOnAThread: (EVERY_WAY, "is refused"),
    MixesUpCompiles: ({"objects beside compiles"}, "allows"),
}
"""Each with the ways in which it is wrong, and a word of what is said."""
