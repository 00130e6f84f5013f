"""llguidance: an Earley parser over a lexer of regex derivatives; masks are computed by walking a
token trie.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal, cast

from llguidance import LLExecutor, LLMatcher, LLTokenizer, StructTag, TokenizerWrapper, grammar_from
from llguidance.gbnf_to_lark import GbnfToLarkError, gbnf_to_lark

from harness.backend.adapter_parts import (
    LastBitmask,
    choices_of,
    kernels_in_torch_and_numpy,
    require_a_row_for_each,
    script_of,
    structural_tag_of,
)
from harness.backend.grammar import (
    Adapter,
    Bitmask,
    CompiledGrammar,
    Dialect,
    Grammar,
    GrammarObject,
    InvalidGrammar,
    Kernel,
    UnsupportedGrammar,
)
from harness.backend.vocabulary import Vocabulary

WHITESPACE: dict[str, dict[str, Any]] = {
    "any": {},
    "json_dumps": {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "},
    "compact": {"whitespace_flexible": False},
}

# One string is all the library gives; these are its words for "I cannot": a missing feature, or one of its
# size limits. An unsatisfiable schema is called wrong.
UNSUPPORTED = re.compile(
    r"Unimplemented keys|not supported|no longer supported|unsupported operator|Unknown format|are not "
    r"disjoint|"
    r"does not fetch resources|Expecting object schema to apply options|already exists|"
    r"too (?:big|large|many)|fuel exhausted|lexer precomputation failed"
)


class LlguidanceObject(GrammarObject):
    def __init__(self, adapter: Llguidance, matcher: LLMatcher) -> None:
        self.matcher = matcher
        self._adapter = adapter
        self._eos_token = adapter.vocabulary.eos_token
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
        return partial(
            self._fill, self._adapter.address_of(bitmask), self._bytes
        )  # a failed matcher refuses what is accepted next

    def accept_token(self, token: int) -> bool:
        # Not consume_token: a refusal there breaks the matcher for good.
        if self.matcher.try_consume_tokens([token]):
            if token == self._eos_token:
                self._is_terminated = True
            return True
        return self._accept_refused(token)

    def accept_tokens(self, tokens: Sequence[int]) -> int:
        count = self.matcher.try_consume_tokens(list(tokens))
        if count and tokens[count - 1] == self._eos_token:
            self._is_terminated = True
        if count < len(tokens) and self._accept_refused(tokens[count]):
            count += 1
        return count

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
        clone = LlguidanceObject(self._adapter, self.matcher.deep_copy())
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
        """The matcher's error, without the dump of its state that follows."""
        return RuntimeError(self.matcher.get_error().partition("\n<state>")[0])

    def _accept_refused(self, token: int) -> bool:
        """Is the token, which `try_consume_tokens` refused, the end of a language that is exhausted?

        There the library stops by itself, its mask is end-of-sequence and `consume_token` takes it, but
        without recording it.
        """
        if self._is_error():
            raise self.fault()
        if token != self._eos_token or self._is_terminated or not self.matcher.is_stopped():
            return False
        self._is_terminated = self._is_end_unrecorded = self.matcher.consume_token(token)
        return self._is_terminated


class LlguidanceGrammar(CompiledGrammar):
    def __init__(self, adapter: Llguidance, text: str, matcher: LLMatcher) -> None:
        self._adapter = adapter
        self._text = text
        self._matcher = matcher

    def start(self) -> LlguidanceObject:
        matcher = (
            self._matcher.deep_copy() if self._adapter.shared_lexer else self._adapter.new_matcher(self._text)
        )
        return LlguidanceObject(self._adapter, matcher)


