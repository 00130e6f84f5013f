"""The least answers of questions that may ask for one another, and for themselves."""

from __future__ import annotations

from collections.abc import Callable, Hashable

NOTHING = 1 << 30
"""The depth that stands for no search."""


class LeastAnswers:
    """Answers questions by searches that ask further questions; more that is true makes no search false.

    A question that is asked again inside of its own search is taken for false there: a value that has itself
    as a part is none. What was found false by that holds while the searches that were taken for false are
    under way. It is known once the outermost of them has ended with false, and forgotten if one of them ends
    with true. So each question is searched a few times at most, however often it is asked.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, bool] = {}
        self._open: dict[Hashable, int] = {}
        """The searches under way, and how deep each is within the others."""
        self._assumed: dict[Hashable, int] = {}
        """What was found false because a search under way was taken for false, in the order in which it was
        found, each with the lowest depth of any such search until then."""
        self._lowest = NOTHING
        """The lowest depth of a search that the search under way took for false."""

    @property
    def is_idle(self) -> bool:
        """Returns whether no search is under way, so that whatever is answered now is known."""
        return not self._open

    def is_known_true(self, key: Hashable) -> bool:
        """Returns whether the answer is known, and true."""
        return self._known.get(key, False)

    def answer(self, key: Hashable, search: Callable[[], bool]) -> bool:
        """Returns the least answer to the question with this key. What the search raises is passed on."""
        found = self._known.get(key)
        if found is not None:
            return found
        taken = self._open.get(key)
        if taken is None and key in self._assumed:
            taken = self._lowest_assumed()
        if taken is not None:
            self._lowest = min(self._lowest, taken)
            return False
        return self._searched(key, search)

    def _searched(self, key: Hashable, search: Callable[[], bool]) -> bool:
        depth = self._open[key] = len(self._open)
        outer, self._lowest = self._lowest, NOTHING
        before, found = len(self._assumed), None
        try:
            found = search()
        finally:
            del self._open[key]
            own = self._lowest if self._lowest < depth else NOTHING
            # Whatever is true stays true if more is, and depends on nothing that was taken for false.
            self._lowest = outer if found else min(outer, own)
            if found is not False:  # it is true, or the search failed: what took it for false is not known
                self._since(before)
        if found:
            self._known[key] = True
        elif own == NOTHING:
            self._known |= dict.fromkeys((key, *self._since(before)), False)
        else:
            self._assumed[key] = min(own, self._lowest_assumed())
        return found

    def _since(self, before: int) -> list[Hashable]:
        """Takes out what was found false by assumption since there were so many, and returns it."""
        return [self._assumed.popitem()[0] for _ in range(len(self._assumed) - before)]

    def _lowest_assumed(self) -> int:
        """Returns the lowest depth of a search on which anything found false by assumption may depend: what
        is found later within the same searches may depend on what was found before."""
        return next(reversed(self._assumed.values()), NOTHING)
