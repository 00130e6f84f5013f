"""A service as its client sees it: started, asked with a deadline, killed when it does not answer, and asked
again."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self

from harness.backend.process.channel import BrokenChannel, Frames, frame
from harness.backend.process.child import Answer
from harness.backend.process.lost import Lost, lost_by_status
from harness.backend.process.system import (
    ENVIRONMENT,
    descendants,
    how_it_ended,
    kill_group,
    module,
    rss_bytes,
)
from harness.errors import BadInput

LOAD_SECONDS = 300.0
"""The time that a service has to load and to fork its first child."""
SEND_SECONDS = 30.0
"""The time that an idle child has to read a request."""
POLL_SECONDS = 0.1
"""How often the memory of a child that has not answered yet is looked at."""
MEMORY_BYTES = 16_000_000_000
"""The resident memory at which a child is killed, unless the service is given another limit."""
PRINTED_KEPT = 4000
"""Bytes that are kept of what the process printed."""


@dataclass(eq=False)
class Service:
    """One process, its child, and the pipes to both; the first request starts it."""

    loader: str
    """`module:function`. The function is called with the arguments in the service's process, and returns the
    handler and what the service says of itself when it is ready."""
    arguments: dict[str, Any] = field(default_factory=dict)
    memory_bytes: int = MEMORY_BYTES
    python: str = sys.executable
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of the process besides those that all our processes get."""
    load_seconds: float = LOAD_SECONDS
    keeps_output: bool = False
    """Keep the end of what the process prints for `Lost.printed`; otherwise it goes nowhere."""
    said: dict[str, Any] = field(default_factory=dict)
    """What it said of itself when it was ready."""
    _popen: subprocess.Popen[bytes] | None = None
    _request: int = -1
    _reply: int = -1
    _control: int = -1
    _output: int = -1
    _child: int | None = None
    _answers: Frames = field(default_factory=Frames)
    _events: Frames = field(default_factory=Frames)
    _printed: bytearray = field(default_factory=bytearray)
    _number: int = 0
    _ended: int = 0
    """The exit code of the process when it was lost last."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start the process, without waiting until it is ready."""
        request_read, self._request = os.pipe()
        self._reply, reply_write = os.pipe()
        self._control, control_write = os.pipe()
        self._output, output_write = os.pipe() if self.keeps_output else (-1, -1)
        theirs = (request_read, reply_write, control_write)
        self._answers, self._events, self._child = Frames(), Frames(), None
        command = module("harness.backend.process", self.python)
        output = output_write if self.keeps_output else subprocess.DEVNULL
        self._popen = subprocess.Popen(
            [*command, self.loader, json.dumps(self.arguments), *map(str, theirs), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=theirs,
            env={**os.environ, **ENVIRONMENT, **self.environment},
            start_new_session=True,
        )
        for descriptor in (*theirs, output_write):
            if descriptor >= 0:
                os.close(descriptor)
        for descriptor in self._open_pipes():
            os.set_blocking(descriptor, False)

    def wait(self) -> None:
        """Wait until it is ready.

        Raises BadInput if what it should load is not to be had, Lost if it cannot load it.
        """
        try:
            if self._popen is None:
                self.start()
            self._await_child()
        except BrokenChannel as error:
            raise self._forged() from error

    def ask(self, message: Mapping[str, Any], blob: bytes = b"", *, seconds: float) -> Answer:
        """Returns its answer. Raises Lost if there is none in time, and then its child is another one;
        BadInput if the handler raises that."""
        self.post(message, blob)
        return self.take(seconds)

    def post(self, message: Mapping[str, Any], blob: bytes = b"") -> None:
        """Send a request; `take` must follow. Raises Lost if there is no child to send it to."""
        try:
            if self._popen is None:
                self.start()
            if self._child is None:
                self._await_child()
            self._number += 1
            self._send(frame({**message, "number": self._number}, blob))
        except (BrokenChannel, BrokenPipeError) as error:
            self.close()
            raise Lost("the process was lost between two requests") from error

    def take(self, seconds: float) -> Answer:
        """Returns the answer to the request that was posted. Raises Lost, or the handler's BadInput."""
        limit = time.monotonic() + seconds
        try:
            while True:
                if (answer := self._answer()) is not None:
                    return answer
                if (lost := self._hear()) is not None:
                    raise lost
                left = limit - time.monotonic()
                if left <= 0:
                    raise self._killed(f"killed after {seconds:g} s", "timeout")
                if rss_bytes(self._child or 0) > self.memory_bytes:
                    raise self._killed(f"killed at {self.memory_bytes / 1e9:g} GB of resident memory", "oom")
                select.select([self._reply, self._control], [], [], min(left, POLL_SECONDS))
        except BrokenChannel as error:
            raise self._forged() from error

    def renew(self) -> None:
        """Drop the child, between two requests; the next one goes to a fresh child of what is loaded."""
        if self._child is not None:
            kill_group(self._child)
            self._child = None

    def close(self) -> None:
        """End it with everything that is below it; the next request starts another."""
        popen, self._popen = self._popen, None
        if popen is None:
            return
        self._kill_below(popen.pid)
        popen.kill()
        popen.wait()
        self._read_output()
        for descriptor in (self._request, *self._open_pipes()):
            os.close(descriptor)

    def _open_pipes(self) -> list[int]:
        """The pipes on which the process tells us something."""
        return [self._reply, self._control, *([self._output] if self.keeps_output else [])]

    def _send(self, data: bytes) -> None:
        """Write a request to the child, which reads it while we write.

        A request that the pipe does not take is never left there in part: then the whole process goes.
        """
        rest = memoryview(data)
        os.set_blocking(self._request, False)
        limit = time.monotonic() + SEND_SECONDS
        while rest:
            try:
                rest = rest[os.write(self._request, rest) :]
                continue
            except BlockingIOError:
                pass
            lost = self._hear()
            if lost is None and time.monotonic() > limit:
                lost = Lost(f"the request was not read in {SEND_SECONDS:g} s", "harness", "request")
            if lost is not None:
                self.close()
                raise lost
            select.select([self._control], [self._request], [], POLL_SECONDS)

    def _answer(self) -> Answer | None:
        """The answer to the last request, if it is there whole."""
        for answer, blob in self._answers.feed(_read(self._reply) or b""):
            if answer.get("number") == self._number:
                if "bad_input" in answer:
                    raise BadInput(answer["bad_input"])
                if "error" in answer:
                    raise Lost(f"it raised {answer['error']}", "harness", "raised")
                return answer, blob
        return None

    def _forged(self) -> Lost:
        self.close()
        return self._with_output(Lost("it wrote into the pipe on which it answers", cause="forged"))

    def _killed(self, text: str, cause: Literal["timeout", "oom"]) -> Lost:
        assert self._popen is not None
        self._kill_below(self._popen.pid)
        return self._with_output(Lost(text, cause=cause))

    def _kill_below(self, pid: int) -> None:
        if self._child is not None:
            kill_group(self._child)
        for process in list(descendants(pid)):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._child = None

    def _await_child(self) -> None:
        limit = time.monotonic() + self.load_seconds
        while self._child is None:
            self._hear()
            if self._popen is None:
                raise self._not_loaded(f"{how_it_ended(self._ended)} while it loaded")
            if self._child is None and time.monotonic() > limit:
                self.close()
                raise self._not_loaded(f"no child after {self.load_seconds:g} s")
            if self._child is None:
                select.select([self._control], [], [], POLL_SECONDS)

    def _not_loaded(self, text: str) -> Lost:
        return self._with_output(Lost(text, "harness", "load"))

    def _with_output(self, lost: Lost) -> Lost:
        """The loss, with the end of what the process printed."""
        if self._popen is not None:
            self._read_output()
        lost.printed = self._printed.decode("utf-8", "replace").strip()
        return lost

    def _read_output(self) -> None:
        """Take what was printed, and keep its end; not for ever where a thread prints without end."""
        for _ in range(16 * self.keeps_output):
            if not (data := _read(self._output)):
                return
            self._printed += data
            del self._printed[:-PRINTED_KEPT]

    def _hear(self) -> Lost | None:
        """Read what the process has told of itself since; returns the loss of its child, if it was lost."""
        lost = None
        self._read_output()
        data = _read(self._control)
        for event, _ in self._events.feed(data or b""):
            if event["event"] == "ready":
                self.said = event
            elif event["event"] == "failed":
                self.close()
                if event["input"]:
                    raise BadInput(event["text"])
                raise self._not_loaded(f"it does not load: {event['text']}")
            elif event["event"] == "exit":
                self._child, lost = None, self._with_output(lost_by_status(event["status"]))
            else:
                self._child = event["pid"]
                self._forget_answers()
        if data == b"" and (popen := self._popen) is not None:
            with suppress(subprocess.TimeoutExpired):
                popen.wait(1.0)
            self.close()
            self._ended = popen.returncode
            lost = self._with_output(Lost(how_it_ended(popen.returncode)))
        return lost

    def _forget_answers(self) -> None:
        """Throw away what a lost child began to say and did not finish."""
        self._answers = Frames()
        while _read(self._reply):
            pass


def ask_all(
    services: Mapping[str, Service], message: Mapping[str, Any], blob: bytes = b"", *, seconds: float
) -> dict[str, Answer | Lost]:
    """Sends the same request to all services at once; returns each one's answer or loss, by its name."""
    found: dict[str, Answer | Lost] = {}
    for name, service in services.items():
        try:
            service.post(message, blob)
        except Lost as why:
            found[name] = why
    for name, service in services.items():
        if name not in found:
            try:
                found[name] = service.take(seconds)
            except Lost as why:
                found[name] = why
    return {name: found[name] for name in services}


def _read(descriptor: int) -> bytes | None:
    """Returns what is there now: None if nothing is, empty if the pipe is closed."""
    try:
        return os.read(descriptor, 1 << 20)
    except BlockingIOError:
        return None
