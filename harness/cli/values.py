"""What an option's value may be: each function reads it, and raises ValueError for what it is not.

The `__name__` of a function is what argparse tells a user whose value is refused.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from harness.errors import BadInput
from harness.shape import LARGEST
from harness.text import one_line

if TYPE_CHECKING:
    from harness.running.shard import Shard

Number = TypeVar("Number", int, float)


LEAST, MOST = 1e-6, 10**9
"""The least and the most that an amount may be: a count, seconds, gigabytes, requests a second. The product
of two, and a second's nanoseconds divided by one, can still be counted with and stand in a record."""

MOST_EFFORT = 10_000
"""The most places of a case that a number asks for; who wants more says `all`."""


def whole(text: str) -> int:
    """Returns a whole number from 0 that a record can hold."""
    return _within(int(text), 0, LARGEST)


def not_negative(text: str) -> float:
    """Returns an amount, or 0."""
    return _within(float(text), 0, MOST)


def positive(text: str) -> int:
    """Returns a count, from 1."""
    return _within(int(text), 1, MOST)


def effort(text: str) -> int:
    """Returns a whole number from 0, or -1 for `all`."""
    return -1 if text == "all" else _within(int(text), 0, MOST_EFFORT)


def shard(text: str) -> Shard:
    """Returns a share of the cases, from number and count as `2/4`."""
    from harness.running.shard import parse

    return parse(text)


def positive_number(text: str) -> float:
    """Returns an amount above 0."""
    return _within(float(text), LEAST, MOST)


def _within(value: Number, least: float, most: float) -> Number:
    """Returns the value. Raises ValueError for one that is no number, or not from `least` to `most`."""
    if not least <= value <= most:
        raise ValueError
    return value


def several(text: str | None, option: str, kind: Callable[[str], Number]) -> tuple[Number, ...]:
    """Returns the numbers that have commas between them, each read by the function `kind`; none where the
    option is not given. Raises BadInput, which names the option."""
    if text is None:
        return ()
    try:
        numbers = tuple(map(kind, text.split(",")))
    except ValueError:
        numbers = ()
    if not numbers or len(set(numbers)) < len(numbers):
        raise BadInput(
            f'{option} "{one_line(text, 80)}" cannot be read; write one or more, each once and each a '
            f"{kind.__name__}, such as 1,8"
        )
    return numbers


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
effort.__name__ = f"whole number from 0 to {MOST_EFFORT:,}, or all"
positive.__name__ = f"whole number above 0, at most {MOST:,}"
whole.__name__ = "whole number from 0 to 2^62"
not_negative.__name__ = f"number from 0 to {MOST:,}"
positive_number.__name__ = f"number from {LEAST:f} to {MOST:,}"
