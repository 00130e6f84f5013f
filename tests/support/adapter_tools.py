"""What the tests of the single adapters share: an adapter over bytes, and questions to its objects."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from harness.backend.contract import check_adapter
from harness.backend.grammar import Adapter, Dialect, Grammar, GrammarObject, allocate_bitmask, allowed_tokens
from harness.backend.vocabulary import Vocabulary, byte_vocabulary

BYTES = byte_vocabulary()
AB, KANJI, HALF_KANJI, AB_AGAIN, EMPTY, EOS, SPECIAL, PADDING = range(256, 264)
SMALL = Vocabulary(
    name="small",
    tokens=(*BYTES.tokens[:256], b"ab", "日".encode(), "日".encode()[:2], b"ab", b"", b"", b"", b""),
    eos_tokens=(EOS,),
    special_tokens={EOS: "</s>", SPECIAL: "[INST]"},
    padding_tokens=frozenset({PADDING}),
)
TAG = json.dumps(
    {
        "triggers": ["<f"],
        "structures": [{"begin": "<f>", "schema": {"properties": {"a": {"type": "integer"}}}, "end": "</f>"}],
    }
)
POINT = (
    '{"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}, "required": '
    '["x"]}'
)


def maker(module: str, name: str) -> Callable[..., Adapter]:
    """Makes the adapter of that module and class, over bytes unless told otherwise."""

    def make(vocabulary: Vocabulary = BYTES, **options: Any) -> Adapter:
        adapter: Adapter = getattr(import_module(f"harness.adapters.{module}"), name)(vocabulary, **options)
        return adapter

    return make


@dataclass(frozen=True)
class Tools:
    """Questions to the objects of one adapter."""

    make: Callable[..., Adapter]

    def start(self, dialect: Dialect, text: str, adapter: Adapter | None = None) -> GrammarObject:
        return (adapter or self.make()).compile(Grammar(dialect, text)).start()

    def holds(self, dialect: Dialect, text: str, output: str, **options: Any) -> bool:
        """Is the output, byte by byte and with its end, in the language?"""
        grammar_object = self.start(dialect, text, self.make(**options))
        tokens = list(output.encode())
        return grammar_object.accept_tokens(tokens) == len(tokens) and grammar_object.accept_token(
            BYTES.eos_token
        )


def failed(adapter: Adapter) -> set[str]:
    """Returns the checks of the contract that do not hold."""
    return {result.check for result in check_adapter(adapter) if result.status in ("failed", "error")}


def allowed(grammar_object: GrammarObject, vocabulary: Vocabulary = BYTES) -> set[int]:
    """Returns the ids that the mask allows."""
    return {token for token in bits(grammar_object, vocabulary) if token < vocabulary.size}


def bits(grammar_object: GrammarObject, vocabulary: Vocabulary = BYTES) -> set[int]:
    """Returns all bits of the mask that are set, also those behind the vocabulary in the last word."""
    bitmask = allocate_bitmask(vocabulary.size)
    grammar_object.fill_bitmask(bitmask)
    return set(allowed_tokens(bitmask, 32 * len(bitmask)).tolist())
