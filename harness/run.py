"""The coordinator: hands cases to workers, keeps deadlines by killing, and writes a row for whatever happened.

It imports no backend and holds no case longer than it takes to walk it. All state that must survive is in the run's files.
"""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness import process
from harness.case import Case, case_from_line
from harness.channel import BrokenChannel
from harness.errors import BadInput
from harness.plan import Plan
from harness.process import Worker
from harness.row import Arm, Finding, Row, Status
from harness.store import Writer
from harness.walk import TEXT_LIMIT

POLL_SECONDS = 0.02  # how often a child's memory and deadline are looked at
LOAD_SECONDS = 300.0
ATTEMPTS = 3  # how often a case is sent again when the worker itself, which runs no case, is lost


@dataclass(frozen=True)
class Limits:
    """What one case may take: seconds for its compile and for each of its walks, bytes of resident memory."""

    timeout_s: float
    memory_bytes: int


@dataclass(eq=False)
class Work:
    """The cases that one arm still has to walk with one vocabulary."""

    arm: Arm
    vocabulary: str
    cases: deque[int]
    workers: int = 0
    attempts: Counter[int] = field(default_factory=Counter)
    """How often a case was in the hands of a worker that was lost."""
    load_failure: tuple[Status, str] | None = None
    """Why no worker of this arm can be started, once that is known: then every case of it fails so."""


