"""A request that has a row: its output so far, and its grammar, whose every call is booked to it."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness.bridge.reasoning import ReasoningObject
from harness.grammar import CompiledGrammar, GrammarObject, MaskFormat, allocate_bitmask, are_tokens, overrides
from harness.loop.faults import BackendFault, blaming
from harness.loop.outcome import Account
from harness.vocabulary import Vocabulary

if TYPE_CHECKING:
    from harness.loop.intake import Waiting
    from harness.loop.request import Request


class Live:
    """One request in the batch. `object` has accepted exactly `ids`; None: unconstrained."""

    def __init__(self, waiting: Waiting, row: int, vocabulary: Vocabulary, mask_format: MaskFormat, admitted_ns: int) -> None:
        self.waiting = waiting
        self.request: Request = waiting.request
        self.row = row
        self.vocabulary = vocabulary
        self.mask_format = mask_format
        self.admitted_ns = admitted_ns
        self.prompt_length = len(self.request.prompt)
        self.ids: list[int] = []
        """The output so far."""
        self.token_ns: list[int] = []
        self.account = Account()
        self.compiled: CompiledGrammar | None = waiting.compiled
        self.object: GrammarObject | None = None
        self.reference: Sequence[int] | None = self.request.reference
        """`reference[len(ids)]` comes next; the request's own until the output is spelled otherwise."""
        self.limit = self.request.limit if self.reference is None else min(self.request.limit, len(self.reference))
        self.draft: Sequence[int] = ()
        """Tokens behind the output in this pass."""
        self.ahead = 0
        """How many of them the object has accepted as well."""
        self.fault: BackendFault | None = None
        """Of a fill, which a thread found."""
        self.fill_ns = 0
        self.accept_ns = 0
        self.last_fill_ns = 0

    def begin(self) -> None:
        """Start the grammar."""
        if self.compiled is not None:
            with blaming("start"):
                self.object = self.compiled.start()

    def respelled(self) -> bool:
        """Does a replayed output no longer follow the ids of the request's own reference?"""
        return self.reference is not self.request.reference

    def answer_at(self) -> int | None:
        """The index of the answer's first id; None while the request thinks."""
        if not isinstance(self.object, ReasoningObject):
            return 0
        return None if self.object.thinks else self.object.thought

    # What a strategy asks; None and nothing where there is no grammar.

    def jump_forward(self) -> bytes:
        """The bytes that must come next."""
        if self.object is None:
            return b""
        with blaming("jump_forward"):
            forced: Any = self.object.jump_forward()
        if not isinstance(forced, bytes):
            raise BackendFault("jump_forward", f"jump_forward gives {type(forced).__name__}, not bytes")
        return forced

    def fast_forward_tokens(self) -> list[int]:
        """The tokens that the backend would force next."""
        if self.object is None:
            return []
        with blaming("jump_forward"):
            tokens: Any = self.object.fast_forward_tokens()
        if not are_tokens(tokens, self.vocabulary.size):
            raise BackendFault("jump_forward", f"fast_forward_tokens gives {str(tokens)[:80]}, no list of token ids")
        ids: list[int] = tokens
        return ids

    def allowed_behind(self, tokens: Sequence[int]) -> NDArray[np.bool_] | None:
        """`[vocabulary]`: what may come behind the output and these tokens. None if they are refused, or nobody can go there and back."""
        if self.object is None:
            return None
        target, is_copy = self._place_to_try()
        if target is None:
            return None
        with blaming("accept"):
            count = target.accept_tokens(tokens)
        try:
            return self._allowed(target) if count == len(tokens) else None
        finally:
            if not is_copy:
                self.rewind(count, self.ids)

    def accepts(self, tokens: Sequence[int]) -> int | None:
        """How many of these tokens would be accepted behind the output. None if nobody can go there and back; all, without a grammar."""
        if self.object is None:
            return len(tokens)
        target, is_copy = self._place_to_try()
        if target is None:
            return None
        with blaming("accept"):
            count = target.accept_tokens(tokens)
        if not is_copy:
            self.rewind(count, self.ids)
        return count

    # What the loop does.

    def accept(self, token: int) -> int:
        """Advance the object past a token that its mask allows; nanoseconds."""
        assert self.object is not None
        start = perf_counter_ns()
        with blaming("accept"):
            accepted = self.object.accept_token(token)
        spent = perf_counter_ns() - start
        self.accept_ns += spent
        if not accepted:
            raise BackendFault("accept", f"the mask allows token {token} ({self.vocabulary.tokens[token]!r}), accept_token refuses it")
        return spent

    def write(self, tokens: Sequence[int]) -> int:
        """Advance the object past tokens that no mask was asked for; nanoseconds."""
        if self.object is None or not tokens:
            return 0
        start = perf_counter_ns()
        with blaming("accept"):
            count = self.object.accept_tokens(tokens)
        spent = perf_counter_ns() - start
        self.accept_ns += spent
        if count < len(tokens):
            token = tokens[count]
            raise BackendFault("accept", f"token {token} ({self.vocabulary.tokens[token]!r}) of text that must come is refused")
        return spent

    def rewind(self, count: int, kept: Sequence[int]) -> None:
        """Take the object's last `count` tokens back, after which it has accepted `kept`; where it cannot, a fresh one goes there."""
        if self.object is None or not count:
            return
        if overrides(self.object, "rollback"):
            try:
                with blaming("rollback"):
                    self.object.rollback(count)
                return
            except BackendFault as fault:
                if not isinstance(fault.__cause__, NotImplementedError):
                    raise
        assert self.compiled is not None
        with blaming("start"):
            fresh = self.compiled.start()
        with blaming("accept"):
            taken = fresh.accept_tokens(kept)
        if taken < len(kept):
            raise BackendFault("accept", f"a fresh object refuses token {kept[taken]}, number {taken}, which the first one accepted")
        self.object = fresh

    def _place_to_try(self) -> tuple[GrammarObject | None, bool]:
        """The object, or a copy of it where it cannot go back."""
        assert self.object is not None
        if overrides(self.object, "rollback"):
            return self.object, False
        if not overrides(self.object, "copy"):
            return None, False
        with blaming("copy"):
            return self.object.copy(), True

    def _allowed(self, target: GrammarObject) -> NDArray[np.bool_]:
        size = self.vocabulary.size
        if self.mask_format == "bool":
            forbidden: NDArray[Any] = np.ones(size, dtype=np.bool_)
            with blaming("fill"):
                target.fill_bool_mask(forbidden)
            return ~forbidden
        bitmask = allocate_bitmask(size)
        with blaming("fill"):
            target.fill_bitmask(bitmask)
        return np.unpackbits(bitmask.view(np.uint8), bitorder="little")[:size].view(np.bool_)
