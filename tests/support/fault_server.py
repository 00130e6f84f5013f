"""A server on loopback that does one thing wrong, or nothing: what the live client is tried on.

It speaks HTTP/1.1 by hand, because what is to be tried is what no well-kept server library would send.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

Body = dict[str, Any]
Write = asyncio.StreamWriter
Behaviour = Callable[["Talk"], Awaitable[None]]

EVENTS = "text/event-stream; charset=utf-8"
FACTS: dict[str, Any] = {
    "/v1/models": {"object": "list", "data": [{"id": "a-model", "object": "model", "owned_by": "vllm"}]},
    "/version": {"version": "0.11.2"},
}


@dataclass
class Talk:
    """One POST: what was asked, and how to answer it."""

    body: Body
    path: str
    writer: Write
    server: FaultServer

    @property
    def is_chat(self) -> bool:
        return self.path.endswith("/chat/completions")

    async def head(self, status: str = "200 OK", kind: str = EVENTS, *more: str) -> None:
        """The status line and the headers; the body comes in chunks."""
        lines = [
            f"HTTP/1.1 {status}",
            f"content-type: {kind}",
            "transfer-encoding: chunked",
            "connection: close",
            *more,
        ]
        await self.raw("\r\n".join([*lines, "", ""]).encode())

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def chunk(self, data: bytes) -> None:
        """Bytes of the body, as they are."""
        await self.raw(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def event(self, value: object) -> None:
        """One event; JSON, or text as it is."""
        await self.chunk(f"data: {value if isinstance(value, str) else json.dumps(value)}\n\n".encode())

    def message(self, text: str | None, reason: str | None = None, role: str | None = None) -> Body:
        """Returns a message with choices."""
        if not self.is_chat:
            return {"choices": [{"index": 0, "text": text or "", "finish_reason": reason}]}
        delta: Body = {} if text is None else {"content": text}
        return {
            "choices": [
                {"index": 0, "delta": {**({"role": role} if role else {}), **delta}, "finish_reason": reason}
            ]
        }

    async def texts(self, pieces: Sequence[str], gap_s: float = 0.0) -> None:
        """A message each, with a pause before all but the first."""
        for place, piece in enumerate(pieces):
            if place and gap_s:
                await asyncio.sleep(gap_s)
            await self.event(self.message(piece))

    async def finish(self, reason: str = "stop", tokens: int | None = None, done: bool = True) -> None:
        """The reason of the end, the usage, `[DONE]`, the end of the body."""
        await self.event(self.message(None, reason))
        if tokens is not None:
            await self.event(
                {
                    "choices": [],
                    "usage": {"prompt_tokens": 7, "completion_tokens": tokens, "total_tokens": 7 + tokens},
                }
            )
        if done:
            await self.event("[DONE]")
        await self.raw(b"0\r\n\r\n")


@dataclass
class FaultServer:
    """Listens; `asked` are the bodies that came."""

    behaviour: Behaviour
    facts: dict[str, Any] = field(default_factory=lambda: dict(FACTS))
    asked: list[Body] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    port: int = 0
    compresses: bool = False
    """Are answers about the server compressed for a client that takes them so?"""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: Write) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            method, path, _ = head[0].split(" ")
            headers = {
                name.lower(): value.strip()
                for name, _, value in (line.partition(":") for line in head[1:] if line)
            }
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            self.headers.append(headers)
            if method == "GET":
                fact = self.facts.get(path)
                reply, more = json.dumps(fact).encode(), ""
                if self.compresses and "gzip" in headers.get("accept-encoding", ""):
                    reply, more = gzip.compress(reply), "content-encoding: gzip\r\n"
                status = "404 Not Found" if fact is None else "200 OK"
                writer.write(
                    f"HTTP/1.1 {status}\r\n{more}content-length: {len(reply)}\r\n"
                    "connection: close\r\n\r\n".encode()
                    + reply
                )
                await writer.drain()
            else:
                self.asked.append(json.loads(body))
                await self.behaviour(Talk(self.asked[-1], path, writer, self))
        with suppress(Exception):
            writer.close()


@contextmanager
def serving(
    behaviour: Behaviour, facts: dict[str, Any] | None = None, *, compresses: bool = False
) -> Iterator[FaultServer]:
    """The server in a thread, for as long as the block lasts."""
    server = FaultServer(behaviour, dict(FACTS) if facts is None else facts, compresses=compresses)
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    stop = asyncio.Event()

    async def run() -> None:
        listening = await asyncio.start_server(server._serve, "127.0.0.1", 0, limit=1 << 24)
        server.port = listening.sockets[0].getsockname()[1]
        ready.set()
        await stop.wait()
        listening.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for other in others:
            other.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()


# ------------------------------------------------------------------------------------------------- behaviours

LONG = 60.0
"""Seconds that no test waits for."""


def says(
    text: str | Callable[[Body], str],
    *,
    pieces: int = 4,
    gap_s: float = 0.0,
    first_s: float = 0.0,
    counts: bool = True,
) -> Behaviour:
    """Returns a good server: a role-only message, then the text in so many messages, one token each, and a
    count of them."""

    async def behave(talk: Talk) -> None:
        whole = text if isinstance(text, str) else text(talk.body)
        size = max(1, -(-len(whole) // pieces))
        parts = [whole[start : start + size] for start in range(0, len(whole), size)]
        await talk.head()
        if talk.is_chat:
            await talk.event(talk.message("", role="assistant"))
        await asyncio.sleep(first_s)
        await talk.texts(parts, gap_s)
        await talk.finish(tokens=len(parts) if counts else None)

    return behave


async def slow_first_byte(talk: Talk) -> None:
    await asyncio.sleep(LONG)


async def headers_then_nothing(talk: Talk) -> None:
    await talk.head()
    await asyncio.sleep(LONG)


async def role_only_for_ever(talk: Talk) -> None:
    """Looks alive, says nothing."""
    await talk.head()
    while True:
        await talk.event(talk.message("", role="assistant"))
        await talk.chunk(b": ping\n\n")
        await asyncio.sleep(0.02)


async def stalls(talk: Talk) -> None:
    await talk.head()
    await talk.texts(["12", "34"])
    while True:  # a comment is no progress
        await talk.chunk(b": ping\n\n")
        await asyncio.sleep(0.02)


async def never_ends(talk: Talk) -> None:
    await talk.head()
    while True:
        await talk.texts(["1"])
        await asyncio.sleep(0.01)


async def not_json(talk: Talk) -> None:
    await talk.head()
    await talk.texts(["12"])
    await talk.event('{"choices": [{"delta"')
    await talk.finish()


async def no_field(talk: Talk) -> None:
    """JSON lines without `data:`, as Ollama's own interface has them."""
    await talk.head()
    await talk.chunk(json.dumps(talk.message("12")).encode() + b"\n")
    await talk.raw(b"0\r\n\r\n")


