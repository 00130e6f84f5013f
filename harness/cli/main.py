"""The command line.

Each command imports what it needs when it runs: `--help` must be quick, and the coordinator light.
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness.cases.special_files import refuse_special_files
from harness.cli import (
    adjudicate,
    advise,
    bisect,
    check,
    compare,
    decode,
    fetch,
    growth,
    history,
    live,
    measure,
    merge,
    report,
    repro,
    run,
    table,
)
from harness.cli import list as listing
from harness.cli.command import SPREADING
from harness.cli.parser import Parser
from harness.cli.streams import guarded_streams, open_closed_streams
from harness.errors import BAD_INPUT, INCOMPLETE, OK, BadInput
from harness.rows.folder import holds_measured
from harness.text import one_line

DESCRIPTION = (
    "Is a grammar backend right, fast and unchanged? Conformance and benchmarks for constrained LLM decoding."
)

COMMANDS = (
    advise,
    run,
    merge,
    check,
    measure,
    growth,
    decode,
    live,
    compare,
    history,
    bisect,
    table,
    report,
    repro,
    adjudicate,
    listing,
    fetch,
)  # fmt: skip
"""The files that hold the commands, in the order of `--help`."""

LISTS: dict[str, type] = {"suites": str, "workloads": str, "runs": Path}
"""The arguments that are lists of words, and the type of each word."""

SOURCES = ("suites", "sources", "workloads")
"""The arguments that name cases, by the commands that take them."""

EXPERIMENT = ".toml"
"""How the name of a file ends that holds the options of a run."""

MEASURING = ("advise", "decode", "live", "measure", "run")
"""The first words of the commands that measure, and store what they measured in the folder of --out."""

STORED = "; what was measured is stored"

COMPLETES = "_ARGCOMPLETE"
"""A shell sets this environment variable where it asks what may stand at the cursor."""


def parser() -> Parser:
    """Returns the parser of every command and option."""
    top = Parser(prog="grammarbench", description=DESCRIPTION, allow_abbrev=False)
    top.add_argument("--version", action="store_true", help="print the version")
    verbs = top.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for command in COMMANDS:
        command.add(verbs)
    top.commands = verbs.choices
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0 ok, 1 a gate failed, 2 bad input, 3 incomplete run, 4 unproven."""
    open_closed_streams()
    if COMPLETES in os.environ:
        from harness.cli.completion import complete

        complete(parser())
    for stream in (sys.stdout, sys.stderr):
        # Names of files and cases need not be what the terminal can show.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    with guarded_streams() as (out, _), _ended_as_interrupted():
        code = _run(arguments)
        try:
            out.flush()
        except OSError as error:  # stdout is a full disk
            return _complain(_told(error), BAD_INPUT)
        return code


def _run(arguments: Sequence[str] | None) -> int:
    """Reads the options and runs the command; what a user or a machine did wrong is one line on stderr."""
    top = parser()
    words = list(sys.argv[1:] if arguments is None else arguments)
    options, rest = top.parse_known_args(words)
    if rest:
        _add_to_list(top, options, rest)
    if options.version:
        from harness import __version__

        print(f"grammarbench {__version__}")
        return OK
    if options.command is None:
        top.print_help()
        return BAD_INPUT
    try:
        if getattr(options, "spread", None) is not None:
            raise BadInput(
                f"{options.command} measures times, on one machine and in one go: leave "
                f"{', '.join(SPREADING)} out"
            )
        refuse_two_meanings(getattr(options, "suites", None) or getattr(options, "workloads", None), options)
        if files := _experiments(options):
            from harness.cli.experiment import with_experiment

            options = with_experiment(top, words, files)
        refuse_special_files(options)
        _quieten_matplotlib()
        code: int = options.function(options)
        return code
    except BadInput as error:
        return _complain(str(error), error.exit_code)
    except OSError as error:
        return _complain(f"{_told(error)}{STORED if _has_begun(options) else ''}", BAD_INPUT)
    except BaseException as error:
        if (end := _interruption(error)) is None:
            raise
        with _undisturbed():
            stored = STORED if _has_begun(options) else ""
            going_on = _going_on(options) if stored or _notes(end) else ""
            return _complain(f"{_told(end)}{stored}{going_on}", INCOMPLETE)


