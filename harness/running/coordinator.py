"""The coordinator: starts workers, looks after them in turn, and ends them.

It imports no backend and holds no case longer than it takes to walk it. All state that must survive is in the
run's files. What becomes of one worker and its case is in `harness.running.slot`.
"""

from __future__ import annotations

import resource
import selectors
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

from harness.backend.process.process import NARROW_BYTES
from harness.cases.plan import Plan
from harness.errors import BadInput
from harness.running import worker_process
from harness.running.recorder import Recorder
from harness.running.slot import Slot
from harness.running.work import Assignment, Sink, Work

POLL_SECONDS = 0.02
"""How often the memory and the deadline of a child are looked at."""
LOUD_SECONDS, LOUD_BYTES = 0.001, NARROW_BYTES // 2
"""How often is looked while a worker has printed more than that since the last look: a full pipe would make
it wait for us in a call that is timed. To be woken by what it prints would cost it more than to print it, and
on a busy machine its processor."""
FILES, FILES_OF_A_WORKER = 64, 8
"""The files that a run has open beside those of its workers, and those of each worker: their pipes."""
LATE_SECONDS = 1.0
"""When a turn takes longer than this, we were stopped or waited for a disk: that is no time of a backend."""


def run_all(assignment: Assignment, jobs: int) -> None:
    """Walk all of it, with so many workers at a time. Every case's rows are in the file before its worker
    gets the next case.

    Raises BadInput, once all others are walked, where an arm needs what is not here.
    """
    _allow_files(jobs)
    coordinator = Coordinator(assignment)
    try:
        for _ in coordinator.turns(jobs):
            pass
        coordinator.recorder.report(at_once=True)
        coordinator.refuse_missing()
    finally:
        coordinator.close()


def _allow_files(jobs: int) -> None:
    """Let this process open the files of so many workers, as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES + FILES_OF_A_WORKER * jobs
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class Coordinator:
    """The event loop over the slots."""

    def __init__(self, assignment: Assignment, keep: bool = False) -> None:
        """With `keep`, workers without a case wait for further `turns` until `close` ends them."""
        self.recorder = Recorder(assignment)
        self.slots: list[Slot] = []
        self._works = assignment.works
        self._keep = keep
        self._places = sys.maxsize
        """How many workers find memory at the same time, as far as is known."""
        self._selector = selectors.DefaultSelector()

    def close(self) -> None:
        """End all workers."""
        for slot in self.slots:
            slot.worker.process.close()
        self.slots.clear()
        self.recorder.close()
        self._selector.close()

    def refuse_missing(self) -> None:
        """Raises BadInput where an arm needs what is not here, such as a library: its cases are not walked,
        and `--resume` goes on with them."""
        if missing := dict.fromkeys(work.missing for work in self._works if work.missing):
            raise BadInput("; ".join(missing))

    def hand(self, plan: Plan, writer: Sink) -> None:
        """Have the further turns walk another plan of the same file of cases, and write elsewhere."""
        self.recorder.assignment = replace(self.recorder.assignment, plan=plan, writer=writer)

    def turns(self, jobs: int) -> Iterator[None]:
        """Walk until no case is left, with a pause after each look at the workers; how long that takes is not
        held against a backend."""
        for slot in list(self.slots):
            slot.changed = time.monotonic()
            if slot.worker.process.child is not None:
                slot.send_next()
                self._close_if_done(slot)
        while True:
            while (
                len(self.slots) < min(jobs, self._places)
                and (work := self._work_without_worker()) is not None
            ):
                self._open_slot(work, jobs)
            if not self.slots or (self._keep and not self._is_owed()):
                break
            began = time.monotonic()
            self._selector.select(self._pause())
            for slot in list(self.slots):
                slot.listen()
                if not slot.is_closing:
                    slot.look_after()
                self._close_if_done(slot)
            yield
            if (seconds := time.monotonic() - began) > LATE_SECONDS:
                for slot in self.slots:
                    slot.excuse(seconds)

    def _pause(self) -> float:
        """Returns for how long the workers need not be looked at."""
        taken = [slot.worker.process.taken for slot in self.slots]
        for slot in self.slots:
            slot.worker.process.taken = 0
        return LOUD_SECONDS if max(taken) > LOUD_BYTES else POLL_SECONDS

    def _is_owed(self) -> bool:
        return any(work.cases for work in self._works) or any(
            slot.task is not None or slot.next is not None for slot in self.slots
        )

    def _work_without_worker(self) -> Work | None:
        """Returns the work with the most cases left per worker, so that the slots end together, of those that
        are done sooner with another worker."""
        for work in self._works:
            self.recorder.finish_without_worker(work)
        now = time.monotonic()
        waiting = [
            work for work in self._works if len(work.cases) > work.workers and work.gains_by_another(now)
        ]
        return max(waiting, key=lambda work: len(work.cases) / (work.workers + 1), default=None)

    def _open_slot(self, work: Work, jobs: int) -> None:
        """Start a worker for the work; where the system has no room for another one, those that are there
        walk alone. Raises OSError where none is there."""
        assignment = self.recorder.assignment
        try:
            worker = worker_process.start_worker(work, assignment.cases, assignment.limits, jobs)
        except OSError:
            if not self.slots:
                raise
            self._places = len(self.slots)
            return
        slot = Slot(work, worker, self.recorder, self._keep)
        work.workers += 1
        self.slots.append(slot)
        self._selector.register(worker.process.control, selectors.EVENT_READ)
        self._selector.register(worker.process.bell, selectors.EVENT_READ)

    def _close_if_done(self, slot: Slot) -> None:
        if slot.is_closing and slot in self.slots:
            self._selector.unregister(slot.worker.process.control)
            self._selector.unregister(slot.worker.process.bell)
            self.slots.remove(slot)
            slot.close()
            if slot.is_starved:
                self._places = max(1, len(self.slots))
