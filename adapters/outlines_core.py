"""outlines-core: a regular expression, turned at compile time into an index of the tokens of each state.

Building an index can take minutes in native code, where no signal ends it; whoever calls `compile` sets the
deadline.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar, Literal, cast

from outlines_core import Guide, Index

from harness import Adapter, CompiledGrammar, Grammar, GrammarObject
from harness.backend import adapter_parts as parts
from harness.backend.grammar import Bitmask, BoolMask, Kernel
from harness.backend.known_tokens import Loader, bytes_of_stored_map
from harness.backend.vocabulary import Vocabulary
from harness.oracle.forced_text.jumping import with_jumps, without_jumps
from harness.oracle.regex.automaton import regex_automaton

from ._outlines_core_forms import end_of, pattern_of, refusal, token_map, whitespace_pattern

MAX_ROLLBACK = 1 << 16
"""The library's own default is 32 tokens, and it stores only as many states as this."""


class _OutlinesObject(GrammarObject):
    __slots__ = ("_accepted", "_bitmask", "_compiled", "_guide", "_target", "_terminated", "_words", "_write")

    def __init__(self, compiled: _OutlinesCompiled) -> None:
        self._compiled = compiled
        self._guide = Guide(compiled.index, MAX_ROLLBACK)
        self._write = self._guide.write_mask_into
        self._accepted: list[int] = []
        self._terminated = False
        self._words = compiled.vocabulary.words
        # The array of the last fill, kept so that its memory stays where it is; None after the end.
        self._bitmask: Bitmask | None = None
        self._target = (0, 0, 4)

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        if bitmask is self._bitmask:
            self._write(*self._target)
        else:
            self._fill_another(bitmask)

    def filler(self, bitmask: Bitmask) -> Callable[[], object]:
        return partial(self._write, parts.address_of(bitmask, (self._words,)), self._words, 4)

    def _fill_another(self, bitmask: Bitmask) -> None:
        """Fills an array that is not that of the last fill."""
        target = parts.address_of(bitmask, (self._words,)), self._words, 4
        if self._terminated:
            bitmask.fill(0)
        else:
            self._bitmask, self._target = bitmask, target
            self._write(*target)

    def write_row(self, pointer: int, row: Bitmask) -> None:
        """Fills a row of a batch, whose address is already known."""
        if self._terminated:
            row.fill(0)
        else:
            self._write(pointer, self._words, 4)

    def fill_bool_mask(self, mask: BoolMask) -> None:
        mask.fill(True)
        if not self._terminated:
            mask[self._guide.get_tokens()] = False

    def accept_token(self, token: int) -> bool:
        if self._terminated:
            return False
        if token == self._compiled.vocabulary.eos_token:
            # The mask allows end-of-sequence in a final state, but `advance` knows no such token.
            self._terminated = bool(self._guide.is_finished())
            if self._terminated:
                self._bitmask = None
            return self._terminated
        try:
            self._guide.advance(token, False)
        except ValueError:
            return False
        self._accepted.append(token)
        return True

    def is_accepting(self) -> bool:
        return not self._terminated and bool(self._guide.is_finished())

    def is_terminated(self) -> bool:
        return self._terminated

    def rollback(self, count: int) -> None:
        if not 0 <= count <= len(self._accepted) + self._terminated:
            raise ValueError(f"cannot roll back {count} of {len(self._accepted) + self._terminated} tokens")
        if self._terminated and count:
            self._terminated = False
            count -= 1
        self._guide.rollback_state(count)
        del self._accepted[len(self._accepted) - count :]

    def copy(self) -> GrammarObject:
        # `copy.copy` of a Guide serialises the whole index; walking a new one is cheaper, and shares it.
        clone = _OutlinesObject(self._compiled)
        for token in self._accepted:
            clone._guide.advance(token, False)
        clone._accepted = self._accepted.copy()
        clone._terminated = self._terminated
        return clone