@dataclass(eq=False)
class Task:
    """The case that a worker has in hand, and what was heard of it."""

    number: int
    suite: str
    suite_version: str
    case: Case
    sent: float = 0.0
    """When it was sent, or when the last thing was heard of it: the deadline counts from here."""
    peak_rss_bytes: int = 0
    compiled: dict[str, Any] | None = None
    walked: list[tuple[dict[str, Any], bytes]] = field(default_factory=list)
    killed: Status | None = None
    """Set when we killed the child: `timeout` or `oom`; or `backend_error` for a forged answer."""
    strangers: int = 0
    """Answers that came from another process than the child."""


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
            self._finish(work, self._take(work), *work.load_failure, phase="load")
        while work.cases and self.plan.dialects[work.cases[0]] not in work.arm.dialects:
            text = f"no {self.plan.dialects[work.cases[0]]} in this backend"
            self._finish(work, self._take(work), "unsupported", text, phase="dialect")

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
            self._finish(slot.work, task, "harness_error", error, phase="worker")
        elif task.compiled is not None and task.compiled["status"] != "ok":
            compiled = task.compiled
            self._finish(slot.work, task, compiled["status"], compiled["text"], phase="compile")
        else:
            finding = None
            if left_behind or task.strangers:
                finding = Finding("left_process_behind", None, f"{max(1, len(left_behind))} process(es) were still there after the case")
            self._finish(slot.work, task, "ok", "", finding=finding)
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
                slot.work.load_failure = ("timeout", f"the backend did not load the vocabulary in {LOAD_SECONDS:.0f} s")
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
            self._finish(slot.work, slot.task, "backend_error", text, phase=process.position(slot.worker)[0])
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
        lost = replace_control(text)
        self._finish(slot.work, task, task.killed or "crash", lost, phase=phase, signal_name=name, lost_at=token)

    def _worker_lost(self, slot: Slot) -> None:
        """The worker itself is gone: killed (it runs no case), or it could not load. The case goes back to be sent to another."""
        worker, work, task = slot.worker, slot.work, slot.task
        code = worker.popen.wait()
        if worker.child == worker.popen.pid:
            self._child_lost(slot, -code if code < 0 else code << 8)
        elif not slot.ready:
            said = process.printed_text(worker)
            work.load_failure = ("crash", replace_control(f"the process ended with {code} while it loaded the backend; it printed: {said}"))
        elif task is not None:
            work.attempts[task.number] += 1
            if work.attempts[task.number] < ATTEMPTS:
                work.cases.append(task.number)
            else:
                self._finish(work, task, "harness_error", f"the worker was lost {ATTEMPTS} times with this case in hand", phase="worker")
        self._close_slot(slot)

    def _load_failed(self, slot: Slot, whose: str, text: str) -> None:
        work = slot.work
        self._close_slot(slot)
        if whose == "input":
            raise BadInput(text)
        work.load_failure = ("backend_error" if whose == "backend" else "harness_error", text)

    # Rows

    def _finish(
        self,
        work: Work,
        task: Task,
        status: Status,
        text: str,
        phase: str = "",
        signal_name: str = "",
        lost_at: int = 0,
        finding: Finding | None = None,
    ) -> None:
        """Write the rows of a case: what was seen of each instance, and `status` for the one at which it stopped."""
        case = task.case
        walks: list[tuple[Row, bytes]] = []
        compile_ns = task.compiled["compile_ns"] if task.compiled else None
        reached = len(task.walked)
        compile_failed = task.compiled is None or task.compiled["status"] != "ok"
        for number in range(max(1, len(case.instances))):
            row = self._row(work, task, number if case.instances else None, compile_ns)
            if number < reached:
                message, samples = task.walked[number]
                row = _with_seen(row, message)
            elif status != "ok" and (compile_failed or number == reached):
                row, samples = replace(row, status=status, text=text[:TEXT_LIMIT], phase=phase, signal=signal_name), b""
                if not compile_failed and phase in ("fill", "accept", "end"):
                    row = replace(row, stopped_at=lost_at)
            elif status == "ok":
                row, samples = replace(row, status="harness_error", phase="worker", text="the worker sent no answer for it"), b""
            else:
                skipped = f"not walked: the child was lost at instance {reached}"
                row, samples = replace(row, status="skipped", phase="walk", text=skipped), b""
            if finding is not None and number == max(0, len(case.instances) - 1):
                row = replace(row, findings=(*row.findings, finding))
            if row.status in ("backend_error", "crash", "timeout", "oom"):
                self.failures += 1
            walks.append((row, samples))
        self.writer.append(walks)
        self.done += 1
        self._tell()

    def _row(self, work: Work, task: Task, number: int | None, compile_ns: int | None) -> Row:
        case = task.case
        instance = case.instances[number] if number is not None else None
        peak = task.compiled["peak_rss_bytes"] if task.compiled else task.peak_rss_bytes or None
        return Row(
            backend=work.arm.backend,
            backend_version=work.arm.version,
            options=work.arm.options,
            vocabulary=work.vocabulary,
            suite=task.suite,
            suite_version=task.suite_version,
            case=case.name,
            case_id=case.id,
            dialect=case.grammar.dialect,
            tags=case.tags,
            instance=number,
            instance_name=instance.name if instance else "",
            mode="replay",
            jump_forward=False,
            repeat=0,
            status="ok",
            phase="",
            signal="",
            text="",
            valid=instance.valid if instance else None,
            accepted=None,
            stopped_at=None,
            tokens=0,
            bytes=len(instance.content) if instance else 0,
            grammar_bytes=len(case.grammar.text.encode("utf-8", "surrogatepass")),
            compile_ns=compile_ns,
            matcher_new_ns=None,
            first_fill_ns=None,
            wall_ns=None,
            peak_rss_bytes=peak,
            samples=None,
        )

    def _tell(self, force: bool = False) -> None:
        now = time.monotonic()
        if force or now - self.last_report > 0.2:
            self.last_report = now
            self.report(Progress(self.done, self.total, self.failures))


def _with_seen(row: Row, message: dict[str, Any]) -> Row:
    seen = {name: each for name, each in message["seen"].items() if name != "samples"}
    seen["findings"] = tuple(Finding(**each) for each in seen["findings"])
    return replace(row, **seen, peak_rss_bytes=message["peak_rss_bytes"])


def replace_control(text: str) -> str:
    """The text on one line, without characters that a terminal obeys."""
    return "".join(each if each.isprintable() else " " for each in text)
