"""What stands for a backend whose own loader refuses a vocabulary."""

from __future__ import annotations

from harness.backend.grammar import Adapter, CompiledGrammar, Grammar, UnsupportedGrammar
from harness.backend.vocabulary import Vocabulary


def declining(adapter_class: type[Adapter], vocabulary: Vocabulary, reason: str) -> Adapter:
    """Returns an adapter of the backend that declines every grammar, and gives the reason."""

    class _Declining(adapter_class):  # type: ignore[misc, valid-type]
        refused_vocabulary = reason
        loader = "library"

        def __init__(self) -> None:
            Adapter.__init__(self, vocabulary)

        def compile(self, grammar: Grammar) -> CompiledGrammar:
            raise UnsupportedGrammar(reason)

        def token_bytes(self) -> None:
            return None

    adapter: Adapter = _Declining()
    return adapter
