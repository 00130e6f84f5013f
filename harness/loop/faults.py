"""Whose fault it is: what a backend raises ends the request that asked, and nothing else does."""

from __future__ import annotations

from types import TracebackType

LONGEST = 300
"""Characters of what a backend said that are kept."""


class BackendFault(Exception):
    """A backend raised, or broke its word, in one call on behalf of one request."""

    def __init__(self, phase: str, why: str) -> None:
        super().__init__(phase, why)
        self.phase = phase
        """`start`, `fill`, `accept`, `rollback`, `jump_forward` or `copy`."""
        self.why = why


class blaming:
    """Around a call of the backend and nothing of ours: what escapes becomes a BackendFault of that phase.

    All that a backend can raise, for a panic of a library in Rust is no Exception; but for what ends a program.
    """

    __slots__ = ("phase",)

    def __init__(self, phase: str) -> None:
        self.phase = phase

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None and not isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise BackendFault(self.phase, one_line(error)) from error


def one_line(error: BaseException) -> str:
    """The error's name and the first line of what it says."""
    said = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {said}"[:LONGEST] if said else type(error).__name__