class Llguidance(Adapter):
    """`whitespace` shapes JSON Schema, alone and in structural tags; `threads` is for batches.

    Objects of one grammar are copies that share a lexer: what one walk has explored is warm for the next, and
    batches on several threads wait for its lock. Without `shared_lexer`, `start` parses the grammar anew, as
    vLLM and SGLang do.
    """

    distribution: ClassVar[str] = "llguidance"
    dialects: ClassVar[frozenset[Dialect]] = frozenset(
        {"json_schema", "regex", "ebnf", "choice", "structural_tag"}
    )
    documented: ClassVar[Mapping[str, str]] = {
        "canonical_only": "In forced text the mask holds the canonical token only (llguidance "
        "docs/fast_forward.md).",
        "property_order": "Properties come in the order of the schema (llguidance docs/json_schema.md, "
        "Property order).",
        "spelling:leading_space": "No whitespace before the first brace (llguidance docs/json_schema.md, "
        "Whitespace handling).",
        "spelling:trailing_newline": "No whitespace after the last brace (llguidance docs/json_schema.md, "
        "Whitespace handling).",
        "spelling:escaped_slash": "No escaped slash unless asked for (llguidance docs/json_schema.md, "
        "json_allowed_escapes).",
        "regex_dialect_rust": "Regular expressions are those of Rust's regex crate (llguidance "
        "docs/syntax.md, Structured %regex).",
    }

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        whitespace: Literal["any", "json_dumps", "compact"] = "any",
        shared_lexer: bool = True,
        threads: int = 1,
    ) -> None:
        super().__init__(vocabulary)
        if whitespace not in WHITESPACE:
            raise ValueError(f"whitespace is {whitespace!r}; llguidance supports {', '.join(WHITESPACE)}")
        self.shared_lexer = shared_lexer
        words = (vocabulary.size + 31) // 32
        self.row_bytes = 4 * words
        self.address_of = LastBitmask(words, lambda bitmask: int(bitmask.ctypes.data)).of
        self._whitespace = WHITESPACE[whitespace]
        self.threads: int = threads
        self._tokenizer = LLTokenizer(TokenizerWrapper(_Tokenizer(vocabulary)))
        self._executors: dict[int, LLExecutor] = {}
        """By threads; made on first use, because threads would not survive the fork of a worker."""

    def compile(self, grammar: Grammar) -> LlguidanceGrammar:
        try:
            grammar.text.encode()
        except UnicodeEncodeError as error:
            raise InvalidGrammar(f"no Unicode text: {error}") from error
        text = self._grammar_text(grammar)
        matcher = self.new_matcher(text)
        if matcher.is_error():
            raise _refusal(matcher.get_error())
        return LlguidanceGrammar(self, text, matcher)

    def script(self, grammar: Grammar) -> str:
        return script_of("llguidance", grammar_text=repr(self._grammar_text(grammar)))

    def kernels(self) -> Mapping[str, Kernel]:
        return kernels_in_torch_and_numpy("llguidance")

    def fill_bitmasks(self, objects: Sequence[GrammarObject], bitmasks: Bitmask) -> None:
        require_a_row_for_each(len(objects), bitmasks)
        ours = cast(Sequence[LlguidanceObject], objects)
        address = self.address_of(bitmasks)
        if self.threads == 1 or len(ours) < 2:  # the executor's hand-over costs more than it saves
            for row, each in enumerate(ours):
                each.matcher.unsafe_compute_mask_ptr(address + row * self.row_bytes, self.row_bytes)
        else:
            if self.threads not in self._executors:
                self._executors[self.threads] = LLExecutor(self.threads)
            rows = [(each.matcher, row) for row, each in enumerate(ours)]
            self._executors[self.threads].unsafe_compute_mask_ptr(rows, address, self.row_bytes, len(ours))
        for each in ours:
            if each.matcher.is_error():
                raise each.fault()

    def new_matcher(self, text: str) -> LLMatcher:
        return LLMatcher(self._tokenizer, text, log_level=0)

    def _grammar_text(self, grammar: Grammar) -> str:
        match grammar.dialect:
            case "json_schema":
                return self._json_schema(grammar.text)
            case "regex":
                return LLMatcher.grammar_from_regex(grammar.text)
            case "ebnf":
                return _lark(grammar.text)
            case "choice":
                choices_of(grammar.text)
                return grammar_from("choice", grammar.text)
            case "structural_tag":
                return self._structural_tag(grammar.text)

    def _json_schema(self, text: str) -> str:
        if not self._whitespace:
            return LLMatcher.grammar_from_json_schema(text)
        try:
            return LLMatcher.grammar_from_json_schema(text, overrides=cast(Any, self._whitespace))
        except ValueError as error:
            raise _refusal(str(error)) from error

    def _structural_tag(self, text: str) -> str:
        triggers, structures = structural_tag_of(text)
        try:
            tags = [
                StructTag(
                    trigger=next(trigger for trigger in triggers if tag.begin.startswith(trigger)),
                    begin=tag.begin,
                    grammar=self._tag_schema(tag.schema),
                    end=tag.end,
                )
                for tag in structures
            ]
            # In this project a trigger is text; left to itself the library takes `<...>` for the name of a
            # special token.
            return StructTag.to_grammar(tags, assume_special=False)
        except StopIteration:
            raise InvalidGrammar("structural_tag: a structure begins with none of the triggers") from None
        except (ValueError, AssertionError) as error:
            raise InvalidGrammar(f"structural_tag: {error!r}") from error

    def _tag_schema(self, schema: object) -> dict[str, Any] | str:
        if not isinstance(schema, dict):  # true and false, which a tag takes only inside a grammar
            if self._whitespace:
                raise UnsupportedGrammar("llguidance applies its whitespace option to object schemas only")
            return f"start: %json {json.dumps(schema)}"
        return (
            {**schema, "x-guidance": {**schema.get("x-guidance", {}), **self._whitespace}}
            if self._whitespace
            else schema
        )


class _Tokenizer:
    """The vocabulary in the form that `TokenizerWrapper` reads; padding and empty tokens are empty and never
    allowed."""

    bos_token_id = None

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.eos_token_id = vocabulary.eos_token
        self.special_token_ids = list(vocabulary.special_tokens)
        self.tokens = list(vocabulary.tokens)
        for token, name in vocabulary.special_tokens.items():
            self.tokens[token] = name.encode()
        self._encode = vocabulary.encode

    def __call__(self, text: bytes | str) -> list[int]:
        return self._encode(text.encode() if isinstance(text, str) else text)


def _refusal(error: str) -> UnsupportedGrammar | InvalidGrammar:
    return (UnsupportedGrammar if UNSUPPORTED.search(error) else InvalidGrammar)(error)


def _lark(text: str) -> str:
    try:
        return gbnf_to_lark(text)
    except Exception as error:
        # The converter raises its own error class or a bare Exception; anything more specific is a bug of its
        # own.
        if type(error) not in (GbnfToLarkError, Exception):
            raise
        raise _refusal(str(error)) from error
