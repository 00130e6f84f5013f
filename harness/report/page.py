"""Runs → what the template shows → one HTML file."""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from harness import metrics
from harness.errors import BadInput
from harness.metrics import ArmSeen
from harness.report import charts, curves, failing
from harness.row import End, Row, RunInfo
from harness.store import read_end, read_info, read_rows, read_samples
from harness.table import number, percent, printable

CASES_BUDGET = 1_600_000
"""Bytes of the page that failing cases may fill; with it the page stays under 2 MB."""
ROWS = 60
TAGS = 25
REASONS = 40
LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)

GLYPHS = {
    "pass": "✓", "over_constrained": "▼", "under_constrained": "▲", "declined": "⊘", "broken": "✖", "unjudged": "?", "harness_error": "⚑",
    "skipped": "–",
}  # fmt: skip


@dataclass(frozen=True)
class RunSeen:
    """One of the runs on the page."""

    folder: Path
    info: RunInfo
    end: End | None
    rows: int


@dataclass(frozen=True)
class Line:
    """One arm on the page: the same name, colour, dash and marker everywhere."""

    position: int
    label: str
    run: RunSeen
    arm: ArmSeen

    @property
    def colour(self) -> int:
        return charts.style(self.position)[0]

    @property
    def dash(self) -> str:
        return ",".join(map(str, charts.style(self.position)[1]))

    @property
    def marker(self) -> str:
        return charts.MARKERS[charts.style(self.position)[2]]


def write_report(runs: list[Path], out: Path) -> Path:
    """Writes the page about the runs to `out`, a file if it ends in `.html`, else a folder; returns the file. Raises BadInput."""
    html = render(runs)
    path = out if out.suffix == ".html" else out / "report.html"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(html.encode("utf-8", "replace"))
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror}; give another --out") from error
    return path


def render(folders: Sequence[Path]) -> str:
    """The page as text. Raises BadInput."""
    failures = failing.Failures()
    runs: list[RunSeen] = []
    seen: list[tuple[RunSeen, ArmSeen]] = []
    for place, folder in enumerate(folders):
        info = read_info(folder)
        positions: dict[tuple[str, str, str, str], int] = {}
        arms = metrics.fold(_noting(folder, failures, positions, len(seen), place, info), read_samples(folder), info)
        run = RunSeen(folder, info, read_end(folder), sum(arm.outcomes.total() for arm in arms))
        runs.append(run)
        seen += [(run, arm) for arm in arms]
    lines = [Line(position, label, run, arm) for position, ((run, arm), label) in enumerate(zip(seen, labels(seen), strict=True))]
    environment = _environment(lines)
    page = environment.get_template("comparison.html.j2")
    script = (files("harness.reports") / "page.js").read_text("utf-8").strip()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return page.render(
        script=Markup(script),  # noqa: S704 - our own file
        script_hash=digest,
        stylesheet=Markup((files("harness.reports") / "style.css").read_text("utf-8")),  # noqa: S704
        runs=runs,
        lines=lines,
        summaries=[metrics.summary(line.arm) for line in lines],
        **_common(lines),
        matrices=_matrices(lines),
        figures=_figures(lines),
        **_failing(environment, failures, lines, list(folders)),
        metrics=metrics.METRICS,
        distributions=metrics.DISTRIBUTIONS,
        quantiles=("avg", *metrics.QUANTILES),
        few=metrics.few,
        settings=[list(_flat(run.info.machine, "")) for run in runs],
    )


def _noting(
    folder: Path, failures: failing.Failures, positions: dict[tuple[str, str, str, str], int], offset: int, place: int, info: RunInfo
) -> Iterator[Row]:
    """The run's rows; on their way past, `failures` sees them under the positions that `fold` will give their arms."""
    for each in info.arms:
        for vocabulary in info.vocabularies:
            positions.setdefault((each.backend, each.version, each.options, vocabulary), offset + len(positions))
    for row in read_rows(folder):
        key = row.backend, row.backend_version, row.options, row.vocabulary
        failures.add(row, positions.setdefault(key, offset + len(positions)), place)
        yield row


def labels(seen: Sequence[tuple[RunSeen, ArmSeen]]) -> list[str]:
    """A short name for each arm; version, vocabulary and run are added only where they tell two arms apart."""
    names = [arm.name for _, arm in seen]
    for qualify in (lambda run, arm: arm.version, lambda run, arm: arm.vocabulary, lambda run, arm: run.info.run, lambda run, arm: str(run.folder)):
        parts = [qualify(run, arm) for run, arm in seen]
        variants = {name: {part for other, part in zip(names, parts, strict=True) if other == name} for name in names}
        names = [f"{name} · {part}" if len(variants[name]) > 1 else name for name, part in zip(names, parts, strict=True)]
    return [printable(name[:80]) for name in names]
