"""One process of ours as its client sees it, without ever waiting for it: started, sent a request, listened
to, and killed with everything that it left behind.

`Service` asks such a process and waits for the answer; the coordinator of a run watches several at once.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from harness.backend.process.channel import Frames, frame
from harness.backend.process.child import PAGE_BYTES, Answer, Page
from harness.backend.process.system import (
    ENVIRONMENT,
    descendants,
    is_running,
    kill,
    kill_group,
    module,
    start_time,
)
from harness.whole_files import named_where_full

PRINTED_KEPT = 4000
"""The number of bytes that are kept of what the process printed."""
PIPE_BYTES = 1 << 20
"""The room for answers that nobody was woken for, and for what is printed meanwhile: as much as Linux grants
to everybody."""
NARROW_BYTES, GRANTED_BYTES = 1 << 16, 1 << 26
"""The room of a pipe that nobody widened, and of all pipes of an ordinary user together (Linux)."""
LOOKS = 5
"""How often the processes below a process are looked at while those that were seen have all ended, and others
have come."""


@dataclass(frozen=True)
class Start:
    """How a process is started."""

    loader: str
    """`module:function`. The function is called with the arguments in the process, and returns the handler
    and what the process says of itself when it is ready."""
    arguments: Mapping[str, Any]
    python: str = sys.executable
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of the process besides those that all our processes get."""
    keeps_output: bool = False
    """Keep the end of what the process prints; otherwise it goes nowhere."""
    has_page: bool = False
    """Share a page of memory with it, which the loader gets as its argument `page`."""
    has_bell: bool = False
    """Let it tell on a pipe of its own when a request is answered. Whoever waits for that alone sleeps until
    then, and takes many answers at once; to wake it for each of them would cost the child more than to give
    them."""
    pipe_bytes: int = PIPE_BYTES
    """The room of the pipes for answers and for what is printed; the function `pipe_bytes` says it for
    several processes."""
    fork: bool = True
    """Let it fork a child that serves, unless loading begins a thread or leaves a process running; without,
    it serves itself, and to lose the child is to lose it all."""


@dataclass(eq=False)
class Process:
    """A running `harness.backend.process`, its pipes, and the child that it forked."""

    popen: subprocess.Popen[bytes]
    control: int
    """What the process itself says: `ready` or `failed`, then `child` and `exit` by turns."""
    request: int
    reply: int
    """The child's answers."""
    bell: int
    """Has a byte for each request that is answered; -1 if that is not told."""
    output: int
    """What process and child print; -1 if it is not kept."""
    page: Page
    events: Frames = field(default_factory=Frames)
    answers: Frames = field(default_factory=Frames)
    child: int | None = None
    helpers: dict[int, int] = field(default_factory=dict)
    """The processes that it has started while it loaded, where it serves itself, and when they began: they
    are its own, with all that is below them."""
    nonce: str = ""
    """The mark of the request that was sent last, which its answers bear. It cannot be guessed, so that no
    answer to another request is taken for one to this."""
    printed: bytearray = field(default_factory=bytearray)
    """The end of what the process and its child printed since the last request."""
    taken: int = 0
    """The number of bytes of it that were read since somebody set this to 0."""

    def request_bytes(self, message: Mapping[str, Any], blob: bytes = b"") -> bytes:
        """Returns the bytes of a new request, to be written to the pipe `request`."""
        self.read_output()
        self.printed.clear()
        self.nonce = secrets.token_hex(8)
        return frame({**message, "nonce": self.nonce}, blob)

    def hear(self) -> tuple[list[dict[str, Any]], bool]:
        """Returns what the process itself has said since, and whether its pipe is closed. Raises
        BrokenChannel."""
        data = _read(self.control)
        return [event for event, _ in self.events.feed(data or b"")], data == b""

    def take_answers(self) -> list[Answer]:
        """Returns what the child has answered since. Raises BrokenChannel."""
        if self.bell >= 0:
            _read(self.bell)
        return self.answers.feed(_read(self.reply) or b"")

    def serves_in(self, child: int) -> None:
        """Take this for the child that serves from now on; nothing was asked of it yet."""
        self.child = child
        if child == self.popen.pid:
            self.helpers = {pid: start_time(pid) for pid in descendants(child)}

    def fork_again(self) -> None:
        """After a child's exit: kill what it left behind, throw away what it did not finish to say, and have
        the next child."""
        self.child = None
        self.kill_children()
        self.answers = Frames()
        while _read(self.reply):
            pass
        stdin: IO[bytes] | None = self.popen.stdin
        assert stdin is not None
        with suppress(BrokenPipeError):  # then the process is gone too; its control pipe says so
            stdin.write(b"fork\n")
            stdin.flush()

    def read_output(self) -> None:
        """Take what was printed, and keep its end; not for ever where a thread prints without end."""
        for _ in range(16 * (self.output >= 0)):
            if not (data := _read(self.output)):
                return
            self.taken += len(data)
            self.printed += data
            del self.printed[:-PRINTED_KEPT]

    def printed_text(self) -> str:
        """Returns the end of what was printed since the last request."""
        self.read_output()
        return self.printed.decode("utf-8", "replace").strip()

    def strays(self) -> list[int]:
        """Returns the running processes that a backend started and left behind: all below the process but its
        child and its helpers.

        Below the child is looked first: whoever loses its parent meanwhile goes up to the process, where it
        is seen then. Who has ended since it was seen may have started another one meanwhile: then all is
        looked at again.
        """
        last: dict[int, None] = {}
        for _ in range(LOOKS):
            below = () if self.child in (None, self.popen.pid) else tuple(descendants(self.child))
            strays = dict.fromkeys((*below, *descendants(self.popen.pid, but=self.child)))
            strays.pop(self.child or 0, None)
            for pid in self._helped():
                strays.pop(pid, None)
            running = [pid for pid in strays if is_running(pid)]
            if running or strays == last:
                return running
            last = strays
        return []

    def kill_children(self) -> None:
        """Kill the child and all that it left behind, also what took a session of its own; the process stays
        and says `exit`. A process that serves itself ends too, and its helpers with it.

        Such a process is the last to be killed, and stands still until then: whoever is below it goes to
        others when it ends, as the helpers do when it crashes.
        """
        serves_itself = self.child == self.popen.pid
        if serves_itself:
            self.popen.send_signal(signal.SIGSTOP)
        elif self.child is not None:
            kill_group(self.child)
        for _ in range(100):
            below = (*descendants(self.popen.pid), *self._helped())
            remaining = [pid for pid in below if is_running(pid)]
            if not remaining:
                break
            for pid in remaining:
                kill(pid)
            time.sleep(0.001)
        if serves_itself:
            kill_group(self.popen.pid)

    def _helped(self) -> Iterator[int]:
        """Yields the helpers that are still there, and all that is below them."""
        for pid, began in self.helpers.items():
            if start_time(pid) == began:
                yield pid
                yield from descendants(pid)

    def close(self) -> None:
        """End the process and everything that is below it now."""
        self.kill_children()
        self.popen.kill()
        self.popen.wait()
        self.read_output()
        for descriptor in (self.control, self.request, self.reply, self.bell, self.output):
            if descriptor >= 0:
                os.close(descriptor)
        self.output = -1
        if self.popen.stdin is not None:
            with suppress(BrokenPipeError):
                self.popen.stdin.close()


