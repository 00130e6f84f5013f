"""The command line. Each command imports what it needs when it runs: `--help` must be quick, and the coordinator light."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

from harness import commands
from harness.errors import BAD_INPUT, INCOMPLETE, OK, BadInput, one_line
from harness.options import GROUPS

DESCRIPTION = "Is a grammar backend right, fast and unchanged? Conformance and benchmarks for constrained LLM decoding."

TIMED = ("measure", "decode", "doctor", "kernels")
ELSEWHERE = ("--executor", "--shards", "--shard")
"""What measures times, and the options of a run that it must refuse: they would spread it over several machines."""


def parser() -> argparse.ArgumentParser:
    """Every command and option."""
    top = argparse.ArgumentParser(prog="grammarbench", description=DESCRIPTION)
    top.add_argument("--version", action="store_true", help="print the version")
    verbs = top.add_subparsers(dest="command", metavar="COMMAND")
    for group in GROUPS:
        group.add(verbs)
    for name in TIMED:
        for option in ELSEWHERE:
            verbs.choices[name].add_argument(option, dest="elsewhere", help=argparse.SUPPRESS)
    for verb in verbs.choices.values():
        verb.add_argument("--json", action="store_true", help="one JSON document on stdout; progress and notes go to stderr")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; its exit code: 0 ok, 1 a gate failed, 2 bad input, 3 incomplete run, 4 unproven."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names of files and cases need not be what the terminal can show
            stream.reconfigure(errors="backslashreplace")
    top = parser()
    options = top.parse_args(arguments)
    if options.version:
        from harness import __version__

        print(f"grammarbench {__version__}")
        return OK
    if options.command is None:
        top.print_help()
        return BAD_INPUT
    try:
        if getattr(options, "elsewhere", None) is not None:
            raise BadInput(f"{options.command} measures times, on one machine and in one go: leave {', '.join(ELSEWHERE)} out")
        return commands.COMMANDS[options.command](options)
    except BadInput as error:
        print(f"grammarbench: {one_line(str(error))}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        if isinstance(error, BrokenPipeError):  # the reader of our output (head, say) has gone
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return OK
        print(f"grammarbench: {one_line(str(error))}; what was measured is stored", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("grammarbench: interrupted; what was measured is stored", file=sys.stderr)
        return INCOMPLETE


if __name__ == "__main__":
    sys.exit(main())
