"""The compile cache and the asynchronous compile queue, as serving engines have them.

A grammar that is in the cache is a hit; one that is being compiled for another request is shared; else it is
a miss, and a thread compiles it. Every request starts a GrammarObject of its own from the compiled grammar
(an engine's copy per request).

A request is given up when its grammar's compile has run for `timeout_s`, or when it has been asked for
`most_polls` times, waiting for a thread included. The compile itself goes on, since native code cannot be
interrupted, and another thread takes the place of its own. Its late result goes to the cache and to requests
that came for the same grammar since. The cache remembers what a backend refuses (invalid, unsupported), but
neither faults nor timeouts, which need not happen again. (SGLang remembers timeouts too.) It has no bound, as
SGLang's.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Literal

from harness.backend.grammar import Adapter, CompiledGrammar, Grammar
from harness.walk.loop.compile_job import CompileOutcome, CompileThreads, Failure, Job, compile_one

State = Literal["pending", "ready", "failed"]
How = Literal["hit", "miss", "shared", "timeout", "invalid", "unsupported", "fault"]

COUNTS = (
    "cache_hit", "cache_miss", "cache_shared", "polls", "timeout", "invalid", "unsupported", "fault",
    "cancelled", "abandoned", "late",
)  # fmt: skip
"""The names of the queue's counts: requests by how they came to a grammar or did not; polls while a request
waited; threads that were left behind (`abandoned`); compiles that ended after that (`late`)."""


@dataclass(eq=False)
class Ticket:
    """One request's claim on a compiled grammar."""

    number: int
    """The place of the ticket in the order of the requests, from 0."""
    grammar: Grammar
    state: State = "pending"
    how: How = "miss"
    """While the ticket is pending and when it is ready: `hit`, `miss` or `shared`. When it failed: why (a
    cancelled or closed ticket keeps what it had)."""
    compiled: CompiledGrammar | None = None
    """The compiled grammar, which all requests for it share; `start()` gives each its own object."""
    why: str = ""
    compile_ns: int | None = None
    """Nanoseconds of the compile that this request caused; None if it caused none, or the compile was given
    up."""


@dataclass(eq=False)
class _Compile:
    """A compile that has not ended, and the tickets that wait for it, by number."""

    job: Job
    waiting: dict[int, _Waiting] = field(default_factory=dict)


@dataclass(eq=False)
class _Waiting:
    ticket: Ticket
    since_ns: int
    """When the request came, by `time.monotonic_ns`."""
    since_poll: int
    compile: _Compile | None
    outcome: CompileOutcome | None = None
    """The compile's outcome, once it is known."""


