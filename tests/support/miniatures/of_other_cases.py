"""Adapters that are wrong of a case because of the cases before it in their process, and one that is wrong
alone too."""

from __future__ import annotations

from typing import ClassVar

from harness.backend.grammar import Grammar

from .reference import Reference, ReferenceGrammar, ReferenceObject


class RemembersByTooShortAKey(Reference):
    """Compiles a grammar once for all that begin with the same four characters."""

    remembered: ClassVar[dict[str, ReferenceGrammar]] = {}

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return self.remembered.setdefault(grammar.text[:4], super().compile(grammar))


class _RefusesB(ReferenceObject):
    def may_take(self, token: int) -> bool:
        return b"b" not in self.vocabulary.tokens[token] and super().may_take(token)


class RefusesB(Reference):
    """Refuses what has a `b`, in each case alike."""

    object_class = _RefusesB
