"""llama.cpp: a grammar of characters (GBNF) whose stacks are tried on every token of the vocabulary at every
step.

Through llama-cpp-python, on a vocabulary without a model. What the sampler leaves at minus infinity is
forbidden. The library ends the process where it is told to accept what its grammar forbids, so a token is
tried before it is accepted.
"""

from __future__ import annotations

import weakref
from typing import Any, ClassVar

import llama_cpp
import numpy as np

from harness import Adapter, CompiledGrammar, Grammar, GrammarObject, InvalidGrammar, UnsupportedGrammar
from harness.backend import adapter_parts as parts
from harness.backend.grammar import Bitmask
from harness.backend.known_tokens import Loader
from harness.backend.vocabulary import Vocabulary

from ._llama_cpp_forms import FACTS, Ebnf, gbnf_of, untranslated
from ._llama_cpp_library import LAYOUT, Candidates, ends_of, load_model, messages_of, pieces_of

LIMITS = ("left recursion", "sane defaults")
"""The parts of its messages that say that a grammar is right and too much."""


FEWER_ENDS = (
    "A GGUF file has places for three ids of end-of-sequence, and the library knows others by their names "
    "only (special_eog_ids of llama.cpp src/llama-vocab.cpp)."
)
"""The sentence with which a run says why the library does not know every end of a vocabulary."""


class _LlamaObject(GrammarObject):
    __slots__ = ("_adapter", "_sampler", "_terminated")

    def __init__(self, adapter: LlamaCpp, sampler: Any) -> None:
        self._adapter = adapter
        self._sampler = sampler
        self._terminated = False
        weakref.finalize(self, llama_cpp.llama_sampler_free, sampler)

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        adapter = self._adapter
        if bitmask.shape != (adapter.words,) or bitmask.dtype != np.int32:
            raise ValueError(
                f"a bitmask is an int32 array of {adapter.words} words, not {bitmask.dtype} {bitmask.shape}"
            )
        if self._terminated:
            bitmask.fill(0)
            return
        every = adapter.every
        every.logits.fill(0)
        llama_cpp.llama_sampler_apply(self._sampler, every.pointer)
        np.equal(every.logits, 0, out=adapter.bits[: len(every.logits)])
        bitmask[:] = np.packbits(adapter.bits, bitorder="little").view(np.int32)

    def accept_token(self, token: int) -> bool:
        if not self._allows(token):
            return False
        if token in self._adapter.ends:
            self._terminated = True  # there the library does nothing but not end the process
        else:
            llama_cpp.llama_sampler_accept(self._sampler, token)
        return True

    def is_accepting(self) -> bool:
        return self._allows(self._adapter.vocabulary.eos_token)

    def is_terminated(self) -> bool:
        return self._terminated

    def copy(self) -> GrammarObject:
        clone = _LlamaObject(self._adapter, llama_cpp.llama_sampler_clone(self._sampler))
        clone._terminated = self._terminated
        return clone

    def _allows(self, token: int) -> bool:
        if self._terminated or not 0 <= token < self._adapter.vocabulary.size:
            return False
        one = self._adapter.one
        one.ids[0], one.logits[0] = token, 0
        llama_cpp.llama_sampler_apply(self._sampler, one.pointer)
        return bool(one.logits[0] == 0)


class _LlamaGrammar(CompiledGrammar):
    def __init__(self, adapter: LlamaCpp, sampler: Any) -> None:
        self._adapter = adapter
        self._sampler = sampler
        weakref.finalize(self, llama_cpp.llama_sampler_free, sampler)

    def start(self) -> GrammarObject:
        return _LlamaObject(self._adapter, llama_cpp.llama_sampler_clone(self._sampler))


class LlamaCpp(Adapter):
    """JSON Schema goes through the package's own converter; regular expressions and choices are translated to
    GBNF by us.

    So is EBNF, rule by rule (`_` in names, the escape `\\^` and line ends where GBNF has none), or, with
    `ebnf=text`, it goes as it is. `loader` says how the library comes to know a vocabulary that was read from
    a GGUF file (docs/tokenizers.md).
    """

    distribution = "llama-cpp-python"
    engines: ClassVar = {"llama.cpp": {"": ""}}
    engine_facts: ClassVar = {"llama.cpp": FACTS}
    dialects = frozenset({"json_schema", "regex", "ebnf", "choice"})
    documented = {
        "unlisted_name": "No property that the schema does not name, unless additionalProperties is true "
        "(llama.cpp grammars/README.md).",
        "property_order": "Properties keep the schema's order (--prop-order of llama.cpp's "
        "json_schema_to_grammar.py).",
        "whitespace": "At most one space between two parts (SPACE_RULE in llama_cpp/llama_grammar.py).",
    }

    layout = LAYOUT

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        ebnf: Ebnf = "translated",
        loader: Loader = "library",
    ) -> None:
        super().__init__(vocabulary)
        self._ebnf = ebnf
        self.loader, self._model = load_model(vocabulary, loader)
        weakref.finalize(self, llama_cpp.llama_model_free, self._model)
        self._tokens = llama_cpp.llama_model_get_vocab(self._model)
        self.ends = ends_of(self._tokens, vocabulary.size)
        known = [end for end in vocabulary.eos_tokens if end in self.ends]
        if 0 < len(known) < len(vocabulary.eos_tokens):
            self.take_ends(FEWER_ENDS, known)
        self.words = vocabulary.words
        self.every = Candidates(np.arange(vocabulary.size, dtype=np.int32))
        self.one = Candidates(np.zeros(1, dtype=np.int32))
        self.bits = np.zeros(self.words * 32, dtype=np.bool_)

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        text = gbnf_of(grammar, self._ebnf)
        if not text or "\0" in text:  # it takes none for no constraint, and a C string
            raise InvalidGrammar("a grammar is at least one rule, without NUL")
        sampler = self._sampler(text)
        if not sampler:
            raise self._refusal(grammar, text)
        return _LlamaGrammar(self, sampler)

    def token_bytes(self) -> list[bytes]:
        return pieces_of(self._tokens, self.vocabulary.size)

    def script(self, grammar: Grammar) -> str:
        is_schema = grammar.dialect == "json_schema"
        return parts.script_of(
            "llama_cpp",
            gbnf="json_schema_to_gbnf(grammar)" if is_schema else repr(gbnf_of(grammar, self._ebnf)),
        )

    def _sampler(self, text: str) -> Any:
        return llama_cpp.llama_sampler_init_grammar(self._tokens, text.encode(), b"root")

    def _refusal(self, grammar: Grammar, text: str) -> Exception:
        """Returns the exception for a grammar that the parser refused; it parses once more, to hear why."""
        why = messages_of(lambda: self._sampler(text))
        if any(limit in why for limit in LIMITS):
            return UnsupportedGrammar(why)
        if grammar.dialect == "json_schema":
            return RuntimeError(f"the converter's grammar is refused by the parser: {why}")
        if grammar.dialect != "ebnf" or self._ebnf == "translated":
            return UnsupportedGrammar(why)
        return untranslated(grammar, why)
