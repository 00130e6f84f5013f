"""Why the judge gives no verdict."""

from __future__ import annotations

from harness.text import one_line


class Unjudgeable(Exception):
    """There is no verdict; the message says why in one line."""


def reason(text: str) -> str:
    """Returns why there is no verdict, as one line of at most 300 characters."""
    return one_line(text, 300, folded=True)