async def not_utf8(talk: Talk) -> None:
    await talk.head()
    await talk.chunk(b'data: {"choices": [{"index": 0, "delta": {"content": "\xff"}}]}\n\n')
    await talk.finish()


async def strange_choices(talk: Talk) -> None:
    await talk.head()
    await talk.event({"choices": {"delta": {"content": "12"}}})
    await talk.finish()


async def deep_json(talk: Talk) -> None:
    await talk.head()
    await talk.event("[" * 100_000)
    await talk.finish()


async def huge_line(talk: Talk) -> None:
    await talk.head()
    await talk.chunk(b"data: ")
    with suppress(ConnectionError):
        for _ in range(64):
            await talk.chunk(b"x" * (1 << 20))


async def flood(talk: Talk) -> None:
    """Sends good messages without end, as fast as it goes."""
    await talk.head()
    message = f"data: {json.dumps(talk.message('x' * 10_000))}\n\n".encode() * 50
    while True:
        await talk.chunk(message)


async def wrong_content_type(talk: Talk) -> None:
    await talk.head("200 OK", "application/json")
    await talk.chunk(json.dumps({"choices": [{"message": {"content": "12"}}]}).encode())
    await talk.raw(b"0\r\n\r\n")


async def not_http(talk: Talk) -> None:
    await talk.raw(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")


async def closes_at_once(talk: Talk) -> None:
    talk.writer.transport.abort()


async def drops(talk: Talk) -> None:
    """Drops the connection in mid-stream, without the end of the body."""
    await talk.head()
    await talk.texts(["12"])
    talk.writer.close()


async def resets(talk: Talk) -> None:
    await talk.head()
    await talk.texts(["12"])
    await asyncio.sleep(0.05)
    talk.writer.transport.abort()


async def ends_early(talk: Talk) -> None:
    """A proper end of the body, but no reason and no `[DONE]`."""
    await talk.head()
    await talk.texts(["12"])
    await talk.raw(b"0\r\n\r\n")


async def ends_within_event(talk: Talk) -> None:
    await talk.head()
    await talk.texts(["12"])
    await talk.chunk(b'data: {"choices": [')
    await talk.raw(b"0\r\n\r\n")


async def done_without_reason(talk: Talk) -> None:
    """Ends without a reason, as llama-cpp-python does where another request interrupts this one."""
    await talk.head()
    await talk.texts(["12"])
    await talk.event("[DONE]")
    await talk.raw(b"0\r\n\r\n")


async def aborts(talk: Talk) -> None:
    await talk.head()
    await talk.texts(["12"])
    await talk.finish("abort")


async def truncates(talk: Talk) -> None:
    await talk.head()
    await talk.texts(["12"])
    await talk.finish("length", tokens=1)


async def error_in_stream(talk: Talk) -> None:
    await talk.head()
    await talk.texts(["12"])
    await talk.event({"error": {"message": "the engine died", "code": 500}})
    await talk.raw(b"0\r\n\r\n")


def status(line: str, body: str, kind: str = "application/json") -> Behaviour:
    """Another status than 200, with this body."""

    async def behave(talk: Talk) -> None:
        await talk.head(line, kind)
        await talk.chunk(body.encode())
        await talk.raw(b"0\r\n\r\n")

    return behave


async def error_without_end(talk: Talk) -> None:
    """500, and a body that never comes."""
    await talk.head("500 Internal Server Error", "text/plain")
    await asyncio.sleep(LONG)


async def redirects(talk: Talk) -> None:
    await talk.head(
        "307 Temporary Redirect", "text/plain", "location: http://127.0.0.1:9/v1/chat/completions"
    )
    await talk.raw(b"0\r\n\r\n")


async def several_tokens_a_message(talk: Talk) -> None:
    """12 tokens in 3 messages; empty ones between, a second without choices."""
    await talk.head()
    await talk.event(talk.message(None, role="assistant"))
    for piece in ("1234", "5678", "9012"):
        await asyncio.sleep(0.02)
        await talk.event(talk.message(piece))
        await talk.event(talk.message(""))
        await talk.event({"choices": []})
    await talk.finish(tokens=12)


async def one_read(talk: Talk) -> None:
    """All messages in one write."""
    await talk.head()
    events = [*(talk.message(piece) for piece in ("1", "2", "3")), talk.message(None, "stop")]
    await talk.chunk(
        "".join(f"data: {json.dumps(event)}\r\n\r\n" for event in events).encode() + b"data: [DONE]\r\n\r\n"
    )
    await talk.raw(b"0\r\n\r\n")


async def byte_by_byte(talk: Talk) -> None:
    """Line ends of every kind, cut anywhere, a comment, data over two lines."""
    await talk.head()
    message = json.dumps(talk.message("é1"), ensure_ascii=False).replace('"index"', '\ndata: "index"', 1)
    for place, byte in enumerate(f": hello\r\nevent: x\rdata: {message}\r\n\r\n".encode()):
        await talk.chunk(bytes([byte]))
        if place % 16 == 0:
            await asyncio.sleep(0)
    await talk.finish()
