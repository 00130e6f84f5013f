"""Adapters of READING that leave its documents, or their own layout, in one way each."""

from __future__ import annotations

import json

from harness.backend.grammar import Grammar
from harness.backend.layout import EVERY_SPELLING, Layout
from harness.oracle.language import documents_of
from harness.oracle.reference import Reference, ReferenceGrammar

from .wrong_walks import READING, Compact, Reading

NO_SPACE = Layout(separators=(b"", b""), is_surrounded=False)


class OpensNoDocument(Reading):
    """Allows `{x`, behind which it allows nothing but blanks, and never an end."""

    def pattern(self) -> bytes:
        return super().pattern() + rb"|\{x *(?!)"


class OpensAnotherName(Reading):
    """Allows the name `z`, which the schema forbids, and never ends it."""

    def pattern(self) -> bytes:
        return super().pattern() + rb'|\{"z *(?!)'


class FreeToBeCompact(Compact):
    """Allows no white space, and says so."""

    layout = NO_SPACE


class PromisesSpace(Compact):
    """Allows no white space, and says that it does."""

    layout = EVERY_SPELLING


class Exact(Reference):
    """Allows exactly the documents in every spelling."""


class ForgetsRequiredNames(Reference):
    """Has no `required`, whatever the schema says."""

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        schema = {**json.loads(grammar.text), "required": []}
        return ReferenceGrammar(self, documents_of(json.dumps(schema), layout=self.layout))


class Promising(ForgetsRequiredNames):
    """Forbids exponents, and says that every spelling can be written; what it allows is right."""

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        language = documents_of(grammar.text, layout=Layout(exponents="none"))
        return ReferenceGrammar(self, language)


class TakesAnything(Reference):
    """Allows every document of READING without its bound on names, for a schema that has no document."""

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        return ReferenceGrammar(self, documents_of(json.dumps({**READING, "additionalProperties": True})))
