"""One worker as the coordinator sees it: started, sent a case, listened to, and killed with everything that it left behind."""

from __future__ import annotations

import json
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
from typing import IO

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
    request: int
    reply: int
    stderr: int
    progress: Progress
    frames: Frames = field(default_factory=Frames)
    child: int | None = None
    nonce: str = ""
    printed: bytearray = field(default_factory=bytearray)
    """The end of what the worker and its child printed."""


def start_worker(spec: str, vocabulary: str, cases: Path, python: str = sys.executable, fork: bool = True) -> Worker:
    """Start a worker; it answers with `ready` and `child`, or `failed`, in its own time."""
    request_read, request_write = os.pipe()
    reply_read, reply_write = os.pipe()
    stderr_read, stderr_write = os.pipe()
    with tempfile.TemporaryFile() as shared:
        shared.truncate(4096)
        theirs = (request_read, reply_write, shared.fileno())
        command = [python, "-m", "harness.worker", spec, vocabulary, str(cases), *map(str, theirs), str(os.getpid())]
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
    for each in (request_read, reply_write, stderr_write):
        os.close(each)
    os.set_blocking(stderr_read, False)
    return Worker(popen, request_write, reply_read, stderr_read, progress)


def send_case(worker: Worker, offset: int) -> None:
    """Ask the child for the case that begins at this offset of `cases.jsonl`."""
    read_printed(worker)
    worker.printed.clear()
    worker.progress[0] = worker.progress[1] = worker.progress[2] = 0
    worker.nonce = secrets.token_hex(8)
    os.write(worker.request, json.dumps({"nonce": worker.nonce, "offset": offset}).encode() + b"\n")


def fork_again(worker: Worker) -> None:
    """After a child's exit: have the next one."""
    stdin: IO[bytes] | None = worker.popen.stdin
    assert stdin is not None
    with suppress(BrokenPipeError):  # then the worker is gone too; its reply pipe says so
        stdin.write(b"fork\n")
        stdin.flush()


def position(worker: Worker) -> tuple[str, int, int]:
    """Phase, instance and token of the child, as far as it got."""
    phase = worker.progress[0]
    return PHASES[phase] if 0 <= phase < len(PHASES) else "", worker.progress[1], worker.progress[2]


def read_printed(worker: Worker) -> None:
    """Take what was printed, and keep its end."""
    try:
        while data := os.read(worker.stderr, 65536):
            worker.printed += data
            del worker.printed[:-STDERR_KEPT]
    except BlockingIOError:
        pass


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
    """End the worker and everything below it."""
    kill_children(worker)
    worker.popen.kill()
    worker.popen.wait()
    for pid in descendants(worker.popen.pid):
        _kill(pid)
    for fd in (worker.request, worker.reply, worker.stderr):
        os.close(fd)
    if worker.popen.stdin is not None:
        with suppress(BrokenPipeError):
            worker.popen.stdin.close()


def read_reply(worker: Worker) -> bytes:
    """What the worker has said since; empty once its pipe is closed."""
    return os.read(worker.reply, 1 << 20)