def refuse_two_meanings(named: Sequence[str] | None, options: argparse.Namespace) -> None:
    """Raises BadInput for a suite that a user names, where a folder of cases is called so too. `advise` asks
    for sources, and takes the folder.

    A run that goes on is not asked about: its record says which was meant, and another is refused.
    """
    if not named:
        return
    from harness.cases import suite
    from harness.rows.store import has_begun

    if not (getattr(options, "resume", False) and options.out and has_begun(options.out)):
        suite.refuse_two_meanings(named)


def _experiments(options: argparse.Namespace) -> list[str]:
    """Returns the files of an experiment among the sources of cases that the command line names."""
    named = (getattr(options, name, None) or () for name in SOURCES)
    return [word for words in named for word in map(str, words) if word.endswith(EXPERIMENT)]


def _interruption(error: BaseException) -> KeyboardInterrupt | None:
    """Returns the interruption that this error is, or that it came of: Python 3.11 makes a RuntimeError of
    one that comes amid an import, while a class is made."""
    if isinstance(error, SystemExit):
        return None
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__cause__ or cause.__context__
    return cause


def _quieten_matplotlib() -> None:
    """Keeps what matplotlib warns of out of what a command says, such as that it cannot write to the home."""
    import logging

    logging.getLogger("matplotlib").setLevel(logging.ERROR)


def _told(error: OSError | KeyboardInterrupt) -> str:
    """Returns what happened, and the notes on it."""
    said = str(error) or ("interrupted" if isinstance(error, KeyboardInterrupt) else type(error).__name__)
    return "; ".join([said, *_notes(error)])


def _notes(error: BaseException) -> list[str]:
    """Returns our notes on the error. Python 3.12 and later add one to what comes while a class is made."""
    return [
        note for note in getattr(error, "__notes__", ()) if not note.startswith("Error calling __set_name__")
    ]


def _has_begun(options: argparse.Namespace) -> bool:
    """Does the command measure, and does the folder of --out hold something that it measured?"""
    folder = getattr(options, "out", None)
    return folder is not None and options.command.split()[0] in MEASURING and holds_measured(folder)


def _going_on(options: argparse.Namespace) -> str:
    """Returns how a command that was interrupted goes on, where it can, as the end of a sentence."""
    if not hasattr(options, "resume"):
        return ""
    folder = "" if options.out else " and the run's folder as --out"
    return f", and the same command goes on with --resume{folder}"


def _add_to_list(top: Parser, options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Appends words that argparse left over to the command's list of words.

    argparse takes a list of words only where they stand together; a suite may stand behind an option as well.
    """
    name = next((name for name in LISTS if hasattr(options, name)), None)
    if name is None or any(word.startswith("-") for word in rest):
        top.commands.get(options.command, top).refuse_words(rest)
    kind = LISTS[name]
    setattr(options, name, [*getattr(options, name), *map(kind, rest)])


def _complain(text: str, code: int) -> int:
    """Prints one line on stderr; returns the exit code that goes with it."""
    print(f"grammarbench: {one_line(text)}", file=sys.stderr)
    return code


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Lets what is said of an interruption be said, where Ctrl-C is pressed once more."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        if before is not None:  # None: who set it is no Python
            signal.signal(signal.SIGINT, before)


@contextmanager
def _ended_as_interrupted() -> Iterator[None]:
    """Lets SIGTERM, with which services end what runs too long, and SIGHUP, with which a terminal is closed,
    do what Ctrl-C does: children end, and the exit code says incomplete. What is ignored (`nohup`) stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    ours = [number for number, handler in before.items() if handler not in (signal.SIG_IGN, None)]
    for number in ours:
        signal.signal(number, _as_ctrl_c)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, before[number])


def _as_ctrl_c(*_: object) -> None:
    """Does what SIGINT does now: asyncio takes it while it runs, and an exception that is raised amid one of
    its tasks would go round that. Where SIGINT is ignored, as by a job in the background, raises
    KeyboardInterrupt."""
    if not callable(signal.getsignal(signal.SIGINT)):
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main())
