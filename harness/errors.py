"""The error that wrong input raises, the exit codes, and how an exception is described."""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType

OK, GATE_FAILED, BAD_INPUT, INCOMPLETE, UNPROVEN = 0, 1, 2, 3, 4
"""Exit codes: done; a gate failed; usage or bad input; an incomplete run; nothing could be concluded."""


class BadInput(Exception):
    """The user's input is wrong. The message says in one line what is wrong, where, and what to do; the
    command line prints it and exits with 2."""

    exit_code = BAD_INPUT


def damaged(what: str) -> BadInput:
    """Returns the error for a file of ours that says what it cannot say: `what` has the file and what is
    wrong there."""
    return BadInput(f"{what}; the file was changed or damaged")


class Incomplete(BadInput):
    """A run, a measurement or a decoding has no end, so what was asked for is not done; the command line
    exits with 3."""

    exit_code = INCOMPLETE


NEAR, LISTED, NAME = 3, 12, 60
"""Limits of an answer to an unknown name: the near names it shows, the known names it shows where none is
near, and the characters of a name."""

MUCH = 0.1
"""A name is not suggested if its likeness to the wanted one (difflib's ratio) is lower than the nearest
name's by this much."""


def did_you_mean(wanted: str, known: Sequence[str]) -> str:
    """Returns the end of a message about an unknown name: `; did you mean "x" or "y"?`, or the known names
    (the first ones, if they are many), or nothing. It is never longer than a line or two."""
    from difflib import SequenceMatcher, get_close_matches

    names = list(dict.fromkeys(known))
    close = get_close_matches(wanted[:NAME], names, n=NEAR, cutoff=0.5)
    likeness = [SequenceMatcher(None, name, wanted[:NAME]).ratio() for name in close]
    close = [name for name, like in zip(close, likeness, strict=True) if like > likeness[0] - MUCH]
    if close:
        *others, last = (f'"{_cut(name)}"' for name in close)
        return f"; did you mean {', '.join(others)}{' or ' if others else ''}{last}?"
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"; known: {', '.join(map(_cut, names[:LISTED]))}{more}" if names else ""


def _cut(name: str) -> str:
    return name if len(name) <= NAME else f"{name[: NAME - 1]}…"


class BackendRaised(Exception):
    """The backend raised an exception in a call where the loop or the check expects one; the message names
    it."""


def error_text(error: BaseException, limit: int = 2000) -> str:
    """Returns the exception's type and message, cut at `limit` characters; it is safe whatever the message
    is."""
    try:
        message = str(error)
    except BaseException:  # a hostile `__str__` may raise anything
        message = "(its message cannot be printed)"
    return (message if type(error) is BackendRaised else f"{type(error).__name__}: {message}")[:limit]


def is_slip_of_ours(error: BaseException) -> bool:
    """Returns whether an adapter of ours names what is not there; no backend and no input can cause that."""
    frame = innermost_frame(error) if isinstance(error, NameError) else None
    return frame is not None and str(frame.f_globals.get("__name__")).startswith("harness.adapters.")


def innermost_frame(error: BaseException) -> FrameType | None:
    """Returns the frame that raised the exception; None if it was never raised."""
    frame, trace = None, error.__traceback__
    while trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
    return frame


class OutOfTime(BaseException):
    """A check has used up its time. It is no Exception, so that no check takes it for the backend's."""
