"""llguidance: an Earley parser over a lexer of regex derivatives, which computes a mask by walking a trie of
the tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib.metadata import version
from typing import Literal, cast

from llguidance import LLExecutor, LLMatcher
from packaging.version import Version

from harness import Adapter, CompiledGrammar, Grammar, GrammarObject
from harness.backend import adapter_parts as parts
from harness.backend.grammar import Bitmask, Kernel
from harness.backend.known_tokens import Loader, bytes_of_decoder
from harness.backend.vocabulary import Vocabulary

from ._llguidance_forms import (
    DOCUMENTED,
    ENGINES,
    KNOWS_ONE_END,
    UNSUPPORTED,
    grammar_text,
    ll_tokenizer,
    whitespace_options,
)


class LlguidanceObject(GrammarObject):
    def __init__(self, adapter: Llguidance, matcher: LLMatcher) -> None:
        self.matcher = matcher
        self._adapter = adapter
        self._ends = adapter.vocabulary.eos_tokens
        self._is_terminated = False
        self._is_end_unrecorded = False
        self._fill = matcher.unsafe_compute_mask_ptr
        self._is_error = matcher.is_error
        self._bitmask: Bitmask | None = None
        self._address = 0
        self._bytes = adapter.row_bytes

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        if bitmask is not self._bitmask:
            self._address = self._adapter.address_of(bitmask)
            self._bitmask = bitmask
        self._fill(self._address, self._bytes)
        if self._is_error():  # a failed matcher allows end-of-sequence and says nothing
            raise self.fault()

    def filler(self, bitmask: Bitmask) -> Callable[[], object]:
        # A failed matcher refuses whatever is accepted next, so that its fault is not lost.
        return partial(self._fill, self._adapter.address_of(bitmask), self._bytes)

    def accept_token(self, token: int) -> bool:
        # Not consume_token: a refusal there breaks the matcher for good.
        if self.matcher.try_consume_tokens([token]):
            if token in self._ends:
                self._is_terminated = True
            return True
        return self._accept_refused(token)

    def accept_tokens(self, tokens: Sequence[int]) -> int:
        count = self.matcher.try_consume_tokens(list(tokens))
        if count and tokens[count - 1] in self._ends:
            self._is_terminated = True
        if count < len(tokens) and self._accept_refused(tokens[count]):
            count += 1
        return count

    def _accept_refused(self, token: int) -> bool:
        """Accepts end-of-sequence where the language is exhausted, and returns whether it did.

        There the library stops by itself, and its mask is end-of-sequence. `try_consume_tokens` refuses it,
        and `consume_token` takes it without recording it, so that a rollback must not count it.
        """
        if self._is_error():
            raise self.fault()
        if token not in self._ends or self._is_terminated or not self.matcher.is_stopped():
            return False
        self._is_terminated = self._is_end_unrecorded = self.matcher.consume_token(token)
        return self._is_terminated

    def is_accepting(self) -> bool:
        return self.matcher.is_accepting()

    def is_terminated(self) -> bool:
        return self._is_terminated

    def rollback(self, count: int) -> None:
        recorded = count
        if count and self._is_terminated:
            recorded -= self._is_end_unrecorded
            self._is_terminated = self._is_end_unrecorded = False
        if not self.matcher.rollback(recorded):
            raise self.fault()

    def copy(self) -> LlguidanceObject:
        clone = type(self)(self._adapter, self.matcher.deep_copy())
        clone._is_terminated = self._is_terminated
        clone._is_end_unrecorded = self._is_end_unrecorded
        return clone

    def jump_forward(self) -> bytes:
        forced = self.matcher.compute_ff_bytes()
        if self._is_error():
            raise self.fault()
        return forced

    def fast_forward_tokens(self) -> list[int]:
        forced = self.matcher.compute_ff_tokens()
        if self._is_error():
            raise self.fault()
        return forced

    def fault(self) -> RuntimeError:
        """Returns the matcher's error, without the dump of its state that follows."""
        return RuntimeError(self.matcher.get_error().partition("\n<state>")[0])


