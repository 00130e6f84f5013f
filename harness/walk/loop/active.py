"""A request that has a row: its output so far, and its grammar, each call of which is timed and attributed to
it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness.backend.bridge.reasoning import ReasoningObject
from harness.backend.grammar import (
    CompiledGrammar,
    GrammarObject,
    MaskFormat,
    allocate_bitmask,
    are_tokens,
    is_allowed,
    overrides,
)
from harness.backend.masks import allowed_mask
from harness.backend.vocabulary import Vocabulary
from harness.walk.loop.faults import (
    ACCEPTING,
    FILLING,
    BackendFault,
    as_accepted,
    as_object,
    as_taken,
    attribution,
)
from harness.walk.loop.outcome import Account
from harness.walk.watched import shown

if TYPE_CHECKING:
    from harness.walk.loop.intake import Waiting
    from harness.walk.loop.request import Request


class ActiveRequest:
    """One request in the batch. `object` has accepted exactly `ids`; None means unconstrained."""

    def __init__(
        self, waiting: Waiting, row: int, vocabulary: Vocabulary, mask_format: MaskFormat, admitted_ns: int
    ) -> None:
        self.waiting = waiting
        self.request: Request = waiting.request
        self.row = row
        self.vocabulary = vocabulary
        self.mask_format = mask_format
        self.admitted_ns = admitted_ns
        self.prompt_length = len(self.request.prompt)
        self.ids: list[int] = []
        """The token ids of the output so far."""
        self.token_ns: list[int] = []
        self.account = Account()
        self.compiled: CompiledGrammar | None = waiting.compiled
        self.object: GrammarObject | None = None
        self.has_forced_bytes = False
        """Whether the backend is asked for forced bytes. Where it is, asking for tokens too would cost every
        step twice."""
        self.reference: Sequence[int] | None = self.request.reference
        """The token to come is `reference[len(ids)]`. This is the request's own reference until the output is
        spelled otherwise."""
        self.limit = (
            self.request.limit if self.reference is None else min(self.request.limit, len(self.reference))
        )
        self.draft: Sequence[int] = ()
        """The tokens drafted behind the output in this pass."""
        self.ahead = 0
        """How many drafted tokens the object has accepted on top of `ids`."""
        self.fault: BackendFault | None = None
        """The fault that a fill met in its thread."""
        self.fill_ns = 0
        self.accept_ns = 0
        self.last_fill_ns = 0
        self.moves: list[tuple[int, int]] = []
        """How many ids were kept, and how many written, each time that ids were written without logits."""

    def begin(self) -> None:
        """Starts the grammar's object."""
        if self.compiled is not None:
            with attribution("start"):
                started: Any = self.compiled.start()
            self.object = as_object(started, "start")
            with attribution("start"):  # what stands for another may stand for nothing
                self.has_forced_bytes = overrides(self.object, "jump_forward")

    def answer_at(self) -> int | None:
        """Returns the index of the answer's first id; None while the request thinks."""
        if not isinstance(self.object, ReasoningObject):
            return 0
        return None if self.object.thinks else self.object.thought

    # What a strategy asks.

    def forced(self) -> bytes:
        """Returns the bytes that must come next; of a backend that has no forced bytes, those of the tokens
        that it would force. Empty without a grammar."""
        if self.object is None:
            return b""
        if self.has_forced_bytes:
            with attribution("jump_forward"):
                forced: Any = self.object.jump_forward()
            if not isinstance(forced, bytes):
                raise BackendFault("jump_forward", f"jump_forward gives {type(forced).__name__}, not bytes")
            return forced
        with attribution("jump_forward"):
            tokens: Any = self.object.fast_forward_tokens()
        if not are_tokens(tokens, self.vocabulary.size):
            raise BackendFault(
                "jump_forward", f"fast_forward_tokens gives {shown(tokens)}, no list of token ids"
            )
        return self.vocabulary.decode(tokens)

    def allowed_behind(self, tokens: Sequence[int]) -> Callable[[int], bool] | None:
        """Returns which tokens are allowed behind the output and these tokens.

        None without a grammar, if the tokens are refused, or if the object can neither roll back nor be
        copied.
        """
        if self.object is None:
            return None
        target, is_copy = self._place_to_try()
        if target is None:
            return None
        with ACCEPTING:
            taken: Any = target.accept_tokens(tokens)
        count = as_taken(taken, len(tokens))
        try:
            return lookup_by(target, self.vocabulary.size, self.mask_format) if count == len(tokens) else None
        finally:
            if not is_copy:
                self.rewind(count, self.ids)

    # What the loop calls.

    def accept(self, token: int) -> int:
        """Advances the object past a token that its mask allows; returns nanoseconds."""
        assert self.object is not None
        start = perf_counter_ns()
        with ACCEPTING:
            accepted: Any = self.object.accept_token(token)
        spent = perf_counter_ns() - start
        self.accept_ns += spent
        if not as_accepted(accepted):
            raise BackendFault(
                "accept",
                f"the mask allows token {token} ({self.vocabulary.tokens[token]!r}), accept_token refuses it",
            )
        return spent

    def write(self, tokens: Sequence[int]) -> int:
        """Advances the object past tokens for which no mask was asked; returns nanoseconds."""
        if self.object is None or not tokens:
            return 0
        start = perf_counter_ns()
        with ACCEPTING:
            taken: Any = self.object.accept_tokens(tokens)
        spent = perf_counter_ns() - start
        self.accept_ns += spent
        count = as_taken(taken, len(tokens))
        if count < len(tokens):
            token = tokens[count]
            raise BackendFault(
                "accept",
                f"token {token} ({self.vocabulary.tokens[token]!r}) of text that must come is refused",
            )
        return spent

    def rewind(self, count: int, kept: Sequence[int]) -> None:
        """Takes back the object's last `count` tokens, after which it has accepted `kept`. An object that
        cannot roll back is replaced by a fresh one that accepts `kept`."""
        if self.object is None or not count:
            return
        if overrides(self.object, "rollback"):
            try:
                with attribution("rollback"):
                    self.object.rollback(count)
                return
            except BackendFault as fault:
                if not isinstance(fault.__cause__, NotImplementedError):
                    raise
        assert self.compiled is not None
        with attribution("start"):
            started: Any = self.compiled.start()
        fresh = as_object(started, "start")
        with ACCEPTING:
            answer: Any = fresh.accept_tokens(kept)
        taken = as_taken(answer, len(kept))
        if taken < len(kept):
            raise BackendFault(
                "accept",
                f"a fresh object refuses token {kept[taken]}, number {taken}, which the first one accepted",
            )
        self.object = fresh

    def _place_to_try(self) -> tuple[GrammarObject | None, bool]:
        """Returns the object on which to try tokens, and whether it is a copy. A copy is taken if the object
        cannot roll back; None if it cannot be copied either."""
        assert self.object is not None
        if overrides(self.object, "rollback"):
            return self.object, False
        if not overrides(self.object, "copy"):
            return None, False
        with attribution("copy"):
            copied: Any = self.object.copy()
        return as_object(copied, "copy"), True


def lookup_by(target: GrammarObject, size: int, mask_format: MaskFormat) -> Callable[[int], bool]:
    """Returns which tokens the object allows next, as `allowed_by` does, without unpacking a packed mask, of
    which few bits are asked."""
    if mask_format == "bool":
        allowed = allowed_by(target, size, mask_format)
        return lambda token: bool(allowed[token])
    bitmask = allocate_bitmask(size)
    with FILLING:
        target.fill_bitmask(bitmask)
    return partial(is_allowed, bitmask)


def allowed_by(target: GrammarObject, size: int, mask_format: MaskFormat) -> NDArray[np.bool_]:
    """Returns the tokens that the object allows next, as bool `[size]`, `size` being the vocabulary's. Raises
    BackendFault."""
    with FILLING:
        return allowed_mask(target, size, mask_format)
