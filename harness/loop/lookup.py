"""Prompt-lookup: what followed the last few tokens when they stood in prompt or output before."""

from __future__ import annotations

from collections.abc import Sequence


class Lookup:
    """The n-grams of one sequence that grows at its end, and whose end may change."""

    def __init__(self, ids: Sequence[int], longest: int) -> None:
        """`longest`: the most tokens that are compared."""
        self._ids = list(ids)
        self._longest = longest
        self._after: dict[tuple[int, ...], int] = {}
        """Where the token stands that followed the n-gram when it came last."""
        self._indexed = 0
        self._index()

    def update(self, keep: int, ids: Sequence[int]) -> None:
        """The sequence is now its first `keep` tokens and then `ids`."""
        del self._ids[keep:]
        self._ids += ids
        self._indexed = min(self._indexed, keep)
        self._index()

    def propose(self, most: int) -> list[int]:
        """At most so many tokens that followed the longest n-gram at the end when it came before; none if it never did."""
        end = len(self._ids)
        for count in range(min(self._longest, end), 0, -1):
            gram = tuple(self._ids[end - count :])
            at = self._after.get(gram)
            # What the sequence has lost again may still stand in the index.
            if at is not None and at < end and tuple(self._ids[at - count : at]) == gram:
                return self._ids[at : at + most]
        return []

    def _index(self) -> None:
        """Every n-gram that something follows: those that end before the last token."""
        for at in range(max(self._indexed, 1), len(self._ids)):
            for count in range(1, min(self._longest, at) + 1):
                self._after[tuple(self._ids[at - count : at])] = at
        self._indexed = len(self._ids)
