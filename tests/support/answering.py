"""A handler that answers, or harms its process as it is asked, for tests of services."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from harness.backend.process.child import LOADING, Answer, Handler, Page
from harness.errors import BadInput


def open_answering(
    fails: str = "",
    page: Page | None = None,
    threads: bool = False,
    helper: bool = False,
    harm: str = "none",
    loading: bool = False,
    spoils: str = "",
) -> tuple[Handler, dict[str, Any]]:
    """Returns the handler, which answers on a thread of its own with `threads`, leaves a process running with
    `helper`, and does `harm` (a name of `HARM`) with every message that names none; or fails to load, as is
    asked, which with `loading` is noted as what the backend does."""
    if page is not None:
        page[LOADING] = loading
    if spoils == "stdin":
        sys.stdin = open(os.devnull)  # noqa: SIM115 - it stands there as long as the process lives
    elif spoils == "descriptor":
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    elif spoils == "children":
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    if fails == "input":
        raise BadInput("there is no such thing")
    if fails == "raises":
        raise RuntimeError("it is broken")
    if fails == "dies":
        os.abort()
    if fails == "is killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if fails == "closes":
        os.closerange(3, 64)
    if fails in ("hangs", "closes"):
        time.sleep(60)
    if page is not None:
        page[LOADING] = 0

    if helper:
        _leave()
    pool = ThreadPoolExecutor(1)
    if threads:
        pool.submit(len, "the thread begins here").result()

    def answer(message: dict[str, Any], blob: bytes) -> Answer:
        return pool.submit(answer_here, message, blob).result() if threads else answer_here(message, blob)

    def answer_here(message: dict[str, Any], blob: bytes) -> Answer:
        if page is not None:
            page[0] = message.get("page", 0)
        HARM[message.get("harm", harm)]()
        return {"echo": message}, blob[::-1]

    return answer, {"greeting": "hello"}


def _raise(error: BaseException) -> None:
    raise error


def _eat() -> None:
    eaten = b"\x01" * 300_000_000
    time.sleep(60)
    del eaten


def _leave() -> None:
    subprocess.Popen(["sleep", "60"], start_new_session=True)


def _answer_otherwise() -> None:
    """Go on in two processes, of which one is not the child that was asked."""
    os.fork()


def close_pipes() -> None:
    """Close every pipe of this process but what is printed on."""
    for number in range(3, 1024):
        with suppress(OSError):
            if stat.S_ISFIFO(os.fstat(number).st_mode):
                os.close(number)


HARM: dict[str, Callable[[], object]] = {
    "none": lambda: None,
    "hangs": lambda: time.sleep(60),
    "eats": _eat,
    "aborts": os.abort,
    "exits": lambda: os._exit(3),
    "raises": lambda: _raise(RuntimeError("it is broken")),
    "bad input": lambda: _raise(BadInput("there is no such thing")),
    "is killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "closes pipes": close_pipes,
    "leaves": _leave,
    "forks": _answer_otherwise,
}
