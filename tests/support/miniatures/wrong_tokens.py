"""An adapter whose fault shows with a token that a vocabulary of bytes does not have."""

from __future__ import annotations

from typing import ClassVar

from .reference import Reference, ReferenceObject


class _RefusesTheTokenName(ReferenceObject):
    def may_take(self, token: int) -> bool:
        return self.vocabulary.tokens[token] != b"name" and super().may_take(token)


class RefusesTheTokenName(Reference):
    """Right, but for one token; its bytes one after the other are taken."""

    object_class: ClassVar[type[ReferenceObject]] = _RefusesTheTokenName

    def script(self, grammar: object) -> str:
        return "print(vocabulary, walk)"
