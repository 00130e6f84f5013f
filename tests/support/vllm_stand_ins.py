"""Backends with the methods of vLLM's structured outputs, written for the tests from the documented names,
and wrong ones.

Behind each is the reference automaton, so that what is wrong is the wrapper's alone.
"""

from __future__ import annotations

from typing import Any

import torch

from harness.backend.bridge.from_vllm import VLLMAdapter
from harness.backend.grammar import Grammar, GrammarObject
from harness.backend.vocabulary import Vocabulary
from harness.oracle.reference import Reference


class StandIn:
    """One request's grammar."""

    def __init__(self, backend: StandInBackend, inner: GrammarObject) -> None:
        self.backend, self.inner = backend, inner
        self.ended = False

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        taken = self.inner.accept_tokens(tokens)
        if taken < len(tokens):
            self.inner.rollback(taken)
            return False
        self.ended = self.inner.is_terminated()
        return True

    def rollback(self, num_tokens: int) -> None:
        self.inner.rollback(num_tokens)
        self.ended = self.inner.is_terminated()

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        self.inner.fill_bitmask(bitmask[batch_index].numpy()[: self.backend.words])

    def is_terminated(self) -> bool:
        return self.ended


class StandInBackend:
    """The engine's side; `extra` words of its masks belong to no token."""

    extra = 0

    def __init__(self, vocabulary: Vocabulary, grammar_class: type[StandIn] = StandIn) -> None:
        self.vocabulary, self.grammar_class = vocabulary, grammar_class
        self.reference = Reference(vocabulary)
        self.words = (vocabulary.size + 31) // 32

    def compile_grammar(self, request_type: object, grammar_spec: str) -> StandIn:
        dialect: Any = request_type
        try:
            inner = self.reference.compile(Grammar(dialect, grammar_spec)).start()
        except Exception as error:  # as libraries do whose wrapper has checked the request before
            raise RuntimeError(f"check failed: {error}") from error
        return self.grammar_class(self, inner)

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        return torch.full((max_num_seqs, self.words + self.extra), -1, dtype=torch.int32)


class WideBackend(StandInBackend):
    """Masks for more ids than the vocabulary has."""

    extra = 2


class SharingBackend(StandInBackend):
    """Keeps what it compiled, and gives the same object to every request."""

    def __init__(self, vocabulary: Vocabulary, grammar_class: type[StandIn] = StandIn) -> None:
        super().__init__(vocabulary, grammar_class)
        self.kept: dict[tuple[object, str], StandIn] = {}

    def compile_grammar(self, request_type: object, grammar_spec: str) -> StandIn:
        if (request_type, grammar_spec) not in self.kept:
            self.kept[request_type, grammar_spec] = super().compile_grammar(request_type, grammar_spec)
        return self.kept[request_type, grammar_spec]


class EndsOnRefusedEnd(StandIn):
    """Believes the token before it asks the grammar."""

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        taken = super().accept_tokens(request_id, tokens)
        self.ended = self.ended or not set(self.backend.vocabulary.eos_tokens).isdisjoint(tokens)
        return taken


class BreaksOnRefusal(StandIn):
    """A refusal leaves the parser in an error, in which only the end is allowed."""

    broken = False

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        self.broken = self.broken or not super().accept_tokens(request_id, tokens)
        return not self.broken

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        super().fill_bitmask(bitmask, batch_index)
        if self.broken:
            end = self.backend.vocabulary.eos_token
            bitmask[batch_index] = 0
            bitmask[batch_index, end // 32] = 1 << end % 32 if end % 32 < 31 else -(1 << 31)


class StaysEnded(StandIn):
    """Going back does not undo the end."""

    def rollback(self, num_tokens: int) -> None:
        ended = self.ended
        super().rollback(num_tokens)
        self.ended = ended


class NeverEnds(StandIn):
    """Leaves it to the engine to see the end."""

    def is_terminated(self) -> bool:
        return False


class TakesAll(StandIn):
    """Logs a refused token, and goes on."""

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        super().accept_tokens(request_id, tokens)
        return True


class AddsToMask(StandIn):
    """Sets bits, and clears none: whose mask was there before shows."""

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        before = bitmask[batch_index].clone()
        super().fill_bitmask(bitmask, batch_index)
        bitmask[batch_index] |= before


class GoesBackOneLess(StandIn):
    """Its count of tokens does not include the last."""

    def rollback(self, num_tokens: int) -> None:
        super().rollback(num_tokens - 1)


class Wrapped(VLLMAdapter):
    """The stand-in as an adapter; the request is checked as the engine checks it."""

    backend_class: type[StandInBackend] = StandInBackend
    grammar_class: type[StandIn] = StandIn

    def make_backend(self) -> StandInBackend:
        return self.backend_class(self.vocabulary, self.grammar_class)

    def request(self, grammar: Grammar) -> tuple[object, str]:
        if grammar.dialect == "structural_tag":  # as an engine's wrapper does with what its backend lacks
            raise ValueError("The backend does not support this request")
        try:
            Reference(self.vocabulary).compile(grammar)
        except Exception as error:
            raise ValueError(f"Invalid grammar specification: {error}") from error
        return grammar.dialect, grammar.text


class Unchecked(Wrapped):
    """Hands every request to the backend as it is."""

    dialects = Reference.dialects

    def request(self, grammar: Grammar) -> tuple[object, str]:
        return grammar.dialect, grammar.text


def wrapped(
    grammar_class: type[StandIn] = StandIn, backend_class: type[StandInBackend] = StandInBackend
) -> type[Wrapped]:
    """Returns an adapter class for this combination."""
    return type(
        "Stand" + grammar_class.__name__,
        (Wrapped,),
        {"grammar_class": grammar_class, "backend_class": backend_class},
    )
