"""Speculative decoding: several tokens are tried in one pass, copied from what was there before or said by a smaller model.

The loop makes the masks along the draft, keeps a token only where its sampler would have chosen it, and rolls the rest back; under
greedy decoding the output is that of `stepwise`. A smaller model knows nothing of the grammar: what the mask forbids ends the draft.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from harness.errors import BadInput
from harness.loop.lookup import Lookup
from harness.loop.strategies.base import Strategy
from harness.vocabulary import Vocabulary

if TYPE_CHECKING:
    from harness.loop.forward import Forward
    from harness.loop.live import Live

MOST = 200
"""Draft tokens; a pass over more costs as much as it saves."""


@dataclass
class _Seen:
    """What is known of a request."""

    ids: list[int]
    """Its output, when it was last seen."""
    lookup: Lookup | None
    held: list[int]
    """What the draft model's row holds: prompt, output, and a draft's beginning."""


class Speculative(Strategy):
    """`model`: the draft's, of the same vocabulary and with the same rows as the loop's; None: prompt-lookup, by up to `longest` tokens."""

    name = "speculative"

    def __init__(self, vocabulary: Vocabulary, *, draft_tokens: int = 4, longest: int = 3, model: Forward | None = None) -> None:
        """Raises BadInput for a number that is none of ours."""
        super().__init__(vocabulary)
        if not 1 <= draft_tokens <= MOST:
            raise BadInput(f"speculative: {draft_tokens} draft tokens; give 1 to {MOST}")
        if longest < 1:
            raise BadInput(f"speculative: an n-gram of {longest} tokens; give at least 1")
        self.draft_tokens = draft_tokens
        self._longest = longest
        self._model = model
        self._seen: dict[int, _Seen] = {}

    def draft(self, live: Live) -> Sequence[int]:
        prompt, ids = live.request.prompt, live.ids
        most = min(self.draft_tokens, live.request.limit - len(ids) - 1)
        if most < 1:
            return ()
        seen = self._seen.get(id(live))
        if seen is None:
            seen = self._seen[id(live)] = _Seen(list(ids), None if self._model else Lookup([*prompt, *ids], self._longest), [])
        keep = _common(seen.ids, ids)
        if seen.lookup is None:
            proposed = self._say(live.row, seen.held, [*prompt, *ids], most)
        else:
            seen.lookup.update(len(prompt) + keep, ids[keep:])
            proposed = seen.lookup.propose(most)
        seen.ids[keep:] = ids[keep:]
        end = next((at for at, token in enumerate(proposed) if token == self.vocabulary.eos_token), len(proposed))
        return proposed[: end + 1]  # behind the end comes nothing

    def finished(self, live: Live) -> None:
        if self._seen.pop(id(live), None) is not None and self._model is not None:
            self._model.rollback(live.row, 0)

    def _say(self, row: int, held: list[int], wanted: list[int], most: int) -> list[int]:
        """What the draft model says after `wanted`, greedily, one row alone."""
        model = self._model
        assert model is not None
        most = min(most, model.positions - len(wanted))
        if most < 1:
            return []
        keep = min(_common(held, wanted), len(wanted) - 1)  # the last token once more, for its logits
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
            if token == self.vocabulary.eos_token:
                break
            rest = [token]
        return proposed


def _common(left: list[int], right: Sequence[int]) -> int:
    """How many leading tokens are the same."""
    if list(right[: len(left)]) == left:  # nearly always, and fast
        return len(left)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))
