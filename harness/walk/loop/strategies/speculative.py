"""Speculative decoding: several tokens are tried in one pass. They are copied from earlier text, or proposed
by a smaller model.

The loop makes the masks along the draft, keeps a token only where its sampler would have chosen it, and rolls
the rest back; under greedy decoding the output is that of `stepwise`. A smaller model knows nothing of the
grammar: a token that the mask forbids ends the draft.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.backend.grammar import shared_length
from harness.backend.vocabulary import Vocabulary
from harness.errors import BadInput
from harness.walk.loop.lookup import Lookup
from harness.walk.loop.strategies.base import Strategy

if TYPE_CHECKING:
    from harness.walk.loop.active import ActiveRequest
    from harness.walk.loop.forward import Forward

MOST = 200
"""The most draft tokens; a pass over more costs as much as it saves."""


@dataclass
class _History:
    """What is known of a request."""

    ids: list[int]
    """The request's output when it was looked at last."""
    lookup: Lookup | None
    held: list[int]
    """The token ids in the draft model's row: prompt, output, and the beginning of a draft."""


class Speculative(Strategy):
    """Drafts by `model`, which has the vocabulary and rows of the loop's model, or, where that is None, by
    prompt-lookup with n-grams of up to `longest` tokens."""

    name = "speculative"

    def __init__(
        self, vocabulary: Vocabulary, *, draft_tokens: int = 4, longest: int = 3, model: Forward | None = None
    ) -> None:
        """Raises BadInput for a number out of range."""
        super().__init__(vocabulary)
        if not 1 <= draft_tokens <= MOST:
            raise BadInput(f"speculative: {draft_tokens} draft tokens; give 1 to {MOST}")
        if longest < 1:
            raise BadInput(f"speculative: an n-gram of {longest} tokens; give at least 1")
        self.draft_tokens = draft_tokens
        self._longest = longest
        self._model = model
        self._histories: dict[int, _History] = {}

    def draft(self, active: ActiveRequest) -> Sequence[int]:
        prompt, ids = active.request.prompt, active.ids
        most = min(self.draft_tokens, active.request.limit - len(ids) - 1)
        if most < 1:
            return ()
        history = self._histories.get(id(active))
        if history is None:
            history = self._histories[id(active)] = _History(
                list(ids), None if self._model else Lookup([*prompt, *ids], self._longest), []
            )
        keep = _common(history.ids, ids)
        if history.lookup is None:
            proposed = self._propose(active.row, history.held, [*prompt, *ids], most)
        else:
            history.lookup.update(len(prompt) + keep, ids[keep:])
            proposed = history.lookup.propose(most)
        history.ids[keep:] = ids[keep:]
        end = next(
            (at for at, token in enumerate(proposed) if token in self.vocabulary.eos_tokens), len(proposed)
        )
        return proposed[: end + 1]  # nothing comes behind the end

    def finished(self, active: ActiveRequest) -> None:
        if self._histories.pop(id(active), None) is not None and self._model is not None:
            self._model.rollback(active.row, 0)

    def _propose(self, row: int, held: list[int], wanted: list[int], most: int) -> list[int]:
        """Returns the greedy continuation of `wanted` by the draft model, for one row alone."""
        model = self._model
        assert model is not None
        most = min(most, model.positions - len(wanted))
        if most < 1:
            return []
        keep = min(_common(held, wanted), len(wanted) - 1)  # feed the last token again, for its logits
        model.rollback(row, keep)
        del held[keep:]
        rest = wanted[keep:]
        proposed: list[int] = []
        while len(proposed) < most:
            for start in range(0, len(rest), model.chunk):
                logits = model.extend({row: rest[start : start + model.chunk]})
            held += rest
            token = int(logits[0, : self.vocabulary.size].argmax())
            proposed.append(token)
            if token in self.vocabulary.eos_tokens:
                break
            rest = [token]
        return proposed


def _common(left: list[int], right: Sequence[int]) -> int:
    """Returns how many leading tokens are the same."""
    if list(right[: len(left)]) == left:  # nearly always, and fast
        return len(left)
    return shared_length(left, right)
