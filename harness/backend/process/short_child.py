"""A piece of work in a child of this process: it may die or hang, and costs an answer and no more."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress


def answer_of_a_child(work: Callable[[], str], seconds: float) -> str | None:
    """Returns what the work returns; None if it raises, dies, or takes longer. Where no process can fork, the
    work is done in this one."""
    if not hasattr(os, "fork"):
        return work()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(read)
            with os.fdopen(write, "wb") as pipe:
                pipe.write(work().encode())
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    answer, whole = b"", False
    until = time.monotonic() + seconds
    try:
        while select.select([read], [], [], max(0.0, until - time.monotonic()))[0]:
            part = os.read(read, 1 << 16)
            if not part:
                whole = True
                break
            answer += part
    finally:
        os.close(read)
        if not whole:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    return answer.decode() if whole and status == 0 else None
