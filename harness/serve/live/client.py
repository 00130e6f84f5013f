"""One streaming request: there is a deadline for every way in which a server can keep us waiting, and an end
for every way in which it can fail."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from harness.errors import BadInput, error_text
from harness.serve.live.answer import End, Heard
from harness.serve.live.connection_limits import lack_of
from harness.serve.live.error_bodies import SAID_S, body_of_error, message_of_error
from harness.serve.live.key import ApiKey
from harness.serve.live.reads import ReadClock
from harness.serve.live.sse import BadStream, EventReader
from harness.serve.live.stream import DONE, Collected, ServerError
from harness.text import one_line

if TYPE_CHECKING:
    import httpx2

MOST_BYTES = 16 << 20
"""The most bytes of one answer, on the wire."""

HEADERS = {"accept": "text/event-stream, application/json", "content-type": "application/json"}

REFUSED_WITHIN = (400, 422)
"""The codes of an error within the stream that say what the HTTP status of that number says."""


@dataclass(frozen=True)
class Deadlines:
    """Deadlines of a request, in seconds."""

    connect_s: float
    first_s: float
    """The most seconds from the request until its first text; headers, comments and empty messages do not
    count."""
    stall_s: float
    """The most seconds between messages, after the first text; comments and empty messages do not count."""
    total_s: float


def httpx() -> Any:
    """Returns the HTTP library. Raises BadInput if it is not installed."""
    try:
        import httpx2
    except ImportError as error:
        raise BadInput("a live server needs an HTTP client; pip install 'grammarbench[live]'") from error
    return httpx2


class RequestFailure(Exception):
    """An end that is no answer."""

    def __init__(self, end: End, phase: str, why: str) -> None:
        super().__init__(why)
        self.end, self.phase, self.why = end, phase, why


class Client:
    """Sends requests to one server. Every request has a connection of its own, which is opened before its
    clock starts."""

    def __init__(
        self,
        base: str,
        path: str,
        key: ApiKey,
        deadlines: Deadlines,
        clock: Callable[[], int] = perf_counter_ns,
        *,
        refuses_in_stream: bool = False,
    ) -> None:
        """`base` is scheme, host, port, and a path that the server's paths follow. `clock` gives nanoseconds.
        `refuses_in_stream`: the server refuses requests by an error within the stream (see ServerDialect)."""
        self.url = base + path
        self.key = key
        self.deadlines = deadlines
        self.clock = clock
        self.refuses_in_stream = refuses_in_stream
        self._http: httpx2.AsyncClient | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Client]:
        """Open the client. Proxies and credentials of the environment (`~/.netrc`) are not used, and no
        redirect is followed."""
        async with session(self.url, self.deadlines, self.key) as self._http:
            yield self

    async def ask(self, body: bytes, is_chat: bool, take: Callable[[Heard], None]) -> None:
        """Send the request, read the answer to its end, and hand it over, however it ended. Raises nothing
        but what cancels us."""
        collected = Collected(is_chat, self.clock(), self.key.scrub)
        failure: RequestFailure | None = RequestFailure("cancelled", "stream", "we went away")
        try:
            await self._timed(body, collected)
            failure = None
        except RequestFailure as raised:
            failure = raised
        except Exception as error:  # nothing that a server provokes may end the session
            failure = RequestFailure("harness_error", "stream", error_text(error))
        finally:
            end, phase, why = (failure.end, failure.phase, failure.why) if failure else collected.ending()
            take(collected.heard(end, phase, one_line(self.key.scrub(why))[:500], self.clock()))

    async def _timed(self, body: bytes, collected: Collected) -> None:
        """Make the exchange within its deadlines. Raises RequestFailure."""
        library = httpx()
        loop = asyncio.get_running_loop()
        quiet: asyncio.Timeout | None = None
        try:
            async with (
                asyncio.timeout(self.deadlines.total_s),
                asyncio.timeout(self.deadlines.connect_s + self.deadlines.first_s) as quiet,
            ):
                still = quiet
                await self._exchange(body, collected, lambda seconds: still.reschedule(loop.time() + seconds))
        except TimeoutError:
            if collected.status not in (None, 200):  # whose body does not end; the status says more
                raise _by_status(collected.status, "a body without an end") from None
            phase, seconds = self._waited_for(collected, quiet is not None and quiet.expired())
            what = {"first": "no text", "stall": "nothing more", "total": "no end"}[phase]
            raise RequestFailure("timeout", phase, f"{what} within {seconds:g} s") from None
        except library.ConnectTimeout:
            raise RequestFailure(
                "timeout", "connect", f"no connection within {self.deadlines.connect_s:g} s"
            ) from None
        except library.ConnectError as error:
            if lack := lack_of(error):
                raise RequestFailure("harness_error", "connect", f"no connection: {lack}") from error
            raise RequestFailure("failed", "connect", f"no connection: {error}") from error
        except library.TransportError as error:
            raise _transport(error, collected) from error

    def _waited_for(self, collected: Collected, was_quiet: bool) -> tuple[str, float]:
        if not was_quiet:
            return "total", self.deadlines.total_s
        if not collected.message_ns:
            return "first", self.deadlines.first_s
        return "stall", self.deadlines.stall_s

    async def _exchange(self, body: bytes, collected: Collected, wait: Callable[[float], None]) -> None:
        assert self._http is not None

        async def trace(event: str, _: dict[str, Any]) -> None:
            if event == "http11.send_request_headers.started":
                collected.sent_ns = self.clock()
                wait(self.deadlines.first_s)

        async with self._http.stream(
            "POST", self.url, content=body, headers=HEADERS, extensions={"trace": trace}
        ) as response:
            collected.status = response.status_code
            if response.status_code != 200:
                wait(2 * SAID_S)
                raise _by_status(response.status_code, await self._said(response))
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "text/event-stream":
                wait(2 * SAID_S)
                said = await self._said(response)
                raise RequestFailure(
                    "malformed", "stream", f"no stream of events but {kind or 'no content type'}: {said}"
                )
            packed = response.headers.get("content-encoding", "").strip().lower()
            if packed not in ("", "identity"):
                why = f"a content-encoding that was not asked for: {self.key.scrub(packed)[:40]!r}"
                raise RequestFailure("malformed", "stream", why)
            await self._listen(response, collected, wait)

    async def _said(self, response: Any) -> str:
        """Returns what the server says in the body of an error."""
        body = await body_of_error(response, httpx().TransportError)
        return message_of_error(body, self.key.scrub)

    async def _listen(self, response: Any, collected: Collected, wait: Callable[[float], None]) -> None:
        reader = EventReader(scrub=self.key.scrub)
        try:
            await self._read(response, reader, collected, wait)
        except ServerError as raised:
            if self.refuses_in_stream and raised.code in REFUSED_WITHIN and not collected.message_ns:
                raise RequestFailure("refused", "stream", f"{raised.code}: {raised}") from raised
            raise RequestFailure("failed", "stream", str(raised)) from raised
        except BadStream as bad:
            raise RequestFailure("malformed", "stream", str(bad)) from bad
        is_over = collected.is_done or collected.finish_reason is not None
        if reader.misses_data or (reader.strange and not is_over):
            raise RequestFailure(
                "malformed", "stream", f"a line that is no field of an event: {reader.strange}"
            )
        if is_over:
            return
        cut = " within an event" if reader.is_within_event else ""
        raise RequestFailure("dropped", "stream", f"the stream ended{cut} before the answer did")

    async def _read(
        self, response: Any, reader: EventReader, collected: Collected, wait: Callable[[float], None]
    ) -> None:
        """Take in the events until `[DONE]`, or until the body's proper end."""
        clock = ReadClock(self.clock)
        async for received in response.aiter_raw():
            now = clock.now()
            collected.received_bytes += len(received)
            if collected.received_bytes > MOST_BYTES:
                raise RequestFailure("malformed", "stream", f"more than {MOST_BYTES:,} bytes")
            for data in reader.feed(received):
                before = len(collected.message_ns)
                collected.take(data, now, reader.name)
                if collected.is_done:
                    return
                if len(collected.message_ns) > before:
                    wait(self.deadlines.stall_s)
            collected.misses_text = reader.misses_data
            if reader.holds(DONE):  # some servers end it by one line end, and close
                break
        collected.is_done = reader.holds(DONE, at_end=True)


