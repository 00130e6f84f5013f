"""How the figures change with the size of the vocabulary, by backend; for a run with several vocabularies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from harness.measure.statistics import geometric_mean, has_tail, observed_quantile
from harness.outcomes.summary import ArmSummary, common_solved, walk_times
from harness.report.figures import plots
from harness.report.page.chart import Chart
from harness.report.page.content import Content
from harness.report.page.inputs import Inputs
from harness.report.page.lines import RunSeen, labels
from harness.report.page.section import Section, Values
from harness.text import duration

FEWEST = 3
"""With fewer vocabularies there is no curve to see."""


def values(page: Content) -> Values | None:
    """Returns the charts of each run with several vocabularies; None where there is no such run."""
    drawn = [
        scaled for run in page.inputs.runs if (scaled := scaling(page.inputs, run, len(page.inputs.runs)))
    ]
    return {"runs": drawn} if drawn else None


SECTION = Section("sizes", "Vocabulary size", 47, values, "figures")


@dataclass(frozen=True)
class Sized:
    """The charts of one run over the sizes of its vocabularies."""

    title: str
    about: str
    backends: tuple[plots.Curve, ...]
    charts: tuple[Chart, ...]


@dataclass(frozen=True)
class Scaled:
    """One figure of an arm that may change with the vocabulary."""

    name: str
    title: str
    y_label: str
    of: Callable[[ArmSummary], float | None]
    say: Callable[[float], str]
    share: float | None = None
    """The share at or below it of the later fills; None where it is no percentile of them."""
    is_time: bool = True
    on_common: bool = True
    """Is it taken on the cases alone that the backend solves with each vocabulary?"""

    def text(self, arm: ArmSummary, value: float) -> str:
        """Returns the arm's value as text, with a mark where fewer than ten values lie beyond a
        percentile."""
        few = self.share is not None and not has_tail(self.share, len(_later(arm)))
        return self.say(value) + "~" * few


def _mean(values: list[int]) -> float | None:
    """Returns the geometric mean: the cases are the same ones with each vocabulary, and a median would leap
    where half of them are quick and half are slow."""
    return geometric_mean(np.maximum(values, 1)) if values else None


def _failed(arm: ArmSummary) -> float | None:
    return float(arm.counts().failed) if arm.cases else None


def _compile(arm: ArmSummary) -> float | None:
    return _mean([case.compile_ns for case in arm.cases.values() if case.compile_ns is not None])


def _first_mask(arm: ArmSummary) -> float | None:
    return _mean([case.first_fill_ns for case in arm.cases.values() if case.first_fill_ns is not None])


def _later(arm: ArmSummary) -> NDArray[np.int64]:
    """Returns the nanoseconds of every fill but the first of each walk; none where too few cases have
    times."""
    times = walk_times(arm, arm.cases.values()) if arm.timed.is_enough else []
    return np.concatenate([np.empty(0, np.int64), *(one[1:, 0] for one in times)])


def _fills(arm: ArmSummary, share: float) -> float | None:
    fills = _later(arm)
    return observed_quantile(fills, share) if len(fills) else None


def _memory(arm: ArmSummary) -> float | None:
    return None if arm.peak_rss_bytes is None else arm.peak_rss_bytes / 2**20


FIGURES = (
    Scaled("failed", "Cases that fail", "cases", _failed, "{:.0f}".format,
           is_time=False, on_common=False),
    Scaled("compile", "Compile, mean of the cases", "compile", _compile, duration),
    Scaled("first", "First fill, mean of the cases", "first fill", _first_mask, duration),
    Scaled("later", "Later masks, median", "mask", lambda arm: _fills(arm, 0.5), duration, 0.5),
    Scaled("tail", "Later masks, p99", "mask, p99", lambda arm: _fills(arm, 0.99), duration, 0.99),
    Scaled("memory", "Peak resident memory", "MiB", _memory, "{:,.0f} MiB".format,
           is_time=False, on_common=False),
)  # fmt: skip
"""What is drawn, in the order of the page."""


def scaling(inputs: Inputs, run: RunSeen, runs: int) -> Sized | None:
    """Returns the charts of the run; None if it has too few vocabularies."""
    sizes = run.info.vocabulary_sizes
    if len(sizes) < FEWEST or not all(sizes.values()):
        return None
    names = sorted(sizes, key=lambda name: (sizes[name], name))
    by_backend: dict[tuple[str, str, str], dict[str, ArmSummary]] = {}
    for line in inputs.lines:
        if line.run is run and not line.is_control:
            by_backend.setdefault(line.arm.key[:3], {})[line.arm.vocabulary] = line.arm
    backends = list(by_backend.values())
    titles = labels([(run, next(iter(arms.values()))) for arms in backends])
    common = [common_solved(list(arms.values())) for arms in backends]
    whole = [{name: arms[name] for name in names if name in arms} for arms in backends]
    shared = [
        {name: arm.only(keys) for name, arm in arms.items() if arm.solves_any}
        for arms, keys in zip(whole, common, strict=True)
    ]
    charts = []
    for figure in FIGURES:
        curves, rows = [], []
        for place, chosen in enumerate(shared if figure.on_common else whole):
            found = {name: figure.of(arm) for name, arm in chosen.items()}
            points = [(sizes[name], value) for name, value in found.items() if value is not None]
            curves.append(plots.Curve(place, titles[place], tuple(points)))
            texts = {
                name: figure.text(chosen[name], value) for name, value in found.items() if value is not None
            }
            rows.append((titles[place], *(texts.get(name, "–") for name in names)))
        about = f"{figure.title} over the size of the vocabulary: one line per backend"
        drawing = f"sizes-{figure.name}{run.place}"
        svg = plots.over_sizes(drawing, about, figure.y_label, curves, figure.say, logarithmic=figure.is_time)
        heads = ("Backend", *(f"{name} ({sizes[name]:,})" for name in names))
        charts.append(Chart(figure.title, Markup(svg), "", heads, tuple(rows)))
    solved = ", ".join(f"{title} {len(keys)}" for title, keys in zip(titles, common, strict=True))
    note = (
        f"From {min(sizes.values()):,} to {max(sizes.values()):,} ids. Times are of the walks, each instance "
        f"once, on the cases that a backend solves with every vocabulary ({solved}); nothing was warmed up "
        "before; means are geometric, and ~ marks a percentile beyond which fewer than ten values lie. "
        "Vocabularies differ in more than their size: in their tokens."
    )
    keys = tuple(plots.Curve(place, title, ()) for place, title in enumerate(titles))
    return Sized(run.info.run if runs > 1 else "", note, keys, tuple(charts))
