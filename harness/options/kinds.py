"""What an option's value may be; each raises ValueError for what it is not. The names are what a reader is told."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from harness.shard import Shard

Verbs: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""What commands are added to; argparse has no public name for it."""


def whole(text: str) -> int:
    """A whole number from 0."""
    value = int(text)
    if value < 0:
        raise ValueError
    return value


def not_negative(text: str) -> float:
    """A number from 0."""
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError
    return value


def positive(text: str) -> int:
    """A whole number above 0."""
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def effort(text: str) -> int:
    """A whole number from 0, or `all`."""
    value = -1 if text == "all" else int(text)
    if value < 0 and text != "all":
        raise ValueError
    return value


def shard(text: str) -> Shard:
    """Number and count, as `2/4`."""
    from harness.shard import parse

    return parse(text)


def positive_number(text: str) -> float:
    """A number above 0."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError
    return value


shard.__name__ = "share, as 2/4"
effort.__name__ = "whole number from 0, or all"
positive.__name__ = "whole number above 0"
whole.__name__ = "whole number from 0"
not_negative.__name__ = "number from 0"
positive_number.__name__ = "number above 0"
