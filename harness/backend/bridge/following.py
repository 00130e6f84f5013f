"""A grammar that follows the output ids of a request, for engines that give ids and not events.

It keeps what it has accepted, accepts only what is new, and goes back where the ids differ from what it has
accepted. Once a request has ended, only end-of-sequence is allowed, and the padding behind it is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from harness.backend.bridge.to_sglang import GrammarForSGLang, TokenRefused
from harness.backend.grammar import Adapter, CompiledGrammar, shared_length

if TYPE_CHECKING:
    import torch

Phase = Literal["start", "accept", "rollback", "fill"]


class BackendFault(RuntimeError):
    """The backend raised; the message says in which call, after how many tokens, and what."""

    def __init__(self, phase: Phase, row: str, after: int, error: BaseException) -> None:
        super().__init__(
            f"{row}: the backend raised in {phase} after {after} tokens: {type(error).__name__}: {error}"
        )
        self.phase = phase


class Follower:
    """One request's grammar, led along its output ids."""

    def __init__(self, adapter: Adapter, compiled: CompiledGrammar, row: str = "the request") -> None:
        """`row` is what messages call the request. Raises BackendFault."""
        self._adapter = adapter
        self._compiled = compiled
        self._row = row
        self._ids: list[int] = []
        self.size = adapter.vocabulary.size
        self.grammar = self._start()

    def extend(self, tokens: Sequence[int]) -> None:
        """Accepts new ids. Raises ValueError if the grammar refuses one, and BackendFault if the backend
        raises."""
        for token in tokens:
            try:
                with self._fault_in("accept"):
                    self.grammar.accept_token(token)
            except TokenRefused as refused:
                raise ValueError(
                    f"{self._row}: {refused}; tokens must be chosen under the mask, and without beams"
                ) from refused
            self._ids.append(token)

    def go_to(self, ids: Sequence[int]) -> None:
        """Goes to where these output ids lead, from what they share with the ids of the last call.

        Raises what `extend` raises.
        """
        last = len(self._ids)
        kept = last if list(ids[:last]) == self._ids else shared_length(self._ids, ids)
        if kept < last:
            self._back_to(kept)
        self.extend(ids[kept:])

    def fill(self, mask: torch.Tensor, row: int) -> None:
        """Writes what may come next into a row of the mask. Raises BackendFault."""
        with self._fault_in("fill"):
            self.grammar.fill_vocab_mask(mask, row)

    def _start(self) -> GrammarForSGLang:
        with self._fault_in("start"):
            return GrammarForSGLang(self._compiled, self._adapter.vocabulary, self._adapter.mask_format)

    def _back_to(self, kept: int) -> None:
        replayed = self._ids[:kept]
        try:
            with self._fault_in("rollback"):
                self.grammar.rollback(len(self._ids) - kept)
            self._ids = replayed
        except BackendFault as fault:
            if not isinstance(fault.__cause__, NotImplementedError):
                raise
            # Rollback is optional in the contract; without it all ids are accepted anew.
            self._ids, self.grammar = [], self._start()
            self.extend(replayed)

    @contextmanager
    def _fault_in(self, phase: Phase) -> Iterator[None]:
        try:
            yield
        except (TokenRefused, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic in Rust is no Exception
            raise BackendFault(phase, self._row, len(self._ids), error) from error


class Masking:
    """A mask for some rows of logits, filled and applied together."""

    def __init__(self) -> None:
        self._mask: torch.Tensor | None = None

    def apply(self, logits: torch.Tensor, followers: Mapping[int, Follower]) -> None:
        """Masks the logits in place; rows without a follower are left as they are.

        Raises ValueError if there are fewer logits than ids.
        """
        if not followers:
            return
        rows = sorted(followers)
        first, (batch, width) = followers[rows[0]], logits.shape
        if width < first.size:
            raise ValueError(
                f"{width} logits for a vocabulary of {first.size} tokens; give the adapter the "
                "model's own vocabulary"
            )
        grammar, mask = first.grammar, self._mask
        if mask is None or len(mask) < batch:
            mask = self._mask = grammar.allocate_vocab_mask(width, batch, "cpu")
        for row in rows:
            followers[row].fill(mask, row)
        if len(rows) == batch:
            grammar.apply_vocab_mask(logits, grammar.move_vocab_mask(mask[:batch], logits.device))
        else:
            chosen = logits[rows]
            grammar.apply_vocab_mask(chosen, grammar.move_vocab_mask(mask[rows], logits.device))
            logits[rows] = chosen
