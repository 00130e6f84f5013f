"""Commands that show what a run holds."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.errors import INCOMPLETE, OK, BadInput, did_you_mean, one_line
from harness.terminal import emit, paper, teller


def report(options: argparse.Namespace) -> int:
    """One HTML page of runs, or a site of a history; 3 if something on the page has no end."""
    from harness.report import write_report
    from harness.report.inputs import read_inputs

    if options.history:
        from harness.report.dashboard import write_dashboard

        if options.runs:
            raise BadInput("a report is of runs or of a history (beside runs: --trend DIR); `grammarbench history DIR --add RUN` adds one")
        site = write_dashboard(options.history, options.out or options.history / "dashboard")
        parts = [site, site.with_name("feed.xml"), site.with_name("badges")]
        emit(options, lambda: _files(parts), lambda: f"written: {site}")
        return OK
    if not options.runs:
        raise BadInput("a report of what? Give a run's folder, or --history DIR")
    out = options.out or options.runs[0] / "report"
    _say_of_shards(options.runs)
    inputs = read_inputs(options.runs)
    page = write_report(inputs, out, options.trend, options.split)
    emit(options, lambda: _files([page]), lambda: f"written: {page} ({page.stat().st_size / 1e6:.2f} MB)")
    for each in inputs.incomplete:
        print(one_line(f"grammarbench: {each} is incomplete (no end); the page shows it and concludes nothing"), file=sys.stderr)
    return INCOMPLETE if inputs.incomplete else OK


def export(options: argparse.Namespace) -> int:
    """The result in the forms that CI tools read."""
    from harness.export import FORMS, write
    from harness.result import result_of

    forms = options.format or ["all"]
    for each in forms:
        if each != "all" and each not in FORMS:
            raise BadInput(f'there is no form "{each}"{did_you_mean(each, ["all", *FORMS])}')
    _say_of_shards([options.run])
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
    from harness import table as tables

    if options.summary:
        from harness import brief

        found = brief.brief(options.run)
        emit(options, lambda: brief.to_json(found), lambda: brief.text(found, paper()))
        return completeness([options.run])
    _say_of_shards([options.run])
    options.format = "json" if options.json else options.format
    if options.keywords:
        return _keywords(options)
    if options.faults or options.spellings or options.ceilings or options.passes or options.times:
        from harness.ceiling_table import ceiling_frame
        from harness.faults import fault_frame
        from harness.measure.record import read_measurement
        from harness.passes_table import passes_frame
        from harness.spelling_table import spelling_frame
        from harness.time_table import time_frame

        frames = {
            "faults": fault_frame,
            "spellings": spelling_frame,
            "ceilings": ceiling_frame,
            "passes": passes_frame,
            "times": time_frame,
        }
        frame_of = next(frame for name, frame in frames.items() if getattr(options, name))
        text = tables.to_text(frame_of(options.run), options.format or "markdown")
        print(tables.visible(text) if sys.stdout.isatty() else text, end="")
        if options.times and read_measurement(options.run).end is None:
            print(f"grammarbench: the measurement in {options.run} is incomplete (no end); measure anew", file=sys.stderr)
            return INCOMPLETE
    elif options.format:
        text = tables.instance_text(options.run, options.format)
        print(tables.visible(text) if sys.stdout.isatty() else text, end="")
    else:
        print(tables.terminal_text(options.run))
    return completeness([options.run])


def _files(paths: Iterable[Path]) -> dict[str, Any]:
    """What was written: files with their sizes in bytes, a folder as its files."""
    files = [each for path in paths for each in (sorted(path.rglob("*")) if path.is_dir() else [path]) if each.is_file()]
    return {"written": [{"path": each, "bytes": each.stat().st_size} for each in files]}


def _say_of_shards(folders: list[Path]) -> None:
    """A word on stderr for each run that is a share of one."""
    from harness.shard import note
    from harness.store import read_info

    for folder in folders:
        if (folder / "rows.jsonl").exists() and (said := note(read_info(folder))):
            print(f"grammarbench: {folder} is {said}", file=sys.stderr)


def completeness(folders: list[Path]) -> int:
    """0, or 3 with a word on stderr if a run has no end."""
    from harness.store import read_end

    missing = [folder for folder in folders if (folder / "rows.jsonl").exists() and read_end(folder) is None]
    for folder in missing:
        print(
            f"grammarbench: {folder} is incomplete (no end); `grammarbench run --resume --out {folder} ...` completes it", file=sys.stderr
        )
    return INCOMPLETE if missing else OK


def repro(options: argparse.Namespace) -> int:
    """One failing case, step by step."""
    from harness.repro import find_failure, script, show, show_shrunk, shrink_failure, shrunk_script, shrunk_to_json, to_json

    failure = find_failure(options.run, options.case, options.backend, options.vocabulary, options.instance, options.check)
    if options.shrink:
        shrunk = shrink_failure(failure)
        emit(options, lambda: shrunk_to_json(failure, shrunk), lambda: show_shrunk(failure, shrunk))
    else:
        emit(options, lambda: to_json(failure), lambda: show(failure))
    if options.script:
        options.script.write_text(shrunk_script(shrunk) if options.shrink else script(failure), "utf-8", errors="backslashreplace")
        print(f"script: {options.script}", file=sys.stderr if options.json else sys.stdout)
    return OK


def adjudicate(options: argparse.Namespace) -> int:
    """Witnesses of who is at fault where backends disagree."""
    from harness.adjudicate import adjudicate as adjudicate_run

    positions = None if options.effort < 0 else options.effort
    summary = adjudicate_run(
        options.run,
        positions=positions,
        tries=options.tries,
        timeout_s=options.timeout,
        formats=options.formats,
        say=teller(options),
    )
    emit(options, summary.to_json, lambda: paper().fit(summary.text()))
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
