"""The command line. Each command imports what it needs when it runs: `--help` must be quick, and the coordinator light."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from harness import commands
from harness.errors import BadInput, one_line

OK, GATE_FAILED, BAD_INPUT, INCOMPLETE, UNPROVEN = 0, 1, 2, 3, 4

DESCRIPTION = "Is a grammar backend right, fast and unchanged? Conformance and benchmarks for constrained LLM decoding."


def parser() -> argparse.ArgumentParser:
    """Every command and option."""
    top = argparse.ArgumentParser(prog="grammarbench", description=DESCRIPTION)
    top.add_argument("--version", action="store_true", help="print the version")
    verbs = top.add_subparsers(dest="command", metavar="COMMAND")

    run = verbs.add_parser("run", help="walk suites through backends and store what was seen")
    run.add_argument("suites", nargs="*", metavar="SUITE", help="a suite's name, a folder or a file (default: all our suites)")
    run.add_argument("--backends", required=True, metavar="A,B==1.2,C:OPTION=VALUE", help="which backends, at which versions and options")
    run.add_argument(
        "--vocabularies", metavar="NAME,...", help="built-in names, hf:NAME_OR_FOLDER, tiktoken:NAME_OR_FILE (default: the profile's)"
    )
    run.add_argument("--profile", choices=["quick", "default", "full"], default="default", help="how much, for how long (default: default)")
    run.add_argument("--out", type=Path, metavar="DIR", help="the run's folder (default: results/runs/<run>)")
    run.add_argument("--resume", action="store_true", help="go on with the run in --out that was interrupted")
    run.add_argument(
        "--jobs", type=positive, default=1, metavar="N", help="workers at a time (default: 1; more disturb each other's timings)"
    )
    run.add_argument(
        "--timeout", type=positive_number, metavar="S", help="seconds for a compile and for each walk (default: the profile's)"
    )
    run.add_argument("--memory", type=positive_number, default=4.0, metavar="GB", help="resident memory of a child (default: 4)")

    run.add_argument(
        "--effort",
        type=effort,
        metavar="N",
        help="places of a case that each check looks at; 0: no checks, all: every one (default: the profile's)",
    )

    run.add_argument(
        "--spellings",
        action="store_true",
        help="walk other spellings of each valid JSON text instead: whitespace, order, escapes, numbers",
    )

    run.add_argument("--expect", type=Path, metavar="FILE", help="compare the outcomes with this record; 1 if they differ")
    run.add_argument("--record", type=Path, metavar="FILE", help="write the outcomes to this record")

    expect = verbs.add_parser("expect", help="compare a stored run with a record of outcomes, or write the record")
    expect.add_argument("run", type=Path, metavar="RUN", help="a run's folder")
    expect.add_argument("file", type=Path, metavar="FILE", help="the record, e.g. results/baseline/default.json")
    expect.add_argument("--record", action="store_true", help="write the record instead")

    report = verbs.add_parser("report", help="write one HTML page of one or more runs")
    report.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a run's folder")
    report.add_argument("--out", type=Path, metavar="DIR", help="where to write report.html (default: RUN/report)")

    table = verbs.add_parser("table", help="one line per instance, or the table per backend")
    table.add_argument("run", type=Path, metavar="RUN", help="a run's folder")
    table.add_argument(
        "--format", choices=["csv", "json", "markdown"], help="one line per instance in this form (default: the table per backend)"
    )

    table.add_argument("--ceilings", action="store_true", help="what jumping over forced text could save at most, per suite")
    table.add_argument("--spellings", action="store_true", help="which spellings each backend accepts (of a run with --spellings)")
    table.add_argument("--faults", action="store_true", help="the faults by category and cause, in how many cases of each backend")
    table.add_argument(
        "--keywords", action="store_true", help="what becomes of each JSON Schema keyword and pair (of a run of the suite keywords)"
    )

    repro = verbs.add_parser("repro", help="show one failing case step by step, and a script that shows it without us")
    repro.add_argument("run", type=Path, metavar="RUN", help="a run's folder")
    repro.add_argument("case", metavar="CASE", help="a case's name or id")
    repro.add_argument("--backend", required=True, metavar="B", help="a backend of the run, with its options if it has several")
    repro.add_argument("--vocabulary", metavar="V", help="which vocabulary of the run (default: the first one that fails)")
    repro.add_argument("--instance", type=int, metavar="N", help="which instance, from 0 (default: the first one that fails)")

    repro.add_argument("--check", metavar="CHECK", help="the failing check of the case to show, by its name in the report")
    repro.add_argument("--shrink", action="store_true", help="make grammar and instance small first (up to a minute or two)")
    repro.add_argument("--script", type=Path, metavar="FILE", help="write the stand-alone script to this file too")

    adjudicate = verbs.add_parser(
        "adjudicate", help="where backends disagree on a JSON Schema: whose fault, and the document that shows it"
    )
    adjudicate.add_argument("run", type=Path, metavar="RUN", help="a run's folder; the findings go to its witnesses.jsonl")
    adjudicate.add_argument(
        "--effort", type=effort, default=8, metavar="N", help="places of a text at which masks are compared, or all (default: 8)"
    )
    adjudicate.add_argument(
        "--tries", type=positive, default=3, metavar="N", help="documents finished from one disputed token (default: 3)"
    )
    adjudicate.add_argument("--timeout", type=positive_number, default=10.0, metavar="S", help="seconds for each answer (default: 10)")
    adjudicate.add_argument("--formats", action="store_true", help="formats are assertions (default: annotations, as JSON Schema has it)")

    check = verbs.add_parser("check", help="does an adapter keep the contract?")
    check.add_argument("backend", metavar="BACKEND", help="a backend, as in run --backends")
    check.add_argument("--vocabulary", default="probe", metavar="V", help="the vocabulary to check it with (default: probe)")
    check.add_argument("--timeout", type=positive_number, default=60.0, metavar="S", help="seconds for each check (default: 60)")

    verbs.add_parser("backends", help="what is there: versions, dialects, options")
    verbs.add_parser("suites", help="what is there: our suites and their sizes")
    verbs.add_parser("vocabularies", help="what is there: built-in vocabularies, and how to name others")

    fetch = verbs.add_parser("fetch", help="clone a public corpus at a pinned commit")
    fetch.add_argument("corpus", choices=["maskbench", "json-schema-test-suite"])
    fetch.add_argument("--out", type=Path, default=Path("corpora"), metavar="DIR", help="where to put it (default: corpora)")
    return top


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


def positive_number(text: str) -> float:
    """A number above 0."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError
    return value


effort.__name__ = "whole number from 0, or all"
positive.__name__ = "whole number above 0"
positive_number.__name__ = "number above 0"


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
        return commands.COMMANDS[options.command](options)
    except BadInput as error:
        print(f"grammarbench: {one_line(str(error))}", file=sys.stderr)
        return BAD_INPUT
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
