"""Commands that show what a run holds."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness.errors import INCOMPLETE, OK, BadInput, one_line


def report(options: argparse.Namespace) -> int:
    """One HTML page."""
    from harness.report import write_report

    out = options.out or options.runs[0] / "report"
    page = write_report(options.runs, out)
    print(f"written: {page} ({page.stat().st_size / 1e6:.2f} MB)")
    return completeness(options.runs)


def table(options: argparse.Namespace) -> int:
    """One line per instance, or the table per backend."""
    from harness import table as tables

    if options.keywords:
        return _keywords(options)
    if options.faults or options.spellings or options.ceilings or options.times:
        from harness.ceiling_table import ceiling_frame
        from harness.faults import fault_frame
        from harness.spelling_table import spelling_frame
        from harness.time_table import time_frame

        frames = {"faults": fault_frame, "spellings": spelling_frame, "ceilings": ceiling_frame, "times": time_frame}
        frame_of = next(frame for name, frame in frames.items() if getattr(options, name))
        text = tables.to_text(frame_of(options.run), options.format or "markdown")
        print(tables.visible(text) if sys.stdout.isatty() else text, end="")
    elif options.format:
        text = tables.instance_text(options.run, options.format)
        print(tables.visible(text) if sys.stdout.isatty() else text, end="")
    else:
        print(tables.terminal_text(options.run))
    return completeness([options.run])


def completeness(folders: list[Path]) -> int:
    """0, or 3 with a word on stderr if a run has no end."""
    from harness.store import read_end

    missing = [folder for folder in folders if read_end(folder) is None]
    for folder in missing:
        print(
            f"grammarbench: {folder} is incomplete (no end); `grammarbench run --resume --out {folder} ...` completes it", file=sys.stderr
        )
    return INCOMPLETE if missing else OK


def repro(options: argparse.Namespace) -> int:
    """One failing case, step by step."""
    from harness.repro import find_failure, script, show, show_shrunk, shrink_failure, shrunk_script

    failure = find_failure(options.run, options.case, options.backend, options.vocabulary, options.instance, options.check)
    if options.shrink:
        shrunk = shrink_failure(failure)
        print(show_shrunk(failure, shrunk))
    else:
        print(show(failure))
    if options.script:
        options.script.write_text(shrunk_script(shrunk) if options.shrink else script(failure), "utf-8", errors="backslashreplace")
        print(f"script: {options.script}")
    return OK


def adjudicate(options: argparse.Namespace) -> int:
    """Witnesses of who is at fault where backends disagree."""
    from harness.adjudicate import adjudicate as adjudicate_run
    from harness.table import visible

    positions = None if options.effort < 0 else options.effort
    summary = adjudicate_run(
        options.run,
        positions=positions,
        tries=options.tries,
        timeout_s=options.timeout,
        formats=options.formats,
        say=lambda said: print(one_line(said), flush=True),
    )
    print(visible(summary.text()))
    return completeness([options.run])


def _keywords(options: argparse.Namespace) -> int:
    from harness.keywords import truth_table as keywords
    from harness.store import read_rows

    folded = keywords.truth_table(read_rows(options.run))
    forms = {"json": keywords.as_json, "markdown": keywords.markdown, None: keywords.text}
    if options.format not in forms:
        raise BadInput("the table of keywords has no csv; give --format json or markdown")
    print(forms[options.format](folded), end="")
    return completeness([options.run])
