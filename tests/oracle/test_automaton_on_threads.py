"""One automaton, asked on several threads at once: each row is filled once, by one of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from harness.oracle.automaton import Automaton


class _CountsUp(Automaton[int]):
    """Takes any bytes; each row takes a while."""

    def __init__(self) -> None:
        self.filled = Counter[int]()
        super().__init__(0)

    def _successors(self, key: int) -> Iterator[tuple[int, int, int]]:
        self.filled[key] += 1
        time.sleep(0.0005)
        yield 0, 255, key + 1

    def _is_accepting(self, key: int) -> bool:
        return key == 200


def test_every_row_is_filled_once_whoever_asks() -> None:
    automaton = _CountsUp()
    with ThreadPoolExecutor(8) as threads:
        ends = list(threads.map(lambda _: automaton.run(automaton.start, b"x" * 200), range(8)))
    assert len(set(ends)) == 1 and automaton.accepting(ends[0]), "past two growths of the table"
    assert set(automaton.filled.values()) == {1}
