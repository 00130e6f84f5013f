"""A structured-output backend written for vLLM's engine (version 1) becomes an adapter.

    class Foo(VLLMAdapter):
        distribution = "foo"

        def make_backend(self) -> VLLMBackend:
            return FooBackend(config, tokenizer, self.vocabulary.size)

        def request(self, grammar: Grammar) -> tuple[object, str]:
            return REQUEST_TYPES[grammar.dialect], grammar.text

A backend is known by its methods only; vLLM need not be installed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from harness.backend.bridge.twins import NO_TWINS, Twins
from harness.backend.grammar import (
    DIALECTS,
    Adapter,
    Bitmask,
    CompiledGrammar,
    Dialect,
    Grammar,
    GrammarObject,
    InvalidGrammar,
    UnsupportedGrammar,
    is_allowed,
)
from harness.backend.vocabulary import Vocabulary

if TYPE_CHECKING:
    import torch

REQUEST = "request"
"""The id under which a request's tokens are accepted; the interface asks for one, for messages."""

CANNOT = ("not support", "unsupported", "not implement", "invalid request type", "unimplemented")
"""The words by which the engine's checks of a request say that the grammar is right, but not for this
backend."""


class VLLMGrammar(Protocol):
    """What we call of a `StructuredOutputGrammar`: one request's grammar."""

    def accept_tokens(self, request_id: str, tokens: list[int], /) -> bool: ...
    def rollback(self, num_tokens: int, /) -> None: ...
    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int, /) -> None: ...
    def is_terminated(self) -> bool: ...


class VLLMBackend(Protocol):
    """What we call of a `StructuredOutputBackend`."""

    def compile_grammar(self, request_type: Any, grammar_spec: str, /) -> VLLMGrammar: ...
    def allocate_token_bitmask(self, max_num_seqs: int, /) -> torch.Tensor: ...


class VLLMAdapter(Adapter):
    """A backend with vLLM's methods, as an adapter; a subclass says how to make it, and what a request for a
    grammar is.

    A request is a grammar of its own there, so every object is compiled; what a backend keeps between
    requests it keeps here too.
    """

    distribution: ClassVar[str] = ""
    dialects: ClassVar[frozenset[Dialect]] = frozenset(DIALECTS)
    twins: Twins = NO_TWINS
    """Ids that the backend's tokenizer cannot have beside others; set in `make_backend`."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._backend = self.make_backend()
        # The engine hands the ids with which a request may end to the backends that take them.
        if "stop_token_ids" in signature(self._backend.compile_grammar).parameters:
            self._ends = {"stop_token_ids": {*self.vocabulary.eos_tokens}}
        else:
            self._ends = {}
            self.take_one_end(self.knows_one_end or "compile_grammar takes no stop_token_ids.")

    @abstractmethod
    def make_backend(self) -> VLLMBackend:
        """Returns the backend, for `self.vocabulary`."""

    @abstractmethod
    def request(self, grammar: Grammar) -> tuple[Any, str]:
        """Returns what `compile_grammar` takes: the type of the request and its text, once the engine has
        checked the request.

        Raises ValueError where the engine answers that the request is wrong.
        """

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        try:
            request = self.request(grammar)
            self.grammar_of(request)
        except ValueError as error:  # whatever else escapes is no answer to a request
            message = str(error)
            says_cannot = any(words in message.lower() for words in CANNOT)
            raise (UnsupportedGrammar if says_cannot else InvalidGrammar)(message) from error
        return _Compiled(self, request)

    def grammar_of(self, request: tuple[Any, str]) -> VLLMGrammar:
        """Returns the backend's grammar of one request."""
        compile_grammar: Callable[..., VLLMGrammar] = self._backend.compile_grammar
        return compile_grammar(*request, **self._ends)

    def new_bitmask(self) -> torch.Tensor:
        """Returns the backend's own bitmask of one row."""
        return self._backend.allocate_token_bitmask(1)


class _Object(GrammarObject):
    def __init__(self, compiled: _Compiled) -> None:
        import torch

        self._compiled = compiled
        self._grammar = compiled.adapter.grammar_of(compiled.request)
        self._row = compiled.adapter.new_bitmask()
        self._from_numpy: Callable[[Bitmask], torch.Tensor] = torch.from_numpy
        self._dtype = self._row.numpy().dtype
        self._array: Bitmask | None = None
        self._view = self._row
        self._accepted = 0

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        if self.is_terminated():  # the engine asks no more
            bitmask.fill(0)
        elif bitmask is self._array:
            self._grammar.fill_bitmask(self._view, 0)
            self._compiled.twins.spread(bitmask)
        elif bitmask.dtype == self._dtype and bitmask.shape == self._row.shape[1:] and bitmask.flags.carray:
            self._array, self._view = bitmask, self._from_numpy(bitmask).unsqueeze(0)
            self._grammar.fill_bitmask(self._view, 0)
            self._compiled.twins.spread(bitmask)
        elif bitmask.dtype != self._dtype:
            raise ValueError(f"a bitmask is an array of {self._dtype}, not of {bitmask.dtype}")
        else:
            words = self._filled()
            bitmask.fill(0)  # ids which the backend has no place for are forbidden
            shared = min(len(bitmask), len(words))
            bitmask[:shared] = words[:shared]
            self._compiled.twins.spread(bitmask)

    def accept_token(self, token: int) -> bool:
        if self.is_terminated():
            return False
        taken = bool(self._grammar.accept_tokens(REQUEST, [self._compiled.twins.first.get(token, token)]))
        self._accepted += taken
        return taken

    def is_accepting(self) -> bool:
        # The interface cannot say it, except by a bit of end-of-sequence.
        return not self.is_terminated() and is_allowed(self._filled(), self._compiled.vocabulary.eos_token)

    def is_terminated(self) -> bool:
        return bool(self._grammar.is_terminated())

    def rollback(self, count: int) -> None:
        if not 0 <= count <= self._accepted:
            raise ValueError(f"cannot roll back {count} of {self._accepted} tokens")
        if count:
            self._grammar.rollback(count)
            self._accepted -= count

    def _filled(self) -> Bitmask:
        self._grammar.fill_bitmask(self._row, 0)
        words: Bitmask = self._row[0].numpy()
        return words


class _Compiled(CompiledGrammar):
    def __init__(self, adapter: VLLMAdapter, request: tuple[Any, str]) -> None:
        self.adapter = adapter
        self.twins = adapter.twins
        self.request = request
        self.vocabulary = adapter.vocabulary

    def start(self) -> GrammarObject:
        return _Object(self)
