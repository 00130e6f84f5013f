"""Runs → what the templates show → one HTML file."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jinja2
from markupsafe import Markup

from harness import metrics
from harness.errors import BadInput
from harness.export import summary
from harness.report import comparing, decodes, explorer, forest, heat, kernels, lives, matrix, method, sections, snippets
from harness.report.checked import check_lines
from harness.report.data import Explored, as_json, explore
from harness.report.explorer import ASSETS, CasesShown
from harness.report.inputs import Inputs, read_inputs
from harness.report.pareto import pareto
from harness.report.templates import asset, template_environment
from harness.report.times import times
from harness.report.verdict import verdict
from harness.result import result_of
from harness.seen import common_solved

STYLES = ("style.css", "cases.css")
SCRIPTS = ("page.js", "matrix.js", *explorer.SCRIPTS)


def write_report(runs: list[Path] | Inputs, out: Path, trend: Path | None = None, split: bool = False) -> Path:
    """Writes the page about the runs to `out`, a file if it ends in `.html`, else a folder; returns the file. Raises BadInput.

    `runs`: their folders, or what was read of them. In a folder, `report.json` and `summary.md` lie beside it. With `split`, and where
    one file could not hold it, scripts, styles and data lie in `assets`. `trend`: a history whose last runs stand beside the comparisons.
    """
    inputs = runs if isinstance(runs, Inputs) else read_inputs(runs)
    html, files, explored = _built(inputs, trend, split)
    path = out if out.suffix == ".html" else out / "report.html"
    if path != out:
        files |= {"report.json": as_json(explored), "summary.md": "\n".join(_summaries(inputs))}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for old in (path.parent / ASSETS).glob("cases-*.js"):
            old.unlink()
        for name, text in {path.name: html, **files}.items():
            (path.parent / name).parent.mkdir(exist_ok=True)
            (path.parent / name).write_bytes(text.encode("utf-8", "replace"))
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror}; give another --out") from error
    return path


def _summaries(inputs: Inputs) -> Iterator[str]:
    for run, read in zip(inputs.runs, inputs.noticed, strict=True):
        yield from summary.files(result_of(run.folder, read=read)).values()


def render(folders: Sequence[Path], trend: Path | None = None) -> str:
    """The page as text, the same for the same files. Raises BadInput."""
    return _built(read_inputs(folders), trend, False)[0]


def _built(inputs: Inputs, trend: Path | None, split: bool) -> tuple[str, dict[str, str], Explored]:
    """The page, the files that it needs beside it, and all of the cases. Raises BadInput."""
    environment = template_environment()
    explored = explore(inputs.cases, inputs.lines)
    with ThreadPoolExecutor(1) as beside:
        asked = beside.submit(snippets.ask, explored, inputs.lines)
        failing = sections.failing_cases(environment.get_template("case.html.j2"), inputs.failures, inputs.lines)
        html = render_page(inputs, environment, explorer.sections(environment, explored, failing, inputs.lines), trend)
        snippets.add_snippets(explored, inputs.lines, asked.result())
    html, packed = explorer.with_data(html, explored, split)
    if packed.split:
        return *explorer.outside(html, packed), explored
    return html, {}, explored


def render_page(inputs: Inputs, environment: jinja2.Environment, cases: CasesShown, trend: Path | None = None) -> str:
    """The page with these sections about cases. Raises BadInput."""
    lines = inputs.lines
    common = sections.common(lines)
    overview = matrix.matrix(inputs, common_solved([line.arm for line in lines]) if common else set())
    script = "\n".join(asset(each).strip() for each in SCRIPTS)
    return environment.get_template("comparison.html.j2").render(
        runs=inputs.runs,
        titles=titles(inputs),
        scouting=inputs.scouting,
        lines=lines,
        subjects=inputs.subjects,
        summaries=[metrics.summary(line.arm) for line in lines],
        verdict=verdict(inputs),
        matrix=overview,
        common=common,
        pareto=pareto(inputs, overview),
        times=times(inputs),
        heat=heat.heat_map(inputs),
        checked=check_lines([line.arm for line in lines]),
        efforts={run.info.effort for run in inputs.runs},
        decoded_any=any(run.info.decode for run in inputs.runs),
        scaling=decodes.scaling(inputs),
        gains=decodes.gains(inputs),
        applied=kernels.applied(inputs),
        lived=lives.sessions(inputs.folders),
        live_heads=lives.HEADS,
        against=comparing.against(inputs, trend),
        told=comparing.told(inputs),
        most_counts=comparing.COUNTS,
        signs=forest.SIGNS,
        trend=bool(trend),
        commands=commands(inputs),
        cases=cases,
        settings=[sections.settings(run) for run in inputs.runs],
        boxes=method.boxes(inputs),
        definitions=method.definitions(inputs),
        citation=method.citation(inputs),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        stylesheet=Markup("\n".join(asset(each).strip() for each in STYLES)),
    )


def titles(inputs: Inputs) -> list[str]:
    """What was run, for the page's title."""
    found = [run.info.run for run in inputs.runs]
    return found or [each.decoding.setup.run for each in inputs.decoded] or [path.name for path, _ in inputs.kernels]


def commands(inputs: Inputs) -> dict[str, str]:
    """What would measure what is missing."""
    versions = {each.backend: {one.version for one in inputs.subjects if one.backend == each.backend} for each in inputs.subjects}
    named = (each.backend if len(versions[each.backend]) < 2 else f"{each.backend}=={each.version}" for each in inputs.subjects)
    backends = shlex.quote(",".join(dict.fromkeys(named)) or "A,B")
    verbs = {each: f"grammarbench {each} --backends {backends} --out DIR" for each in ("run", "measure", "decode", "kernels")}
    return verbs | {"jumps": f"grammarbench decode --strategies stepwise,jump_forward --backends {backends} --out DIR"}
