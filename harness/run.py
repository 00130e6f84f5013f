"""The coordinator: hands cases to workers, keeps deadlines by killing, and writes a row for whatever happened.

It imports no backend and holds no case longer than it takes to walk it. All state that must survive is in the run's files.
"""

from __future__ import annotations

import os
import selectors
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from harness import process
from harness.booking import Ending, Task, Work, rows_of
from harness.case import case_from_line
from harness.channel import BrokenChannel
from harness.errors import BadInput, one_line
from harness.plan import Plan
from harness.process import Worker
from harness.row import BROKEN, Finding, Row, Status, makes_checks

POLL_SECONDS = 0.02  # how often a child's memory and deadline are looked at
LOAD_SECONDS = 300.0
STUCK_SECONDS = 30.0  # for a worker to tell of a killed child, or to fork the next one; milliseconds are usual
ATTEMPTS = 3  # how often a case is sent again when the worker itself, which runs no case, is lost


@dataclass(frozen=True)
class Limits:
    """What one case may take: seconds for its compile, for each of its walks and for each check, bytes of resident memory."""

    timeout_s: float
    memory_bytes: int
    effort: int = 0
    """How many places of the case each check looks at; 0: no checks, -1: every place."""
    decode: bool = False
    """Decode the valid instances too."""

    @property
    def checks(self) -> bool:
        """Is there a row of the whole case?"""
        return makes_checks(self.effort, self.decode)


@dataclass(eq=False)
class Slot:
    """One of the `--jobs` places: a worker and its task."""

    work: Work
    worker: Worker
    changed: float
    """When it started, or when it last had a child or a case: a worker that then says nothing is stuck."""
    ready: bool = False
    unclean: bool = False
    """The last case left a process behind."""
    task: Task | None = None


