"""`report`, `export` and `table`: the commands that show what a run holds."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from harness.cli.output import emit
from harness.cli.values import (
    Verbs,
    add_command,
)
from harness.errors import INCOMPLETE, OK, BadInput, did_you_mean
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
    """Add the commands of this file and their options."""
    _add_report(verbs)
    _add_export(verbs)
    _add_table(verbs)


def _add_report(verbs: Verbs) -> None:
    parser = add_command(
        verbs,
        "report",
        report,
        examples=[
            "report my_run",
            "report my_run my_measurement --out page",
            "report --history past --out site",
        ],
        help="write one HTML page of one or more runs, or a site of a history",
    )
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="a run's folder")
    parser.add_argument(
        "--history",
        type=Path,
        metavar="DIR",
        help="a history (grammarbench history) instead: trends, releases, badges, a feed",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where to write report.html (default: RUN/report), or the site (default: DIR/dashboard)",
    )
    parser.add_argument(
        "--trend",
        type=Path,
        metavar="DIR",
        help="a history, whose last runs stand beside what was measured as sparklines",
    )
    parser.add_argument(
        "--split",
        action="store_true",
        help="script, style and data beside the page, for hosts that forbid inline ones",
    )


def _add_export(verbs: Verbs) -> None:
    parser = add_command(
        verbs,
        "export",
        export,
        examples=["export x --out y"],
        help="the result of a run in the forms that CI tools read, and whether a gate holds",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's folder")
    parser.add_argument(
        "base", type=Path, nargs="?", metavar="BASE", help="another run's folder to hold it against"
    )
    parser.add_argument(
        "--format",
        action="append",
        metavar="FORM",
        help="one of them, or all; may be repeated (default: all)",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder to write to")
    parser.add_argument("--expect", type=Path, metavar="FILE", help="a record of outcomes to hold it against")
    parser.add_argument(
        "--gate",
        action="store_true",
        help="exit code 1 if it is worse, 3 if the run is incomplete, 4 if nothing can be said",
    )
    parser.add_argument("--time", action="store_true", help="the gate fails on a proven slowdown too")


def _add_table(verbs: Verbs) -> None:
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


def report(options: argparse.Namespace) -> int:
    """One HTML page of runs, or a site of a history; 3 if something on the page has no end."""
    from harness.report.page.inputs import read_inputs
    from harness.report.page.page import write_report
    from harness.rows.store import refuse_published

    if options.history:
        from harness.report.site.dashboard import write_dashboard

        if options.runs:
            raise BadInput(
                "a report is of runs or of a history (beside runs: --trend DIR); `grammarbench "
                "history DIR --add RUN` adds one"
            )
        site = write_dashboard(options.history, options.out or options.history / "dashboard")
        parts = [site, site.with_name("feed.xml"), site.with_name("badges")]
        emit(options, lambda: _files(parts), lambda: f"written: {site}")
        return OK
    if not options.runs:
        raise BadInput("a report of what? Give a run's folder, or --history DIR")
    if options.out is None:
        refuse_published(
            options.runs[0], "given a report of its own", "say with --out DIR where the page is to be"
        )
    out = options.out or options.runs[0] / "report"
    _say_of_parts(options.runs)
    inputs = read_inputs(options.runs)
    page = write_report(inputs, out, options.trend, options.split)
    emit(options, lambda: _files([page]), lambda: f"written: {page} ({page.stat().st_size / 1e6:.2f} MB)")
    for each in inputs.incomplete:
        print(
            one_line(f"grammarbench: {each} is incomplete (no end); the page shows it and concludes nothing"),
            file=sys.stderr,
        )
    return INCOMPLETE if inputs.incomplete else OK


def export(options: argparse.Namespace) -> int:
    """The result in the forms that CI tools read."""
    from harness.outcomes.result import result_of
    from harness.report.export import FORMS, write

    forms = options.format or ["all"]
    for each in forms:
        if each != "all" and each not in FORMS:
            raise BadInput(f'there is no form "{each}"{did_you_mean(each, ["all", *FORMS])}')
    _say_of_parts([options.run, *([options.base] if options.base else [])])
    result = result_of(options.run, options.base, expect=options.expect, gate=options.gate, time=options.time)
    written = write(result, list(FORMS) if "all" in forms else forms, options.out)
    gate = result.gate
    emit(
        options,
        lambda: {**_files(written), "gate": {**vars(gate), "exit_code": gate.exit_code}},
        lambda: "\n".join(f"written: {path}" for path in written),
    )
    if options.gate or gate.verdict == "incomplete":
        print(one_line("; ".join([f"gate: {gate.verdict}", *gate.reasons])), file=sys.stderr)
        return gate.exit_code
    return OK


def table(options: argparse.Namespace) -> int:
    """One line per instance, or the table per backend."""
    from harness.report.tables import instances as tables

    if options.what == "summary":
        from harness.report import run_summary

        found = run_summary.read_summary(options.run)
        emit(options, lambda: run_summary.to_json(found), lambda: run_summary.text(found, console()))
        return completeness([options.run])
    options.format = "json" if options.json else options.format
    _say_of_parts([options.run], sys.stderr if options.format in ("csv", "json") else sys.stdout)
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


def _files(paths: Iterable[Path]) -> dict[str, Any]:
    """What was written: files with their sizes in bytes, a folder as its files."""
    files = [
        each
        for path in paths
        for each in (sorted(path.rglob("*")) if path.is_dir() else [path])
        if each.is_file()
    ]
    return {"written": [{"path": each, "bytes": each.stat().st_size} for each in files]}


def _say_of_parts(folders: list[Path], file: TextIO | None = None) -> None:
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
