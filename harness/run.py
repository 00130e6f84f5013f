"""The coordinator: hands cases to workers, keeps deadlines by killing, and writes a row for whatever happened.

It imports no backend and holds no case longer than it takes to walk it. All state that must survive is in the run's files.
"""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import process
from harness.booking import Ending, Task, Work, rows_of
from harness.case import case_from_line
from harness.channel import BrokenChannel
from harness.errors import BadInput, one_line
from harness.plan import Plan
from harness.process import Worker
from harness.row import BROKEN, Finding, Status
from harness.store import Writer

POLL_SECONDS = 0.02  # how often a child's memory and deadline are looked at
LOAD_SECONDS = 300.0
ATTEMPTS = 3  # how often a case is sent again when the worker itself, which runs no case, is lost


@dataclass(frozen=True)
class Limits:
    """What one case may take: seconds for its compile and for each of its walks, bytes of resident memory."""

    timeout_s: float
    memory_bytes: int


@dataclass(eq=False)
class Slot:
    """One of the `--jobs` places: a worker and its task."""

    work: Work
    worker: Worker
    started: float
    ready: bool = False
    task: Task | None = None


@dataclass(frozen=True)
class Progress:
    """What a person is told while a run goes on."""

    done: int
    total: int
    failures: int
    """Rows so far whose status is that of a broken backend."""


