"""Reasoning: an adapter around an adapter, whose outputs begin with a thinking part that the grammar says
nothing about.

Up to and including the end of the thinking, one id or several, any text may come; behind it the inner grammar
begins, at its start, and a second end is the grammar's to allow. docs/reasoning.md has the definition, and
what engines do instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import cast

import numpy as np

from harness.backend.bridge.thinking import Thinking, thinking_up_to
from harness.backend.grammar import (
    Adapter,
    Bitmask,
    BoolMask,
    CompiledGrammar,
    Grammar,
    GrammarObject,
    Kernel,
    overrides,
)


class ReasoningAdapter(Adapter):
    """Compiles with the inner adapter; each object thinks first."""

    def __init__(self, inner: Adapter, end: Sequence[int]) -> None:
        """`end` are the ids that end the thinking. Raises BadInput if they can do no such thing."""
        super().__init__(inner.vocabulary)
        self.vocabulary = inner.vocabulary  # of whose ends the inner library may know more than one
        self._inner = inner
        self._thinking = Thinking(inner.vocabulary, end)
        self.mask_format = inner.mask_format
        self.threads = inner.threads

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        compiled = self._inner.compile(grammar)
        self.mask_format = self._inner.mask_format  # some know it only now
        return self.wrap(compiled)

    def wrap(self, compiled: CompiledGrammar) -> ReasoningGrammar:
        """Returns what the inner adapter compiled, for a request that thinks first; at no cost."""
        return ReasoningGrammar(compiled, self._thinking)

    def kernels(self) -> Mapping[str, Kernel]:
        return self._inner.kernels()

    def fill_bitmasks(self, objects: Sequence[GrammarObject], bitmasks: Bitmask) -> None:
        """Fills the masks of objects that are not wrapped too, so that requests with and without reasoning
        are one batch."""
        if len(objects) != len(bitmasks):
            raise ValueError(f"{len(objects)} objects for {len(bitmasks)} bitmasks")
        self._inner.threads = self.threads
        thinks = [isinstance(one, ReasoningObject) and one.thinks for one in objects]
        answering = [one.inner if isinstance(one, ReasoningObject) else one for one in objects]
        if not any(thinks):
            self._inner.fill_bitmasks(answering, bitmasks)
            return
        bitmasks[thinks] = self._thinking.bitmask
        rows = np.flatnonzero(np.logical_not(thinks))
        if len(rows):
            filled = np.empty((len(rows), bitmasks.shape[1]), dtype=np.int32)
            self._inner.fill_bitmasks([answering[row] for row in rows], filled)
            bitmasks[rows] = filled


def with_reasoning(adapter: Adapter, end: Sequence[int]) -> ReasoningAdapter:
    """Returns the adapter, with a thinking part before each output, up to and including the ids `end`.

    Raises BadInput.
    """
    described = {
        name: getattr(adapter, name) for name in ("distribution", "dialects", "documented", "knows_one_end")
    }
    kind = type(
        f"{type(adapter).__name__}WithReasoning", (ReasoningAdapter,), {**described, "__module__": __name__}
    )
    return cast(ReasoningAdapter, kind(adapter, end))


def reasoning_of(adapter: Adapter, compiled: CompiledGrammar, end: Sequence[int]) -> CompiledGrammar:
    """Returns what an adapter compiled, for requests that think first: by the library's own means, or by
    ours where it has none. Raises UnsupportedGrammar, and BadInput as `Thinking` does."""
    try:
        return adapter.reasoning(compiled, end)
    except NotImplementedError:
        return ReasoningGrammar(compiled, thinking_up_to(adapter.vocabulary, tuple(end)))


class ReasoningGrammar(CompiledGrammar):
    """A compiled grammar, for requests that think first; any compiled grammar of the same vocabulary can be
    wrapped, and at no cost."""

    def __init__(self, inner: CompiledGrammar, thinking: Thinking) -> None:
        self.inner = inner
        self.thinking = thinking

    def start(self) -> GrammarObject:
        inner = self.inner.start()
        return _kind(inner)(inner, self.thinking, (), None)

    def serialize(self) -> bytes:
        return self.inner.serialize()


class ReasoningObject(GrammarObject):
    """The inner object, which stays at its start until the thinking has ended; the ids up to there are never
    shown to it."""

    def __init__(
        self, inner: GrammarObject, thinking: Thinking, thought: Sequence[int], answered: int | None
    ) -> None:
        """`thought` says for each token of the thinking part, its end included, how many ids of the end stand
        at the end of the text there; `answered` is how many tokens came behind it, None while thinking."""
        self.inner = inner
        self._thinking = thinking
        self._thought = list(thought)
        self._answered = answered

    @property
    def thinks(self) -> bool:
        """Returns whether the thinking has not ended yet."""
        return self._answered is None

    @property
    def thought(self) -> int:
        """Returns how many tokens are of the thinking part, its end included."""
        return len(self._thought)

    def begin(self, thinks: bool) -> None:
        """Says, before the first token, whether this request thinks at all. Raises ValueError later."""
        if self._thought or self._answered:
            raise ValueError(
                f"{self.thought + (self._answered or 0)} tokens have been accepted; it is too "
                "late to switch the thinking"
            )
        self._answered = None if thinks else 0

    def fill_bitmask(self, bitmask: Bitmask) -> None:
        if self._answered is None:
            np.copyto(bitmask, self._thinking.bitmask)
        else:
            self.inner.fill_bitmask(bitmask)

    def filler(self, bitmask: Bitmask) -> Callable[[], object]:
        inner = self.inner.filler(bitmask)

        def fill() -> None:
            if self._answered is None:
                np.copyto(bitmask, self._thinking.bitmask)
            else:
                inner()

        return fill

    def fill_bool_mask(self, mask: BoolMask) -> None:
        if self._answered is None:
            np.copyto(mask, self._thinking.forbidden)
        else:
            self.inner.fill_bool_mask(mask)

    def accept_token(self, token: int) -> bool:
        if self._answered is not None:
            accepted = self.inner.accept_token(token)
            self._answered += accepted
            return accepted
        if not self._thinking.allows(token):
            return False
        matched = self._thinking.advance(self._thought[-1] if self._thought else 0, token)
        self._thought.append(matched)
        if matched == len(self._thinking.end):
            self._answered = 0
        return True

    def accept_tokens(self, tokens: Sequence[int]) -> int:
        thought = 0
        while self._answered is None:
            if thought == len(tokens) or not self.accept_token(tokens[thought]):
                return thought
            thought += 1
        answered = self.inner.accept_tokens(tokens[thought:])
        self._answered += answered
        return thought + answered

    def is_accepting(self) -> bool:
        return self._answered is not None and self.inner.is_accepting()

    def is_terminated(self) -> bool:
        return self._answered is not None and self.inner.is_terminated()

    def rollback(self, count: int) -> None:
        answered = self._answered or 0
        if not 0 <= count <= self.thought + answered:
            raise ValueError(f"cannot take back {count} of {self.thought + answered} tokens")
        back = min(count, answered)
        if back:
            self.inner.rollback(back)
        if self._answered is not None:
            self._answered = answered - back
        if count > back:  # past the border, the end of the thinking first
            del self._thought[back - count :]
            self._answered = None

    def copy(self) -> GrammarObject:
        return _kind(self.inner)(self.inner.copy(), self._thinking, self._thought, self._answered)

    def jump_forward(self) -> bytes:
        return b"" if self._answered is None else self.inner.jump_forward()

    def fast_forward_tokens(self) -> list[int]:
        return [] if self._answered is None else self.inner.fast_forward_tokens()


def _kind(inner: GrammarObject) -> type[ReasoningObject]:
    """Returns the class of objects around this one: it does not define what that one does not, so that
    asking tells the truth."""
    optional = ("rollback", "copy", "fill_bool_mask")
    return _class(type(inner).__name__, tuple(name for name in optional if not overrides(inner, name)))


@lru_cache(maxsize=64)
def _class(name: str, lacking: tuple[str, ...]) -> type[ReasoningObject]:
    methods = {method: getattr(GrammarObject, method) for method in lacking}
    return type(f"{name}WithReasoning", (ReasoningObject,), methods)
