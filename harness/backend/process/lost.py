"""A loss, as everybody who asks a process of ours is told of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from harness.backend.process.system import signal_name

Whose = Literal["backend", "harness"]

CLOSED = "closed the pipe on which it answers"
CLOSED_CODE = 97
"""The exit code of a process that finds its pipes closed, or in them what is no request: no code of ours does
that to them."""

DUMP = re.compile(
    r"Fatal Python error: |(Current thread|Thread|Stack) .*call first\):$|"
    r"  (Binary f|F)ile \".*\"(, line \d+ in |, at )|  \.\.\.$|"
    r"  <no Python frame>|Extension modules: |.*\(total: \d+\)$"
)
"""A line that faulthandler prints where a signal ends the process; the list of modules is its last, whose
beginning may be missing."""

Cause = Literal["raised", "load", "request", "crash", "closed", "timeout", "oom", "forged"]
"""What happened: the handler raised; the process did not load, or had no child; the request was not read; the
process ended; its pipes are closed; it did not answer in time; it took too much memory; it wrote what is no
answer."""


@dataclass(eq=False)
class Lost(Exception):
    """There is no answer, and the child that should have given it is gone."""

    text: str
    """Why it was lost, in one line; this is also the text of the exception."""
    whose: Whose = "backend"
    """This says whose fault the loss is. A handler answers what a backend raises, so an exception of the
    handler itself is ours."""
    cause: Cause = "crash"
    signal: str = ""
    """The name of the signal that ended the process, for example SIGSEGV; empty if none did."""
    printed: str = ""
    """The end of what the process printed, where that is kept."""

    def __post_init__(self) -> None:
        super().__init__(self.text)

    def __str__(self) -> str:
        return self.text

    def last_line(self) -> str:
        """Returns the last line that the process printed, behind a colon; nothing if it printed nothing.
        Lines of faulthandler are left out, because they say nothing of the cause."""
        lines = [line for line in self.printed.splitlines() if line.strip() and not DUMP.match(line)]
        return "".join(f": {line}" for line in lines[-1:])


def lost_by_status(status: int, who: str = "it") -> Lost:
    """Returns the loss of a child that ended by itself, from its wait status; `who` ended it, for people."""
    if number := status & 0x7F:
        name = signal_name(number)
        return Lost(f"killed by {name}", signal=name)
    if status >> 8 == CLOSED_CODE:
        text = f"{who} closed the pipes on which it is asked and answers, or read from them"
        return Lost(text, cause="closed")
    return Lost(f"{who} ended the process with exit code {status >> 8}")


def lost_in_time(seconds: float) -> Lost:
    """Returns the loss of a child that was killed because it did not answer within so many seconds."""
    return Lost(f"killed after {seconds:g} s", cause="timeout")


def lost_in_memory(limit_bytes: int) -> Lost:
    """Returns the loss of a child that was killed because its resident memory passed the limit."""
    return Lost(f"killed at {limit_bytes / 1e9:g} GB of resident memory", cause="oom")


def lost_by_closing() -> Lost:
    """Returns the loss of a process that can no longer be heard, though it has not ended."""
    return Lost(f"it {CLOSED}", cause="closed")


def lost_by_forgery() -> Lost:
    """Returns the loss of a process whose answers can no longer be trusted."""
    return Lost("it wrote into the pipe on which it answers", cause="forged")
