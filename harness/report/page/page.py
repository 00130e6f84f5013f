"""Runs → what the templates show → one HTML file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jinja2
from markupsafe import Markup

from harness.report.cases import explorer, snippets
from harness.report.cases.data import Explored, as_json
from harness.report.cases.explorer import ASSETS
from harness.report.cases.judgements import add_judgements
from harness.report.export import summary
from harness.report.page.content import Content
from harness.report.page.inputs import Inputs, read_inputs
from harness.report.page.section import render_tabs
from harness.report.page.sections.data import records
from harness.report.templates import asset, refuse_no_page, template_environment
from harness.running.leftovers import refuse_to_replace
from harness.whole_files import write_files

STYLES = ("style.css", "cases.css")
SCRIPTS = ("page.js", "matrix.js", *explorer.SCRIPTS)
JSON, SUMMARY = "report.json", summary.FILE
"""What lies beside the page in a folder: all of its cases, and the summary of each run and decoding."""


def refuse_to_replace_others(out: Path) -> None:
    """Raises BadInput if the page, or a file that comes beside it, would overwrite another file."""
    if out.suffix == ".html":
        refuse_no_page(out, "--out")
        return
    refuse_no_page(out / "report.html", "--out")
    refuse_to_replace(out / JSON, rb'\{"kind":"grammarbench report"', "--out")
    refuse_to_replace(out / SUMMARY, summary.OURS, "--out")


def write_report(
    runs: list[Path] | Inputs, out: Path, trend: Path | None = None, split: bool = False
) -> Path:
    """Writes the page about the runs to `out`, a file if it ends in `.html`, else a folder; returns the file.

    Raises BadInput.

    `runs`: their folders, or what was read of them. In a folder, `report.json` and `summary.md` lie beside
    it. With `split`, and where one file could not hold it, scripts, styles and data lie in `assets`. `trend`:
    a history whose last runs stand beside the comparisons.
    """
    refuse_to_replace_others(out)
    inputs = runs if isinstance(runs, Inputs) else read_inputs(runs)
    is_alone = out.suffix == ".html"
    html, files, explored = _built(inputs, trend, split, is_alone)
    path = out if is_alone else out / "report.html"
    if not is_alone:
        files |= {JSON: as_json(explored), SUMMARY: "\n".join(_summaries(inputs))}
    written = write_files(path.parent, {path.name: html, **files}, "--out")
    for old in (path.parent / ASSETS).glob("cases-*.js"):
        if old not in written and old.read_bytes().startswith(b"grammarbench("):
            old.unlink()
    return path


def _summaries(inputs: Inputs) -> Iterator[str]:
    for result in inputs.results:
        yield from summary.files(result).values()
    for decoded in inputs.decoded:
        yield summary.of_decoding(decoded.decoding)


def _built(
    inputs: Inputs, trend: Path | None, split: bool, is_alone: bool = False
) -> tuple[str, dict[str, str], Explored]:
    """Returns the page, the files that it needs beside it, and all of the cases. Raises BadInput."""
    environment = template_environment()
    content = Content(inputs, environment.get_template("case.html.j2"), trend, is_alone)
    with ThreadPoolExecutor(1) as beside:
        asked = beside.submit(snippets.ask, content.explored, inputs.tried)
        judged = beside.submit(add_judgements, content.explored)
        html = _render_page(content, environment)
        snippets.add_snippets(content.explored, inputs.tried, asked.result())
        judged.result()
    html, packed = explorer.with_data(html, content.explored, split)
    if packed.split:
        return *explorer.outside(html, packed), content.explored
    return html, {}, content.explored


def _render_page(content: Content, environment: jinja2.Environment) -> str:
    """Returns the page with every tab that has something to show. Raises BadInput."""
    inputs = content.inputs
    script = "\n".join(asset(script).strip() for script in SCRIPTS)
    return environment.get_template("page.html.j2").render(
        titles=titles(inputs),
        runs=inputs.runs,
        records=[] if inputs.lines else records(inputs),
        verdict=content.verdict,
        tabs=render_tabs(content, environment),
        data=Markup(explorer.DATA),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        stylesheet=Markup("\n".join(asset(style).strip() for style in STYLES)),
    )


def titles(inputs: Inputs) -> list[str]:
    """Returns what was run, for the page's title."""
    names = [run.info.run for run in inputs.runs]
    return (
        names
        or [decoded.decoding.setup.run for decoded in inputs.decoded]
        or [path.name for path, _ in inputs.kernels]
    )
