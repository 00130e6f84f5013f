"""What llguidance knows of one output, in releases from 1.1 on and before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any

from llguidance import LLMatcher

from harness import GrammarObject
from harness.backend.grammar import Bitmask


class LlguidanceObject(GrammarObject):
    def __init__(self, adapter: Any, matcher: LLMatcher) -> None:
        self.matcher = matcher
        self._adapter = adapter
        self._ends = adapter.vocabulary.eos_tokens
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
        # A failed matcher refuses whatever is accepted next, so that its fault is not lost.
        return partial(self._fill, self._adapter.address_of(bitmask), self._bytes)

    def accept_token(self, token: int) -> bool:
        # Not consume_token: a refusal there breaks the matcher for good.
        if self.matcher.try_consume_tokens([token]):
            if token in self._ends:
                self._is_terminated = True
            return True
        return self._accept_refused(token)

    def accept_tokens(self, tokens: Sequence[int]) -> int:
        count = self.matcher.try_consume_tokens(list(tokens))
        if count and tokens[count - 1] in self._ends:
            self._is_terminated = True
        if count < len(tokens) and self._accept_refused(tokens[count]):
            count += 1
        return count

    def _accept_refused(self, token: int) -> bool:
        """Accepts end-of-sequence where the language is exhausted, and returns whether it did.

        There the library stops by itself, and its mask is end-of-sequence. `try_consume_tokens` refuses it,
        and `consume_token` takes it without recording it, so that a rollback must not count it.
        """
        if self._is_error():
            raise self.fault()
        if token not in self._ends or self._is_terminated or not self.matcher.is_stopped():
            return False
        self._is_terminated = self._is_end_unrecorded = self.matcher.consume_token(token)
        return self._is_terminated

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
        clone = type(self)(self._adapter, self.matcher.deep_copy())
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
        """Returns the matcher's error, without the dump of its state that follows."""
        return RuntimeError(self.matcher.get_error().partition("\n<state>")[0])


class StoppedObject(LlguidanceObject):
    """An object of a release before 1.1, in which a matcher that stopped by itself breaks on whatever it is
    given, end-of-sequence too."""

    def accept_token(self, token: int) -> bool:
        if self._is_error() or not self.matcher.is_stopped():
            return super().accept_token(token)
        if token not in self._ends or self._is_terminated:
            return False
        self._is_terminated = self._is_end_unrecorded = True
        return True

    def accept_tokens(self, tokens: Sequence[int]) -> int:
        return next(
            (place for place, token in enumerate(tokens) if not self.accept_token(token)), len(tokens)
        )


OBJECT = StoppedObject if tuple(map(int, version("llguidance").split(".")[:2])) < (1, 1) else LlguidanceObject
"""The class of the objects of the installed release."""
