"""`table`: what a run holds, as a table on the terminal or for a program."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TextIO

from harness.cli.output import emit
from harness.cli.values import Verbs, add_command
from harness.errors import INCOMPLETE, OK, BadInput
from harness.text import console, one_line

TABLES = {
    "verdicts": "the figures of each backend (default)",
    "faults": "the faults by category and cause, in how many cases of each backend",
    "checks": "in how many cases each check found something",
    "keywords": "what becomes of each JSON Schema keyword and pair (of a run of the suite keywords)",
    "spellings": "which spellings each backend accepts (of a run with --spellings)",
    "ceilings": "what jumping over forced text could save at most, per suite",
    "passes": "what each strategy wrote, with how many passes (of a run with --decode)",
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
        help="one line per instance, or the table per backend",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's folder")
    parser.add_argument(
        "what",
        nargs="?",
        choices=list(TABLES),
        default="verdicts",
        metavar="WHAT",
        help="; ".join(f"{name}: {text}" for name, text in TABLES.items()),
    )
    parser.add_argument(
        "--format",
        choices=["csv", "json", "markdown"],
        help="print it in this form; verdicts then have one line per instance (default: for a terminal)",
    )


def table(options: argparse.Namespace) -> int:
    """One line per instance, or the table per backend."""
    from harness.report.tables import instances as tables

    if options.what == "summary":
        from harness.report import run_summary

        found = run_summary.read_summary(options.run)
        emit(options, lambda: run_summary.to_json(found), lambda: run_summary.text(found, console()))
        return completeness([options.run])
    options.format = "json" if options.json else options.format
    tell_of_parts([options.run], sys.stderr if options.format in ("csv", "json") else sys.stdout)
    if options.what == "keywords":
        return _keywords(options)
    if options.what != "verdicts":
        from harness.measure.record import read_measurement
        from harness.outcomes.faults import fault_frame
        from harness.report.tables.ceiling import ceiling_frame
        from harness.report.tables.passes import passes_frame
        from harness.report.tables.spelling import spelling_frame
        from harness.report.tables.time import time_frame

        frames = {
            "checks": tables.checks_frame,
            "faults": fault_frame,
            "spellings": spelling_frame,
            "ceilings": ceiling_frame,
            "passes": passes_frame,
            "times": time_frame,
        }
        frame_of = frames[options.what]
        text = tables.to_text(frame_of(options.run), options.format or "markdown")
        print(text, end="")
        if options.what == "times" and read_measurement(options.run).end is None:
            print(
                f"grammarbench: the measurement in {options.run} is incomplete (no end); measure anew",
                file=sys.stderr,
            )
            return INCOMPLETE
    elif options.format:
        text = tables.instance_text(options.run, options.format)
        print(text, end="")
    else:
        print(tables.terminal_text(options.run))
    return completeness([options.run])


def _keywords(options: argparse.Namespace) -> int:
    from harness.outcomes.keywords import truth_table
    from harness.report.tables.keywords import keywords_json, keywords_markdown, keywords_text
    from harness.rows.store import read_rows

    folded = truth_table(read_rows(options.run))
    forms = {"json": keywords_json, "markdown": keywords_markdown, None: keywords_text}
    if options.format not in forms:
        raise BadInput("the table of keywords has no csv; give --format json or markdown")
    print(forms[options.format](folded), end="")
    return completeness([options.run])


def tell_of_parts(folders: list[Path], file: TextIO | None = None) -> None:
    """First of all a word for each run that is a sample (to `file`, where that is the first thing in it), or
    a share, of one."""
    from harness.rows.row import note
    from harness.rows.sample import sample_of
    from harness.rows.store import has_rows, read_info

    for folder in folders:
        if not has_rows(folder):
            continue
        info = read_info(folder)
        if (said := sample_of(info)) and file is sys.stdout:
            print(*console().fold(said), "", sep="\n")
        elif said:
            print(f"grammarbench: {folder} is {said}", file=sys.stderr)
        if said := note(info):
            print(f"grammarbench: {folder} is {said}", file=sys.stderr)


def completeness(folders: list[Path]) -> int:
    """0, or 3 with a word on stderr if a run has no end."""
    from harness.rows.again import resume
    from harness.rows.store import has_rows, read_end, read_info

    missing = [folder for folder in folders if has_rows(folder) and read_end(folder) is None]
    for folder in missing:
        print(
            one_line(
                f"grammarbench: {folder} is incomplete (no end); `{resume(folder, read_info(folder))}` "
                "completes it"
            ),
            file=sys.stderr,
        )
    return INCOMPLETE if missing else OK
