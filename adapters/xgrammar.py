"""xgrammar: an Earley parser over byte-level rules, with token masks prepared when a grammar is compiled."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, cast

import torch
import xgrammar

from harness import Adapter, CompiledGrammar, Grammar, GrammarObject
from harness.backend import adapter_parts as parts
from harness.backend.grammar import Bitmask, Kernel, allocate_bitmask, is_allowed
from harness.backend.known_tokens import Loader, bytes_of_list
from harness.backend.vocabulary import Vocabulary

from ._xgrammar_engines import Engine, refuse_as
from ._xgrammar_forms import (
    DIALECTS,
    DOCUMENTED,
    ENGINES,
    SEPARATORS,
    compiler_call,
    layout_of,
    refusal_of,
    tokenizer_info,
)
from ._xgrammar_kernels import kernels
from ._xgrammar_releases import (
    HAS_BATCHES,
    HAS_FORCED_TOKENS,
    HAS_FORK,
    HAS_JSON,
    KEPT,
    TELLS_COMPLETION,
    compiler_options,
    schema_options,
)

NO_TENSOR = torch.empty(0)


class XgrammarObject(GrammarObject):
    def __init__(self, adapter: Xgrammar, matcher: xgrammar.GrammarMatcher) -> None:
        self.matcher = matcher
        self._adapter = adapter
        self._fill = matcher.fill_next_token_bitmask
        self._bitmask: Bitmask | None = None
        self._tensor = NO_TENSOR

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        if bitmask is not self._bitmask:
            self._tensor = self._adapter.tensor_of(bitmask)
            self._bitmask = bitmask
        self._fill(self._tensor)

    def filler(self, bitmask: Bitmask) -> Callable[[], object]:
        return functools.partial(self._fill, self._adapter.tensor_of(bitmask))

    def accept_token(self, token: int) -> bool:
        return self.matcher.accept_token(token)

    def is_accepting(self) -> bool:
        return self.matcher.is_completed() if TELLS_COMPLETION else self._may_end()

    def _may_end(self) -> bool:
        if self.matcher.is_terminated():
            return True
        vocabulary = self._adapter.vocabulary
        mask = allocate_bitmask(vocabulary.size)
        self._fill(torch.from_numpy(mask))
        return any(is_allowed(mask, end) for end in vocabulary.eos_tokens)

    def is_terminated(self) -> bool:
        return self.matcher.is_terminated()

    def rollback(self, count: int) -> None:
        self.matcher.rollback(count)

    def copy(self) -> XgrammarObject:
        if not HAS_FORK:
            raise NotImplementedError
        return XgrammarObject(self._adapter, self.matcher.fork())

    def jump_forward(self) -> bytes:
        # A str: before 0.2.9 forced text that ends inside a character raises UnicodeDecodeError, and that is
        # the library's fault to show.
        return self.matcher.find_jump_forward_string().encode()

    if HAS_FORCED_TOKENS:

        def fast_forward_tokens(self) -> list[int]:
            return self.matcher.find_jump_forward_tokens()


class XgrammarGrammar(CompiledGrammar):
    def __init__(self, adapter: Xgrammar, compiled: xgrammar.CompiledGrammar) -> None:
        self._adapter = adapter
        self._compiled = compiled

    def start(self) -> XgrammarObject:
        return XgrammarObject(self._adapter, xgrammar.GrammarMatcher(self._compiled, **KEPT))

    def serialize(self) -> bytes:
        return self._compiled.serialize_json().encode() if HAS_JSON else super().serialize()


class Xgrammar(Adapter):
    """`whitespace`, `max_whitespace` (characters in a row; 0: no bound), `open_objects` and `any_order` shape
    JSON Schema; `threads` is for compiling and for batches; `dynamic` prepares masks when they are first
    needed and not in compiling; `loader` says how the library comes to know a Hugging Face tokenizer
    (docs/tokenizers.md). Structural tags take `any_order` and `max_whitespace` only: the library keeps them
    strict (no property that the schema does not name).

    `engine` has the library as that engine does: objects are closed (both leave `strict_mode` on), what its
    own check refuses is refused, and vLLM, which takes special tokens out again, hands over bytes.
    """

    distribution = "xgrammar"
    engines = ENGINES
    dialects = DIALECTS
    documented = DOCUMENTED

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        whitespace: Literal["any", "json_dumps", "compact"] = "any",
        max_whitespace: int = 0,
        open_objects: bool = True,
        any_order: bool = False,
        threads: int = 1,
        cache: bool = False,
        dynamic: bool = False,
        loader: Loader = "library",
        engine: Engine = "none",
    ) -> None:
        super().__init__(vocabulary)
        open_objects &= engine == "none"
        loader = "bytes" if engine == "vllm" else loader
        separators = parts.option_value("whitespace", whitespace, SEPARATORS)
        self._schema_options = {
            "any_whitespace": separators is None,
            "separators": separators,
            "strict_mode": not open_objects,
            **schema_options(any_order=any_order, max_whitespace_cnt=max_whitespace),
        }
        self.layout = layout_of(separators, open_objects, any_order, max_whitespace)
        self.layout_in_tags = layout_of(None, False, any_order, max_whitespace)
        self.threads: int = parts.thread_count(threads)
        self.loader, self._tokenizer = tokenizer_info(vocabulary, loader)
        self._engine, self._cache, self._compiler_options = engine, cache, compiler_options(dynamic)
        self._named = functools.partial(tokenizer_info, vocabulary, loader)
        self._compiler = self._compiler_for(self._tokenizer)
        self.tensor_of = parts.LastBitmask(vocabulary.words, torch.from_numpy).of
        # Made on first use, because threads would not survive the fork of a worker.
        self._batch = functools.cache(lambda threads: xgrammar.BatchGrammarMatcher(threads))

    def compile(self, grammar: Grammar) -> XgrammarGrammar:
        parts.require_unicode(grammar.text)
        refuse_as(self._engine, grammar)
        method, text, options = compiler_call(grammar, self._schema_options)
        try:
            compiler = self._compiler_with_names if parts.reads_tokens(grammar) else self._compiler
            return XgrammarGrammar(self, getattr(compiler, method)(text, **options))
        except RuntimeError as error:
            if (refused := refusal_of(error)) is None:
                raise
            raise refused from error

    def _compiler_for(self, tokenizer: xgrammar.TokenizerInfo) -> xgrammar.GrammarCompiler:
        return xgrammar.GrammarCompiler(
            tokenizer, max_threads=self.threads, cache_enabled=self._cache, **self._compiler_options
        )

    @functools.cached_property
    def _compiler_with_names(self) -> xgrammar.GrammarCompiler:
        """The compiler of structural tags that name tokens; engines have two for the same reason."""
        return self._compiler_for(self._named(with_names=True)[1])

    def token_bytes(self) -> list[bytes]:
        return bytes_of_list(self._tokenizer, self.vocabulary.size)

    def script(self, grammar: Grammar) -> str:
        method, text, options = compiler_call(grammar, self._schema_options)
        given = "grammar" if text is grammar.text else repr(text)
        arguments = ", ".join([given, *(f"{name}={value}" for name, value in options.items())])
        compiler = "".join(f", {name}={value}" for name, value in self._compiler_options.items())
        return parts.script_of("xgrammar", compiler=compiler, compile_call=f"{method}({arguments})")

    def kernels(self) -> Mapping[str, Kernel]:
        return kernels()

    def fill_bitmasks(self, objects: Sequence[GrammarObject], bitmasks: Bitmask) -> None:
        if not HAS_BATCHES:
            return super().fill_bitmasks(objects, bitmasks)
        parts.require_a_row_for_each(len(objects), bitmasks)
        matchers = [grammar_object.matcher for grammar_object in cast(Sequence[XgrammarObject], objects)]
        self._batch(self.threads).batch_fill_next_token_bitmask(matchers, self.tensor_of(bitmasks))
