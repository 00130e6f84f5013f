"""What an option's value may be; each raises ValueError for what it is not.

The names are what a reader is told.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from harness.run.shard import Shard

Verbs: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""What commands are added to; argparse has no public name for it."""

SPREADING = ("--executor", "--shards", "--shard")
"""The options of `run` that spread it over processes or machines, which no measurement of times can be."""

Command: TypeAlias = Callable[[argparse.Namespace], int]
"""A command's function: it takes the parsed options and returns the exit code."""


def add_command(
    verbs: Verbs, name: str, function: Command, *, help: str, examples: Sequence[str], timed: bool = False
) -> argparse.ArgumentParser:
    """Adds a command that this function carries out, and returns its parser.

    `examples` are the arguments of whole commands, shown below the options. A `timed` command measures on
    one machine and in one go; it knows the options that would spread a run, so that it can refuse them.
    """
    shown = "\n".join(f"  grammarbench {example}" for example in examples)
    parser = verbs.add_parser(
        name,
        help=help,
        description=textwrap.fill(f"{help[0].upper()}{help[1:]}{'' if help.endswith('?') else '.'}"),
        epilog=f"examples:\n{shown}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(function=function)
    if timed:
        for option in SPREADING:
            parser.add_argument(option, dest="spread", help=argparse.SUPPRESS)
    parser.add_argument(
        "--json", action="store_true", help="one JSON document on stdout; progress and notes go to stderr"
    )
    return parser


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
    from harness.run.shard import parse

    return parse(text)


def positive_number(text: str) -> float:
    """A number above 0."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError
    return value


def names(text: str) -> tuple[str, ...]:
    """Names with commas between them.

    An empty one is refused: a script whose variable is empty must not run the default.
    """
    found = tuple(text.split(","))
    if not all(name.strip() for name in found):
        raise argparse.ArgumentTypeError(f"a name is empty in {text!r}; leave the option out for the default")
    return found


def one_vocabulary(text: str) -> str:
    """The name of one vocabulary, for the commands that work on a single one.

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
