"""Adapters that are wrong about one token: one that a vocabulary of bytes does not have, and one that each
has."""

from __future__ import annotations

from typing import ClassVar

from harness.backend.grammar import Bitmask

from .reference import Reference, ReferenceObject


class _RefusesTheTokenName(ReferenceObject):
    def may_take(self, token: int) -> bool:
        return self.vocabulary.tokens[token] != b"name" and super().may_take(token)


class RefusesTheTokenName(Reference):
    """Right, but for one token; its bytes one after the other are taken."""

    object_class: ClassVar[type[ReferenceObject]] = _RefusesTheTokenName

    def script(self, grammar: object) -> str:
        return "print(vocabulary, walk)"


class _AllowsTheTokenX(ReferenceObject):
    def fill_bitmask(self, bitmask: Bitmask) -> None:
        super().fill_bitmask(bitmask)
        token = self.vocabulary.ids_by_bytes[b"x"]
        bitmask[token >> 5] |= 1 << (token & 31)


class AllowsTheTokenX(Reference):
    """The mask allows it everywhere; it is not taken where it may not come."""

    object_class: ClassVar[type[ReferenceObject]] = _AllowsTheTokenX
