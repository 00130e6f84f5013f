"""`table`: what a run holds, as a table on the terminal or for a program."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TextIO

from harness.cli.command import Verbs, add_command
from harness.cli.options import add_run
from harness.cli.output import emit, for_screen
from harness.errors import INCOMPLETE, OK, BadInput
from harness.text import console, one_line

TABLES = {
    "verdicts": "the figures of each backend",
    "faults": "the faults by category and cause, in cases of each backend",
    "checks": "in how many cases each check found something",
    "masks": "at how many places no token is wrongly allowed, and none wrongly forbidden",
    "endless": "in how many cases white space, digits or strings have no end",
    "budgets": "how many tokens an output of each case takes at least",
    "tokens": "which token ids each backend reads wrongly, and how",
    "keywords": "what each backend does with each keyword and pair (in a run of the suite keywords)",
    "tools": "how many outputs each backend judges rightly, by family of models, choice and number of tools "
    "(in a run of the suite tools)",
    "spellings": "which spellings each backend accepts (with run --spellings)",
    "ceilings": "what jumping over forced text could save at most, per suite",
    "passes": "what each strategy wrote, in how many passes (with run --decode)",
    "times": "every figure of a measurement, with percentiles",
    "summary": "what a run ends with: the figures in short, and what to do next",
}
"""The tables of a run, and what each holds."""


def add(verbs: Verbs) -> None:
    """Adds the command and its options."""
    parser = add_command(
        verbs,
        "table",
        table,
        examples=[
            "table my_run",
            "table my_run faults",
            "table my_run checks",
            "table my_measurement times --format csv",
        ],
        help="print what a run holds, as a table: the figures of each backend, what was found, times",
        notes="\n".join(["tables:", *(f"  {name:10} {text}" for name, text in TABLES.items())]),
    )
    add_run(parser)
    parser.add_argument(
        "what",
        nargs="?",
        choices=list(TABLES),
        default="verdicts",
        metavar="WHAT",
        help="which table, of those below (default: verdicts)",
    )
    parser.add_argument(
        "--format",
        choices=["csv", "json", "markdown"],
        help="print it in this form; verdicts then have one line per instance (default: for a terminal)",
    )


def table(options: argparse.Namespace) -> int:
    """Prints one table of a run; 3 if the run has no end. Raises BadInput."""
    if options.what == "summary":  # the last thing that every run does, and it needs no data frames
        if options.format:
            raise BadInput("the summary has no --format: it is for a terminal, or --json; leave --format out")
        return _summary(options)
    from harness.report.tables.instances import instance_frame, terminal_text, to_text

    form = "json" if options.json else options.format
    tell_of_parts([options.run], sys.stderr if form in ("csv", "json") else sys.stdout)
    if options.what == "keywords":
        print(for_screen(_keywords(options.run, form)), end="")
    elif options.what != "verdicts":
        print(for_screen(_frame_text(options.run, options.what, form)), end="")
    elif form:
        print(for_screen(to_text(instance_frame(options.run), form)), end="")
    else:
        print(terminal_text(options.run))
    if options.what == "times":
        return max(_measurement_completeness(options.run), completeness([options.run]))
    return completeness([options.run])


def _summary(options: argparse.Namespace) -> int:
    """Prints what a run ends with."""
    from harness.report import run_summary

    summary = run_summary.read_summary(options.run)
    emit(options, lambda: run_summary.to_json(summary), lambda: run_summary.summary_text(summary, console()))
    return completeness([options.run])


def _frame_text(run: Path, what: str, form: str | None) -> str:
    """Returns one of the tables that are data frames. Raises BadInput."""
    from harness.outcomes.faults import fault_frame
    from harness.report.tables.budgets import budgets_frame
    from harness.report.tables.ceiling import ceiling_frame
    from harness.report.tables.endless import endless_frame
    from harness.report.tables.instances import checks_frame, to_text
    from harness.report.tables.masks import masks_frame
    from harness.report.tables.passes import passes_frame
    from harness.report.tables.spelling import spelling_frame
    from harness.report.tables.time import time_frame
    from harness.report.tables.tokens import tokens_frame
    from harness.report.tables.tools import tools_frame

    frames = {
        "checks": checks_frame,
        "faults": fault_frame,
        "spellings": spelling_frame,
        "budgets": budgets_frame,
        "ceilings": ceiling_frame,
        "endless": endless_frame,
        "masks": masks_frame,
        "passes": passes_frame,
        "times": time_frame,
        "tokens": tokens_frame,
        "tools": tools_frame,
    }
    return to_text(frames[what](run), form or "markdown")


def _keywords(run: Path, form: str | None) -> str:
    """Returns the table of keywords. Raises BadInput."""
    from harness.outcomes.keywords import table_of
    from harness.report.tables.keywords import keywords_json, keywords_markdown, keywords_text

    table = table_of(run)
    if not any(table.cells.values()):
        raise BadInput(
            f"{run} has no cases of keywords; make some with grammarbench run keywords --profile full"
        )
    forms = {"json": keywords_json, "markdown": keywords_markdown, None: keywords_text}
    if form not in forms:
        raise BadInput("the table of keywords has no csv; give --format json or markdown")
    return forms[form](table)


def _measurement_completeness(run: Path) -> int:
    """Returns 0, or 3 with a line on stderr if the run's measurement has no end."""
    from harness.measure.record import read_measurement

    if read_measurement(run).end is not None:
        return OK
    print(f"grammarbench: the measurement in {run} is incomplete (no end); measure anew", file=sys.stderr)
    return INCOMPLETE


def tell_of_parts(folders: list[Path], file: TextIO | None = None) -> None:
    """Tells of each run that is a sample, or a share, before anything else is printed.

    It goes to stderr; a sample goes to `file` where that is stdout, as the first thing in it.
    """
    from harness.rows.row import note
    from harness.rows.sample import sample_of
    from harness.rows.store import has_rows, read_info

    for folder in folders:
        if not has_rows(folder):
            continue
        info = read_info(folder)
        sample, share = sample_of(info), note(info)
        if sample and file is sys.stdout:
            print(*console().fold(sample), "", sep="\n")
        elif sample:
            print(f"grammarbench: {folder} is {sample}", file=sys.stderr)
        if share:
            print(f"grammarbench: {folder} is {share}", file=sys.stderr)


def completeness(folders: list[Path]) -> int:
    """Returns 0, or 3 with a line on stderr for each run that has no end."""
    from harness.rows.again import how_to_complete
    from harness.rows.store import has_rows, read_end, read_info

    missing = [folder for folder in folders if has_rows(folder) and read_end(folder) is None]
    for folder in missing:
        print(
            one_line(
                f"grammarbench: {folder} is incomplete (no end); {how_to_complete(folder, read_info(folder))}"
            ),
            file=sys.stderr,
        )
    return INCOMPLETE if missing else OK