class CompileQueue:
    """Compiles grammars for the requests of one loop. It is not thread-safe: the loop that submits also
    polls.

    `workers` 0 compiles within `submit`, as engines without a queue do; nothing is then given up. With
    `poll_interval_s` every poll waits up to that many seconds for what is pending.
    """

    def __init__(
        self,
        adapter: Adapter,
        *,
        cache: bool = True,
        workers: int = 1,
        timeout_s: float = 60.0,
        poll_interval_s: float = 0.0,
        most_polls: int | None = None,
    ) -> None:
        self.adapter = adapter
        self._caching = cache
        self._timeout_ns = round(timeout_s * 1e9)
        self._poll_interval_s = poll_interval_s
        self._most_polls = most_polls
        self._threads = CompileThreads(adapter, workers) if workers else None
        self._cache: dict[Grammar, CompileOutcome] = {}
        self._under_way: dict[Grammar, _Compile] = {}
        self._compiles: dict[Job, _Compile] = {}
        self._pending: dict[int, _Waiting] = {}
        self._known: dict[int, _Waiting] = {}
        """The pending tickets whose outcome is known, until they are settled."""
        self._submitted = 0
        self.counts: dict[str, int] = dict.fromkeys(COUNTS, 0)

    def __enter__(self) -> CompileQueue:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, grammar: Grammar) -> Ticket:
        """Asks for a grammar. Returns a ticket, which is settled already if that is possible at once."""
        ticket = Ticket(self._submitted, grammar)
        self._submitted += 1
        waiting = _Waiting(ticket, time.monotonic_ns(), self.counts["polls"], None)
        self._pending[ticket.number] = waiting
        if (remembered := self._cache.get(grammar)) is not None:
            ticket.how = "hit"
            self._note_outcome(waiting, remembered)
        elif (under_way := self._under_way.get(grammar)) is not None:
            ticket.how = "shared"
            self._join(waiting, under_way)
        elif self._threads is None:
            outcome = compile_one(self.adapter, grammar)
            self._remember(grammar, outcome)
            self._note_outcome(waiting, outcome)
        else:
            self._join(waiting, self._begin(grammar, self._threads))
        self.counts[f"cache_{ticket.how}"] += 1
        self._settle()
        return ticket

    def poll(self, wait_s: float = 0.0) -> None:
        """Settles the tickets whose compiles are done or given up. Waits for that at most `wait_s` seconds,
        or the poll interval if that is longer."""
        if self._threads is not None:
            self._collect(self._threads, max(wait_s, self._poll_interval_s))
        if not self._pending:
            return
        self.counts["polls"] += 1
        if self._threads is not None:
            self._give_up(self._threads)
        self._settle()

    def cancel(self, ticket: Ticket) -> None:
        """Forgets the ticket of a request that is gone. A compile that has begun goes on for the cache."""
        ticket.compiled = None
        waiting = self._pending.pop(ticket.number, None)
        if waiting is None:
            return
        self._known.pop(ticket.number, None)
        ticket.state, ticket.why = "failed", "cancelled"
        self.counts["cancelled"] += 1
        self._leave(waiting)

    def close(self) -> None:
        """Ends the threads that are not in a compile, and forgets everything; what is pending fails.

        After this only `counts` may be used.
        """
        if self._threads is not None:
            self._threads.close()
        for waiting in self._pending.values():
            waiting.ticket.state, waiting.ticket.why = "failed", "the queue was closed"
        for table in (self._pending, self._known, self._cache, self._under_way, self._compiles):
            table.clear()

    def _begin(self, grammar: Grammar, threads: CompileThreads) -> _Compile:
        begun = _Compile(Job(grammar))
        self._compiles[begun.job] = begun
        if self._caching:
            self._under_way[grammar] = begun
        threads.start(begun.job)
        return begun

    def _join(self, waiting: _Waiting, under_way: _Compile) -> None:
        waiting.compile = under_way
        under_way.waiting[waiting.ticket.number] = waiting

    def _leave(self, waiting: _Waiting) -> None:
        """Takes a ticket away from its compile. A compile that has not begun and that no ticket waits for
        never begins."""
        under_way, waiting.compile = waiting.compile, None
        if under_way is None:
            return
        under_way.waiting.pop(waiting.ticket.number, None)
        if not under_way.waiting and self._threads is not None and self._threads.drop(under_way.job):
            self._forget(under_way)

    def _forget(self, ended: _Compile) -> None:
        del self._compiles[ended.job]
        if self._under_way.get(ended.job.grammar) is ended:
            del self._under_way[ended.job.grammar]

    def _collect(self, threads: CompileThreads, wait_s: float) -> None:
        """Takes in what the threads have done, waiting at most `wait_s` seconds while a ticket has no
        outcome."""
        until = time.monotonic() + wait_s
        while True:
            left = until - time.monotonic() if len(self._known) < len(self._pending) else 0.0
            job = threads.finished(left)
            if job is None:
                return
            assert job.outcome is not None
            ended = self._compiles[job]
            self._forget(ended)
            self.counts["late"] += job.abandoned
            self._remember(job.grammar, job.outcome)
            for waiting in ended.waiting.values():
                waiting.compile = None
                self._note_outcome(waiting, job.outcome)

    def _give_up(self, threads: CompileThreads) -> None:
        """Times out the tickets that have waited long enough, and abandons the threads that hang."""
        now = time.monotonic_ns()
        for job in threads.running():
            assert job.started_ns is not None
            under_way = self._compiles[job]
            for waiting in list(under_way.waiting.values()):
                if now - max(job.started_ns, waiting.since_ns) >= self._timeout_ns:
                    self._time_out(waiting, f"the compile ran for more than {self._timeout_ns / 1e9:g} s")
            if now - job.started_ns >= self._timeout_ns:
                self.counts["abandoned"] += threads.abandon(job)
        if self._most_polls is None:
            return
        for waiting in self._pending.values():  # the oldest first
            if self.counts["polls"] - waiting.since_poll < self._most_polls:
                return
            if waiting.outcome is None:
                under_way_now = waiting.compile
                self._time_out(waiting, f"no grammar after {self._most_polls} polls")
                if under_way_now is not None and not under_way_now.waiting:
                    self.counts["abandoned"] += threads.abandon(under_way_now.job)

    def _time_out(self, waiting: _Waiting, why: str) -> None:
        self._leave(waiting)
        self._note_outcome(waiting, CompileOutcome(Failure("timeout", why), None))

    def _remember(self, grammar: Grammar, outcome: CompileOutcome) -> None:
        refused_for_now = isinstance(outcome.result, Failure) and outcome.result.kind in ("timeout", "fault")
        if self._caching and not refused_for_now:
            self._cache[grammar] = outcome

    def _note_outcome(self, waiting: _Waiting, outcome: CompileOutcome) -> None:
        waiting.outcome = outcome
        self._known[waiting.ticket.number] = waiting

    def _settle(self) -> None:
        """Settles the tickets whose outcome is known."""
        for number, waiting in self._known.items():
            del self._pending[number]
            ticket, outcome = waiting.ticket, waiting.outcome
            assert outcome is not None
            if ticket.how == "miss":
                ticket.compile_ns = outcome.compile_ns
            if isinstance(outcome.result, Failure):
                ticket.how, ticket.why, ticket.state = outcome.result.kind, outcome.result.why, "failed"
                self.counts[ticket.how] += 1
            else:
                ticket.compiled, ticket.state = outcome.result, "ready"
        self._known.clear()