def start(asked: Start) -> Process:
    """Start a process, without waiting for it. It tells of `ready` and `child`, or of `failed`, in its own
    time. Raises OSError where the system has no file, pipe or process more to give; nothing stays open
    then."""
    opened: list[int] = []
    try:
        return _started(asked, opened)
    except BaseException:
        for descriptor in opened:
            os.close(descriptor)
        raise


def _started(asked: Start, opened: list[int]) -> Process:
    """Start it, and note each descriptor that is opened for it until it has started."""

    def pipe(is_wanted: bool = True) -> tuple[int, int]:
        if not is_wanted:
            return -1, -1
        opened.extend(ends := os.pipe())
        return ends

    request_read, request_write = pipe()
    reply_read, reply_write = pipe()
    control_read, control_write = pipe()
    bell_read, bell_write = pipe(asked.has_bell)
    output_read, output_write = pipe(asked.keeps_output)
    if asked.has_bell:
        _widen(reply_write, asked.pipe_bytes)
    if asked.keeps_output:
        _widen(output_write, asked.pipe_bytes)
    opened.append(shared := _page_file())
    page: Page = memoryview(mmap.mmap(shared, PAGE_BYTES)).cast("q")
    theirs = [request_read, reply_write, control_write]
    theirs += [bell_write] if asked.has_bell else []
    theirs += [shared] if asked.has_page else []
    settings = {
        "loader": asked.loader,
        "arguments": dict(asked.arguments),
        "request": request_read,
        "reply": reply_write,
        "control": control_write,
        "bell": bell_write,
        "page": shared if asked.has_page else None,
        "client": os.getpid(),
        "fork": asked.fork,
    }
    output = output_write if asked.keeps_output else subprocess.DEVNULL
    popen = subprocess.Popen(
        [*module("harness.backend.process", asked.python), json.dumps(settings)],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        pass_fds=theirs,
        env={**os.environ, **ENVIRONMENT, **asked.environment},
        start_new_session=True,
    )
    opened.clear()
    for descriptor in (request_read, reply_write, control_write, bell_write, output_write, shared):
        if descriptor >= 0:
            os.close(descriptor)
    for descriptor in (reply_read, control_read, bell_read, output_read):
        if descriptor >= 0:
            os.set_blocking(descriptor, False)
    return Process(popen, control_read, request_write, reply_read, bell_read, output_read, page)


def _page_file() -> int:
    """Returns a file of one page, open: in memory where the system has such files (Linux), else in the folder
    for temporary ones. It has its room: a mapped page that finds none when it is written ends the process.
    Raises OSError, which names that folder."""
    if hasattr(os, "memfd_create"):
        shared = os.memfd_create("grammarbench")
        os.truncate(shared, PAGE_BYTES)
        return shared
    with named_where_full(Path(tempfile.gettempdir())), tempfile.TemporaryFile(buffering=0) as file:
        file.write(bytes(PAGE_BYTES))
        return os.dup(file.fileno())


def pipe_bytes(processes: int) -> int:
    """Returns the room that each wide pipe gets where so many processes have two of them: PIPE_BYTES, or less
    where these would take more than half of what Linux grants the pipes of an ordinary user. Beyond that, new
    pipes hold two pages."""
    size = PIPE_BYTES
    while size > NARROW_BYTES and 2 * size * processes > GRANTED_BYTES // 2:
        size //= 2
    return size


def _widen(pipe: int, size: int) -> None:
    """Let a pipe hold the samples of the longest walks, where the system can (Linux), so that a child need
    not wait until we look at its answers, or at what it prints."""
    with suppress(AttributeError, OSError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, size)


def _read(descriptor: int) -> bytes | None:
    """Returns what is there now: None if nothing is, empty if the pipe is closed."""
    try:
        return os.read(descriptor, 1 << 20)
    except BlockingIOError:
        return None
