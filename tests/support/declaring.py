"""A right backend that may write in another layout than it says, or by another schema than it is given."""

from __future__ import annotations

import json
from typing import Any

from harness.backend.grammar import Grammar
from harness.backend.layout import EVERY_SPELLING, Layout
from harness.backend.vocabulary import Vocabulary, byte_vocabulary
from harness.oracle.language import documents_of
from harness.oracle.reference import Reference, ReferenceGrammar

BYTES = byte_vocabulary()


class Declaring(Reference):
    """Writes in one layout, and says that it writes in another."""

    writes: Layout = EVERY_SPELLING
    """The layout in which it writes."""
    schema: Any = None
    """What it compiles instead of the schema that it is given; None is that schema."""

    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        text = grammar.text if self.schema is None else json.dumps(self.schema)
        return ReferenceGrammar(self, documents_of(text, None, self.asserts_formats, layout=self.writes))


def declaring(
    declared: Layout,
    writes: Layout | None = None,
    schema: Any = None,
    vocabulary: Vocabulary = BYTES,
    kind: type[Declaring] = Declaring,
) -> Declaring:
    adapter = kind(vocabulary)
    adapter.layout, adapter.writes, adapter.schema = declared, writes or declared, schema
    return adapter
