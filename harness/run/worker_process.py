"""One worker as the coordinator sees it: started, sent a case, listened to, and killed with everything that
it left behind."""

from __future__ import annotations

import json
import mmap
import os
import secrets
import subprocess
import tempfile
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from harness.backend.process.channel import Frames
from harness.backend.process.system import ENVIRONMENT, _is_running, _kill, descendants, kill_group, module
from harness.rows.row import Before
from harness.run.limits import Checking
from harness.walk.watched import OURS, PHASES, Progress

STDERR_KEPT = 4000
LOOKS = 5
"""How often the processes below a worker are looked at while those that were seen have all ended, and others
have come."""

NAMED = 3
"""How many of the cases that a child has served before another one are named where that one fails."""


@dataclass(eq=False)
class Worker:
    """A running `harness.run.worker`, its pipes, and the child that it forked."""

    popen: subprocess.Popen[bytes]
    control: int
    """What the worker itself says: `ready` or `failed`, then `child` and `exit` by turns. Apart from the
    answers, because a child that is killed in the middle of one leaves a torn frame."""
    request: int
    reply: int
    """The child's answers."""
    stderr: int
    progress: Progress
    said: Frames = field(default_factory=Frames)
    answers: Frames = field(default_factory=Frames)
    child: int | None = None
    nonce: str = ""
    printed: bytearray = field(default_factory=bytearray)
    """The end of what the worker and its child printed."""
    served: int = 0
    """How many cases the child has been sent before the one that it has."""
    behind: deque[Before] = field(default_factory=lambda: deque(maxlen=NAMED))
    """The last cases that the child has served."""


def start_worker(
    spec: str, vocabulary: str, cases: Path, checking: Checking, python: str, fork: bool = True
) -> Worker:
    """Start a worker for one backend and one vocabulary, with this interpreter.

    It tells of `ready` and `child`, or `failed`, in its own time. Without `fork` it serves itself.
    """
    request_read, request_write = os.pipe()
    reply_read, reply_write = os.pipe()
    control_read, control_write = os.pipe()
    stderr_read, stderr_write = os.pipe()
    with tempfile.TemporaryFile() as shared:
        shared.truncate(4096)
        theirs = (request_read, reply_write, control_write, shared.fileno())
        asked = {
            "spec": spec,
            "vocabulary": vocabulary,
            "cases": str(cases),
            "checking": vars(checking),
            "request": request_read,
            "reply": reply_write,
            "control": control_write,
            "progress": shared.fileno(),
            "coordinator": os.getpid(),
            "fork": fork,
        }
        popen = subprocess.Popen(
            [*module("harness.run.worker", python), json.dumps(asked)],
            stdin=subprocess.PIPE,
            stdout=stderr_write,
            stderr=stderr_write,
            pass_fds=theirs,
            env={**os.environ, **ENVIRONMENT},
            start_new_session=True,
        )
        progress: Progress = memoryview(mmap.mmap(shared.fileno(), 4096)).cast("q")
    for descriptor in (request_read, reply_write, control_write, stderr_write):
        os.close(descriptor)
    for descriptor in (reply_read, control_read, stderr_read):
        os.set_blocking(descriptor, False)
    return Worker(popen, control_read, request_write, reply_read, stderr_read, progress)


def send_case(worker: Worker, offset: int) -> None:
    """Ask the child for the case that begins at this offset of `cases.jsonl`."""
    read_printed(worker)
    worker.printed.clear()
    for cell in range(5):
        worker.progress[cell] = -1
    worker.nonce = secrets.token_hex(8)
    with suppress(BrokenPipeError):  # worker and child were lost just now; its pipes say so
        os.write(worker.request, json.dumps({"nonce": worker.nonce, "offset": offset}).encode() + b"\n")


def fork_again(worker: Worker) -> None:
    """After a child's exit: have the next one."""
    stdin: IO[bytes] | None = worker.popen.stdin
    assert stdin is not None
    with suppress(BrokenPipeError):  # then the worker is gone too; its reply pipe says so
        stdin.write(b"fork\n")
        stdin.flush()


def position(worker: Worker) -> tuple[str, int, int, int]:
    """Phase (empty if it had not begun), instance, token and number of tokens of the child, as far as
    it got.
    """
    phase, *rest = (worker.progress[cell] for cell in range(4))
    instance, token, tokens = (max(0, each) for each in rest)
    return PHASES[phase] if 0 <= phase < len(PHASES) else "", instance, token, tokens


def place(worker: Worker) -> tuple[int, ...]:
    """All that the child tells of where it is: as long as this changes, it gets on."""
    return tuple(worker.progress[cell] for cell in range(5))


def works_for_us(worker: Worker) -> bool:
    """Is code of ours at work in the child?"""
    return bool(worker.progress[5]) or position(worker)[0] in OURS


def read_printed(worker: Worker) -> None:
    """Take what was printed, and keep its end; not for ever where a thread prints without end."""
    for _ in range(16):
        data = _read(worker.stderr)
        if not data:
            break
        worker.printed += data
        del worker.printed[:-STDERR_KEPT]


def printed_text(worker: Worker) -> str:
    """The end of what was printed since the case was sent."""
    read_printed(worker)
    return worker.printed.decode("utf-8", "replace").strip()


def strays(worker: Worker) -> list[int]:
    """What a backend started and left running: all below the worker but its child.

    Below the child is looked first: whoever loses its parent meanwhile goes up to the worker, where it is
    seen then. Who has ended since it was seen may have started another one meanwhile: then all is looked at
    again.
    """
    last: dict[int, None] = {}
    for _ in range(LOOKS):
        below = () if worker.child in (None, worker.popen.pid) else tuple(descendants(worker.child))
        found = dict.fromkeys((*below, *descendants(worker.popen.pid, but=worker.child)))
        found.pop(worker.child or 0, None)
        running = [pid for pid in found if _is_running(pid)]
        if running or found == last:
            return running
        last = found
    return []


def kill_children(worker: Worker) -> None:
    """Kill the child and all that it left behind, also what took a session of its own; the worker stays and
    says `exit`."""
    if worker.child is not None:
        kill_group(worker.child)
    for _ in range(100):
        remaining = [pid for pid in descendants(worker.popen.pid) if _is_running(pid)]
        if not remaining:
            return
        for pid in remaining:
            _kill(pid)
        time.sleep(0.001)


def close_worker(worker: Worker) -> None:
    """End the worker and everything that is below it now."""
    kill_children(worker)
    worker.popen.kill()
    worker.popen.wait()
    for fd in (worker.control, worker.request, worker.reply, worker.stderr):
        os.close(fd)
    if worker.popen.stdin is not None:
        with suppress(BrokenPipeError):
            worker.popen.stdin.close()


def hear(worker: Worker) -> tuple[list[dict[str, Any]], bool]:
    """What the worker itself has said since, and whether its pipe is closed. Raises BrokenChannel."""
    data = _read(worker.control)
    return [message for message, _ in worker.said.feed(data or b"")], data == b""


def answers(worker: Worker) -> list[tuple[dict[str, Any], bytes]]:
    """What the child has answered since. Raises BrokenChannel."""
    return worker.answers.feed(_read(worker.reply) or b"")


def forget_answers(worker: Worker) -> None:
    """After a child's exit: what it began to say and did not finish."""
    worker.answers = Frames()
    while _read(worker.reply):
        pass


def _read(fd: int) -> bytes | None:
    """What is there now: None if nothing is, empty if the pipe is closed."""
    try:
        return os.read(fd, 1 << 20)
    except BlockingIOError:
        return None
