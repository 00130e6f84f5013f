"""The work of a compile thread: one compile after the other, each timed alone. A thread that hangs is left
behind and replaced."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Literal

from harness.backend.grammar import Adapter, CompiledGrammar, Grammar
from harness.text import one_line
from harness.walk.replay import compile_grammar

FailureKind = Literal["timeout", "invalid", "unsupported", "fault"]

THREAD_NAME = "grammar compile"


@dataclass(frozen=True)
class Failure:
    """Why there is no compiled grammar: a kind, and one line in the backend's words."""

    kind: FailureKind
    why: str


@dataclass(frozen=True, eq=False)
class CompileOutcome:
    """The result of one compile."""

    result: CompiledGrammar | Failure
    compile_ns: int | None
    """Wall time of the compile alone in nanoseconds, whatever the other threads did meanwhile; None if it was
    given up."""


def compile_one(adapter: Adapter, grammar: Grammar) -> CompileOutcome:
    """Compiles the grammar. Whatever the backend raises, a panic of Rust included, is a Failure."""
    compiled = compile_grammar(adapter, grammar, memoryview(bytearray(1)))
    if compiled.grammar is not None:
        return CompileOutcome(compiled.grammar, compiled.compile_ns)
    kind: FailureKind = (
        "invalid"
        if compiled.status == "invalid"
        else "unsupported"
        if compiled.status == "unsupported"
        else "fault"
    )
    return CompileOutcome(Failure(kind, one_line(compiled.text)), compiled.compile_ns)


class Job:
    """One compile for one or more requests.

    Threads write to it only under the lock of CompileThreads.
    """

    __slots__ = ("__weakref__", "abandoned", "grammar", "outcome", "started_ns", "thread")

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.started_ns: int | None = None
        """When a thread took it up, by `time.monotonic_ns`; None before."""
        self.thread: threading.Thread | None = None
        self.outcome: CompileOutcome | None = None
        self.abandoned = False
        """For a compile that has not begun: it never begins. For one that has: its thread ends with it and no
        longer counts as one of ours."""


class CompileThreads:
    """`count` daemon threads that compile.

    Native code cannot be interrupted: an abandoned compile goes on, in an extra thread.
    """

    def __init__(self, adapter: Adapter, count: int) -> None:
        self._shared = _Shared(adapter)
        self._threads: set[threading.Thread] = set()
        for _ in range(count):
            self._add_thread()

    def start(self, job: Job) -> None:
        """Compiles the job when a thread is free; first come, first served."""
        self._shared.jobs.put(job)

    def finished(self, wait_s: float) -> Job | None:
        """Returns the next job that has its outcome, abandoned ones included; None if there is none within
        `wait_s` seconds."""
        try:
            return self._shared.done.get(timeout=wait_s) if wait_s > 0 else self._shared.done.get_nowait()
        except Empty:
            return None

    def running(self) -> list[Job]:
        """Returns the jobs that are now in a thread, abandoned ones included."""
        with self._shared.lock:
            return list(self._shared.running)

    def drop(self, job: Job) -> bool:
        """Marks a job that has not begun as abandoned; returns False if it has begun."""
        with self._shared.lock:
            if job.started_ns is not None:
                return False
            job.abandoned = True
            return True

    def abandon(self, job: Job) -> bool:
        """Leaves the thread of a running job to itself and puts a new one in its place; returns False if
        there is nothing to leave."""
        with self._shared.lock:
            if job.abandoned or job not in self._shared.running:
                return False
            job.abandoned = True
            assert job.thread is not None
            self._threads.discard(job.thread)
        self._add_thread()
        return True

    def close(self) -> None:
        """Ends the idle threads. A thread in a compile ends after it, and its result is dropped."""
        with self._shared.lock:
            self._shared.closed = True
            busy = {job.thread for job in self._shared.running}
        for _ in self._threads:
            self._shared.jobs.put(None)
        for thread in self._threads - busy:
            thread.join()
        self._threads.clear()
        while self.finished(0) is not None:
            pass

    def _add_thread(self) -> None:
        thread = threading.Thread(target=_work, args=(self._shared,), name=THREAD_NAME, daemon=True)
        self._threads.add(thread)
        thread.start()


class _Shared:
    """What the threads share: nothing that leads back to the queue."""

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self.lock = threading.Lock()
        self.jobs: SimpleQueue[Job | None] = SimpleQueue()
        self.done: SimpleQueue[Job] = SimpleQueue()
        self.running: set[Job] = set()
        self.closed = False


def _work(shared: _Shared) -> None:
    while (job := shared.jobs.get()) is not None:
        if not _take(shared, job):
            return
        del job  # an idle thread holds no grammar


def _take(shared: _Shared, job: Job) -> bool:
    """Compiles the job if it is still wanted; returns False if the thread must end."""
    with shared.lock:
        if shared.closed:
            return False
        if job.abandoned:
            return True
        job.started_ns, job.thread = time.monotonic_ns(), threading.current_thread()
        shared.running.add(job)
    outcome = compile_one(shared.adapter, job.grammar)
    with shared.lock:
        shared.running.discard(job)
        job.thread = None
        if shared.closed:
            return False
        job.outcome = outcome
        shared.done.put(job)
        return not job.abandoned
