"""Runs → what the template shows → one HTML file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from harness import metrics
from harness.errors import BadInput
from harness.report import charts, sections
from harness.report.checked import check_lines
from harness.report.failing import KINDS, Failures
from harness.report.sections import Line, RunSeen
from harness.row import OURS, VERDICTS, Row
from harness.seen import ArmSeen, fold
from harness.store import read_end, read_info, read_rows, read_samples
from harness.table import number, visible


def write_report(run_dirs: list[Path], out: Path) -> Path:
    """Writes the page about the runs to `out`, a file if it ends in `.html`, else a folder; returns the file. Raises BadInput."""
    html = render(run_dirs)
    path = out if out.suffix == ".html" else out / "report.html"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(html.encode("utf-8", "replace"))
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror}; give another --out") from error
    return path


def render(folders: Sequence[Path]) -> str:
    """The page as text, the same for the same files. Raises BadInput."""
    if not folders:
        raise BadInput("a report needs at least one run")
    failures = Failures()
    runs: list[RunSeen] = []
    seen: list[tuple[RunSeen, ArmSeen]] = []
    for place, folder in enumerate(folders):
        info = read_info(folder)
        arms = fold(_noting(folder, failures, place), read_samples(folder), info)
        run = RunSeen(place, folder, info, read_end(folder), sum(arm.rows for arm in arms))
        runs.append(run)
        seen += [(run, arm) for arm in arms]
    named = zip(seen, sections.labels(seen), strict=True)
    lines = [Line(position, label, run, arm) for position, ((run, arm), label) in enumerate(named)]
    environment = template_environment()
    script = asset("page.js").strip()
    return environment.get_template("comparison.html.j2").render(
        runs=runs,
        lines=lines,
        summaries=[metrics.summary(line.arm) for line in lines],
        common=sections.common(lines),
        matrices=sections.matrices(lines),
        checked=check_lines([line.arm for line in lines]),
        efforts={run.info.effort for run in runs},
        figures=sections.figures(lines),
        failing=sections.failing_cases(environment.get_template("case.html.j2"), failures, lines),
        settings=[sections.settings(run) for run in runs],
        definitions=[*metrics.DISTRIBUTIONS.values(), *metrics.METRICS.values()],
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        stylesheet=Markup(asset("style.css").strip()),
    )


def _noting(folder: Path, failures: Failures, place: int) -> Iterator[Row]:
    for row in read_rows(folder):
        failures.add(row, place)
        yield row


def asset(name: str) -> str:
    """A file of the content folder."""
    return (files("harness.reports") / name).read_text("utf-8")


def template_environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(asset),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": lambda value, unit: "–" if value is None else number(value, unit),
        "duration": lambda us: "–" if us is None else charts.duration(us * 1e3),
    }
    environment.globals |= {
        "glyphs": sections.GLYPHS,
        "kinds": KINDS,
        "verdicts": VERDICTS,
        "ours": OURS,
        "metrics": metrics.METRICS,
        "distributions": metrics.DISTRIBUTIONS,
        "levels": ("avg", *metrics.QUANTILES),
        "few": metrics.few,
    }
    return environment


def _shown(value: Any) -> Any:
    """What every expression of the template goes through: strings from outside may hold anything."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
