"""The last gate before a person's screen: what every command writes to stdout and stderr passes here, whoever
wrote the text.

Three things hold for every command, so they are done once: a terminal gets no control codes but our colours
and those of the line of progress, a log of a CI service gets no line that the service would run as a command,
and a reader that goes away (`| head -1`) neither ends the work nor changes the exit code.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from harness.text import CODES, visible

CI_SERVICES = ("CI", "GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION")
"""Where one of these environment variables is set, lines of the log may be taken for commands."""

_OURS = re.compile(
    "(" + "|".join(re.escape(f"\x1b[{code}m") for code in (*CODES.values(), "0")) + r"|\r\x1b\[K)"
)
"""What we write to a terminal for it to obey: colours, and the wiping of the line of progress."""

_LINE_COMMAND = re.compile(r"(^|[\r\n])(\s*):(?=:)")
"""`::error::` and its like: the service looks at a line's beginning, without its blanks."""

_ANYWHERE_COMMAND = re.compile(r"##(?=\w*\[)")
"""`##[error]`, `##vso[...]`, `##teamcity[...]`, which are looked for anywhere in a line."""


class GuardedStream:
    """A text stream that lets through what is fit for people; everything else about it is the
    stream's own.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.is_file = _is_file(stream)
        """A regular file is no screen: data that is written to it stays as it is."""
        self.has_commands = _is_on_a_service()
        self.begins = True
        """Nothing but blanks has been written on this line so far."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Writes the text, or nothing where nobody reads any more."""
        with self._deaf():
            self.stream.write(text if self.is_file else self._fit(text))
        return len(text)

    def flush(self) -> None:
        """Flushes the stream, or does nothing where nobody reads any more."""
        with self._deaf():
            self.stream.flush()

    def close_quietly(self) -> None:
        """Drops what is still held back, so that the interpreter does not complain of it when it ends."""
        with suppress(OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.stream.fileno())
            os.close(null)

    @contextmanager
    def _deaf(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.close_quietly()  # what is held back would find no room again
            # A reader goes away, and so does a terminal that is closed; neither is an error.
            is_gone = isinstance(error, BrokenPipeError) or (error.errno == errno.EIO and not self.is_file)
            if not is_gone:
                error.add_note("the answer was not written whole")
                raise

    def _fit(self, text: str) -> str:
        if self.stream.isatty():
            shown = "".join(
                part if place % 2 else visible(part) for place, part in enumerate(_OURS.split(text))
            )
        else:
            shown = visible(text)
        begins = self.begins
        tail = text.rpartition("\n")[2]
        self.begins = not tail.strip() and (begins or "\n" in text)
        return _without_commands(shown, begins) if self.has_commands else shown


def for_logs(text: str) -> str:
    """Returns lines that another program prints (pytest), made fit in the same way."""
    return _without_commands(visible(text), begins=True) if _is_on_a_service() else visible(text)


def _is_on_a_service() -> bool:
    return any(os.environ.get(name) for name in CI_SERVICES)


def _without_commands(text: str, begins: bool) -> str:
    """Returns the text without a command of a CI service, spelled as JSON may spell it too.

    `begins`: does the text start a line?
    """
    first, end, rest = ("", "", text) if begins else text.partition("\n")
    return _ANYWHERE_COMMAND.sub(r"#\\u0023", first + end + _LINE_COMMAND.sub(r"\1\2\\u003a", rest))


def _is_file(stream: TextIO) -> bool:
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):  # a stream in memory
        return False


def open_closed_streams() -> None:
    """Puts the null device where a program was started without stdin, stdout or stderr (`>&-`).

    Python has None for such a stream, and the next file that is opened would take its number: what a library
    prints would stand in a run's rows.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The number is the lowest that is free, so the file gets it, and a child gets it as it would.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - it stays open


@contextmanager
def guarded_streams() -> Iterator[tuple[GuardedStream, GuardedStream]]:
    """Puts stdout and stderr behind the gate, and takes them out again."""
    before = sys.stdout, sys.stderr
    made = GuardedStream(before[0]), GuardedStream(before[1])
    sys.stdout, sys.stderr = made  # they have what print and argparse ask for
    try:
        yield made
    finally:
        sys.stdout, sys.stderr = before
