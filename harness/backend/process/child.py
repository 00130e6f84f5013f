"""A service: loads what it needs once, then forks a child that answers requests, and another one when that
child is lost.

Started by the client as `python -m harness.backend.process`, with the interpreter of the environment that it
is for. Requests and answers are frames; the pipe on which it tells of its children is another one, because a
child that is killed leaves a torn frame.
"""

from __future__ import annotations

import gc
import json
import os
import resource
from collections.abc import Callable
from importlib import import_module
from typing import Any

from harness.backend.process.channel import Frames, send
from harness.backend.process.fork import PR_SET_CHILD_SUBREAPER, die_with, drain, prctl, wait_for
from harness.backend.process.guard import forbid_network
from harness.errors import BadInput, describe

Answer = tuple[dict[str, Any], bytes]
Handler = Callable[[dict[str, Any], bytes], Answer]
"""Answers one request and the bytes behind it. It answers what a backend raises; what it raises itself is
told to the client as a loss, and a BadInput is raised there again."""


def load(loader: str, arguments: dict[str, Any]) -> tuple[Handler, dict[str, Any]]:
    """Returns the handler of that service, and what is told of it when it is ready."""
    module, _, function = loader.partition(":")
    loaded: tuple[Handler, dict[str, Any]] = getattr(import_module(module), function)(**arguments)
    return loaded


def main(arguments: list[str]) -> None:
    """`LOADER ARGUMENTS REQUEST_FD REPLY_FD CONTROL_FD CLIENT_PID`, the arguments as a JSON object."""
    request, reply, control, client = map(int, arguments[2:6])
    die_with(client)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    forbid_network()
    try:
        handler, said = load(arguments[0], json.loads(arguments[1]))
    except BaseException as error:
        send(control, {"event": "failed", "input": isinstance(error, BadInput), "text": describe(error)})
        return
    send(control, {"event": "ready", **said})
    gc.collect()
    gc.freeze()
    while True:
        drain(request)
        parent = os.getpid()
        child = os.fork()
        if child == 0:
            try:
                os.setsid()
                die_with(parent)
                serve(handler, request, reply)
            finally:
                os._exit(0)
        send(control, {"event": "child", "pid": child})
        send(control, {"event": "exit", "pid": child, "status": wait_for(child)})


def serve(handler: Handler, request: int, reply: int) -> None:
    """Answer requests until the pipe closes."""
    frames = Frames()
    me = os.getpid()
    while data := os.read(request, 1 << 16):
        for message, blob in frames.feed(data):
            try:
                answer, out = handler(message, blob)
            except BadInput as error:
                answer, out = {"bad_input": str(error)}, b""
            except BaseException as error:  # a panic in Rust is no Exception
                answer, out = {"error": describe(error)}, b""
            if os.getpid() != me:  # the backend forked: one answer is enough
                os._exit(0)
            send(reply, {**answer, "number": message["number"]}, out)
