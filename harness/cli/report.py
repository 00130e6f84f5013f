"""`report`: a run as a page, as charts and tables for a paper, as files for other tools, or a site of a
history."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli.command import Verbs, add_command
from harness.cli.output import emit
from harness.cli.table import tell_of_parts
from harness.cli.values import names
from harness.errors import INCOMPLETE, OK, BadInput, did_you_mean
from harness.text import one_line

if TYPE_CHECKING:
    from harness.outcomes.result import Result
    from harness.report.page.inputs import Inputs

HTML = "html"
"""The form that is a page for people. The forms of harness/report/paper are for a paper, and every other form
is a file for other tools."""


def add(verbs: Verbs) -> None:
    """Adds the command and its options."""
    parser = add_command(
        verbs,
        "report",
        report,
        examples=[
            "report my_run",
            "report my_run my_measurement --out page",
            "report my_run --format junit,summary --against expected.json --out exported",
            "report my_run --format pdf,latex --out paper",
            "report --history past --out site",
        ],
        help="write one HTML page of one or more runs, charts and tables for a paper, files for other tools, "
        "or a site of a history",
    )
    parser.add_argument(
        "runs",
        nargs="*",
        type=Path,
        metavar="RUN",
        help="the folders of runs, measurements, decodings or kernels",
    )
    parser.add_argument(
        "--format",
        action="extend",
        type=names,
        metavar="FORM,...",
        help="html (default), svg or pdf (each chart of the page as a file), latex (tables), and of one run "
        "json, junit, summary, annotations, benchmark-action, bencher, csv, markdown, or all of them",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="the folder to write to (default: RUN/report, of a history DIR/dashboard)",
    )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="BASE",
        help="a run's folder or a file of expected outcomes, as in compare: the page and the forms for other "
        "tools then show what changed since, and whether a gate passes",
    )
    parser.add_argument(
        "--time", action="store_true", help="let a proven slowdown fail the gate that those forms show, too"
    )
    parser.add_argument(
        "--history",
        type=Path,
        metavar="DIR",
        help="write a site of this history (grammarbench history) instead: trends, releases, badges, a feed",
    )
    parser.add_argument(
        "--trend",
        type=Path,
        metavar="DIR",
        help="a history: its last runs are drawn as sparklines beside each measured figure",
    )
    parser.add_argument(
        "--split",
        action="store_true",
        help="write script, style and data of the page as files beside it, for hosts that forbid inline ones",
    )


def report(options: argparse.Namespace) -> int:
    """Writes what was asked for; returns 3 if something in it is not whole. Raises BadInput."""
    if options.history:
        return _site(options)
    if not options.runs:
        raise BadInput("nothing to report on; give a run's folder, or --history DIR")
    from harness.rows.store import refuse_published

    forms = _forms(options)
    if options.trend:
        from harness.outcomes.history.measurements import refuse_no_folder

        refuse_no_folder(options.trend)  # the page reads it only where something was measured
    if options.out is None:
        refuse_published(
            options.runs[0], "given a report of its own", "name a folder for the page with --out DIR"
        )
    out = options.out or options.runs[0] / "report"
    _refuse_to_replace_others(forms, out)
    tell_of_parts(options.runs)
    written, incomplete = _write(options, forms, out)
    emit(options, lambda: _files(written), lambda: "\n".join(map(_written, written)))
    for line in incomplete:
        print(one_line(f"grammarbench: {line}"), file=sys.stderr)
    return INCOMPLETE if incomplete else OK


def _refuse_to_replace_others(forms: list[str], out: Path) -> None:
    """Raises BadInput if one of the forms would overwrite a file that we did not write."""
    from harness.report import export
    from harness.report.page import page

    if HTML in forms:
        page.refuse_to_replace_others(out)
    export.refuse_to_replace_others([form for form in forms if form in export.FORMS], out)


def _write(options: argparse.Namespace, forms: list[str], out: Path) -> tuple[list[Path], list[str]]:
    """Writes the forms; returns their files, and a line for each thing in them that is not whole.

    Raises BadInput.
    """
    from harness.report.paper import FORMS as PAPER

    written: list[Path] = []
    incomplete: list[str] = []
    read = result = None
    paper = [form for form in forms if form in PAPER]
    tools = [form for form in forms if form not in (HTML, *PAPER)]
    if paper or HTML in forms:
        from harness.report.page.inputs import read_inputs
        from harness.report.page.page import JSON, SUMMARY, write_report
        from harness.report.paper.tables import without_tables
        from harness.report.paper.write import write as write_paper

        inputs = read_inputs(options.runs)
        if options.against:
            result = _held(inputs, options)
            inputs = replace(inputs, held=result)
        if HTML in forms:
            page = write_report(inputs, out, options.trend, options.split)
            beside = [] if page == out else [JSON, SUMMARY]
            written += [page, *map(page.with_name, beside)]
        if paper:
            written += write_paper(inputs, paper, out)
        if "latex" in paper and (others := without_tables(inputs)):
            told = f"these have no table in LaTeX: {', '.join(map(str, others))}"
            print(one_line(f"grammarbench: {told}"), file=sys.stderr)
        incomplete += [
            f"{name} is incomplete ({why}); what is written shows it and concludes nothing"
            for name, why in inputs.incomplete.items()
        ]
        if inputs.noticed:
            read = inputs.noticed[0]
            if not options.against and not options.time and tools:
                result = inputs.results[0]
    if tools:
        from harness.outcomes.result import result_of
        from harness.report.export import write

        if result is None:
            result = result_of(options.runs[0], options.against, time=options.time, read=read)
        written += write(result, tools, out)
        if result.gate.verdict == "incomplete" and not incomplete:
            incomplete += result.gate.reasons
    return list(dict.fromkeys(written)), incomplete  # the form `summary` is beside the page already


def _held(inputs: Inputs, options: argparse.Namespace) -> Result:
    """Returns the only run held against `--against`. Raises BadInput."""
    from harness.outcomes.result import result_of

    read = inputs.noticed[0] if inputs.noticed else None
    return result_of(options.runs[0], options.against, time=options.time, read=read)


def _forms(options: argparse.Namespace) -> list[str]:
    """Returns the forms that are asked for, each once. Raises BadInput."""
    from harness.report.export import FORMS
    from harness.report.paper import FORMS as PAPER

    every = [HTML, *PAPER, *FORMS]
    asked = list(dict.fromkeys(options.format or [HTML]))
    for form in asked:
        if form not in ("all", *every):
            raise BadInput(f'there is no form "{form}"{did_you_mean(form, ["all", *every])}')
    forms = every if "all" in asked else asked
    if set(forms) <= {HTML, *PAPER}:
        if options.against and HTML not in forms:
            raise BadInput(
                "--against has no effect on charts and tables; leave it out, or name --format html or one "
                "for other tools"
            )
        if options.against and len(options.runs) > 1:
            raise BadInput(
                "--against holds one run against another or a record, and the page compares several runs "
                "with the first one; leave it out, or name one RUN"
            )
        if options.time:
            raise BadInput(
                "--time has no effect on the page, which shows the verdicts of all times; leave it out, or "
                "name a --format for other tools"
            )
    elif len(options.runs) > 1:
        raise BadInput(
            "a form for other tools takes one run; name one RUN, or leave --format out (html, svg, pdf and "
            "latex take several)"
        )
    if HTML not in forms:
        for name in ("trend", "split"):
            if getattr(options, name):
                raise BadInput(f"--{name} is an option of the page; leave it out, or add --format html")
    return forms


def _site(options: argparse.Namespace) -> int:
    """Writes the site of a history. Raises BadInput."""
    from harness.report.site.dashboard import write_dashboard
    from harness.report.templates import refuse_no_page

    if options.runs:
        raise BadInput(
            "give runs or --history, not both; --trend DIR shows a history beside runs, and `grammarbench "
            "history DIR --add RUN` adds a run to it"
        )
    if options.format:
        raise BadInput("the site of a history has one form; leave --format out")
    for name in ("trend", "against", "time", "split"):
        if getattr(options, name):
            raise BadInput(f"--{name} works with runs only; leave it out beside --history")
    out = options.out or options.history / "dashboard"
    refuse_no_page(out / "index.html", "--out")
    site = write_dashboard(options.history, out)
    parts = [site, site.with_name("feed.xml"), site.with_name("badges")]
    emit(options, lambda: _files(parts), lambda: f"written: {site}")
    return OK


def _written(path: Path) -> str:
    """Returns the line about one written file; a page is told with its size."""
    size = f" ({path.stat().st_size / 1e6:.2f} MB)" if path.suffix == ".html" else ""
    return f"written: {path}{size}"


def _files(paths: Iterable[Path]) -> dict[str, Any]:
    """Returns what was written: files with their sizes in bytes, a folder as its files."""
    files = [
        file
        for path in paths
        for file in (sorted(path.rglob("*")) if path.is_dir() else [path])
        if file.is_file()
    ]
    return {"written": [{"path": file, "bytes": file.stat().st_size} for file in files]}
