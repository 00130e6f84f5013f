"""An adapter's grammars under SGLang's names.

What SGLang's own backends do differently from each other is done in one way here: `accept_token` raises
ValueError and does not move, `copy` is a clone at the current position, and tokens after the end are ignored
but counted, so that `rollback` finds its way back.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness.backend.bridge.reasoning import ReasoningObject
from harness.backend.grammar import (
    Adapter,
    CompiledGrammar,
    Grammar,
    GrammarObject,
    InvalidGrammar,
    MaskFormat,
    UnsupportedGrammar,
    shared_length,
)
from harness.backend.vocabulary import Vocabulary

if TYPE_CHECKING:
    import torch

Helper = tuple[list[int], str]
"""A jump: the tokens that come first, and the text after them."""

ANY_JSON = "$$ANY$$"
"""SGLang's key of a request for any JSON at all."""


@dataclass
class GrammarStats:
    """SGLang's record of a compile; the engine reads and writes the fields."""

    compilation_time: float | None = None
    """Seconds."""
    schema_count: int | None = None
    ebnf_size: int | None = None
    is_cache_hit: bool = False
    is_grammar_aborted: bool = False
    tree_traversal_time: list[float] = field(default_factory=list)
    dispatch_type: str | None = None
    num_timeout: int = 0


@dataclass(frozen=True)
class InvalidGrammarObject:
    """What a backend returns for a grammar that it declines."""

    error_message: str
    grammar_stats: GrammarStats

    def copy(self) -> InvalidGrammarObject:
        return replace(self, grammar_stats=replace(self.grammar_stats))


class TokenRefused(ValueError):
    """The grammar does not allow this token here."""

    def __init__(self, token: int, message: str) -> None:
        super().__init__(message)
        self.token = token


