"""How requests come: in an open loop, where they do not wait for answers, or in a closed one, where a fixed
number is always under way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.errors import BadInput
from harness.serve.requests import arrivals
from harness.serve.requests.words import Role

Kind = Literal["poisson", "gamma", "fixed", "trace", "closed", "first"]
"""The kinds of load. `first` sends each grammar once, one after the other, so that later requests are warm
and cold requests are timed alone."""


@dataclass(frozen=True)
class Load:
    """One phase of a session; all of its requests are done before the next phase begins."""

    kind: Kind
    role: Role
    requests: int
    rate: float | None = None
    """Requests a second, for an open loop without a trace."""
    burstiness: float = 1.0
    """Burstiness of the arrivals `gamma`."""
    concurrency: int | None = None
    """Requests under way, for a closed loop."""
    trace_s: tuple[float, ...] = ()
    """Arrivals of a trace, in seconds after the start."""

    def __post_init__(self) -> None:
        """Raises ValueError for a load without what its kind needs, which only a damaged record holds."""
        has_pace = {
            "first": True,
            "closed": (self.concurrency or 0) > 0,
            "trace": len(self.trace_s) >= self.requests,
        }.get(self.kind, (self.rate or 0) > 0)
        if self.requests < 1 or not has_pace:
            raise ValueError(f"a load of the kind {self.kind} without what this kind needs")

    @property
    def name(self) -> str:
        """Returns the load's name for readers, without the role."""
        if self.kind == "first":
            return "first requests"
        if self.kind == "closed":
            return f"{self.concurrency} at a time"
        if self.kind == "trace":
            return "trace"
        bursts = f" {self.burstiness:g}" if self.kind == "gamma" else ""
        return f"{self.rate:g}/s {self.kind}{bursts}"


def due(load: Load, seed: int) -> tuple[int, ...] | None:
    """Returns when each request is due, in nanoseconds after the load's start; None in a closed loop. Both
    roles have the same times. Raises BadInput."""
    if load.kind in ("closed", "first"):
        return None
    if load.kind == "trace":
        return arrivals.trace(load.trace_s)[: load.requests]
    rate = load.rate or 0.0
    if load.kind == "poisson":
        return arrivals.poisson(load.requests, rate, seed)
    if load.kind == "fixed":
        return arrivals.fixed(load.requests, rate)
    return arrivals.gamma(load.requests, rate, load.burstiness, seed)


def read_trace(path: Path) -> tuple[float, ...]:
    """Returns the arrivals in a file with one number on each line: seconds after the start, ascending. Raises
    BadInput."""
    try:
        lines = path.read_text("utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: cannot be read: {error}") from error
    try:
        times = tuple(float(line) for line in lines)
    except ValueError as error:
        raise BadInput(f"{path}: {error}; write one number a line, seconds after the start") from error
    if not times:
        raise BadInput(f"{path}: empty; write one number a line, seconds after the start")
    arrivals.trace(times)
    return times


Send = Callable[[int, int], Awaitable[None]]
"""Sends the request at this place in the load; the second argument is when it was due, in nanoseconds on the
session's clock."""


async def drive(load: Load, times: Sequence[int] | None, send: Send, clock: Callable[[], int]) -> None:
    """Send all requests of the load and wait for the last. If this is cancelled, so are the requests under
    way."""
    if times is None:
        await _closed(load.requests, load.concurrency or 1, send, clock)
    else:
        await _open(times, send, clock)


async def _open(times: Sequence[int], send: Send, clock: Callable[[], int]) -> None:
    start = clock()

    async def at(place: int, due_ns: int) -> None:
        while (left := due_ns - clock()) > 0:
            await asyncio.sleep(left / 1e9)
        await send(place, due_ns)

    async with asyncio.TaskGroup() as group:
        for place, time_ns in enumerate(times):
            group.create_task(at(place, start + time_ns))


async def _closed(requests: int, concurrency: int, send: Send, clock: Callable[[], int]) -> None:
    places = iter(range(requests))

    async def one_after_the_other() -> None:
        for place in places:
            await send(place, clock())

    async with asyncio.TaskGroup() as group:
        for _ in range(min(concurrency, requests)):
            group.create_task(one_after_the_other())
