"""Jump-forward: what the backend says must come is written at once, in the tokenizer's own ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from harness.loop.respelling import follows_in, prepare, respell
from harness.loop.strategies.base import Move, Strategy

if TYPE_CHECKING:
    from harness.grammar import Grammar
    from harness.loop.live import Live


class JumpForward(Strategy):
    """The backend's forced bytes, or where it has none the tokens that it would force.

    Tokens at the end that may merge with what comes behind the text are left to the model; what may come there is asked from the
    mask behind the text, if the object can go there and back. A backend without forced text is decoded stepwise.
    """

    name: ClassVar[str] = "jump_forward"

    def prepare(self, grammar: Grammar) -> None:
        prepare(self.vocabulary)

    def advance(self, live: Live) -> Move | None:
        start = live.answer_at()  # what ends the thinking never becomes a part of another token
        if start is None:
            return None
        forced = live.jump_forward() or self.vocabulary.decode(live.fast_forward_tokens())
        if not forced:
            return None
        try:
            ahead = self.vocabulary.encode(forced)
            allowed = live.allowed_behind(ahead)
            follows = None if allowed is None else follows_in(self.vocabulary, allowed)
            move = respell(self.vocabulary, live.ids[start:], forced, follows)
        except ValueError:  # the vocabulary cannot spell it
            return None
        return move and Move(start + move.keep, move.ids)
