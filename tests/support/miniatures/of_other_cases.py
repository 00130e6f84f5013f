"""Adapters that are wrong of a case because of the cases before it in their process, and one that is wrong
alone too."""

from __future__ import annotations

import os
import signal
import time
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


class WorseAlone(RefusesB):
    """Refuses what has a `b`; where such a grammar is the first one of its process, it does what the
    environment says."""

    served: ClassVar[list[str]] = []

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        is_first = not self.served
        self.served.append(grammar.text)
        if not is_first or "b" not in grammar.text:
            return super().compile(grammar)
        alone = os.environ["MINIATURE_ALONE"]
        if alone == "crash":
            os.abort()
        elif alone == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif alone == "hang":
            time.sleep(60)
        return Reference(self.vocabulary).compile(Grammar("regex", "[abdx]+"))