def run_all(
    plan: Plan,
    works: Sequence[Work],
    limits: Limits,
    jobs: int,
    writer: Writer,
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
        writer: Writer,
        cases: Path,
        report: Callable[[Progress], None],
        fork: bool,
    ) -> None:
        self.plan, self.works, self.limits, self.writer, self.report = plan, works, limits, writer, report
        self.path, self.fork = cases, fork
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
            process.close_worker(slot.worker)
        self.slots.clear()
        self.cases.close()
        self.selector.close()

    def run(self, jobs: int) -> None:
        """Until no case is left."""
        while True:
            while len(self.slots) < jobs and (work := self._work_without_worker()) is not None:
                self._open_slot(work)
            if not self.slots:
                break
            for key, _ in self.selector.select(POLL_SECONDS):
                if key.data in self.slots:
                    self._listen(key.data)
            for slot in list(self.slots):
                self._look_after(slot)
        self._tell(force=True)

    def _work_without_worker(self) -> Work | None:
        """The work with the most cases left per worker, so that the slots end together."""
        for work in self.works:
            self._finish_without_worker(work)
        waiting = [work for work in self.works if len(work.cases) > work.workers]
        return max(waiting, key=lambda work: len(work.cases) / (work.workers + 1), default=None)

    def _finish_without_worker(self, work: Work) -> None:
        """Book the next cases as long as no worker is needed for it."""
        while work.cases and work.load_failure is not None:
            self._finish(work, self._take(work), work.load_failure)
        while work.cases and self.plan.dialects[work.cases[0]] not in work.arm.dialects:
            text = f"no {self.plan.dialects[work.cases[0]]} in this backend"
            self._finish(work, self._take(work), Ending("unsupported", "dialect", text))

    def _open_slot(self, work: Work) -> None:
        spec = work.arm.backend + (f":{work.arm.options}" if work.arm.options else "")
        worker = process.start_worker(spec, work.vocabulary, self.path, fork=self.fork)
        slot = Slot(work, worker, time.monotonic())
        work.workers += 1
        self.slots.append(slot)
        self.selector.register(worker.reply, selectors.EVENT_READ, slot)

    def _close_slot(self, slot: Slot) -> None:
        self.selector.unregister(slot.worker.reply)
        self.slots.remove(slot)
        slot.work.workers -= 1
        process.close_worker(slot.worker)

    def _take(self, work: Work) -> Task:
        number = work.cases.popleft()
        self.cases.seek(self.plan.offsets[number])
        return Task(number, *case_from_line(self.cases.readline()))

    # What a worker says

    def _listen(self, slot: Slot) -> None:
        data = process.read_reply(slot.worker)
        if not data:
            self._worker_lost(slot)
            return
        try:
            frames = slot.worker.frames.feed(data)
        except BrokenChannel:
            self._forged(slot, "the backend wrote into the pipe on which its worker answers")
            return
        for message, blob in frames:
            if slot in self.slots:
                self._hear(slot, message, blob)

    def _hear(self, slot: Slot, message: dict[str, Any], blob: bytes) -> None:
        event = message.get("event")
        if event == "ready":
            slot.ready = True
        elif event == "failed":
            self._load_failed(slot, str(message.get("whose")), str(message.get("text")))
        elif event == "child":
            slot.worker.child = message["pid"]
            self._next(slot)
        elif event == "exit":
            self._child_lost(slot, message["status"])
            if slot in self.slots:
                slot.worker.child = None
                process.fork_again(slot.worker)
        elif slot.task is None or slot.task.killed:
            pass  # an answer that was on its way when we killed the child
        elif message.get("pid") != slot.worker.child:
            slot.task.strangers += 1
        elif message.get("nonce") != slot.worker.nonce:
            self._kill(slot, "backend_error")
        elif event == "compiled":
            slot.task.compiled = message
            slot.task.sent = time.monotonic()
        elif event == "walked":
            slot.task.walked.append((message, blob))
            slot.task.sent = time.monotonic()
        elif event == "done":
            self._case_done(slot, message)

    def _next(self, slot: Slot) -> None:
        """Give the child a case, or end the slot when there is none."""
        work = slot.work
        self._finish_without_worker(work)
        if not work.cases:
            self._close_slot(slot)
            return
        slot.task = task = self._take(work)
        task.sent = time.monotonic()
        process.send_case(slot.worker, self.plan.offsets[task.number])

    # What can become of a case

    def _case_done(self, slot: Slot, message: dict[str, Any]) -> None:
        task = slot.task
        assert task is not None
        left_behind = process.strays(slot.worker)
        if error := message.get("harness_error"):
            self._finish(slot.work, task, Ending("harness_error", "worker", error))
        elif task.compiled is not None and task.compiled["status"] != "ok":
            compiled = task.compiled
            self._finish(slot.work, task, Ending(compiled["status"], "compile", compiled["text"]))
        else:
            finding = None
            if left_behind or task.strangers:
                finding = Finding("left_process_behind", None, f"{max(1, len(left_behind))} process(es) were still there after the case")
            self._finish(slot.work, task, Ending("ok", finding=finding))
        slot.task = None
        if left_behind or task.strangers or process.rss_bytes(slot.worker.child or 0) > self.limits.memory_bytes // 2:
            # A clean child for the next case: what this one hoards or left behind must not be booked to another.
            process.kill_children(slot.worker)
        else:
            self._next(slot)

    def _look_after(self, slot: Slot) -> None:
        """Keep the deadlines and the memory limit."""
        now = time.monotonic()
        task = slot.task
        if slot.worker.popen.poll() is not None:
            self._worker_lost(slot)
        elif task is None:
            if not slot.ready and now - slot.started > LOAD_SECONDS:
                text = f"the backend did not load the vocabulary in {LOAD_SECONDS:.0f} s"
                slot.work.load_failure = Ending("timeout", "load", text)
                self._close_slot(slot)
        elif not task.killed and slot.worker.child is not None:
            task.peak_rss_bytes = max(task.peak_rss_bytes, process.rss_bytes(slot.worker.child))
            if now - task.sent > self.limits.timeout_s:
                self._kill(slot, "timeout")
            elif task.peak_rss_bytes > self.limits.memory_bytes:
                self._kill(slot, "oom")

    def _kill(self, slot: Slot, why: Status) -> None:
        assert slot.task is not None
        slot.task.killed = why
        process.kill_children(slot.worker)

    def _forged(self, slot: Slot, text: str) -> None:
        """The stream of answers can no longer be trusted: the worker goes, the case is booked."""
        if slot.task is not None:
            self._finish(slot.work, slot.task, Ending("backend_error", process.position(slot.worker)[0], text))
            slot.task = None
        self._close_slot(slot)

    def _child_lost(self, slot: Slot, status: int) -> None:
        task = slot.task
        if task is None:
            return
        slot.task = None
        phase, instance, token = process.position(slot.worker)
        name = ""
        said = process.printed_text(slot.worker)
        if task.killed == "timeout":
            text = f"killed after {self.limits.timeout_s:g} s"
        elif task.killed == "oom":
            text = f"killed at {self.limits.memory_bytes / 1e9:g} GB of resident memory"
        elif task.killed:
            text = "it answered for another case"
        elif status & 0x7F:
            number = status & 0x7F
            name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
            text = f"killed by {name}" + (" (not by us: the system when out of memory, or a person)" if number == signal.SIGKILL else "")
        else:
            text = f"the backend ended the process with exit code {status >> 8}"
        where = f"{phase} of token {token}, instance {instance}" if phase in ("fill", "accept", "end") else phase
        text = f"{text} in {where}" + (f"; it printed: {said}" if said else "")
        self._finish(slot.work, task, Ending(task.killed or "crash", phase, one_line(text), name, token))

    def _worker_lost(self, slot: Slot) -> None:
        """The worker itself is gone: killed (it runs no case), or it could not load. The case goes back to be sent to another."""
        worker, work, task = slot.worker, slot.work, slot.task
        code = worker.popen.wait()
        if worker.child == worker.popen.pid:
            self._child_lost(slot, -code if code < 0 else code << 8)
        elif not slot.ready:
            said = process.printed_text(worker)
            text = f"the process ended with {code} while it loaded the backend; it printed: {said}"
            work.load_failure = Ending("crash", "load", one_line(text))
        elif task is not None:
            work.attempts[task.number] += 1
            if work.attempts[task.number] < ATTEMPTS:
                work.cases.append(task.number)
            else:
                self._finish(work, task, Ending("harness_error", "worker", f"the worker was lost {ATTEMPTS} times with this case in hand"))
        self._close_slot(slot)

    def _load_failed(self, slot: Slot, whose: str, text: str) -> None:
        work = slot.work
        self._close_slot(slot)
        if whose == "input":
            raise BadInput(text)
        work.load_failure = Ending("backend_error" if whose == "backend" else "harness_error", "load", text)

    def _finish(self, work: Work, task: Task, ending: Ending) -> None:
        walks = rows_of(work, task, ending)
        self.writer.append(walks)
        self.failures += sum(row.status in BROKEN for row, _ in walks)
        self.done += 1
        self._tell()

    def _tell(self, force: bool = False) -> None:
        now = time.monotonic()
        if force or now - self.last_report > 0.2:
            self.last_report = now
            self.report(Progress(self.done, self.total, self.failures))
