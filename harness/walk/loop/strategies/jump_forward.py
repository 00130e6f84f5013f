"""Jump-forward: text that must come according to the backend is written at once, in the tokenizer's own
ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from harness.walk.loop.respelling import follows_in, prepare, respell
from harness.walk.loop.strategies.base import Move, Strategy

if TYPE_CHECKING:
    from harness.backend.grammar import Grammar
    from harness.walk.loop.active import ActiveRequest


class JumpForward(Strategy):
    """Writes the backend's forced bytes or, if it knows of no bytes, the tokens that it would force.

    Tokens at the end that may merge with what follows the text are left to the model. What may follow is read
    from the mask behind the text, if the object can roll back or be copied: it then goes forward, back, and
    forward again when the text is written. A backend without forced text is decoded stepwise.
    """

    name: ClassVar[str] = "jump_forward"

    def prepare(self, grammar: Grammar) -> None:
        prepare(self.vocabulary)

    def advance(self, active: ActiveRequest) -> Move | None:
        start = active.answer_at()  # what ends the thinking never becomes a part of another token
        if start is None:
            return None
        forced = active.forced()
        if not forced:
            return None
        try:
            ahead = self.vocabulary.encode(forced)
            allowed = active.allowed_behind(ahead)
            follows = None if allowed is None else follows_in(self.vocabulary, allowed)
            move = respell(self.vocabulary, active.ids[start:], forced, follows)
        except ValueError:  # the vocabulary cannot spell it
            return None
        return move and Move(start + move.keep, move.ids)
