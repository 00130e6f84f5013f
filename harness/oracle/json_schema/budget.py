"""What one automaton of JSON Schema may cost: a schema that takes too long has no reference."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from harness.oracle.automaton import NoOracle

SECONDS = 6.0
"""Processor time of its thread that an automaton may take in all; of MaskBench's files three in 325 need more
than one second."""

EVERY = 400
"""One in so many calls of `check` looks at the clock."""


class Budget:
    """Processor time of the thread, which is spent between `spending` and its end only."""

    def __init__(self, seconds: float) -> None:
        self._seconds = self._left = seconds
        self._end: float | None = None
        self._calls = 0

    def another(self) -> Budget:
        """Returns a budget of as much time, of which nothing is spent."""
        return Budget(self._seconds)

    @contextmanager
    def spending(self) -> Iterator[None]:
        """The time until the end of the block is taken off; blocks within it change nothing. Raises NoOracle
        if none is left at its beginning."""
        if self._end is not None:
            yield
            return
        if self._left <= 0:
            raise self._over()
        self._end = time.thread_time() + self._left
        try:
            yield
        finally:
            self._left, self._end = self._end - time.thread_time(), None

    def check(self) -> None:
        """Raises NoOracle once the time is over; looks at the clock, which is slow on some machines, now and
        then only."""
        self._calls += 1
        if self._calls % EVERY == 0:
            self.check_now()

    def check_now(self) -> None:
        """Raises NoOracle if the time is over; for steps that may take long by themselves."""
        if self._end is not None and time.thread_time() > self._end:
            raise self._over()

    def _over(self) -> NoOracle:
        return NoOracle(f"the reference automaton takes more than {self._seconds:g} s of processor time")
