"""One of the `--jobs` places: a worker, the case that it has in hand, and all that can become of the two."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from harness.backend.process import memory, system
from harness.backend.process.channel import BrokenChannel
from harness.backend.process.lost import Lost, lost_by_closing, lost_in_time
from harness.backend.process.system import signal_name, wait_status
from harness.errors import BadInput
from harness.rows.row import Status
from harness.running import endings, worker_process
from harness.running.case_rows import after_changes, before, failure_of, wrong_of
from harness.running.recorder import Recorder
from harness.running.work import Ending, Suspicion, Task, Work
from harness.running.worker_process import Worker
from harness.text import one_line

LOAD_SECONDS = 300.0
"""The time that a worker has to load."""
STUCK_SECONDS = 30.0
"""The time that a worker has to tell of a killed child, or to fork the next one; milliseconds are usual."""
ENDING_SECONDS = 1.0
"""The time that a worker has to end once its pipe is closed; milliseconds are usual."""
ATTEMPTS = 3
"""How often a case is sent again when the worker itself, which runs no case, is lost."""
OUR_SECONDS, OUR_SHARE = 60.0, 5
"""The time that code of ours may take while a case is walked: so many seconds, or so many deadlines of a
call if that is more."""


@dataclass(eq=False)
class Slot:
    """A worker and its task. Once the worker is of no more use, the slot `is_closing`, and whoever has it
    closes it."""

    work: Work
    worker: Worker
    recorder: Recorder
    keep: bool = False
    """Let the worker wait where there is no case for it."""
    changed: float = field(default_factory=time.monotonic)
    """When it was started, or last had a child or a case: a worker that then says nothing is stuck."""
    started: float = field(default_factory=time.monotonic)
    """When it started."""
    is_loading: bool = False
    """Whether the worker was seen to load the backend, for which it then has a time of its own."""
    ready: bool = False
    unclean: bool = False
    """The child is to serve no other case."""
    task: Task | None = None
    next: int | None = None
    """The case that waits for a new child."""
    is_closing: bool = False
    kills_before: int = 0
    """How many processes the kernel had killed for lack of memory when the child began."""
    is_starved: bool = False
    """Whether the kernel has killed the child so: then there is one worker less."""

    def close(self) -> None:
        """End the worker; the case that waited for a new child goes back."""
        if self.next is not None:
            self.work.cases.appendleft(self.next)
        self.work.workers -= 1
        self.worker.process.close()

    def excuse(self, seconds: float) -> None:
        """Extend the deadlines by a time in which nobody looked at the slot."""
        self.changed += seconds
        if self.task is not None:
            self.task.sent += seconds
            self.task.collected += seconds

    # What the worker says

    def listen(self) -> None:
        """Hear the child's answers, then the worker: what a child said before its end comes first."""
        process = self.worker.process
        try:
            for message, blob in process.take_answers():
                if not self.is_closing:
                    self._hear_child(message, blob)
                    if message.get("event") == "done" and self.task is None:
                        self._go_on()
            if self.is_closing:
                return
            events, closed = process.hear()
        except BrokenChannel:
            self._forged()
            return
        for event in events:
            if not self.is_closing:
                self._hear_worker(event)
        if closed and not self.is_closing:
            self._worker_lost()

    def _hear_worker(self, message: dict[str, Any]) -> None:
        event, process = message.get("event"), self.worker.process
        self.changed = time.monotonic()
        if event == "ready":
            self.ready = True
            if not self.work.load_seconds:
                self.work.begun = self.changed
                self.work.load_seconds = self.changed - self.started
        elif event == "failed":
            self.is_closing = True
            text = str(message["text"])
            if not message["input"]:
                self.work.note_load_failure(endings.of_failed_load(self.worker, text))
            elif worker_process.loads_backend(self.worker):  # the other arms are walked all the same
                self.work.note_missing(text)
            else:
                raise BadInput(text)
        elif event == "child":
            process.serves_in(message["pid"])
            self.kills_before = memory.kills_for_memory()
            self.worker.served = 0
            self.worker.behind.clear()
            self.unclean = False
            self.send_next()
        elif event == "exit":
            # The last answers may have come after we looked, and before the end.
            for answer, blob in process.take_answers():
                self._hear_child(answer, blob)
            self._child_lost(message["status"])
            process.fork_again()

    def _hear_child(self, message: dict[str, Any], blob: bytes) -> None:
        event, task = message.get("event"), self.task
        if task is None or task.killed:
            pass  # an answer that was on its way when we killed the child
        elif message.get("pid") != self.worker.process.child:
            task.strangers += 1
        elif message.get("nonce") != self.worker.process.nonce:
            self._kill(Lost("it answered for another case", cause="forged"))
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
            self._case_done(task, message)

    # Which case is next

    def send_next(self, looked: bool = False) -> None:
        """Give the child a case, or end the slot when there is none; or have another child, if this one is
        not fit for the case.

        With `looked`, it was seen just now what the child has left behind.
        """
        work, worker = self.work, self.worker
        if self.next is None:
            self.recorder.finish_without_worker(work)
            if not work.cases:
                self.is_closing = not self.keep
                return
            self.next = work.cases.popleft()
        if worker.served and (
            self.unclean or self.next in work.again or (not looked and worker.process.strays())
        ):
            self._replace_child()
            return
        self.task = task = self.recorder.task_of(work, self.next)
        self.next = None
        task.sent = time.monotonic()
        worker_process.send_case(worker, self.recorder.assignment.plan.offsets[task.number])
        self.recorder.read_ahead(work)

    def _go_on(self) -> None:
        """After a case: the next one, in a clean child if this one hoards memory or left something behind."""
        self.changed = time.monotonic()
        limit = self.recorder.assignment.limits.memory_bytes // 2
        is_large = system.rss_bytes(self.worker.process.child or 0) > limit
        self.work.renewed += is_large
        if self.unclean or is_large:
            self._replace_child()
        else:
            self.send_next(looked=True)

    def _replace_child(self) -> None:
        """End the child with all that it left behind; the worker forks another one, which gets the slot's
        next case."""
        self.changed = time.monotonic()
        self.worker.process.kill_children()

    # What can become of a case

    def look_after(self) -> None:
        """Keep the deadlines and the memory limit, and the pipe for what is printed open."""
        worker, task = self.worker, self.task
        worker.process.read_output()
        if worker.process.popen.poll() is not None:
            self.listen()  # what it said last is still in the pipes
            if not self.is_closing:
                self._worker_lost()
        elif task is None or task.killed:
            if not self.is_loading and worker_process.loads_backend(worker):
                self.is_loading, self.changed = True, time.monotonic()
            if time.monotonic() - self.changed > (STUCK_SECONDS if self.ready else LOAD_SECONDS):
                self._stuck()
        elif worker.process.child is not None:
            self._look_after_task(task, worker.process.child)

    def _look_after_task(self, task: Task, child: int) -> None:
        limits = self.recorder.assignment.limits
        before, task.rss_bytes = task.rss_bytes, system.rss_bytes(child)
        task.peak_rss_bytes = max(task.peak_rss_bytes, task.rss_bytes)
        if (place := worker_process.place(self.worker)) != task.place:
            task.place, task.sent = place, time.monotonic()
        elif worker_process.works_for_us(self.worker):
            task.our_growth_bytes = max(0, task.our_growth_bytes + task.rss_bytes - before)
        # A collection of cycles runs the backend's destructors. The deadline counts from its start, because
        # the code of ours that it interrupts may have been at work for longer.
        if (collection := worker_process.collection(self.worker)) != task.collection:
            task.collection, task.collected = collection, time.monotonic()
        seconds, since = limits.timeout_s, max(task.sent, task.collected if collection else 0.0)
        if worker_process.works_for_us(self.worker, collection):
            seconds = max(OUR_SECONDS, OUR_SHARE * seconds)
        if time.monotonic() - since > seconds:
            heard = (task.sent, place, collection)
            self.listen()  # perhaps it was we who were late
            worker = self.worker
            now = (task.sent, worker_process.place(worker), worker_process.collection(worker))
            if self.task is task and now == heard:
                self._kill(lost_in_time(seconds))
        elif task.peak_rss_bytes > limits.memory_bytes:
            self._kill(endings.lost_in_memory_of(self.worker, limits.memory_bytes, task.our_growth_bytes))

    def _kill(self, why: Lost) -> None:
        assert self.task is not None
        self.task.killed = why
        self.changed = time.monotonic()
        self.worker.process.kill_children()

    def _case_done(self, task: Task, message: dict[str, Any]) -> None:
        left_behind = len(self.worker.process.strays()) or min(1, task.strangers)
        changed = message["changed"]
        ending = endings.of_done_case(task, message, left_behind)
        self.task = None
        self.work.losses = 0
        self.work.done += 1
        self.unclean = bool(left_behind or changed)
        self._finish(task, ending, changed)
        self.worker.served += 1
        self.worker.behind.append(before(task))

    def _forged(self) -> None:
        """End the worker, whose answers can no longer be trusted, and with it the case."""
        if self.task is not None:
            task, self.task = self.task, None
            self._finish(task, Ending("backend_error", "answer", endings.FORGED))
        else:
            self._count_loss(endings.FORGED)
        self.is_closing = True

    def _child_lost(self, status: int) -> None:
        task, self.task = self.task, None
        if task is None:
            return
        worker, work = self.worker, self.work
        # It was lost before it took the case: an end of a case before, or a kill from outside.
        if not worker_process.position(worker)[0]:
            if task.killed is not None and task.killed.cause == "oom" and not worker.served:
                ending = endings.of_large_load(worker, task.killed)
                work.note_load_failure(ending)
                self.recorder.write_ending(work, task, ending)
                self.is_closing = True
                return
            why = "the child was lost before it took the case"
            if worker.served and task.number not in work.again:
                work.again[task.number] = Suspicion("", why, tuple(worker.behind))
            self._send_again(task, Ending("harness_error", "worker", why))
            return
        self._finish(task, endings.of_lost_child(worker, task, status))

    def _finish(self, task: Task, ending: Ending, changed: Sequence[str] = ()) -> None:
        """Write the rows of the case; or, if it failed in a way that may be the doing of those before it,
        have it walked once more in a new child.

        A failure of ours is repeated in any case: it may be that of a process which something else has
        spoiled. So is a case whose child was killed, and not by us: that may have been anybody. One that only
        is wrong is walked again where a new child costs no load of the backend, and not each time: its rows
        stand unless the second walk is worse, which says whether that comes without the cases before it.
        """
        work, worker = self.work, self.worker
        walks = self.recorder.rows_of_task(work, task, ending)
        failure, text = failure_of(walks)
        was_killed = task.killed is None and ending.signal == signal_name(signal.SIGKILL)
        if was_killed and memory.kills_for_memory() > self.kills_before:
            # Nobody knows whose memory it was: the child was within its limit, and all took too much.
            work.starved += 1
            work.starved_cases.add(task.number)
            self.is_starved = self.is_closing = True
            text = f"{ending.text}; {endings.NO_MEMORY_LEFT}"
            if self._send_again(task, replace(ending, status="harness_error", text=text)):
                work.given_up.append(task.case.name)
        elif was_killed and task.number in work.again and work.again[task.number].walks:
            # It counts beside what the first walk has seen, so it must not be the doing of anybody else.
            self._send_again(task, ending)
        elif (
            failure
            and task.number not in work.again
            and (worker.served or was_killed or (failure == "harness_error" and not changed))
        ):
            self._ask_again(task, Suspicion(failure, text, tuple(worker.behind)))
        elif (
            not failure
            and worker.served
            and task.number not in work.again
            and worker.process.child != worker.process.popen.pid
            and work.may_ask_again()
            and wrong_of(walks)
        ):
            first = Suspicion("", "", tuple(worker.behind), tuple(after_changes(walks, changed)))
            self._ask_again(task, first)
        else:
            self.unclean |= failure == "harness_error"
            self.recorder.write(work, task, after_changes(walks, changed))

    def _ask_again(self, task: Task, first: Suspicion) -> None:
        """Have the case walked once more, next and in a new child."""
        self.work.again[task.number] = first
        self.work.cases.appendleft(task.number)
        self.unclean = True

    # What can become of the worker

    def _stuck(self) -> None:
        """End a worker that says nothing: it does not load, or does not tell of the child that we killed, or
        has no new one."""
        if not self.ready:
            self.work.note_load_failure(endings.of_stuck_load(self.worker, LOAD_SECONDS))
        elif self.task is not None:
            self._child_lost(0)
        else:
            self._count_loss(f"the worker had no child after {STUCK_SECONDS:.0f} s")
        self.is_closing = True

    def _worker_lost(self) -> None:
        """End the slot of a worker that is gone: it was killed (it runs no case), it could not load, or the
        backend in it has closed its pipes, with which it need not end.

        The case goes back to be sent to another.
        """
        process, task = self.worker.process, self.task
        code: int | None = None
        with suppress(subprocess.TimeoutExpired):
            code = process.popen.wait(ENDING_SECONDS)
        if process.child == process.popen.pid:
            if code is None and task is not None:
                task.killed = task.killed or lost_by_closing()
            self._child_lost(wait_status(code or 0))
        elif not self.ready:
            status, text = endings.of_lost_load(self.worker, code)
            self._count_loss(text, status)
        elif task is not None:
            self._send_again(task, endings.of_lost_worker(self.worker, code))
        elif self.next is None or not self.worker.served:
            self._count_loss(f"{endings.how_it_was_lost(code)} without a case in hand")
        self.is_closing = True

    def _count_loss(self, text: str, status: Status = "harness_error") -> None:
        """Count a worker that was lost without a case in hand; after some in a row there is no point in
        starting another."""
        self.work.losses += 1
        if self.work.losses >= ATTEMPTS:
            self.work.note_load_failure(Ending(status, "load", one_line(text)))

    def _send_again(self, task: Task, ending: Ending) -> bool:
        """Have the case sent to another worker; the third time it ends so. Returns whether it does.

        What happens to the worker, or before the case is taken, may once or twice be done from outside.
        """
        work = self.work
        work.attempts[task.number] += 1
        if work.attempts[task.number] < ATTEMPTS:
            # At the end, where other kills from outside do not hit it again; but where a new child is wanted
            # for it, that is the next.
            (work.cases.appendleft if task.number in work.again else work.cases.append)(task.number)
            return False
        again = replace(ending, text=f"{ending.text}, {ATTEMPTS} times")
        self.recorder.write_ending(work, task, again)
        return True
