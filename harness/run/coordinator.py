"""The coordinator: hands cases to workers, keeps deadlines by killing, and writes a row for whatever
happened.

It imports no backend and holds no case longer than it takes to walk it. All state that must survive is in the
run's files.
"""

from __future__ import annotations

import os
import selectors
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from harness.backend.process import system
from harness.backend.process.channel import BrokenChannel
from harness.cases.case import case_from_line
from harness.cases.plan import Plan
from harness.errors import BadInput
from harness.rows.row import BROKEN, Row, Status
from harness.run import endings, worker_process
from harness.run.case_rows import after_changes, before, failure_of, rows_of, told_as_delayed
from harness.run.limits import Limits, Progress
from harness.run.work import Ending, Suspicion, Task, Work
from harness.run.worker_process import Worker
from harness.text import one_line

POLL_SECONDS = 0.02  # how often a child's memory and deadline are looked at
LOAD_SECONDS = 300.0
STUCK_SECONDS = (
    30.0  # for a worker to tell of a killed child, or to fork the next one; milliseconds are usual
)
ATTEMPTS = 3  # how often a case is sent again when the worker itself, which runs no case, is lost
OUR_SECONDS, OUR_SHARE = (
    60.0,
    5,
)  # what code of ours may take while a case is walked: that, or as many deadlines of a call


@dataclass(eq=False)
class Slot:
    """One of the `--jobs` places: a worker and its task."""

    work: Work
    worker: Worker
    changed: float
    """When it started, or when it last had a child or a case: a worker that then says nothing is stuck."""
    loading: bool = False
    """Our own code is in place, and the backend is being loaded: until then nothing that happens is the
    backend's."""
    ready: bool = False
    unclean: bool = False
    """The child is to serve no other case."""
    task: Task | None = None
    next: int | None = None
    """The case that waits for a new child."""


class Sink(Protocol):
    """Where rows go: a run's file, or the way to it."""

    def append(self, walks: Sequence[tuple[Row, bytes]]) -> None:
        """All rows of one case, each with its samples."""


def run_all(
    plan: Plan,
    works: Sequence[Work],
    limits: Limits,
    jobs: int,
    writer: Sink,
    cases: Path,
    report: Callable[[Progress], None],
    fork: bool = hasattr(os, "fork"),
) -> None:
    """Walk all of it. Every case's rows are in the file before its worker gets the next case.

    Without `fork` a lost child is a lost worker, and the next case waits until another one has loaded.
    """
    coordinator = Coordinator(plan, works, limits, writer, cases, report, fork)
    try:
        coordinator.run(jobs)
    finally:
        coordinator.close()


