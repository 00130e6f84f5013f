"""What a strategy is: asked after each accepted token what may be written without logits, or what to try in the next pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from harness.grammar import Grammar
    from harness.loop.live import Live
    from harness.vocabulary import Vocabulary


@dataclass(frozen=True)
class Move:
    """`history[:keep] + ids` is the output from now on; nothing changes where `keep` is all of it and `ids` is empty."""

    keep: int
    ids: Sequence[int]


class Strategy:
    """One per loop. The base writes nothing and drafts nothing: one token a pass (`stepwise`)."""

    name: ClassVar[str] = "stepwise"
    draft_tokens: int = 0
    """The most that `draft` proposes; the loop then asks the model for logits at every appended token."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    def prepare(self, grammar: Grammar) -> None:
        """Before anything is timed: once for each grammar of a run."""

    def begin(self, live: Live) -> Move | None:
        """Before the first pass: what the output begins with, whatever the model says."""
        return self.advance(live)

    def advance(self, live: Live) -> Move | None:
        """After an accepted token: what to write without logits. The loop moves grammar and cache; the strategy leaves them in place.

        Calls into the grammar are made through `live`, which times them and books what they raise as the backend's fault.
        """
        return None

    def draft(self, live: Live) -> Sequence[int]:
        """Tokens to try behind the output in the next pass; each is kept only if the sampler chooses it under its mask."""
        return ()

    def finished(self, live: Live) -> None:
        """The request is done: forget it."""
