"""A service as its client sees it: started, asked with a deadline, killed when it does not answer, and asked again."""

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
from typing import Any

from harness.channel import BrokenChannel, Frames, send
from harness.errors import BadInput
from harness.process import ENVIRONMENT, descendants, kill_group, module, rss_bytes
from harness.service.child import Answer

LOAD_SECONDS = 300.0
STUCK_SECONDS = 30.0
POLL_SECONDS = 0.1
LONGEST_REQUEST = 48_000
"""Bytes that an empty pipe takes without a reader: a request can then be sent to a child that no longer reads."""


class Lost(Exception):
    """Why there is no answer, in one line."""


@dataclass(eq=False)
class Service:
    """One process, its child, and the pipes to both; made by `start`."""

    loader: str
    """`module:function`; called with the arguments in the service's process, it gives the handler and what is to be said of it."""
    arguments: dict[str, Any]
    memory_bytes: int
    python: str = sys.executable
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables besides ours."""
    said: dict[str, Any] = field(default_factory=dict)
    """What it said of itself when it was ready."""
    _popen: subprocess.Popen[bytes] | None = None
    _request: int = -1
    _reply: int = -1
    _control: int = -1
    _child: int | None = None
    _answers: Frames = field(default_factory=Frames)
    _told: Frames = field(default_factory=Frames)
    _number: int = 0

    def start(self) -> None:
        """Start it, without waiting until it is ready."""
        request_read, self._request = os.pipe()
        self._reply, reply_write = os.pipe()
        self._control, control_write = os.pipe()
        theirs = (request_read, reply_write, control_write)
        self._answers, self._told, self._child = Frames(), Frames(), None
        command = module("harness.service", self.python)
        self._popen = subprocess.Popen(
            [*command, self.loader, json.dumps(self.arguments), *map(str, theirs), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=theirs,
            env={**os.environ, **ENVIRONMENT, **self.environment},
            start_new_session=True,
        )
        for each in theirs:
            os.close(each)
        for each in (self._reply, self._control):
            os.set_blocking(each, False)

    def wait(self) -> None:
        """Until it is ready. Raises BadInput if what it should load is not to be had, Lost if it cannot load it."""
        try:
            self._await_child(LOAD_SECONDS)
        except BrokenChannel as error:
            raise Lost("it wrote into the pipe on which it answers") from error

    def ask(self, message: Mapping[str, Any], blob: bytes = b"", *, seconds: float) -> Answer:
        """Its answer. Raises Lost if there is none in time, and then its child is another one."""
        self.post(message, blob)
        return self.take(seconds)

    def post(self, message: Mapping[str, Any], blob: bytes = b"") -> None:
        """Send a request; `take` must follow. Raises Lost if there is no child to send it to."""
        try:
            if self._popen is None:
                self.start()
            if self._child is None:
                self._await_child(LOAD_SECONDS)
            self._number += 1
            request = {**message, "number": self._number}
            if len(json.dumps(request)) + len(blob) > LONGEST_REQUEST:
                raise Lost("the request is too long")
            send(self._request, request, blob)
        except (BrokenChannel, BrokenPipeError) as error:
            self.close()
            raise Lost("the process was lost between two requests") from error

    def take(self, seconds: float) -> Answer:
        """The answer to the request that was posted. Raises Lost."""
        limit = time.monotonic() + seconds
        try:
            while True:
                for answer, blob in self._answers.feed(_read(self._reply) or b""):
                    if answer.get("number") == self._number:
                        if "error" in answer:
                            raise Lost(f"it raised {answer['error']}")
                        return answer, blob
                if (lost := self._hear()) is not None:
                    raise Lost(lost)
                left = limit - time.monotonic()
                if left <= 0:
                    raise self._killed(f"killed after {seconds:g} s")
                if rss_bytes(self._child or 0) > self.memory_bytes:
                    raise self._killed(f"killed at {self.memory_bytes / 1e9:g} GB of resident memory")
                select.select([self._reply, self._control], [], [], min(left, POLL_SECONDS))
        except BrokenChannel as error:
            self.close()
            raise Lost("it wrote into the pipe on which it answers") from error

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
        self._child = None
        popen.kill()
        popen.wait()
        for each in (self._request, self._reply, self._control):
            os.close(each)

    def _killed(self, why: str) -> Lost:
        assert self._popen is not None
        self._kill_below(self._popen.pid)
        return Lost(why)

    def _kill_below(self, pid: int) -> None:
        if self._child is not None:
            kill_group(self._child)
        for each in list(descendants(pid)):
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        self._child = None

    def _await_child(self, seconds: float) -> None:
        limit = time.monotonic() + seconds
        while self._child is None:
            self._hear()
            if self._popen is None:
                raise Lost("the process ended while it loaded")
            if self._child is None and time.monotonic() > limit:
                self.close()
                raise Lost(f"no child after {seconds:g} s")
            if self._child is None:
                select.select([self._control], [], [], POLL_SECONDS)

    def _hear(self) -> str | None:
        """What it has told of itself since; how the child was lost, if it was."""
        lost = None
        data = _read(self._control)
        for told, _ in self._told.feed(data or b""):
            if told["event"] == "ready":
                self.said = told
            elif told["event"] == "failed":
                self.close()
                raise BadInput(told["text"]) if told["input"] else Lost(f"it does not load: {told['text']}")
            elif told["event"] == "exit":
                self._child, lost = None, _how(told["status"])
            else:
                self._child = told["pid"]
                self._forget_answers()
        if data == b"":
            self.close()
            lost = "the process was lost"
        return lost

    def _forget_answers(self) -> None:
        """What a lost child began to say and did not finish."""
        self._answers = Frames()
        while _read(self._reply):
            pass


def ask_all(services: Mapping[str, Service], message: Mapping[str, Any], blob: bytes = b"", *, seconds: float) -> dict[str, Answer | Lost]:
    """The same request to all of them at once."""
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


def _how(status: int) -> str:
    number = status & 0x7F
    if number:
        return f"killed by {signal.Signals(number).name}" if number in set(signal.Signals) else f"killed by signal {number}"
    return f"it ended its process with exit code {status >> 8}"


def _read(fd: int) -> bytes | None:
    """What is there now: None if nothing is, empty if the pipe is closed."""
    try:
        return os.read(fd, 1 << 20)
    except BlockingIOError:
        return None