class GrammarForSGLang:
    """One request's grammar, with the methods of SGLang's `BaseGrammarObject`."""

    def __init__(
        self,
        compiled: CompiledGrammar,
        vocabulary: Vocabulary,
        mask_format: MaskFormat = "bitmask",
        grammar_stats: GrammarStats | None = None,
        grammar_object: GrammarObject | None = None,
    ) -> None:
        self._compiled = compiled
        self._vocabulary = vocabulary
        self._is_bool = mask_format == "bool"
        self._object = compiled.start() if grammar_object is None else grammar_object
        self._ignored = 0
        self._reasoning = True
        self._row_of: tuple[torch.Tensor, int] | None = None
        self._row: NDArray[Any] = np.empty(0)
        self._rest = self._row
        self.grammar_stats = grammar_stats
        self.accepted_tokens: list[int] = []
        self.current_token: int | None = None
        self.finished = False

    def accept_token(self, token: int) -> None:
        """Advances past the token. Raises TokenRefused, without moving, if it is refused."""
        if self._object.is_terminated():
            self._ignored += 1
            return
        if not self._object.accept_token(token):
            raise TokenRefused(
                token,
                f"token {self._name(token)} is not allowed after {len(self.accepted_tokens)} accepted tokens",
            )
        self.current_token = token
        self.accepted_tokens.append(token)

    def rollback(self, k: int) -> None:
        """Takes back the last `k` tokens, ignored ones included."""
        if not 0 <= k <= len(self.accepted_tokens) + self._ignored:
            raise ValueError(f"cannot roll back {k} of {len(self.accepted_tokens) + self._ignored} tokens")
        ignored = min(k, self._ignored)
        if k > ignored:
            self._object.rollback(k - ignored)
            del self.accepted_tokens[ignored - k :]
        self._ignored -= ignored

    def is_terminated(self) -> bool:
        return self._object.is_terminated()

    def maybe_init_reasoning(self, reasoning: bool) -> None:
        """Says, before the first token, whether the request thinks first. It matters only to objects of
        `harness.backend.bridge.reasoning`; other grammars constrain at once."""
        if isinstance(self._object, ReasoningObject):
            self._object.begin(reasoning)
            self._reasoning = reasoning

    def copy(self) -> GrammarForSGLang:
        """Returns a clone at the current position, independent of this one, as for a cache hit."""
        clone = GrammarForSGLang(
            self._compiled,
            self._vocabulary,
            "bool" if self._is_bool else "bitmask",
            replace(self.grammar_stats, is_cache_hit=True, tree_traversal_time=[])
            if self.grammar_stats
            else None,
            self._object.copy() if self.accepted_tokens else None,
        )
        clone.accepted_tokens = self.accepted_tokens.copy()
        clone.current_token = self.current_token
        clone._ignored = self._ignored
        clone._reasoning = self._reasoning
        if not self.accepted_tokens:
            clone.maybe_init_reasoning(self._reasoning)
        return clone

    def allocate_vocab_mask(
        self, vocab_size: int, batch_size: int, device: torch.device | str
    ) -> torch.Tensor:
        """Returns masks that allow everything, so that rows without a grammar can be left as they are; on the
        CPU, where `fill_vocab_mask` works."""
        import torch

        if self._is_bool:
            return torch.zeros(batch_size, vocab_size, dtype=torch.bool)
        return torch.full((batch_size, (vocab_size + 31) // 32), -1, dtype=torch.int32)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Overwrites row `idx`. Once terminated, end-of-sequence alone is allowed, so that a row of logits
        never is all minus infinity."""
        if self._row_of is None or self._row_of[0] is not vocab_mask or self._row_of[1] != idx:
            self._turn_to(vocab_mask, idx)
        if len(self._rest):
            self._rest.fill(self._is_bool)
        if self._object.is_terminated():
            self._row.fill(self._is_bool)
            for end in self._vocabulary.eos_tokens:
                if self._is_bool:
                    self._row[end] = False
                else:
                    self._row.view(np.uint32)[end >> 5] |= np.uint32(1 << (end & 31))
        elif self._is_bool:
            self._object.fill_bool_mask(self._row)
        else:
            self._object.fill_bitmask(self._row)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: torch.device | str) -> torch.Tensor:
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """Sets what is not allowed to minus infinity, in place.

        `logits`: `[batch, vocabulary]`, any floating type, on the mask's device; `vocab_mask`: int32 `[batch,
        words]` or bool `[batch, vocabulary]`. Raises ValueError if the mask does not cover the logits.
        """
        import torch

        forbidden = vocab_mask
        if vocab_mask.dtype != torch.bool:
            shifts = torch.arange(32, dtype=torch.int32, device=vocab_mask.device)
            forbidden = (torch.bitwise_right_shift(vocab_mask.unsqueeze(-1), shifts) & 1 == 0).flatten(-2)
        batch, width = logits.shape
        if forbidden.shape[0] != batch or forbidden.shape[1] < width:
            raise ValueError(
                f"a mask for {tuple(forbidden.shape)} does not cover logits of shape {(batch, width)}"
            )
        logits.masked_fill_(forbidden[:, :width], float("-inf"))

    def try_jump_forward(self, tokenizer: object) -> Helper | None:
        """Returns what must come next, as far as it is whole characters: tokens for bytes that end one which
        has begun, then text.

        A backend that forces tokens only gives these tokens, and no text.
        """
        if self._object.is_terminated():
            return None
        tokens, text = _split(self._object.jump_forward(), self._vocabulary)
        if not tokens and not text:
            tokens = self._object.fast_forward_tokens()
        return (tokens, text) if tokens or text else None

    def jump_forward_str_state(self, helper: Helper) -> tuple[str, int]:
        """Returns the text of the jump; the state is not needed and always -1."""
        return helper[1], -1

    def jump_and_retokenize(
        self, old_output_ids: Sequence[int], new_output_ids: Sequence[int], next_state: int
    ) -> None:
        """Goes from the accepted tokens to `new_output_ids`, keeping the common prefix.

        `old_output_ids` begin with the accepted tokens; tokens of the jump, which have not been accepted, may
        follow. Raises ValueError, and moves nothing, if they do not, or if a new id is refused.
        """
        accepted = self.accepted_tokens.copy()
        if list(old_output_ids[: len(accepted)]) != accepted:
            raise ValueError(
                f"old_output_ids {list(old_output_ids)} do not begin with the accepted tokens {accepted}"
            )
        shared = shared_length(accepted, new_output_ids)
        kept, dropped, added = accepted[:shared], accepted[shared:], list(new_output_ids[shared:])
        self._take_back(len(dropped), kept)
        count = self._object.accept_tokens(added)
        if count < len(added):
            self._take_back(count, kept)
            self._object.accept_tokens(dropped)
            raise ValueError(
                f"new_output_ids[{shared + count}], token {self._name(added[count])}, is not "
                "allowed; nothing has moved"
            )
        self.accepted_tokens, self._ignored = kept + added, 0

    def _take_back(self, count: int, kept: Sequence[int]) -> None:
        """Takes back the last `count` tokens of the object, behind which it has accepted `kept`. An object
        without rollback, which is optional, is replaced by a fresh one."""
        if not count:
            return
        try:
            self._object.rollback(count)
        except NotImplementedError:
            self._object = self._compiled.start()
            self.maybe_init_reasoning(self._reasoning)
            self._object.accept_tokens(kept)

    def _turn_to(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Takes a row of a mask that is not that of the last fill: our ids, and the rest, for which there are
        logits but no tokens."""
        if vocab_mask.device.type != "cpu":
            raise ValueError("fill the mask on the CPU, then move it with move_vocab_mask")
        size = self._vocabulary.size
        width = size if self._is_bool else (size + 31) // 32
        row: NDArray[Any] = vocab_mask[idx].numpy()
        if len(row) < width:
            raise ValueError(
                f"a mask of {len(row)} columns is too narrow for a vocabulary of {size} "
                f"tokens; it must have {width}"
            )
        self._row, self._rest, self._row_of = row[:width], row[width:], (vocab_mask, idx)

    def _name(self, token: int) -> str:
        known = 0 <= token < self._vocabulary.size
        return (
            f"{token} ({self._vocabulary.special_tokens.get(token) or self._vocabulary.tokens[token]!r})"
            if known
            else f"{token}"
        )


class BackendForSGLang:
    """The compiling half: SGLang's `dispatch_*` over an adapter."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter

    def dispatch_json(self, key_string: str) -> GrammarForSGLang | InvalidGrammarObject:
        return self._dispatch("json", Grammar("json_schema", "{}" if key_string == ANY_JSON else key_string))

    def dispatch_regex(self, key_string: str) -> GrammarForSGLang | InvalidGrammarObject:
        return self._dispatch("regex", Grammar("regex", key_string))

    def dispatch_ebnf(self, key_string: str) -> GrammarForSGLang | InvalidGrammarObject:
        return self._dispatch("ebnf", Grammar("ebnf", key_string))

    def dispatch_structural_tag(self, key_string: str) -> GrammarForSGLang | InvalidGrammarObject:
        return self._dispatch("structural_tag", Grammar("structural_tag", key_string))

    def _dispatch(self, key_type: str, grammar: Grammar) -> GrammarForSGLang | InvalidGrammarObject:
        stats = GrammarStats(dispatch_type=key_type)
        start = time.perf_counter()
        try:
            compiled = self._adapter.compile(grammar)
        except UnsupportedGrammar as error:
            return InvalidGrammarObject(f"unsupported {key_type}: {error}", stats)
        except InvalidGrammar as error:
            return InvalidGrammarObject(f"invalid {key_type}: {error}", stats)
        stats.compilation_time = time.perf_counter() - start
        return GrammarForSGLang(compiled, self._adapter.vocabulary, self._adapter.mask_format, stats)


def _split(forced: bytes, vocabulary: Vocabulary) -> Helper:
    """Returns tokens for the bytes that end a character, and the text of the whole characters after them;
    nothing if there are no such tokens."""
    start = next((i for i, byte in enumerate(forced) if not 0x80 <= byte < 0xC0), len(forced))
    ids = vocabulary.ids_by_bytes
    lead = [bytes([byte]) for byte in forced[:start]]
    if not all(byte in ids for byte in lead):
        return [], ""
    try:
        text = forced[start:].decode()
    except UnicodeDecodeError as error:
        text = forced[start : start + error.start].decode()
    return [ids[byte] for byte in lead], text
