"""The loops that anyone would write: compile, new matcher, fill, accept, with each library's own calls and
nothing else.

Each function here takes a vocabulary and returns two functions. The first compiles a JSON Schema, and returns
None where the library refuses it. The second walks a text's tokens and end-of-sequence along what was
compiled, appends the nanoseconds of every fill to a list, and returns the place of the first token that is
refused: the number of tokens where that is end-of-sequence, None where nothing is.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from harness.backend.registry import installed_version


def plain_llguidance(vocabulary: Any) -> Any:
    from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

    class Tokenizer:
        def __init__(self) -> None:
            self.eos_token_id, self.bos_token_id = vocabulary.eos_token, None
            self.special_token_ids = list(vocabulary.special_tokens)
            self.tokens = list(vocabulary.tokens)
            for token, name in vocabulary.special_tokens.items():
                self.tokens[token] = name.encode()

        def __call__(self, text: Any) -> list[int]:
            return list(vocabulary.encode(text.encode() if isinstance(text, str) else text))

    tokenizer = LLTokenizer(TokenizerWrapper(Tokenizer()))
    mask = np.zeros((vocabulary.size + 31) // 32, dtype=np.int32)
    address, size = mask.ctypes.data, mask.nbytes
    eos = vocabulary.eos_token

    def compile_schema(text: str) -> Any:
        matcher = LLMatcher(tokenizer, LLMatcher.grammar_from_json_schema(text), log_level=0)
        return None if matcher.is_error() else matcher

    def walk(grammar: Any, tokens: list[int], fills: list[int]) -> int | None:
        matcher = grammar.deep_copy()
        for place, token in enumerate([*tokens, eos]):
            start = time.perf_counter_ns()
            matcher.unsafe_compute_mask_ptr(address, size)
            fills.append(time.perf_counter_ns() - start)
            if not int(mask[token // 32]) >> token % 32 & 1:
                return place
            # A matcher that has come to its only end allows end-of-sequence, and consumes nothing more.
            if token != eos and not matcher.try_consume_tokens([token]):
                return place
        return None

    return compile_schema, walk


def plain_xgrammar(vocabulary: Any) -> Any:
    import xgrammar

    info = xgrammar.TokenizerInfo(
        list(vocabulary.tokens),
        xgrammar.VocabType.RAW,
        vocab_size=vocabulary.size,
        stop_token_ids=[vocabulary.eos_token],
    )
    compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
    mask = xgrammar.allocate_token_bitmask(1, vocabulary.size)
    eos = vocabulary.eos_token

    def compile_schema(text: str) -> Any:
        try:
            return compiler.compile_json_schema(text, strict_mode=False)
        except RuntimeError:
            return None

    def walk(grammar: Any, tokens: list[int], fills: list[int]) -> int | None:
        matcher = xgrammar.GrammarMatcher(grammar)
        for place, token in enumerate([*tokens, eos]):
            start = time.perf_counter_ns()
            matcher.fill_next_token_bitmask(mask)
            fills.append(time.perf_counter_ns() - start)
            if not (int(mask[0, token // 32]) >> token % 32 & 1 and matcher.accept_token(token)):
                return place
        return None

    return compile_schema, walk


def plain_outlines_core(vocabulary: Any) -> Any:
    """With the fill of the library's own kernels, which looks its mask up each time."""
    from outlines_core.kernels.torch import allocate_token_bitmask, fill_next_token_bitmask

    tensor = allocate_token_bitmask(vocabulary.size)
    return outlines_core_loop(
        vocabulary, tensor.numpy()[0], lambda guide: partial(fill_next_token_bitmask, guide, tensor)
    )


