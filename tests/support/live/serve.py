"""llama-cpp-python's server as it is, with a clock at its door: `serve.py SOCKET LOG [the server's own
arguments]`.

SOCKET is the file descriptor of a socket that listens. The server ends when its standard input does: with the
process that started it, however that ends.

The server reports no timings of its own. This writes a line of JSON for each answer: when its request had
come in, and when each piece of the answer was handed out, by the same clock that other processes of this
machine have (nanoseconds, monotonic).
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Door:
    """Around the server's application; between them and the network there is only the HTTP library."""

    def __init__(self, application: Callable[..., Awaitable[None]], log: str) -> None:
        self.application = application
        self.log = log

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].endswith("/completions"):
            await self.application(scope, receive, send)
            return
        came: list[int] = []
        pieces: list[tuple[int, str]] = []

        async def receiving() -> dict[str, Any]:
            message = await receive()
            if not came and message["type"] == "http.request" and not message.get("more_body"):
                came.append(time.perf_counter_ns())
            return message

        async def sending(message: dict[str, Any]) -> None:
            now = time.perf_counter_ns()
            await send(message)
            if message.get("body"):
                pieces.append((now, message["body"].decode()))

        try:
            await self.application(scope, receiving, sending)
        finally:
            with open(self.log, "a", encoding="utf-8") as file:
                file.write(json.dumps({"came": came[0] if came else None, "pieces": pieces}) + "\n")


def main() -> None:
    """The server's `main`, whose application we wrap and whose socket is ours."""
    from llama_cpp.server import __main__ as server

    listening, log = socket.socket(fileno=int(sys.argv.pop(1))), sys.argv.pop(1)
    uvicorn = server.uvicorn

    def run(application: Callable[..., Awaitable[None]], **_: object) -> None:
        uvicorn.Server(uvicorn.Config(Door(application, log))).run(sockets=[listening])

    uvicorn.run = run
    threading.Thread(target=_end_with_the_one_who_started, daemon=True).start()
    server.main()


def _end_with_the_one_who_started() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    main()