class Coordinator:
    """The event loop over the slots."""

    def __init__(
        self,
        plan: Plan,
        works: Sequence[Work],
        limits: Limits,
        writer: Sink,
        cases: Path,
        report: Callable[[Progress], None],
        fork: bool,
        keep: bool = False,
    ) -> None:
        """With `keep`, workers without a case wait for further `turns` until `close` ends them."""
        self.plan, self.works, self.limits, self.writer, self.report = plan, works, limits, writer, report
        self.path, self.fork, self.keep = cases, fork, keep
        self.cases = open(cases, "rb")  # noqa: SIM115 - closed by close()
        self.selector = selectors.DefaultSelector()
        self.slots: list[Slot] = []
        self.total = sum(len(work.cases) for work in self.works)
        self.done = 0
        self.failures = 0
        self.last_report = 0.0

    def close(self) -> None:
        """End all workers."""
        for slot in self.slots:
            worker_process.close_worker(slot.worker)
        self.slots.clear()
        self.cases.close()
        self.selector.close()

    def run(self, jobs: int) -> None:
        """Until no case is left."""
        for _ in self.turns(jobs):
            pass
        self._tell(force=True)

    def turns(self, jobs: int) -> Iterator[None]:
        """The same, with a pause after each look at the workers; how long it takes is not held against a
        backend."""
        for slot in self.slots:
            slot.changed = time.monotonic()
            if slot.worker.child is not None:
                self._next(slot)
        while True:
            while len(self.slots) < jobs and (work := self._work_without_worker()) is not None:
                self._open_slot(work)
            if not self.slots or (self.keep and not self._is_owed()):
                break
            before = time.monotonic()
            for key, _ in self.selector.select(POLL_SECONDS):
                if key.data in self.slots:
                    self._listen(key.data)
            for slot in list(self.slots):
                self._look_after(slot)
            yield
            if (
                lost := time.monotonic() - before
            ) > 1.0:  # we were stopped, or waited for a disk: not the backends' time
                for slot in self.slots:
                    slot.changed += lost
                    if slot.task is not None:
                        slot.task.sent += lost

    def _is_owed(self) -> bool:
        return any(work.cases for work in self.works) or any(
            slot.task is not None or slot.next is not None for slot in self.slots
        )

    def _work_without_worker(self) -> Work | None:
        """The work with the most cases left per worker, so that the slots end together."""
        for work in self.works:
            self._finish_without_worker(work)
        waiting = [work for work in self.works if len(work.cases) > work.workers]
        return max(waiting, key=lambda work: len(work.cases) / (work.workers + 1), default=None)

    def _finish_without_worker(self, work: Work) -> None:
        """Book the next cases as long as no worker is needed for it."""
        while work.cases and work.load_failure is not None:
            self._write(work, self._taken(work.cases.popleft()), work.load_failure)
        while work.cases and self.plan.dialects[work.cases[0]] not in work.arm.dialects:
            text = f"no {self.plan.dialects[work.cases[0]]} in this backend"
            self._write(work, self._taken(work.cases.popleft()), Ending("unsupported", "dialect", text))

    def _open_slot(self, work: Work) -> None:
        spec = work.arm.backend + (f":{work.arm.options}" if work.arm.options else "")
        checking, python = self.limits.checking, work.arm.python or sys.executable
        worker = worker_process.start_worker(spec, work.vocabulary, self.path, checking, python, self.fork)
        slot = Slot(work, worker, time.monotonic())
        work.workers += 1
        self.slots.append(slot)
        self.selector.register(worker.control, selectors.EVENT_READ, slot)
        self.selector.register(worker.reply, selectors.EVENT_READ, slot)

    def _close_slot(self, slot: Slot) -> None:
        self.selector.unregister(slot.worker.control)
        self.selector.unregister(slot.worker.reply)
        self.slots.remove(slot)
        if slot.next is not None:
            slot.work.cases.appendleft(slot.next)
        slot.work.workers -= 1
        worker_process.close_worker(slot.worker)

    def _taken(self, number: int) -> Task:
        self.cases.seek(self.plan.offsets[number])
        return Task(number, *case_from_line(self.cases.readline()))

    # What a worker says

    def _listen(self, slot: Slot) -> None:
        """Hear the child's answers, then the worker: what a child said before its end comes first."""
        try:
            for message, blob in worker_process.answers(slot.worker):
                if slot in self.slots:
                    self._hear_child(slot, message, blob)
                    if message.get("event") == "done" and slot.task is None:
                        self._go_on(slot)
            if slot not in self.slots:
                return
            said, closed = worker_process.hear(slot.worker)
        except BrokenChannel:
            self._forged(slot, "the backend wrote into the pipe on which its worker answers")
            return
        for message in said:
            if slot in self.slots:
                self._hear_worker(slot, message)
        if closed and slot in self.slots:
            self._worker_lost(slot)

    def _hear_worker(self, slot: Slot, message: dict[str, Any]) -> None:
        event = message.get("event")
        slot.changed = time.monotonic()
        if event == "loading":
            slot.loading = True
        elif event == "ready":
            slot.ready = True
        elif event == "failed":
            self._load_failed(slot, str(message.get("whose")), str(message.get("text")))
        elif event == "child":
            slot.worker.child = message["pid"]
            slot.worker.served = 0
            slot.worker.behind.clear()
            slot.unclean = False
            self._next(slot)
        elif event == "exit":
            # The last answers may have come after we looked, and before the end.
            for answer, blob in worker_process.answers(slot.worker):
                self._hear_child(slot, answer, blob)
            self._child_lost(slot, message["status"])
            slot.worker.child = None
            worker_process.forget_answers(slot.worker)
            worker_process.fork_again(slot.worker)

    def _hear_child(self, slot: Slot, message: dict[str, Any], blob: bytes) -> None:
        event, task = message.get("event"), slot.task
        if task is None or task.killed:
            pass  # an answer that was on its way when we killed the child
        elif message.get("pid") != slot.worker.child:
            task.strangers += 1
        elif message.get("nonce") != slot.worker.nonce:
            self._kill(slot, "backend_error")
        elif event == "compiled":
            task.compiled = message
            task.sent = time.monotonic()
        elif event == "walked":
            task.walked.append((message, blob))
            task.sent = time.monotonic()
        elif event == "checking":
            task.checking = message["check"]
            task.sent = time.monotonic()
        elif event == "checked":
            task.checked.append(message)
            task.sent = time.monotonic()
        elif event == "done":
            self._case_done(slot, message)

    def _next(self, slot: Slot, looked: bool = False) -> None:
        """Give the child a case, or end the slot when there is none; or have another child, if this one is
        not fit for the case.

        With `looked`, it was seen just now what the child has left behind.
        """
        work, worker = slot.work, slot.worker
        if slot.next is None:
            self._finish_without_worker(work)
            if not work.cases:
                if not self.keep:
                    self._close_slot(slot)
                return
            slot.next = work.cases.popleft()
        if worker.served and (
            slot.unclean or slot.next in work.again or (not looked and worker_process.strays(worker))
        ):
            self._replace_child(slot)
            return
        slot.task = task = self._taken(slot.next)
        slot.next = None
        task.sent = time.monotonic()
        worker_process.send_case(worker, self.plan.offsets[task.number])

    def _replace_child(self, slot: Slot) -> None:
        """End the child with all that it left behind; the worker forks another one, which gets the slot's
        next case."""
        slot.changed = time.monotonic()
        worker_process.kill_children(slot.worker)

    # What can become of a case

    def _case_done(self, slot: Slot, message: dict[str, Any]) -> None:
        task = slot.task
        assert task is not None
        left_behind = len(worker_process.strays(slot.worker)) or min(1, task.strangers)
        changed = message["changed"]
        ending = endings.of_done_case(task, message, left_behind)
        slot.task = None
        slot.work.losses = 0
        slot.unclean = bool(left_behind or changed)
        self._finish(slot, task, ending, changed)
        slot.worker.served += 1
        slot.worker.behind.append(before(task))

    def _go_on(self, slot: Slot) -> None:
        """After a case: the next one, in a clean child if this one hoards memory or left something behind."""
        slot.changed = time.monotonic()
        if slot.unclean or system.rss_bytes(slot.worker.child or 0) > self.limits.memory_bytes // 2:
            self._replace_child(slot)
        else:
            self._next(slot, looked=True)

    def _look_after(self, slot: Slot) -> None:
        """Keep the deadlines and the memory limit, and the pipe for what is printed open."""
        worker_process.read_printed(slot.worker)
        task = slot.task
        if slot.worker.popen.poll() is not None:
            self._listen(slot)  # what it said last is still in the pipes
            if slot in self.slots:
                self._worker_lost(slot)
        elif task is None or task.killed:
            if time.monotonic() - slot.changed > (STUCK_SECONDS if slot.ready else LOAD_SECONDS):
                self._stuck(slot)
        elif slot.worker.child is not None:
            task.peak_rss_bytes = max(task.peak_rss_bytes, system.rss_bytes(slot.worker.child))
            if (place := worker_process.place(slot.worker)) != task.place:
                task.place, task.sent = place, time.monotonic()
            limit = self.limits.timeout_s
            if worker_process.works_for_us(slot.worker):
                limit = max(OUR_SECONDS, OUR_SHARE * limit)
            if time.monotonic() - task.sent > limit:
                heard = task.sent
                self._listen(slot)  # perhaps it was we who were late
                if slot.task is task and task.sent == heard and worker_process.place(slot.worker) == place:
                    task.limit_s = limit
                    self._kill(slot, "timeout")
            elif task.peak_rss_bytes > self.limits.memory_bytes:
                self._kill(slot, "oom")

    def _stuck(self, slot: Slot) -> None:
        """The worker says nothing: it does not load, or does not tell of the child that we killed, or has no
        new one."""
        if not slot.ready:
            slot.work.load_failure = endings.of_stuck_load(slot.loading, LOAD_SECONDS)
        elif slot.task is not None:
            self._child_lost(slot, 0)
        else:
            self._count_loss(slot.work, f"the worker had no child after {STUCK_SECONDS:.0f} s")
        self._close_slot(slot)

    def _count_loss(self, work: Work, text: str, status: Status = "harness_error") -> None:
        """A worker was lost without a case in hand; after some in a row there is no point in starting
        another."""
        work.losses += 1
        if work.losses >= ATTEMPTS:
            work.load_failure = Ending(status, "load", one_line(text))

    def _kill(self, slot: Slot, why: Status) -> None:
        assert slot.task is not None
        slot.task.killed = why
        slot.changed = time.monotonic()
        worker_process.kill_children(slot.worker)

    def _forged(self, slot: Slot, text: str) -> None:
        """The stream of answers can no longer be trusted: the worker goes, the case is booked."""
        if slot.task is not None:
            task, slot.task = slot.task, None
            self._finish(slot, task, Ending("backend_error", "answer", text))
        else:
            self._count_loss(slot.work, text)
        self._close_slot(slot)

    def _child_lost(self, slot: Slot, status: int) -> None:
        task = slot.task
        if task is None:
            return
        slot.task = None
        worker, work = slot.worker, slot.work
        # It was lost before it took the case: an end of a case before, or a kill from outside.
        if not worker_process.position(worker)[0]:
            why = "the child was lost before it took the case"
            if worker.served and task.number not in work.again:
                work.again[task.number] = Suspicion("", why, tuple(worker.behind))
            self._send_again(work, task, Ending("harness_error", "worker", why))
            return
        self._finish(slot, task, endings.of_lost_child(worker, task, status, self.limits))

    def _worker_lost(self, slot: Slot) -> None:
        """The worker itself is gone: killed (it runs no case), or it could not load.

        The case goes back to be sent to another.
        """
        worker, work, task = slot.worker, slot.work, slot.task
        code = worker.popen.wait()
        if worker.child == worker.popen.pid:
            self._child_lost(slot, -code if code < 0 else code << 8)
        elif not slot.ready:
            status, text = endings.of_lost_load(worker, code, slot.loading)
            self._count_loss(work, text, status)
        elif task is not None:
            self._send_again(work, task, endings.of_lost_worker(worker, code))
        elif slot.next is None or not worker.served:
            self._count_loss(work, f"the worker ended with {code} without a case in hand")
        self._close_slot(slot)

    def _send_again(self, work: Work, task: Task, ending: Ending) -> None:
        """What happens to the worker, or before the case is taken, once may have been done from outside; then
        the case ends so."""
        work.attempts[task.number] += 1
        if work.attempts[task.number] < ATTEMPTS:
            # At the end, where other kills from outside do not hit it again; but where a new child is wanted
            # for it, that is the next.
            (work.cases.appendleft if task.number in work.again else work.cases.append)(task.number)
        else:
            self._write(work, task, replace(ending, text=f"{ending.text}, {ATTEMPTS} times"))

    def _load_failed(self, slot: Slot, whose: str, text: str) -> None:
        work = slot.work
        self._close_slot(slot)
        if whose == "input":
            raise BadInput(text)
        work.load_failure = Ending("backend_error" if whose == "backend" else "harness_error", "load", text)

    def _finish(self, slot: Slot, task: Task, ending: Ending, changed: Sequence[str] = ()) -> None:
        """Book the case; or, if it failed in a way that may be the doing of those before it, have it walked
        once more in a new child.

        A failure of ours is repeated in any case: it may be that of a process which something else has
        spoiled.
        """
        work, worker = slot.work, slot.worker
        walks = rows_of(work, task, ending, checks=self.limits.checks)
        failure, said = failure_of(walks)
        if (
            failure
            and task.number not in work.again
            and (worker.served or (failure == "harness_error" and not changed))
        ):
            work.again[task.number] = Suspicion(failure, said, tuple(worker.behind))
            work.cases.appendleft(task.number)
            slot.unclean = True
        else:
            slot.unclean |= failure == "harness_error"
            self._book(work, task, after_changes(walks, changed))

    def _write(self, work: Work, task: Task, ending: Ending) -> None:
        self._book(work, task, rows_of(work, task, ending, checks=self.limits.checks))

    def _book(self, work: Work, task: Task, walks: list[tuple[Row, bytes]]) -> None:
        if (first := work.again.pop(task.number, None)) is not None:
            walks = told_as_delayed(walks, first)
        self.writer.append(walks)
        self.failures += sum(row.status in BROKEN for row, _ in walks)
        self.done += 1
        self._tell()

    def _tell(self, force: bool = False) -> None:
        now = time.monotonic()
        if force or now - self.last_report > 0.2:
            self.last_report = now
            self.report(Progress(self.done, self.total, self.failures))