@asynccontextmanager
async def session(url: str, deadlines: Deadlines, key: ApiKey) -> AsyncIterator[httpx2.AsyncClient]:
    """Yields an HTTP client that keeps no connection and takes nothing from the environment."""
    library = httpx()
    wait = library.Timeout(None, connect=deadlines.connect_s)
    limits = library.Limits(max_connections=None, max_keepalive_connections=0)
    # Without TLS nobody's certificate is read: to load those of the authorities takes longer than many a
    # request.
    verify = True if url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # What comes is read as it is: a library that unpacks would hide when it came, and how much it was.
    headers = {"user-agent": "grammarbench", "accept-encoding": "identity", **key.headers()}
    async with library.AsyncClient(
        timeout=wait, limits=limits, trust_env=False, follow_redirects=False, headers=headers, verify=verify
    ) as http:
        yield http


def _by_status(status: int | None, message: str) -> RequestFailure:
    end: End = "refused" if status is not None and 400 <= status < 500 else "failed"
    return RequestFailure(end, "status", f"{status}: {message}")


def _transport(error: Exception, collected: Collected) -> RequestFailure:
    """Returns the failure for a connection that ended too early, or that did not carry HTTP."""
    library = httpx()
    message = str(error) or type(error).__name__
    is_cut = isinstance(error, library.NetworkError) or any(
        sign in message for sign in ("closed connection", "disconnected", "incomplete")
    )
    if isinstance(error, library.RemoteProtocolError) and not is_cut:
        return RequestFailure("malformed", "stream" if collected.status else "status", f"not HTTP: {message}")
    return RequestFailure(
        "dropped", "stream" if collected.status else "status", f"the connection ended: {message}"
    )