class StoppedObject(LlguidanceObject):
    """An object of a release before 1.1, in which a matcher that stopped by itself breaks on whatever it is
    given, end-of-sequence too."""

    def accept_token(self, token: int) -> bool:
        if self._is_error() or not self.matcher.is_stopped():
            return super().accept_token(token)
        if token not in self._ends or self._is_terminated:
            return False
        self._is_terminated = self._is_end_unrecorded = True
        return True

    def accept_tokens(self, tokens: Sequence[int]) -> int:
        return next(
            (place for place, token in enumerate(tokens) if not self.accept_token(token)), len(tokens)
        )


OBJECT = StoppedObject if Version(version("llguidance")) < Version("1.1") else LlguidanceObject


class LlguidanceGrammar(CompiledGrammar):
    def __init__(self, adapter: Llguidance, text: str, matcher: LLMatcher) -> None:
        self._adapter = adapter
        self._text = text
        self._matcher = matcher

    def start(self) -> LlguidanceObject:
        is_shared = self._adapter.shared_lexer
        matcher = self._matcher.deep_copy() if is_shared else self._adapter.new_matcher(self._text)
        return OBJECT(self._adapter, matcher)


class Llguidance(Adapter):
    """`whitespace` and `max_whitespace` (characters in a row; 0: no bound) shape JSON Schema, alone and in
    structural tags; `threads` is for batches; `loader` is for Hugging Face tokenizers (docs/tokenizers.md).
    Objects of one grammar are copies that share a lexer: what one walk has explored is warm for the next, and
    batches on several threads wait for its lock. Without `shared_lexer`, `start` parses the grammar anew, as
    vLLM and SGLang do.
    """

    distribution = "llguidance"
    engines = ENGINES
    dialects = frozenset({"json_schema", "regex", "ebnf", "lark", "choice", "structural_tag"})
    documented = DOCUMENTED
    knows_one_end = KNOWS_ONE_END

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        whitespace: Literal["any", "json_dumps", "compact"] = "any",
        max_whitespace: int = 0,
        shared_lexer: bool = True,
        threads: int = 1,
        loader: Loader = "library",
    ) -> None:
        super().__init__(vocabulary)
        self._options, self.layout = whitespace_options(whitespace, max_whitespace)
        self.layout_in_tags = self.layout
        self.shared_lexer = shared_lexer
        self.threads: int = threads
        self.row_bytes = 4 * vocabulary.words
        self.address_of = parts.LastBitmask(vocabulary.words, lambda bitmask: int(bitmask.ctypes.data)).of
        self.loader, self._tokenizer = ll_tokenizer(vocabulary, loader)
        # Made on first use, because threads would not survive the fork of a worker.
        self._executor = cache(LLExecutor)

    def compile(self, grammar: Grammar) -> LlguidanceGrammar:
        parts.require_unicode(grammar.text)
        text = grammar_text(grammar, self._options)
        matcher = self.new_matcher(text)
        if matcher.is_error():
            raise parts.refusal(matcher.get_error(), UNSUPPORTED)
        return LlguidanceGrammar(self, text, matcher)

    def new_matcher(self, text: str) -> LLMatcher:
        return LLMatcher(self._tokenizer, text, log_level=0)

    def token_bytes(self) -> list[bytes]:
        return bytes_of_decoder(self._tokenizer, self.vocabulary.size)

    def script(self, grammar: Grammar) -> str:
        return parts.script_of("llguidance", grammar_text=repr(grammar_text(grammar, self._options)))

    def kernels(self) -> Mapping[str, Kernel]:
        return parts.kernels_in_torch_and_numpy("llguidance")

    def fill_bitmasks(self, objects: Sequence[GrammarObject], bitmasks: Bitmask) -> None:
        parts.require_a_row_for_each(len(objects), bitmasks)
        own_objects = cast(Sequence[LlguidanceObject], objects)
        address = self.address_of(bitmasks)
        if self.threads == 1 or len(own_objects) < 2:  # the executor's hand-over costs more than it saves
            for row, grammar_object in enumerate(own_objects):
                grammar_object.matcher.unsafe_compute_mask_ptr(address + row * self.row_bytes, self.row_bytes)
        else:
            rows = [(grammar_object.matcher, row) for row, grammar_object in enumerate(own_objects)]
            executor = self._executor(self.threads)
            executor.unsafe_compute_mask_ptr(rows, address, self.row_bytes, len(rows))
        for grammar_object in own_objects:
            if grammar_object.matcher.is_error():
                raise grammar_object.fault()
