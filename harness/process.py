"""One worker as the coordinator sees it: started, sent a case, listened to, and killed with everything that it left behind."""

from __future__ import annotations

import json
import math
import mmap
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from harness.channel import Frames
from harness.walk import PHASES, Progress

STDERR_KEPT = 4000

# One thread each unless a backend's own option says otherwise; and the hub's libraries look at local files only.
ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
}


@dataclass(eq=False)
class Worker:
    """A running `harness.worker`, its pipes, and the child that it forked."""

    popen: subprocess.Popen[bytes]
    control: int
    """What the worker itself says: `ready` or `failed`, then `child` and `exit` by turns. Apart from the answers, because a
    child that is killed in the middle of one leaves a torn frame."""
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


def start_worker(
    spec: str,
    vocabulary: str,
    cases: Path,
    effort: int = 0,
    check_seconds: float = math.inf,
    python: str = sys.executable,
    fork: bool = True,
    *,
    decode: bool = False,
) -> Worker:
    """Start a worker that makes checks of this effort, and with `decode` those of decoding; none is begun when a case has had so many
    seconds of them.

    It answers with `ready` and `child`, or `failed`, in its own time.
    """
    request_read, request_write = os.pipe()
    reply_read, reply_write = os.pipe()
    control_read, control_write = os.pipe()
    stderr_read, stderr_write = os.pipe()
    with tempfile.TemporaryFile() as shared:
        shared.truncate(4096)
        theirs = (request_read, reply_write, control_write, shared.fileno())
        numbers = (effort, int(decode), check_seconds, *theirs, os.getpid())
        command = [*module("harness.worker", python), spec, vocabulary, str(cases), *map(str, numbers)]
        popen = subprocess.Popen(
            command + ([] if fork else ["no-fork"]),
            stdin=subprocess.PIPE,
            stdout=stderr_write,
            stderr=stderr_write,
            pass_fds=theirs,
            env={**os.environ, **ENVIRONMENT},
            start_new_session=True,
        )
        progress: Progress = memoryview(mmap.mmap(shared.fileno(), 4096)).cast("q")
    for each in (request_read, reply_write, control_write, stderr_write):
        os.close(each)
    for each in (reply_read, control_read, stderr_read):
        os.set_blocking(each, False)
    return Worker(popen, control_read, request_write, reply_read, stderr_read, progress)


def module(name: str, python: str = sys.executable) -> list[str]:
    """The command that runs a module of ours, without the current folder on the path: a case's neighbour could be called `json.py`."""
    return [python, "-P", "-m", name]


def send_case(worker: Worker, offset: int) -> None:
    """Ask the child for the case that begins at this offset of `cases.jsonl`."""
    read_printed(worker)
    worker.printed.clear()
    for cell in range(4):
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
    """Phase (empty if it had not begun), instance, token and number of tokens of the child, as far as it got."""
    phase, *rest = (worker.progress[cell] for cell in range(4))
    instance, token, tokens = (max(0, each) for each in rest)
    return PHASES[phase] if 0 <= phase < len(PHASES) else "", instance, token, tokens


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


def rss_bytes(pid: int) -> int:
    """The resident set now; 0 if the process is gone or the system does not tell."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE
    except (OSError, ValueError, IndexError):
        return 0


def descendants(pid: int) -> Iterator[int]:
    """Every process below this one, as the system tells (Linux)."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                children = file.read().split()
        except OSError:
            continue
        for child in map(int, children):
            yield child
            yield from descendants(child)


def strays(worker: Worker) -> list[int]:
    """What a backend started and left running: all below the worker but its child."""
    return [pid for pid in descendants(worker.popen.pid) if pid != worker.child and _is_running(pid)]


def _is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except (OSError, IndexError):
        return False


def kill_children(worker: Worker) -> None:
    """Kill the child and all that it left behind, also what took a session of its own; the worker stays and says `exit`."""
    if worker.child is not None:
        kill_group(worker.child)
    for _ in range(100):
        remaining = [pid for pid in descendants(worker.popen.pid) if _is_running(pid)]
        if not remaining:
            return
        for pid in remaining:
            _kill(pid)
        time.sleep(0.001)


def signal_name(number: int) -> str:
    """SIGABRT and the like, as people know them."""
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


def how_it_ended(code: int) -> str:
    """What a process's `returncode` says."""
    return f"the process was killed by {signal_name(-code)}" if code < 0 else f"the process ended with {code}"


def kill_group(pid: int) -> None:
    """SIGKILL to the process group that this process leads, and to itself."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        _kill(pid)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


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
