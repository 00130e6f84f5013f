"""The way of a request from its arrival to a row: requests that are due, the tickets of their grammars, and
clients that leave before they are served."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Literal

from harness.backend.grammar import CompiledGrammar
from harness.walk.loop.outcome import Account, Completed, End

if TYPE_CHECKING:
    from harness.walk.loop.compiling import CompileQueue, Ticket
    from harness.walk.loop.request import Request

Fallback = Literal["unconstrained", "abort"]

POLL_NS = 500_000
"""The longest that an idle loop waits for a grammar before it looks around again, in nanoseconds."""


class Waiting:
    """A request before it has a row, and what is still needed of that time once it has one."""

    def __init__(self, request: Request, number: int) -> None:
        self.request = request
        self.number = number
        """Its index among the requests of the run."""
        self.ticket: Ticket | None = None
        self.compiled: CompiledGrammar | None = None
        self.compile_state = ""
        self.compile_ns: int | None = None
        self.waited_ns = 0
        self.fallback = ""

    def ended(self, end: End, now_ns: int, *, why: str = "") -> Completed:
        """Returns the record of a request that ended without ever having had a row."""
        return Completed(
            self.request.name, end, (), len(self.request.prompt), Account(), self.request.arrival_ns, None,
            (), now_ns, why=why,
            fallback=self.fallback, compile_state=self.compile_state, compile_ns=self.compile_ns,
            waited_ns=self.waited_ns,
        )  # fmt: skip


class Intake:
    """Requests in the order of their arrival. A request gets its grammar when it is due, and rows are given
    out in the order in which the requests are ready.

    A request that waits for its grammar holds up nobody behind it. Times are nanoseconds after the start of
    the run.
    """

    def __init__(self, requests: Sequence[Request], queue: CompileQueue | None, fallback: Fallback) -> None:
        """Without a queue every request runs unconstrained."""
        waiting = [Waiting(request, number) for number, request in enumerate(requests)]
        self._ahead = deque(sorted(waiting, key=lambda waiting: waiting.request.arrival_ns))
        self._pending: list[Waiting] = []
        self._ready: deque[Waiting] = deque()
        self._leaving = any(request.cancel_ns is not None for request in requests)
        self._queue = queue
        self._fallback = fallback
        self.ended: dict[int, Completed] = {}
        """The requests that ended without a row, by number."""
        self.counts: Counter[str] = Counter()
        self.queue_ns = 0
        """Nanoseconds spent within the compile queue: in a compile that blocks, or a poll that waits."""

    def advance(self, now_ns: int, wait_s: float = 0.0) -> None:
        """Takes in the requests that are due, drops those whose clients have left, and asks for the grammars.
        While some grammars are pending, it waits for them at most `wait_s` seconds.

        A compile that blocks also holds up the requests behind it, so the time in the queue is added to the
        clock as it passes.
        """
        began_ns = now_ns - self.queue_ns
        while self._ahead and self._ahead[0].request.arrival_ns <= now_ns:
            self._arrive(self._ahead.popleft(), began_ns + self.queue_ns)
        if self._leaving:
            self._let_go(began_ns + self.queue_ns)
        if self._pending:
            assert self._queue is not None
            before = perf_counter_ns()
            self._queue.poll(wait_s)
            self.queue_ns += perf_counter_ns() - before
            self._settle(began_ns + self.queue_ns)

    def next_ready(self) -> Waiting | None:
        """Returns the request that gets the next free row; None if none is ready."""
        return self._ready.popleft() if self._ready else None

    def idle_ns(self, now_ns: int) -> int | None:
        """Nanoseconds for which nothing can happen by itself, at most; 0 if a request is ready; None if no
        request is left."""
        if self._ready:
            return 0
        times = [self._ahead[0].request.arrival_ns] if self._ahead else []
        times += [
            waiting.request.cancel_ns for waiting in self._pending if waiting.request.cancel_ns is not None
        ]
        if self._pending:
            times.append(now_ns + POLL_NS)
        return max(min(times) - now_ns, 0) if times else None

    @property
    def is_pending(self) -> bool:
        """Returns whether a request waits for its grammar."""
        return bool(self._pending)

    def abandon(self) -> None:
        """Cancels the compiles that were asked for, because the run has failed."""
        for waiting in self._pending:
            self._cancel(waiting)
        self._pending.clear()

    def _arrive(self, waiting: Waiting, now_ns: int) -> None:
        request = waiting.request
        if request.cancel_ns is not None and request.cancel_ns <= now_ns:
            self.ended[waiting.number] = waiting.ended("cancelled", now_ns)
        elif request.grammar is None or self._queue is None:
            self._ready.append(waiting)
        else:
            before = perf_counter_ns()
            waiting.ticket = self._queue.submit(request.grammar)
            spent = perf_counter_ns() - before
            self.queue_ns += spent
            self._pending.append(waiting)
            if waiting.ticket.state != "pending":
                self._settle(now_ns + spent)

    def _settle(self, now_ns: int) -> None:
        """Moves the requests whose tickets are ready or failed out of the pending ones."""
        pending: list[Waiting] = []
        for waiting in self._pending:
            ticket = waiting.ticket
            assert ticket is not None
            if ticket.state == "pending":
                pending.append(waiting)
                continue
            waiting.compile_state, waiting.compile_ns = ticket.how, ticket.compile_ns
            waiting.waited_ns = max(now_ns - waiting.request.arrival_ns, 0)
            waiting.compiled = ticket.compiled
            waiting.ticket = None
            if ticket.state == "ready":
                self._ready.append(waiting)
            elif self._fallback == "abort":
                self.counts["aborted"] += 1
                self.ended[waiting.number] = waiting.ended(
                    "aborted", now_ns, why=f"{ticket.how}: {ticket.why}"
                )
            else:
                self.counts["fallback"] += 1
                waiting.fallback = f"{ticket.how}: {ticket.why}"
                self._ready.append(waiting)
        self._pending = pending

    def _let_go(self, now_ns: int) -> None:
        def stays(waiting: Waiting) -> bool:
            if waiting.request.cancel_ns is None or waiting.request.cancel_ns > now_ns:
                return True
            self._cancel(waiting)
            self.ended[waiting.number] = waiting.ended("cancelled", now_ns)
            return False

        self._pending = list(filter(stays, self._pending))
        self._ready = deque(filter(stays, self._ready))

    def _cancel(self, waiting: Waiting) -> None:
        waiting.compiled = None
        if waiting.ticket is not None and self._queue is not None:
            waiting.compile_state = waiting.ticket.how
            self._queue.cancel(waiting.ticket)
            waiting.ticket = None
