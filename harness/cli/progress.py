"""The progress of a command, shown by the clock, so that a slow step is not silent."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from harness.running.progress import RunProgress

from harness.text import counted, one_line, shorten

EVERY_S = 10.0
"""Seconds between two lines where the stream is no terminal; on a terminal the line is renewed
each second."""


@dataclass(eq=False)
class Ticker:
    """Shows on stderr what is being done, how much of it is done and about how long the rest takes.

    It is one live line on a terminal, and a plain line every ten seconds elsewhere. Used as a context;
    between the steps `step` says what comes next, and `say` prints a line that stays.
    """

    stream: TextIO = field(default_factory=lambda: sys.stderr)
    clock: Callable[[], float] = time.monotonic
    _done: int = 0
    _total: int = 0
    _doing: str = ""
    _started: float = 0.0
    _over: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Ticker:
        self._started = self.clock()
        self._thread = threading.Thread(target=self._tick, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        self._print("")

    def step(self, done: int, total: int, doing: str) -> None:
        """Takes note of how many of all cases are done, and of what is done now."""
        self._done, self._total, self._doing = done, total, one_line(doing)
        if self.stream.isatty():
            self._print(self.line())

    def say(self, text: str) -> None:
        """Prints a line that stays."""
        self._print(one_line(text), stays=True)

    def line(self) -> str:
        """Returns how much is done, in words."""
        elapsed = self.clock() - self._started
        if not self._total:
            return f"{elapsed:.0f} s: {self._doing}"
        share = 100 * self._done // self._total
        left = time_left(elapsed, self._done, self._total - self._done)
        return (
            f"{self._done}/{self._total} cases ({share} %), {in_words(elapsed)} so far, {left}; now "
            f"{self._doing}"
        )

    def _tick(self) -> None:
        while not self._over.wait(1.0 if self.stream.isatty() else EVERY_S):
            self._print(self.line(), stays=not self.stream.isatty())

    def _print(self, text: str, stays: bool = False) -> None:
        """Prints a line that stays, or on a terminal the live line; an empty text only wipes that."""
        terminal = self.stream.isatty()
        if not terminal and not text:
            return
        shown = text if stays else shorten(text, 100)
        with self._lock, suppress(BrokenPipeError):  # nobody listens any more, but the work goes on
            print(
                ("\r\x1b[K" if terminal else "") + shown,
                end="\n" if stays else "",
                file=self.stream,
                flush=True,
            )


def in_words(seconds: float) -> str:
    """Returns the time as people say it: in seconds up to two minutes, then in minutes, then in hours."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def time_left(elapsed: float, done: int, left: int) -> str:
    """Returns about how long the cases that are left take, where `done` others took the seconds `elapsed`."""
    return f"about {in_words(elapsed / done * left)} left" if done else "time left unknown"


@contextmanager
def progress_line(stream: TextIO) -> Iterator[Callable[[RunProgress], None]]:
    """Yields a function that shows on the stream how much is done, the rate, the time left and the failures
    so far.

    It is one live line on a terminal, and a plain line every ten seconds elsewhere.
    """
    terminal = hasattr(stream, "isatty") and stream.isatty()  # one of a program's own may only log
    started = last_line = time.monotonic()
    first: int | None = None

    def show(progress: RunProgress) -> None:
        nonlocal started, last_line, first
        now = time.monotonic()
        if first is None:
            first, started = progress.done, now
        if not terminal and now - last_line < EVERY_S and progress.done < progress.total:
            return
        last_line = now
        elapsed, done = max(now - started, 1e-9), progress.done - first
        left = time_left(elapsed, done, progress.total - progress.done)
        share = 100 * progress.done // max(progress.total, 1)
        text = (
            f"{progress.done}/{progress.total} cases ({share} %), {done / elapsed:.1f}/s, {left}, "
            f"{counted(progress.failures, 'broken walk')}"
        )
        line, end = (f"\r\x1b[K{text}", "") if terminal else (text, "\n")
        print(line, end=end, file=stream, flush=True)

    try:
        yield show
    finally:
        if terminal:
            print(file=stream)
