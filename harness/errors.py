"""The one error that a user's input causes, the exit codes, and how texts of others are put on a line."""

from __future__ import annotations

OK, GATE_FAILED, BAD_INPUT, INCOMPLETE, UNPROVEN = 0, 1, 2, 3, 4
"""Exit codes: done; a gate failed; usage or bad input; an incomplete run; nothing could be concluded."""


class BadInput(Exception):
    """What is wrong, where, and what to do, in one line; the command line prints it and exits with 2."""

    exit_code = BAD_INPUT


class Incomplete(BadInput):
    """A run, a measurement or a decoding has no end, so what was asked for is not done; the command line exits with 3."""

    exit_code = INCOMPLETE


def did_you_mean(wanted: str, known: list[str]) -> str:
    """`; did you mean "x"?`, or the known names, or nothing."""
    from difflib import get_close_matches

    close = get_close_matches(wanted, known, n=1, cutoff=0.5)
    if close:
        return f'; did you mean "{close[0]}"?'
    return f"; known: {', '.join(known)}" if known else ""


def one_line(text: str) -> str:
    """The text on one line, without characters that a terminal obeys."""
    return "".join(each if each.isprintable() else " " for each in text)
