"""A service as its client sees it: started, asked with a deadline, killed when it does not answer, and asked
again."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from harness.backend.process.channel import BrokenChannel
from harness.backend.process.child import LOADING, Answer, Page
from harness.backend.process.lost import (
    Cause,
    Lost,
    lost_by_closing,
    lost_by_forgery,
    lost_by_status,
    lost_in_memory,
    lost_in_time,
)
from harness.backend.process.process import Process, Start, start
from harness.backend.process.system import how_it_ended, rss_bytes, wait_status
from harness.errors import BadInput

LOAD_SECONDS = 300.0
"""The time that a service has to load and to fork its first child."""
SEND_SECONDS = 30.0
"""The time that an idle child has to read a request."""
POLL_SECONDS = 0.1
"""How often the memory of a child that has not answered yet is looked at."""
MEMORY_BYTES = 16_000_000_000
"""The resident memory at which a child is killed, unless the service is given another limit."""


@dataclass(eq=False)
class Service:
    """One process and its child, which answers one request after another; the first request starts it."""

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
    has_page: bool = False
    """Share a page of memory with the loader, which gets it as its argument `page`."""
    tells_load: bool = False
    """Share that page with a loader that notes in its cell LOADING when the backend is loaded: what befalls
    the process meanwhile is the backend's. Of any other loader all that befalls it is ours."""
    description: dict[str, Any] = field(default_factory=dict)
    """What the process told of itself when it was ready."""
    page: Page | None = None
    """The integers that the process shares with us; they stay readable when it is lost."""
    _process: Process | None = None
    _asked: int | None = None
    """The child that has the last request."""
    _ended: int = 0
    """The exit code of the process when it was lost last."""
    _printed: str = ""
    """What the process had printed last when it was closed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the process, without waiting until it is ready."""
        self._process = start(
            Start(
                self.loader,
                self.arguments,
                self.python,
                self.environment,
                self.keeps_output,
                self.has_page or self.tells_load,
            )
        )
        self.page = self._process.page
        os.set_blocking(self._process.request, False)

    def wait(self) -> None:
        """Wait until it is ready.

        Raises BadInput if what it should load is not to be had, Lost if it cannot load it.
        """
        try:
            self._ready()
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
            process = self._ready()
            self._asked = process.child
            self._send(process, process.request_bytes(message, blob))
        except (BrokenChannel, BrokenPipeError) as error:
            self.close()
            raise Lost("the process was lost between two requests") from error

    def take(self, seconds: float) -> Answer:
        """Returns the answer to the request that was posted. Raises Lost, or the handler's BadInput."""
        limit = time.monotonic() + seconds
        try:
            while True:
                lost = self._hear()
                if (answer := self._answer(lost)) is not None:
                    return answer
                if lost is not None:
                    raise lost
                process = self._running()
                left = limit - time.monotonic()
                if left <= 0:
                    raise self._killed(lost_in_time(seconds))
                if rss_bytes(process.child or 0) > self.memory_bytes:
                    raise self._killed(lost_in_memory(self.memory_bytes))
                select.select([process.reply, process.control], [], [], min(left, POLL_SECONDS))
        except BrokenChannel as error:
            raise self._forged() from error

    def renew(self) -> None:
        """Drop the child with all that it left behind, between two requests; the next one goes to a fresh
        child of what is loaded, or to another process where this one serves itself."""
        if self._process is not None and self._process.child == self._process.popen.pid:
            self.close()
        elif self._process is not None:
            self._process.kill_children()
            self._process.child = None

    def close(self) -> None:
        """End it with everything that is below it; the next request starts another."""
        process, self._process = self._process, None
        if process is not None:
            process.close()
            self._ended, self._printed = process.popen.returncode, process.printed_text()

    def _send(self, process: Process, data: bytes) -> None:
        """Write a request to the child, which reads it while we write.

        A request that the pipe does not take is never left there in part: then the whole process goes.
        """
        rest = memoryview(data)
        limit = time.monotonic() + SEND_SECONDS
        try:
            while rest:
                try:
                    rest = rest[os.write(process.request, rest) :]
                    continue
                except BlockingIOError:
                    pass
                if (lost := self._hear()) is not None:
                    raise lost
                if time.monotonic() > limit:
                    raise Lost(f"the request was not read in {SEND_SECONDS:g} s", "harness", "request")
                select.select([process.control], [process.request], [], POLL_SECONDS)
        except BaseException:
            self.close()
            raise

    def _running(self) -> Process:
        assert self._process is not None
        return self._process

    def _answer(self, lost: Lost | None) -> Answer | None:
        """Returns the answer to the last request, if it is there whole; of a child that was lost, too, if it
        had answered before."""
        if self._process is None:
            return None
        process = self._process
        answers = process.take_answers()
        if lost is not None:
            process.fork_again()
        for answer, blob in answers:
            if (answer.pop("nonce", ""), answer.pop("pid", None)) != (process.nonce, self._asked):
                continue  # the answer to a request that was given up, or of another process
            if "bad_input" in answer:
                raise BadInput(answer["bad_input"])
            if "error" in answer:
                raise Lost(f"it raised {answer['error']}", "harness", "raised")
            return answer, blob
        return None

    def _forged(self) -> Lost:
        self.close()
        return self._with_output(lost_by_forgery())

    def _killed(self, lost: Lost) -> Lost:
        """Kill the child, and return its loss."""
        self.renew()
        return self._with_output(lost)

    def _ready(self) -> Process:
        """Returns the process as soon as it has a child. Raises Lost, BadInput, BrokenChannel."""
        if self._process is None:
            self.start()
        limit = time.monotonic() + self.load_seconds
        while (process := self._running()).child is None:
            lost = self._hear()
            if self._process is None:
                raise self._lost_in_loading(lost)
            if lost is not None:
                process.fork_again()
            if process.child is None and time.monotonic() > limit:
                self.close()
                raise self._not_loaded(f"it did not load within {self.load_seconds:g} s", "timeout")
            if process.child is None:
                select.select([process.control], [], [], POLL_SECONDS)
        return process

    def _lost_in_loading(self, lost: Lost | None) -> Lost:
        """Returns the loss of a process that ended, or closed its pipes, before it was ready."""
        if lost is not None and lost.cause == "closed":
            return self._not_loaded(f"{lost} while it loaded", "closed")
        text = f"{how_it_ended(self._ended)} while it loaded"
        if self._ended == -signal.SIGKILL:  # by the system when out of memory, or by a person
            return self._with_output(Lost(text, "harness", "load"))
        return self._not_loaded(text, "crash", "" if lost is None else lost.signal)

    def _not_loaded(self, text: str, cause: Cause = "load", signal_name: str = "") -> Lost:
        """Returns the loss of a process that is not ready; the cause is told only where it is the
        backend's."""
        is_backends = self.tells_load and self.page is not None and bool(self.page[LOADING])
        lost = Lost(text, "backend", cause, signal_name) if is_backends else Lost(text, "harness", "load")
        return self._with_output(lost)

    def _with_output(self, lost: Lost) -> Lost:
        """Returns the loss, with the end of what the process printed."""
        lost.printed = self._printed if self._process is None else self._process.printed_text()
        return lost

    def _hear(self) -> Lost | None:
        """Read what the process has told of itself since; returns the loss of its child, if it was lost.
        Whoever calls this then has the process fork the next one."""
        process = self._running()
        process.read_output()
        events, closed = process.hear()
        lost = None
        for event in events:
            if event["event"] == "ready":
                self.description = event
            elif event["event"] == "failed":
                self.close()
                if event["input"]:
                    raise BadInput(event["text"])
                raise self._not_loaded(f"it does not load: {event['text']}")
            elif event["event"] == "exit":
                process.child, lost = None, self._with_output(lost_by_status(event["status"]))
            else:
                process.serves_in(event["pid"])
        if closed:
            has_ended = False
            with suppress(subprocess.TimeoutExpired):
                has_ended = process.popen.wait(1.0) is not None
            self.close()
            ended = lost_by_status(wait_status(self._ended)) if has_ended else lost_by_closing()
            lost = self._with_output(ended)
        return lost


def ask_all(
    services: Mapping[str, Service], message: Mapping[str, Any], blob: bytes = b"", *, seconds: float
) -> dict[str, Answer | Lost]:
    """Sends the same request to all services at once; returns each one's answer or loss, by its name."""
    answers: dict[str, Answer | Lost] = {}
    for name, service in services.items():
        try:
            service.post(message, blob)
        except Lost as why:
            answers[name] = why
    for name, service in services.items():
        if name not in answers:
            try:
                answers[name] = service.take(seconds)
            except Lost as why:
                answers[name] = why
    return {name: answers[name] for name in services}
