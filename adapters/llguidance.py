"""llguidance: an Earley parser over a lexer of regex derivatives, which computes a mask by walking a trie of
the tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Literal, cast

from llguidance import LLExecutor, LLMatcher

from harness import Adapter, CompiledGrammar, Grammar, GrammarObject, UnsupportedGrammar
from harness.backend import adapter_parts as parts
from harness.backend.grammar import Bitmask, Kernel
from harness.backend.known_tokens import Loader, bytes_of_decoder
from harness.backend.vocabulary import Vocabulary

from ._llguidance_forms import (
    DOCUMENTED,
    ENGINES,
    KNOWS_ONE_END,
    PANIC,
    UNSUPPORTED,
    grammar_text,
    ll_tokenizer,
    whitespace_options,
)
from ._llguidance_objects import OBJECT, LlguidanceObject


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
    vLLM and SGLang do. With `engine=sglang` a choice is refused, which that engine has not.
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
        engine: Literal["none", "sglang"] = "none",
    ) -> None:
        super().__init__(vocabulary)
        self._engine = engine
        self._options, self.layout = whitespace_options(whitespace, max_whitespace)
        self.layout_in_tags = self.layout
        self.shared_lexer = shared_lexer
        self.threads: int = parts.thread_count(threads)
        self.row_bytes = 4 * vocabulary.words
        self.address_of = parts.LastBitmask(vocabulary.words, lambda bitmask: int(bitmask.ctypes.data)).of
        self.loader, self._tokenizer = ll_tokenizer(vocabulary, loader)
        # Made on first use, because threads would not survive the fork of a worker.
        self._executor = cache(LLExecutor)

    def compile(self, grammar: Grammar) -> LlguidanceGrammar:
        parts.require_unicode(grammar.text)
        if self._engine == "sglang" and grammar.dialect == "choice":
            raise UnsupportedGrammar("SGLang 0.5.23 has no requests for a choice")
        text = grammar_text(grammar, self._options)
        matcher = self.new_matcher(text)
        if matcher.is_error():
            reason = matcher.get_error()
            if reason.startswith(PANIC):
                raise RuntimeError(reason.partition("\n<backtrace>")[0])
            raise parts.refusal(reason, UNSUPPORTED)
        return LlguidanceGrammar(self, text, matcher)

    def new_matcher(self, text: str) -> LLMatcher:
        return LLMatcher(self._tokenizer, text, log_level=0)

    def token_bytes(self) -> list[bytes]:
        return bytes_of_decoder(self._tokenizer, self.vocabulary.size)

    def script(self, grammar: Grammar) -> str:
        text = repr(grammar_text(grammar, self._options))
        if grammar.dialect == "ebnf":  # the fault may be in the library's own conversion
            text = "llguidance.gbnf_to_lark.gbnf_to_lark(grammar)"
        return parts.script_of("llguidance", grammar_text=text)

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
