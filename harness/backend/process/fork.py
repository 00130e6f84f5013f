"""What a process does around its fork: it waits for its child, dies with its parent, and reads its peak of
memory."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys

PR_SET_PDEATHSIG = 1


PR_SET_CHILD_SUBREAPER = 36


def wait_for(child: int) -> int:
    """The child's wait status; whatever the backend left behind and the kernel handed to us is waited for
    too."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            return status


def drain(request: int) -> None:
    """Throw away what a lost child did not read; whoever sends requests sends none until it hears of the new
    child."""
    os.set_blocking(request, False)
    try:
        while os.read(request, 65536):
            pass
    except BlockingIOError:
        pass
    os.set_blocking(request, True)


def reset_peak_rss() -> None:
    """Start a new peak of the resident set, where the system can (Linux)."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass


def peak_rss() -> int:
    """The peak of this process's resident set, in bytes, since the last reset."""
    try:
        with open("/proc/self/status", "rb") as file:
            for line in file:
                if line.startswith(b"VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def prctl(option: int, value: int) -> None:
    """Linux's prctl; elsewhere nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def die_with(parent: int) -> None:
    """Be killed when the parent ends, however it ends (Linux); end at once if it already has."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
