"""Attribution of faults: what a backend raises ends the request that called it, and nothing else does."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from harness.backend.grammar import GrammarObject, is_bool, is_count
from harness.errors import error_text
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

    It catches every exception, because neither a panic of a Rust library nor what `sys.exit()` raises is an
    Exception. No interrupt of a user is among them: the loop works in children with a session of their own.
    """

    __slots__ = ("phase",)

    def __init__(self, phase: str) -> None:
        self.phase = phase

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            raise BackendFault(self.phase, message_of(error)) from error


FILLING, ACCEPTING = attribution("fill"), attribution("accept")
"""The contexts that every step enters for each row. They hold nothing of a call, so each is made once."""


def message_of(error: BaseException) -> str:
    """Returns the error's class name and the first line of its message, at most `LONGEST` characters."""
    name = type(error).__name__
    message = error_text(error).removeprefix(f"{name}: ").strip().partition("\n")[0]
    return one_line(f"{name}: {message}" if message else name, LONGEST)


def as_accepted(answer: Any) -> bool:
    """Returns what `accept_token` gave, which must be a bool. Raises BackendFault."""
    if is_bool(answer):
        return bool(answer)
    raise BackendFault("accept", f"accept_token gives {type(answer).__name__}, not bool")


def as_taken(answer: Any, most: int) -> int:
    """Returns what `accept_tokens` gave for `most` tokens, which must be how many of them it takes. Raises
    BackendFault."""
    if is_count(answer, most):
        return int(answer)
    raise BackendFault(
        "accept", f"accept_tokens gives {type(answer).__name__}, not how many of {most} it takes"
    )


def as_object(answer: Any, phase: str) -> GrammarObject:
    """Returns what `start` or `copy`, which is the phase, gave; it must be a GrammarObject. Raises
    BackendFault."""
    if isinstance(answer, GrammarObject):
        return answer
    raise BackendFault(phase, f"{phase} gives {type(answer).__name__}, not a GrammarObject")
