"""What an option's value may be: each function reads it, and raises ValueError for what it is not.

The `__name__` of a function is what argparse tells a user whose value is refused.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.running.shard import Shard


def whole(text: str) -> int:
    """Returns a whole number from 0."""
    value = int(text)
    if value < 0:
        raise ValueError
    return value


def not_negative(text: str) -> float:
    """Returns a number from 0."""
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError
    return value


def positive(text: str) -> int:
    """Returns a whole number above 0."""
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def effort(text: str) -> int:
    """Returns a whole number from 0, or -1 for `all`."""
    value = -1 if text == "all" else int(text)
    if value < 0 and text != "all":
        raise ValueError
    return value


def shard(text: str) -> Shard:
    """Returns a share of the cases, from number and count as `2/4`."""
    from harness.running.shard import parse

    return parse(text)


def positive_number(text: str) -> float:
    """Returns a number above 0."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError
    return value


def names(text: str) -> tuple[str, ...]:
    """Returns names that have commas between them.

    An empty one is refused: a script whose variable is empty must not run the default.
    """
    parts = tuple(text.split(","))
    if not all(name.strip() for name in parts):
        raise argparse.ArgumentTypeError(f"a name is empty in {text!r}; leave the option out for the default")
    return parts


def one_vocabulary(text: str) -> str:
    """Returns the name of one vocabulary, for the commands that work on a single one.

    The option is spelled `--vocabularies` there too: one option has one spelling, so that words copied from
    `run` are understood by every command; a second name is refused with a line that says so.
    """
    if not text.strip():
        raise argparse.ArgumentTypeError("the name is empty; leave the option out for the default")
    if "," in text:
        raise argparse.ArgumentTypeError(f"this command works on one vocabulary; name one of {text}")
    return text


shard.__name__ = "share, as 2/4"
effort.__name__ = "whole number from 0, or all"
positive.__name__ = "whole number above 0"
whole.__name__ = "whole number from 0"
not_negative.__name__ = "number from 0"
positive_number.__name__ = "number above 0"