def plain_outlines_core_pointers(vocabulary: Any) -> Any:
    """With what that fill comes to: a write to an address."""
    mask = np.zeros((vocabulary.size + 31) // 32, dtype=np.int32)
    return outlines_core_loop(
        vocabulary, mask, lambda guide: partial(guide.write_mask_into, mask.ctypes.data, mask.size, 4)
    )


def outlines_core_loop(vocabulary: Any, mask: Any, filler: Callable[[Any], Callable[[], object]]) -> Any:
    from outlines_core import Guide, Index, json_schema
    from outlines_core import Vocabulary as TokenMap

    ids: dict[bytes, list[int]] = {}
    for token, text in enumerate(vocabulary.tokens):
        if text and token not in vocabulary.special_tokens:
            ids.setdefault(text, []).append(token)
    token_map = TokenMap(vocabulary.eos_token, ids)
    eos = vocabulary.eos_token

    def compile_schema(text: str) -> Any:
        try:
            return Index(json_schema.build_regex_from_schema(text, r"[\n\t\r ]*"), token_map)
        except (ValueError, TypeError):
            return None

    def walk(grammar: Any, tokens: list[int], fills: list[int]) -> int | None:
        guide = Guide(grammar)
        fill = filler(guide)
        for place, token in enumerate([*tokens, eos]):
            start = time.perf_counter_ns()
            fill()
            fills.append(time.perf_counter_ns() - start)
            if not int(mask[token // 32]) >> token % 32 & 1:
                return place
            if token != eos:
                guide.advance(token, False)
        return None

    return compile_schema, walk


def plain_lm_format_enforcer(vocabulary: Any) -> Any:
    """With as much white space as a text may have, which is the adapter's default."""
    from lmformatenforcer import CharacterLevelParserConfig, JsonSchemaParser
    from lmformatenforcer.exceptions import LMFormatEnforcerException
    from lmformatenforcer.tokenenforcer import TokenEnforcer, TokenEnforcerTokenizerData
    from pydantic import ValidationError

    texts = [
        (token, text.decode("utf-8", "replace"), False)
        for token, text in enumerate(vocabulary.tokens)
        if text and token not in vocabulary.special_tokens
    ]

    def decode(tokens: list[int]) -> str:
        text: str = vocabulary.decode(tokens).decode("utf-8", "replace")
        return text.rstrip("\ufffd")

    eos = vocabulary.eos_token
    data = TokenEnforcerTokenizerData(texts, decode, list(vocabulary.eos_tokens), True, vocabulary.size)
    config = CharacterLevelParserConfig(
        alphabet=data.tokenizer_alphabet, max_consecutive_whitespaces=sys.maxsize
    )

    def compile_schema(text: str) -> Any:
        schema = json.loads(text)
        if schema is False:
            return None
        try:
            return JsonSchemaParser(None if schema is True else schema, config)
        except (ValidationError, LMFormatEnforcerException):
            return None
        except Exception as error:
            if str(error).startswith(("Unsupported type ", "Unsupported enum type ", "No definitions found")):
                return None
            raise

    def walk(grammar: Any, tokens: list[int], fills: list[int]) -> int | None:
        enforcer = TokenEnforcer(data, grammar)
        grammar.config = config  # an enforcer replaces it by one of its own
        for place, token in enumerate([*tokens, eos]):
            prefix = tokens[:place]
            start = time.perf_counter_ns()
            mask = enforcer.get_allowed_tokens(prefix).allowed_tokens
            fills.append(time.perf_counter_ns() - start)
            if not int(mask[token // 32]) >> token % 32 & 1:
                return place
        return None

    return compile_schema, walk


def plain_llama_cpp(vocabulary: Any) -> Any:
    """With a sampler that leaves the logits of what it allows at zero."""
    import llama_cpp
    from llama_cpp.llama_grammar import json_schema_to_gbnf

    from harness.backend.vocabulary.gguf_file import write_vocabulary

    silent = llama_cpp.llama_log_callback(lambda level, text, data: None)
    llama_cpp.llama_log_set(silent, None)
    parameters = llama_cpp.llama_model_default_params()
    parameters.vocab_only = True
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "vocabulary.gguf")
        write_vocabulary(vocabulary, path)
        model = llama_cpp.llama_model_load_from_file(os.fsencode(path), parameters)
    tokens_of_model = llama_cpp.llama_model_get_vocab(model)
    candidates = np.zeros(vocabulary.size, dtype=[("id", np.int32), ("logit", np.float32), ("p", np.float32)])
    candidates["id"] = np.arange(vocabulary.size)
    logits = candidates["logit"]
    every = llama_cpp.llama_token_data_array(
        data=candidates.ctypes.data_as(ctypes.POINTER(llama_cpp.llama_token_data)),
        size=vocabulary.size,
        selected=-1,
        sorted=False,
    )
    eos = vocabulary.eos_token

    def compile_schema(text: str) -> Any:
        if not isinstance(json.loads(text), dict):
            return None
        try:
            grammar = json_schema_to_gbnf(text)
        except (AssertionError, ValueError):
            return None
        llama_cpp.llama_log_set(silent, None)  # so that it lives as long as the library may call it
        return llama_cpp.llama_sampler_init_grammar(tokens_of_model, grammar.encode(), b"root") or None

    def walk(grammar: Any, tokens: list[int], fills: list[int]) -> int | None:
        sampler = llama_cpp.llama_sampler_clone(grammar)
        try:
            for place, token in enumerate([*tokens, eos]):
                start = time.perf_counter_ns()
                logits.fill(0)
                llama_cpp.llama_sampler_apply(sampler, ctypes.byref(every))
                fills.append(time.perf_counter_ns() - start)
                if logits[token] != 0:
                    return place
                if token != eos:
                    llama_cpp.llama_sampler_accept(sampler, token)
            return None
        finally:
            llama_cpp.llama_sampler_free(sampler)

    return compile_schema, walk


POINTERS = "-pointers"
"""The end of the name of a second plain loop of the same backend."""

PLAIN = {
    "llguidance": plain_llguidance,
    "xgrammar": plain_xgrammar,
    "outlines-core": plain_outlines_core,
    "outlines-core-pointers": plain_outlines_core_pointers,
    "lm-format-enforcer": plain_lm_format_enforcer,
    "llama-cpp": plain_llama_cpp,
}

DISTRIBUTIONS = {"llama-cpp": "llama-cpp-python"}
"""The backends whose distribution does not have their name."""


def installed() -> list[str]:
    """Returns the backends with a plain loop whose library is here."""
    names = dict.fromkeys(name.removesuffix(POINTERS) for name in PLAIN)
    return [name for name in names if installed_version(DISTRIBUTIONS.get(name, name))]
