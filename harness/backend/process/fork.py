"""What a process does around its fork: it forks a child that serves and waits for its end, dies with its
parent, and reads its peak of memory."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NoReturn

from harness.backend.process.channel import BrokenChannel, send
from harness.backend.process.lost import CLOSED_CODE
from harness.backend.process.system import proc_content
from harness.errors import error_text

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def fork_children(serve: Callable[[], None], request: int, control: int, orders: int) -> None:
    """Fork a child that serves; tell of it and of its end on the control pipe; and fork the next one when a
    line of `orders`, a duplicate of stdin, asks for it. Returns when that is closed.

    The client asks only after it has killed whatever a lost child left behind, so that it never kills the
    next child by mistake. What the backend has put in the place of stdin, or does when a child ends, is
    nothing to us.
    """
    handler = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    while True:
        _drain(request)
        parent = os.getpid()
        child = os.fork()
        if child == 0:
            if handler is not None:  # one of Python's, or none
                signal.signal(signal.SIGCHLD, handler)
            os.close(orders)
            serve_and_exit(partial(_serve_apart, serve, parent, control))
        send(control, {"event": "child", "pid": child})
        send(control, {"event": "exit", "pid": child, "status": _wait_for(child)})
        if not _line(orders):
            return


def _line(descriptor: int) -> bytes:
    """Returns the next line; what there is of one at the end."""
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(descriptor, 1)):
        line += byte
    return line


def _serve_apart(serve: Callable[[], None], parent: int, control: int) -> None:
    """Serve to the end in a child that shares no more with its parent than it must."""
    os.setsid()
    die_with(parent)
    # A backend must not be able to write or read what the process and its client tell each other.
    os.close(control)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    faulthandler.enable(all_threads=False)
    serve()


def serve_and_exit(serve: Callable[[], None]) -> NoReturn:
    """Serve to the end, and end this process with the exit code that says how that was; what went wrong is
    printed."""
    code = 1
    try:
        serve()
        code = 0
    except BaseException as error:
        if isinstance(error, BrokenChannel):
            code = CLOSED_CODE
        with suppress(OSError):
            reason = error_text(error.__cause__ or error)
            os.write(2, f"it cannot be asked or answer any more: {reason}\n".encode())
    finally:
        os._exit(code)


def _wait_for(child: int) -> int:
    """Returns the child's wait status. Whatever the backend left behind and the kernel handed to this process
    is waited for too."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            return status


def _drain(request: int) -> None:
    """Throw away what a lost child did not read. Whoever sends requests sends none until it hears of the new
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
    """Returns the peak of this process's resident set, in bytes, since the last reset."""
    try:
        _, is_told, peak_line = proc_content("/proc/self/status").partition(b"\nVmHWM:")
        if is_told:
            return int(peak_line.split(maxsplit=1)[0]) * 1024
    except OSError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def prctl(option: int, value: int) -> None:
    """Call Linux's prctl; elsewhere do nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def die_with(parent: int) -> None:
    """Have this process killed when the parent ends, however it ends (Linux); end at once if it already
    has."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
