"""What a strategy is: after each accepted token it is asked what may be written without logits, or what to
try in the next pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from harness.backend.grammar import Grammar
    from harness.backend.vocabulary import Vocabulary
    from harness.walk.loop.active import ActiveRequest


@dataclass(frozen=True)
class Move:
    """The output becomes `history[:keep] + ids`. Nothing changes where `keep` is all of the history and `ids`
    is empty."""

    keep: int
    ids: Sequence[int]


class Strategy:
    """A strategy of one loop. The base class writes nothing and drafts nothing: each pass gives one token
    (`stepwise`)."""

    name: ClassVar[str] = "stepwise"
    draft_tokens: int = 0
    """The most tokens that `draft` proposes. If it is above 0, the loop asks the model for logits at every
    appended token."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    @property
    def only_samples(self) -> bool:
        """Whether each pass gives one token and nothing is ever written or drafted, so that what the next
        pass is fed is known from the last one alone."""
        return type(self).advance is Strategy.advance and not self.draft_tokens

    def prepare(self, grammar: Grammar) -> None:
        """Prepares for a grammar before anything is timed; called once for each grammar of a run."""

    def begin(self, active: ActiveRequest) -> Move | None:
        """Called before the first pass: what the output begins with, whatever the model predicts."""
        return self.advance(active)

    def advance(self, active: ActiveRequest) -> Move | None:
        """Called after an accepted token: what to write without logits, or None.

        The loop moves grammar and cache; the strategy leaves them in place. It calls the grammar through
        `active`, which times the calls and attributes what they raise to the backend.
        """
        return None

    def draft(self, active: ActiveRequest) -> Sequence[int]:
        """Tokens to try behind the output in the next pass. A token is kept only if the sampler chooses it
        under its mask."""
        return ()

    def finished(self, active: ActiveRequest) -> None:
        """Forgets the request, which is done."""
