"""Processes as the operating system shows them: their memory, their descendants, how they ended, and how to
end them."""

from __future__ import annotations

import mmap
import os
import signal
from collections.abc import Iterator
from contextlib import suppress

# One thread each unless a backend's own option says otherwise; the hub's libraries look at local files only;
# and torch asks the driver's library, not the driver, whether there is a GPU (a backend asks when it is
# imported): after that a process can still fork children that use it.
ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
}


def module(name: str, python: str) -> list[str]:
    """Returns the command that runs a module of ours. Our package is found where this interpreter has it
    installed, and never in the current folder: a case's neighbour could be called `json.py`."""
    return [python, "-P", "-m", name]


def rss_bytes(pid: int) -> int:
    """Returns the bytes of the resident set now; 0 if the process is gone or the system does not tell."""
    try:
        return int(proc_content(f"/proc/{pid}/statm").split()[1]) * mmap.PAGESIZE
    except (OSError, ValueError, IndexError):
        return 0


def thread_count(pid: int) -> int:
    """Returns how many threads the process has; 0 if it is gone or the system does not tell."""
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0


def descendants(pid: int, but: int | None = None) -> Iterator[int]:
    """Yields every process below this one, as the system tells (Linux); not those below `but`, where that is
    given."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    for thread in threads:
        try:
            children = proc_content(f"/proc/{pid}/task/{thread}/children")
        except OSError:
            continue
        for child in map(int, children.split()):
            yield child
            if child != but:
                yield from descendants(child)


def proc_content(path: str) -> bytes:
    """Returns all of a small file of /proc. A file object would take three times as long, and this is done
    several times for every case. Raises OSError."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = [os.read(file, 1 << 16)]
        while parts[-1]:
            parts.append(os.read(file, 1 << 16))
    finally:
        os.close(file)
    return b"".join(parts)


def is_running(pid: int) -> bool:
    """Is the process there, and not only waiting to be waited for?"""
    return _stat(pid, 3) not in (b"", b"Z", b"X")


def start_time(pid: int) -> int:
    """Returns when the process began, in the system's ticks, which tells it from a later one with the same
    number; 0 if it is gone or the system does not tell."""
    return int(_stat(pid, 22) or 0)


def _stat(pid: int, field: int) -> bytes:
    """Returns a field of /proc/PID/stat by its number in proc(5), from 3 on, which is the first behind the
    name; empty if the process is gone."""
    try:
        return proc_content(f"/proc/{pid}/stat").rpartition(b")")[2].split()[field - 3]
    except (OSError, IndexError):
        return b""


def signal_name(number: int) -> str:
    """Returns the signal's name as people know it, for example SIGABRT."""
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


def how_it_ended(code: int) -> str:
    """Returns what a process's `returncode` says, for people."""
    return f"the process was killed by {signal_name(-code)}" if code < 0 else f"the process ended with {code}"


def wait_status(code: int) -> int:
    """Returns the wait status of a process with this `returncode`."""
    return -code if code < 0 else code << 8


def kill_group(pid: int) -> None:
    """Send SIGKILL to the process group that this process leads; to the process alone if it leads none."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        kill(pid)


def kill(pid: int) -> None:
    """Send SIGKILL to one process, if it is still there."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
