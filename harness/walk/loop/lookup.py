"""Prompt-lookup: what followed the last few tokens where they stood in the prompt or output before."""

from __future__ import annotations

from collections.abc import Sequence


class Lookup:
    """The n-grams of one sequence, which grows at its end and whose end may change."""

    def __init__(self, ids: Sequence[int], longest: int) -> None:
        """`longest` is the length of the longest n-gram that is compared, in tokens."""
        self._ids = list(ids)
        self._longest = longest
        self._after: dict[tuple[int, ...], int] = {}
        """For each n-gram the index of the token that followed its last occurrence."""
        self._indexed = 0
        self._index()

    def update(self, keep: int, ids: Sequence[int]) -> None:
        """Makes the sequence its first `keep` tokens and then `ids`."""
        del self._ids[keep:]
        self._ids += ids
        self._indexed = min(self._indexed, keep)
        self._index()

    def propose(self, most: int) -> list[int]:
        """Returns at most `most` tokens that followed the longest n-gram at the end at its last occurrence;
        empty if no n-gram occurred before."""
        end = len(self._ids)
        for count in range(min(self._longest, end), 0, -1):
            gram = tuple(self._ids[end - count :])
            at = self._after.get(gram)
            # The index may still hold n-grams that the sequence has lost again.
            if at is not None and at < end and tuple(self._ids[at - count : at]) == gram:
                return self._ids[at : at + most]
        return []

    def _index(self) -> None:
        """Indexes every n-gram that is followed by a token, which are those that end before the last
        token."""
        for at in range(max(self._indexed, 1), len(self._ids)):
            for count in range(1, min(self._longest, at) + 1):
                self._after[tuple(self._ids[at - count : at])] = at
        self._indexed = len(self._ids)
