"""Reasoning: an adapter around an adapter, whose outputs begin with a thinking part that the grammar says
nothing about.

Up to and including the think-end id any text may come; behind it the inner grammar begins, at its start.
Engines differ in what they let pass while the model thinks: SGLang leaves the mask alone and vLLM sets all
its bits, so that with both end-of-sequence ends a request that has no answer, and control tokens may come
(SGLang's strict mode forbids some). Here all plain text and the think-end id are allowed, and neither
end-of-sequence nor other specials nor padding, so that an output never ends without its answer and the
contract holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import cast

import numpy as np

from harness.backend.grammar import (
    Adapter,
    Bitmask,
    BoolMask,
    CompiledGrammar,
    Grammar,
    GrammarObject,
    Kernel,
    pack_mask,
)
from harness.backend.vocabulary import Vocabulary
from harness.errors import BadInput


class Thinking:
    """The masks of the thinking part; one for each vocabulary and think-end id."""

    def __init__(self, vocabulary: Vocabulary, end: int) -> None:
        """`end` is the id that ends the thinking. Raises BadInput if that id can do no such thing."""
        if not 0 <= end < vocabulary.size or end in vocabulary.padding_tokens or end in vocabulary.eos_tokens:
            raise BadInput(
                f"token {end} of vocabulary {vocabulary.name} cannot end the thinking; give a "
                "token other than end-of-sequence"
            )
        self.end = end
        self.forbidden: BoolMask = np.zeros(vocabulary.size, dtype=np.bool_)
        self.forbidden[[*vocabulary.special_tokens, *vocabulary.padding_tokens]] = True
        self.forbidden[end] = False
        self.bitmask: Bitmask = pack_mask(~self.forbidden)
        self._is_forbidden = self.forbidden.tobytes()  # a byte is read faster than a cell of an array

    def allows(self, token: int) -> bool:
        """Returns whether the token may come next."""
        return 0 <= token < len(self._is_forbidden) and not self._is_forbidden[token]


def think_end_id(vocabulary: Vocabulary, text: str = "</think>") -> int:
    """Returns the special of that name, or else the one plain token of that text.

    Raises BadInput if there is neither.
    """
    named = [token for token, name in vocabulary.special_tokens.items() if name == text]
    token_id = named[0] if named else vocabulary.ids_by_bytes.get(text.encode())
    if token_id is None:
        raise BadInput(
            f"vocabulary {vocabulary.name} has no token {text!r} to end the thinking; name one that it has"
        )
    return token_id


class ReasoningAdapter(Adapter):
    """Compiles with the inner adapter; each object thinks first."""

    def __init__(self, inner: Adapter, end: int) -> None:
        """`end` is the think-end id. Raises BadInput if that id can do no such thing."""
        super().__init__(inner.vocabulary)
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


def with_reasoning(adapter: Adapter, end: int) -> ReasoningAdapter:
    """Returns the adapter, with a thinking part before each output, up to and including token `end`.

    Raises BadInput.
    """
    described = {
        name: getattr(adapter, name) for name in ("distribution", "dialects", "documented", "knows_one_end")
    }
    kind = type(
        f"{type(adapter).__name__}WithReasoning", (ReasoningAdapter,), {**described, "__module__": __name__}
    )
    return cast(ReasoningAdapter, kind(adapter, end))


class ReasoningGrammar(CompiledGrammar):
    """A compiled grammar, for requests that think first; any compiled grammar of the same vocabulary can be
    wrapped, and at no cost."""

    def __init__(self, inner: CompiledGrammar, thinking: Thinking) -> None:
        self.inner = inner
        self.thinking = thinking

    def start(self) -> GrammarObject:
        inner = self.inner.start()
        return _kind(type(inner))(inner, self.thinking, 0, None)

    def serialize(self) -> bytes:
        return self.inner.serialize()


class ReasoningObject(GrammarObject):
    """The inner object, which stays at its start until the think-end id; that id is never shown to it."""

    def __init__(self, inner: GrammarObject, thinking: Thinking, thought: int, answered: int | None) -> None:
        """`thought` are the tokens accepted up to and including the think-end id, and `answered` those behind
        it, None while thinking."""
        self.inner = inner
        self._thinking = thinking
        self._thought = thought
        self._answered = answered

    @property
    def thinks(self) -> bool:
        """Returns whether the think-end id has not come yet."""
        return self._answered is None

    @property
    def thought(self) -> int:
        """Returns how many tokens are of the thinking part, the think-end id included."""
        return self._thought

    def begin(self, thinks: bool) -> None:
        """Says, before the first token, whether this request thinks at all. Raises ValueError later."""
        if self._thought or self._answered:
            raise ValueError(
                f"{self._thought + (self._answered or 0)} tokens have been accepted; it is too "
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
        self._thought += 1
        if token == self._thinking.end:
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
        if not 0 <= count <= self._thought + answered:
            raise ValueError(f"cannot take back {count} of {self._thought + answered} tokens")
        back = min(count, answered)
        if back:
            self.inner.rollback(back)
        if self._answered is not None:
            self._answered = answered - back
        if count > back:  # past the border, the think-end id first
            self._thought -= count - back
            self._answered = None

    def copy(self) -> GrammarObject:
        return _kind(type(self.inner))(self.inner.copy(), self._thinking, self._thought, self._answered)

    def jump_forward(self) -> bytes:
        return b"" if self._answered is None else self.inner.jump_forward()

    def fast_forward_tokens(self) -> list[int]:
        return [] if self._answered is None else self.inner.fast_forward_tokens()


@lru_cache(maxsize=64)
def _kind(inner: type[GrammarObject]) -> type[ReasoningObject]:
    """Returns the class of objects around such a one: it does not define what the inner class does not, so
    that asking tells the truth."""
    optional = ("rollback", "copy", "fill_bool_mask")
    lacking = {
        name: getattr(GrammarObject, name)
        for name in optional
        if getattr(inner, name) is getattr(GrammarObject, name)
    }
    return type(f"{inner.__name__}WithReasoning", (ReasoningObject,), lacking)
