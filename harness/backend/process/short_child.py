"""A piece of work in a child of this process: it may die or hang, and costs an answer and no more."""

from __future__ import annotations

import os
import select
import signal
import struct
import time
from collections.abc import Callable
from contextlib import suppress

from harness.backend.process.fork import die_with
from harness.backend.process.system import kill

SIZE = struct.Struct(">Q")
"""Stands before the answer. The end of the pipe does not tell where it ends: a process that the work leaves
running has the pipe too."""
LOOK_SECONDS = 0.1
"""How often it is looked whether the child has ended without an answer."""


def answer_of_a_child(work: Callable[[], str], seconds: float) -> str | None:
    """Returns what the work returns; None if it raises, dies, or takes longer. What the work leaves running
    in the child's group is ended."""
    read, write = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(read)
            os.setsid()
            die_with(parent)  # no signal to the parent's group reaches it any more
            text = work().encode()
            with os.fdopen(write, "wb") as pipe:
                pipe.write(SIZE.pack(len(text)) + text)
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    answer = bytearray()
    until = time.monotonic() + seconds
    ended, status = 0, 1
    try:
        while not _is_whole(answer) and time.monotonic() < until:
            if not ended:
                ended, status = os.waitpid(child, os.WNOHANG)
            if select.select([read], [], [], 0.0 if ended else LOOK_SECONDS)[0]:
                part = os.read(read, 1 << 16)
                if not part:
                    break
                answer += part
            elif ended:
                break
        if _is_whole(answer) and not ended:
            ended, status = os.waitpid(child, 0)
    finally:
        os.close(read)
        with suppress(ProcessLookupError):  # not yet its leader, or nothing is left in it
            os.killpg(child, signal.SIGKILL)
        if not ended:
            kill(child)
            os.waitpid(child, 0)
    return answer[SIZE.size :].decode() if _is_whole(answer) and status == 0 else None


def _is_whole(answer: bytearray) -> bool:
    return len(answer) >= SIZE.size and len(answer) == SIZE.size + SIZE.unpack_from(answer)[0]
