"""How a command is added to the command line."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Callable, Sequence
from typing import TypeAlias

Verbs: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""What commands are added to; argparse has no public name for it."""

Command: TypeAlias = Callable[[argparse.Namespace], int]
"""A command's function: it takes the parsed options and returns the exit code."""

SPREADING = ("--executor", "--shards", "--shard")
"""The options of `run` that spread it over processes or machines, which no measurement of times can be."""


def add_command(
    verbs: Verbs,
    name: str,
    function: Command,
    *,
    help: str,
    examples: Sequence[str],
    timed: bool = False,
    notes: str = "",
) -> argparse.ArgumentParser:
    """Adds a command that this function carries out, and returns its parser.

    `examples` are the arguments of whole commands; they are shown below the options, after `notes`. A `timed`
    command measures on one machine and in one go; it knows the options that would spread a run, so that it
    can refuse them.
    """
    shown = "\n".join(f"  grammarbench {example}" for example in examples)
    sentence = f"{help[0].upper()}{help[1:]}{'' if help.endswith('?') else '.'}"
    parser = verbs.add_parser(
        name,
        help=help,
        description=textwrap.fill(sentence),
        epilog="\n\n".join([*([notes] if notes else []), f"examples:\n{shown}"]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(function=function)
    if timed:
        for option in SPREADING:
            parser.add_argument(option, dest="spread", help=argparse.SUPPRESS)
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON document on stdout; progress and notes go to stderr",
    )
    return parser
