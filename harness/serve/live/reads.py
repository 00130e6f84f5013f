"""The time of a read, where the HTTP library gives what one read brought part by part."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class ReadClock:
    """Gives one time for each turn of the event loop.

    The library gives a part for each chunk of HTTP, and a read may bring several. It lets the loop turn
    before every read, and never between the parts of one; so the parts of a read have one time.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._now: int | None = None

    def now(self) -> int:
        """Returns the time at which this was first asked in this turn of the loop."""
        if self._now is None:
            self._now = self._clock()
            self._loop.call_soon(self._turned)
        return self._now

    def _turned(self) -> None:
        self._now = None