class _OutlinesCompiled(CompiledGrammar):
    def __init__(self, index: Index, vocabulary: Vocabulary) -> None:
        self.index = index
        self.vocabulary = vocabulary

    def start(self) -> GrammarObject:
        return _OutlinesObject(self)

    def serialize(self) -> bytes:
        return pickle.dumps(self.index)


class OutlinesCore(Adapter):
    """`whitespace` is between the parts of a JSON text: any amount, as the library would have it (at most one
    space), or none; `max_whitespace` bounds any amount (characters in a row; 0: no bound). `loader` says how
    the library comes to know a Hugging Face tokenizer (docs/tokenizers.md).

    `mask=bool` fills the second mask format as serving engines do with this library: all forbidden, then the
    list of allowed ids scattered. `jumps=compressed_fsm` adds the forced text that the library does not have,
    as SGLang (2024) did: a byte-level automaton of the regular expression that the library compiles, whose
    chains of singular transitions are jumped. Where there is no automaton there are no jumps.
    """

    distribution = "outlines-core"
    engines: ClassVar = {
        "vllm": {"whitespace=library": "--structured-outputs-config.backend outlines"},
    }  # not SGLang, whose outlines has an outlines-core 0.1 behind it (docs/engines.md)
    dialects = frozenset({"json_schema", "regex", "choice"})
    knows_one_end = "A Vocabulary of the library has one eos_token_id (outlines-core src/vocabulary/mod.rs)."
    documented = {
        "regex_dialect_rust": "An Index is a DFA that Rust's regex-automata builds of the pattern "
        "(outlines-core src/index.rs).",
        "longer_than_its_layout": "The expression for white space stands behind `[` and before `]`, so twice "
        "in an empty array (outlines-core src/json_schema/parsing.rs).",
    }

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        whitespace: Literal["any", "library", "compact"] = "any",
        max_whitespace: int = 0,
        mask: Literal["bitmask", "bool"] = "bitmask",
        jumps: Literal["none", "compressed_fsm"] = "none",
        loader: Loader = "library",
    ) -> None:
        super().__init__(vocabulary)
        self._jumps = jumps
        self.mask_format = mask
        self._whitespace, self.layout = whitespace_pattern(whitespace, max_whitespace)
        self.loader, self._token_map = token_map(vocabulary, loader)
        self.take_ends(self.knows_one_end, [end_of(self._token_map, vocabulary)])

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        pattern = pattern_of(grammar, self._whitespace)
        try:
            index = Index(pattern, self._token_map)
        except ValueError as error:  # the library's only error, whatever it is that it says
            raise refusal(pattern, str(error)) from error
        compiled = _OutlinesCompiled(index, self.vocabulary)
        if self._jumps == "none":
            return compiled
        return with_jumps(compiled, lambda: regex_automaton(pattern, "rust"), self.vocabulary)

    def token_bytes(self) -> list[bytes]:
        _, (stored, *_) = self._token_map.__reduce__()
        return bytes_of_stored_map(stored, self.vocabulary.size)

    def script(self, grammar: Grammar) -> str:
        if grammar.dialect == "json_schema":
            pattern = f"json_schema.build_regex_from_schema(grammar, {self._whitespace!r})"
        else:
            pattern = repr(pattern_of(grammar, self._whitespace))
        return parts.script_of("outlines_core", pattern=pattern)

    def kernels(self) -> Mapping[str, Kernel]:
        return parts.kernels_in_torch_and_numpy("outlines_core.kernels")

    def fill_bitmasks(self, objects: Sequence[GrammarObject], bitmasks: Bitmask) -> None:
        parts.require_a_row_for_each(len(objects), bitmasks)
        pointer = parts.address_of(bitmasks, (len(objects), self.vocabulary.words))
        own_objects = cast(list[_OutlinesObject], without_jumps(objects))
        for grammar_object, row in zip(own_objects, bitmasks, strict=True):
            grammar_object.write_row(pointer, row)
            pointer += bitmasks.strides[0]
