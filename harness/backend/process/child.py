"""The process itself: it loads what it needs once, then forks a child that answers requests, and another one
when that child is lost; where loading began a thread of Python or left a process running, it answers by
itself.

The client starts it as `python -m harness.backend.process`, with the interpreter of the environment that it
is for. It decides nothing: a child that hangs or grows is killed from outside. Requests and answers are
frames; the pipe on which the process tells of its children is another one, because a child that is killed
leaves a torn frame.
"""

from __future__ import annotations

import gc
import json
import mmap
import os
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module

# Bound before a backend is imported, which may put something else in their place.
from os import getpid, read, write
from typing import Any, Protocol, TypeAlias

from harness.backend.process.channel import BrokenChannel, Frames, send
from harness.backend.process.fork import (
    PR_SET_CHILD_SUBREAPER,
    die_with,
    fork_children,
    prctl,
    serve_and_exit,
)
from harness.backend.process.guard import forbid_network
from harness.backend.process.system import descendants, is_running
from harness.errors import BadInput, error_text

Answer = tuple[dict[str, Any], bytes]
"""The fields of an answer, and the bytes behind it."""
Handler = Callable[[dict[str, Any], bytes], Answer]
"""Answers one request and the bytes behind it. It answers what a backend raises; what it raises itself is
told to the client as a loss, and a BadInput is raised there again."""


class Answering(Protocol):
    """Sends one answer to the request in hand."""

    def __call__(self, fields: dict[str, Any], out: bytes = b"", /) -> None: ...


PAGE_BYTES = 4096
Page: TypeAlias = "memoryview[int]"
"""Integers that the process, its children and the client see at the same time."""

LOADING = 0
"""The cell of the page that a loader sets to 1 while it loads the backend itself, and no code of ours."""


@dataclass(frozen=True)
class Streaming:
    """Handles requests each of which has many answers. Nothing of its own is caught: it must tell of
    everything itself."""

    begin: Callable[[tuple[int, ...]], Callable[[dict[str, Any], Answering], None]]
    """Is called once in each child, with the descriptors that must stay open; returns what is called with
    each request and with the function that sends an answer to it."""


def load(loader: str, arguments: dict[str, Any]) -> tuple[Handler | Streaming, dict[str, Any]]:
    """Returns the handler that the loader, `module:function`, makes from these arguments, and what the client
    is told when it is ready."""
    module, _, function = loader.partition(":")
    loaded: tuple[Handler | Streaming, dict[str, Any]] = getattr(import_module(module), function)(**arguments)
    return loaded


def main(arguments: list[str]) -> None:
    """Serve as the only argument says, a JSON object that `harness.backend.process.process.start` writes."""
    asked = json.loads(arguments[0])
    request, reply, control, bell = asked["request"], asked["reply"], asked["control"], asked["bell"]
    die_with(asked["client"])
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    forbid_network()
    if asked["page"] is not None:
        asked["arguments"]["page"] = memoryview(mmap.mmap(asked["page"], PAGE_BYTES)).cast("q")
    orders = os.dup(0)  # a backend may put something else in the place of stdin, or close it
    try:
        handler, description = load(asked["loader"], asked["arguments"])
    except BaseException as error:
        is_input = isinstance(error, BadInput)
        text = str(error) if is_input else error_text(error)
        send(control, {"event": "failed", "input": is_input, "text": text})
        return
    send(control, {"event": "ready", **description})
    gc.collect()
    gc.freeze()
    # A fork takes no thread along: who waits there for one that the adapter began would wait for ever. And a
    # process that the adapter started would go on with what a lost child had asked of it.
    has_helper = any(is_running(pid) for pid in descendants(getpid()))
    if asked["fork"] and threading.active_count() == 1 and not has_helper:
        fork_children(lambda: serve(handler, request, reply, bell), request, control, orders)
    else:
        send(control, {"event": "child", "pid": getpid()})
        # A thread that the adapter began would keep the process from ending.
        serve_and_exit(lambda: serve(handler, request, reply, bell))


def serve(handler: Handler | Streaming, request: int, reply: int, bell: int = -1) -> None:
    """Answer requests until the pipe closes; write a byte to the pipe `bell`, if there is one, when a request
    is answered. Raises BrokenChannel if one of the three is no pipe of ours any more."""
    respond = _responder(handler, (0, 1, 2, request, reply, *([bell] if bell >= 0 else [])))
    frames = Frames()
    while data := _read(request):
        for message, blob in frames.feed(data):

            def answer(fields: dict[str, Any], out: bytes = b"", nonce: str = message.pop("nonce")) -> None:
                # The pid is asked for each time: a backend that forks makes a second process of us.
                with _of_ours():
                    send(reply, {**fields, "nonce": nonce, "pid": getpid()}, out)

            respond(message, blob, answer)
            if bell >= 0:
                with _of_ours():
                    write(bell, b".")


@contextmanager
def _of_ours() -> Iterator[None]:
    """Raises BrokenChannel where a pipe of ours cannot be read or written: it was closed."""
    try:
        yield
    except OSError as error:
        raise BrokenChannel from error


def _read(request: int) -> bytes:
    """Returns what there is of requests; empty at their end."""
    with _of_ours():
        return read(request, 1 << 16)


def _responder(
    handler: Handler | Streaming, descriptors: tuple[int, ...]
) -> Callable[[dict[str, Any], bytes, Answering], None]:
    """Returns what answers one request, in this child."""
    if isinstance(handler, Streaming):
        begun = handler.begin(descriptors)
        return lambda message, blob, answer: begun(message, answer)
    me = getpid()

    def answer_once(message: dict[str, Any], blob: bytes, answer: Answering) -> None:
        try:
            fields, out = handler(message, blob)
        except BadInput as error:
            fields, out = {"bad_input": str(error)}, b""
        except BaseException as error:  # a panic in Rust is no Exception
            fields, out = {"error": error_text(error)}, b""
        if getpid() != me:  # the backend forked: one answer is enough
            os._exit(0)
        answer(fields, out)

    return answer_once
