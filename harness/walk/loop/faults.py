"""Attribution of faults: what a backend raises ends the request that called it, and nothing else does."""

from __future__ import annotations

from types import TracebackType

from harness.text import one_line

LONGEST = 300
"""The most characters of a backend's message that are kept."""


class BackendFault(Exception):
    """A backend raised, or broke its contract, in one call on behalf of one request."""

    def __init__(self, phase: str, why: str) -> None:
        super().__init__(phase, why)
        self.phase = phase
        """The call: `start`, `fill`, `accept`, `rollback`, `jump_forward` or `copy`."""
        self.why = why


class attribution:
    """A context around a call of the backend and nothing of ours: what escapes becomes a BackendFault of that
    phase.

    It catches every exception but those that end a program, because a panic of a Rust library is no
    Exception.
    """

    __slots__ = ("phase",)

    def __init__(self, phase: str) -> None:
        self.phase = phase

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise BackendFault(self.phase, message_of(error)) from error


FILLING, ACCEPTING = attribution("fill"), attribution("accept")
"""The contexts that every step enters for each row. They hold nothing of a call, so each is made once."""


def message_of(error: BaseException) -> str:
    """Returns the error's class name and the first line of its message, at most `LONGEST` characters."""
    message = str(error).strip().partition("\n")[0]
    name = type(error).__name__
    return one_line(f"{name}: {message}" if message else name, LONGEST)
