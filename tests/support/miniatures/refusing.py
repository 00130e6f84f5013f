"""A backend that says how it writes JSON, and takes one text whatever the grammar."""

from __future__ import annotations

from harness.backend.grammar import Grammar
from harness.oracle.reference import Reference, ReferenceGrammar


class Refuses(Reference):
    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return super().compile(Grammar("regex", "never"))