class Sink(Protocol):
    """Where rows go: a run's file, or the way to it."""

    def append(self, walks: Sequence[tuple[Row, bytes]]) -> None:
        """All rows of one case, each with its samples."""


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
            process.close_worker(slot.worker)
        self.slots.clear()
        self.cases.close()
        self.selector.close()

    def run(self, jobs: int) -> None:
        """Until no case is left."""
        for _ in self.turns(jobs):
            pass
        self._tell(force=True)

    def turns(self, jobs: int) -> Iterator[None]:
        """The same, with a pause after each look at the workers; how long it takes is not held against a backend."""
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
            if (lost := time.monotonic() - before) > 1.0:  # we were stopped, or waited for a disk: not the backends' time
                for slot in self.slots:
                    slot.changed += lost
                    if slot.task is not None:
                        slot.task.sent += lost

    def _is_owed(self) -> bool:
        return any(work.cases for work in self.works) or any(slot.task is not None for slot in self.slots)

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
        limits, python = self.limits, work.arm.python or sys.executable
        worker = process.start_worker(
            spec, work.vocabulary, self.path, limits.effort, limits.timeout_s, python, self.fork, decode=limits.decode
        )
        slot = Slot(work, worker, time.monotonic())
        work.workers += 1
        self.slots.append(slot)
        self.selector.register(worker.control, selectors.EVENT_READ, slot)
        self.selector.register(worker.reply, selectors.EVENT_READ, slot)

    def _close_slot(self, slot: Slot) -> None:
        self.selector.unregister(slot.worker.control)
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
        """Hear the child's answers, then the worker: what a child said before its end comes first."""
        try:
            for message, blob in process.answers(slot.worker):
                if slot in self.slots:
                    self._hear_child(slot, message, blob)
                    if message.get("event") == "done" and slot.task is None:
                        self._go_on(slot)
            if slot not in self.slots:
                return
            said, closed = process.hear(slot.worker)
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
        if event == "ready":
            slot.ready = True
        elif event == "failed":
            self._load_failed(slot, str(message.get("whose")), str(message.get("text")))
        elif event == "child":
            slot.worker.child = message["pid"]
            self._next(slot)
        elif event == "exit":
            # The last answers may have come after we looked, and before the end.
            for answer, blob in process.answers(slot.worker):
                self._hear_child(slot, answer, blob)
            self._child_lost(slot, message["status"])
            slot.worker.child = None
            process.forget_answers(slot.worker)
            process.fork_again(slot.worker)

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

    def _next(self, slot: Slot) -> None:
        """Give the child a case, or end the slot when there is none."""
        work = slot.work
        self._finish_without_worker(work)
        if not work.cases:
            if not self.keep:
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
        slot.work.losses = 0
        slot.unclean = bool(left_behind or task.strangers)

    def _go_on(self, slot: Slot) -> None:
        """After a case: the next one, in a clean child if this one hoards memory or left something behind."""
        slot.changed = time.monotonic()
        if slot.unclean or process.rss_bytes(slot.worker.child or 0) > self.limits.memory_bytes // 2:
            slot.unclean = False
            process.kill_children(slot.worker)
        else:
            self._next(slot)

    def _look_after(self, slot: Slot) -> None:
        """Keep the deadlines and the memory limit, and the pipe for what is printed open."""
        process.read_printed(slot.worker)
        task = slot.task
        if slot.worker.popen.poll() is not None:
            self._listen(slot)  # what it said last is still in the pipes
            if slot in self.slots:
                self._worker_lost(slot)
        elif task is None or task.killed:
            if time.monotonic() - slot.changed > (STUCK_SECONDS if slot.ready else LOAD_SECONDS):
                self._stuck(slot)
        elif slot.worker.child is not None:
            task.peak_rss_bytes = max(task.peak_rss_bytes, process.rss_bytes(slot.worker.child))
            if time.monotonic() - task.sent > self.limits.timeout_s:
                heard = task.sent
                self._listen(slot)  # perhaps it was we who were late
                if slot.task is task and task.sent == heard:
                    self._kill(slot, "timeout")
            elif task.peak_rss_bytes > self.limits.memory_bytes:
                self._kill(slot, "oom")

    def _stuck(self, slot: Slot) -> None:
        """The worker says nothing: it does not load, or does not tell of the child that we killed, or has no new one."""
        if not slot.ready:
            text = f"the backend did not load the vocabulary in {LOAD_SECONDS:.0f} s"
            slot.work.load_failure = Ending("timeout", "load", text)
        elif slot.task is not None:
            self._child_lost(slot, 0)
        else:
            self._count_loss(slot.work, f"the worker had no child after {STUCK_SECONDS:.0f} s")
        self._close_slot(slot)

    def _count_loss(self, work: Work, text: str, status: Status = "harness_error") -> None:
        """A worker was lost without a case in hand; after some in a row there is no point in starting another."""
        work.losses += 1
        if work.losses >= ATTEMPTS:
            work.load_failure = Ending(status, "load", one_line(text))

    def _kill(self, slot: Slot, why: Status) -> None:
        assert slot.task is not None
        slot.task.killed = why
        slot.changed = time.monotonic()
        process.kill_children(slot.worker)

    def _forged(self, slot: Slot, text: str) -> None:
        """The stream of answers can no longer be trusted: the worker goes, the case is booked."""
        if slot.task is not None:
            self._finish(slot.work, slot.task, Ending("backend_error", "answer", text))
            slot.task = None
        else:
            self._count_loss(slot.work, text)
        self._close_slot(slot)

    def _child_lost(self, slot: Slot, status: int) -> None:
        task = slot.task
        if task is None:
            return
        slot.task = None
        phase, instance, token, tokens = process.position(slot.worker)
        if not phase:  # it was lost before it took the case: an end of the case before, or a kill from outside
            self._send_again(slot.work, task, "the child was lost before it took the case")
            return
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
            name = process.signal_name(number)
            text = f"killed by {name}" + (" (not by us: the system when out of memory, or a person)" if number == signal.SIGKILL else "")
        else:
            text = f"the backend ended the process with exit code {status >> 8}"
        where = f"{phase} of token {token}, instance {instance}" if phase in ("fill", "accept", "end") else phase
        if task.checking:
            where = f"{phase} {task.checking}"
        text = f"{text} in {where}" + (f"; it printed: {said}" if said else "")
        # While a tokenizer or a reference automaton of ours is at work, nothing that happens is the backend's, but for such an answer: none
        # of ours is for another case, and it may have been written before.
        is_ours = phase in ("encode", "oracle") and task.killed != "backend_error"
        ended: Status = "harness_error" if is_ours else task.killed or "crash"
        self._finish(slot.work, task, Ending(ended, phase, one_line(text), name, token, tokens))

    def _worker_lost(self, slot: Slot) -> None:
        """The worker itself is gone: killed (it runs no case), or it could not load. The case goes back to be sent to another."""
        worker, work, task = slot.worker, slot.work, slot.task
        code = worker.popen.wait()
        if worker.child == worker.popen.pid:
            self._child_lost(slot, -code if code < 0 else code << 8)
        elif not slot.ready:
            said = process.printed_text(worker)
            text = f"the process ended with {code} while it loaded the backend; it printed: {said}"
            # Killed from outside is nobody's crash.
            self._count_loss(work, text, "harness_error" if code == -signal.SIGKILL else "crash")
        elif task is not None:
            self._send_again(work, task, "the worker was lost with this case in hand")
        else:
            self._count_loss(work, f"the worker ended with {code} without a case in hand")
        self._close_slot(slot)

    def _send_again(self, work: Work, task: Task, why: str) -> None:
        work.attempts[task.number] += 1
        if work.attempts[task.number] < ATTEMPTS:
            work.cases.append(task.number)
        else:
            self._finish(work, task, Ending("harness_error", "worker", f"{why}, {ATTEMPTS} times"))

    def _load_failed(self, slot: Slot, whose: str, text: str) -> None:
        work = slot.work
        self._close_slot(slot)
        if whose == "input":
            raise BadInput(text)
        work.load_failure = Ending("backend_error" if whose == "backend" else "harness_error", "load", text)

    def _finish(self, work: Work, task: Task, ending: Ending) -> None:
        walks = rows_of(work, task, ending, checks=self.limits.checks)
        self.writer.append(walks)
        self.failures += sum(row.status in BROKEN for row, _ in walks)
        self.done += 1
        self._tell()

    def _tell(self, force: bool = False) -> None:
        now = time.monotonic()
        if force or now - self.last_report > 0.2:
            self.last_report = now
            self.report(Progress(self.done, self.total, self.failures))
