"""Batch scaling: latency and overhead over batch sizes, and what the mask kernels take."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from harness.measure.statistics import interval
from harness.report.figures import plots
from harness.report.page.chart import Chart
from harness.report.page.content import Content
from harness.report.page.decodes import about, combined, upper, usual, values_of
from harness.report.page.inputs import Inputs, Subject
from harness.report.page.kernels import applied
from harness.report.page.section import Section, Values
from harness.serve.decode import right
from harness.serve.decode.figures import DecodeCell, Decoded
from harness.serve.requests import latency
from harness.text import duration
from harness.walk.loop.outcome import Completed


def values(page: Content) -> Values | None:
    """Returns the charts of every decode record and of every record of kernels; None where there is neither.
    Raises BadInput."""
    drawn, kernels = scaling(page.inputs), applied(page.inputs)
    return {"scaling": drawn, "applied": kernels} if drawn or kernels else None


SECTION = Section("batches", "Batches", 70, values, "serving")


@dataclass(frozen=True)
class Scaling:
    """The charts of one decode record."""

    title: str
    about: str
    counts: tuple[str, ...]
    """For each arm how many of its requests are solved, and how many ran without their grammar."""
    charts: tuple[Chart, ...]


def scaling(inputs: Inputs) -> list[Scaling]:
    """Returns TTFT, TPOT and overhead over batch sizes, one group of charts per record."""
    return [_scaling(inputs, number, decoded) for number, decoded in enumerate(inputs.decoded)]


def _scaling(inputs: Inputs, number: int, decoded: Decoded) -> Scaling:
    arms = [(subject, arm) for subject in inputs.subjects for one, arm in subject.decoded if one is decoded]
    sets = [{cell.setting.workload for cell in usual(decoded, arm)} for _, arm in arms]
    workloads = sorted(set.intersection(*sets)) if sets else []
    charts = []
    for name, title, figure in (("ttft", "TTFT", latency.ttft), ("tpot", "TPOT", latency.tpot)):
        runs = [_run(usual(decoded, arm), workloads, figure, subject) for subject, arm in arms]
        plain = [cell for _, arm in arms for cell in usual(decoded, arm, "none")]
        runs.append(_run(plain, workloads, figure, None))
        svg = plots.over_batches(
            f"{name}{number}", f"{title} over batch size: one line per arm", title, runs, times=True
        )
        charts.append(_chart(f"{title} over batch size", svg, "", runs, duration))
    over = []
    for subject, arm in arms:
        points = []
        for batch in sorted({cell.setting.batch for cell in usual(decoded, arm)}):
            paired = [decoded.over_none(cell) for cell in usual(decoded, arm) if cell.setting.batch == batch]
            pooled = combined(estimate.x for estimate in paired if estimate is not None)
            if pooled is not None:
                points.append((batch, pooled.ratio - 1, pooled.low - 1, pooled.high - 1))
        over.append(plots.Ribbon(subject.position, subject.label, tuple(points)))
    svg = plots.over_batches(
        f"over{number}",
        "TPOT over that without a grammar: one line per arm",
        "TPOT overhead",
        over,
        times=False,
    )
    caption = "Requests of equal length, each paired with itself without a grammar, in the same round."
    charts.append(_chart("Overhead over no grammar", svg, caption, over, lambda value: f"{value:+.1%}"))
    note = (
        f"{about(decoded)}. Geometric mean over the workloads {', '.join(workloads) or '(none)'} of the "
        "median request. "
        "Ribbons: intervals at 99 %, drawn where they fit into the chart (more forks narrow them); the "
        "tables have all."
    )
    sizes = {cell.setting.batch for _, arm in arms for cell in usual(decoded, arm)}
    if len(sizes) == 1:
        note += (
            f" Only batch {sizes.pop()}: how it scales was not measured (grammarbench decode --batch 1,8,32)."
        )
    counts = tuple(_counts(decoded, subject.label, arm) for subject, arm in arms)
    return Scaling(decoded.decoding.setup.run, note, counts, tuple(charts))


def _counts(decoded: Decoded, label: str, arm: str) -> str:
    """Returns how the arm's requests came out, all warm runs with a grammar together."""
    requests = [
        request
        for cell in decoded.cells
        if cell.arm == arm and cell.role == "constrained"
        for request in cell.judged
    ]
    solved, fell_back = right.solved(requests), right.fallback(requests)
    without = f"; {fell_back} ran without their grammar: no time here is of these" if fell_back.part else ""
    return f"{label}: {solved} requests solved{without}"


def _chart(
    title: str, svg: str, caption: str, runs: Sequence[plots.Ribbon], say: Callable[[float], str]
) -> Chart:
    sizes = sorted({point[0] for run in runs for point in run.points})
    rows = []
    for run in runs:
        cells = {
            batch: f"{say(value)} [{say(low)}, {upper(high, say)}]" for batch, value, low, high in run.points
        }
        rows.append((run.label, *(cells.get(batch, "–") for batch in sizes)))
    return Chart(title, Markup(svg), caption, ("Arm", *(f"batch {size}" for size in sizes)), tuple(rows))


def _run(
    cells: Sequence[DecodeCell],
    workloads: Sequence[str],
    figure: Callable[[Completed], float | None],
    subject: Subject | None,
) -> plots.Ribbon:
    """Returns, for each batch, the mean over the workloads of the logarithm of the median request, with a
    ribbon over the forks."""
    points = []
    for batch in sorted({cell.setting.batch for cell in cells}):
        by_fork: dict[int, dict[str, list[float]]] = {}
        for cell in cells:
            if cell.setting.batch == batch:
                for run in cell.warm:
                    values = values_of([request.completed for request in run.completed], figure)
                    by_fork.setdefault(run.fork, {}).setdefault(cell.setting.workload, []).extend(values)
        x = [
            float(np.mean([math.log(float(np.median(of[workload]))) for workload in workloads]))
            for _, of in sorted(by_fork.items())
            if all(of.get(workload) and np.median(of[workload]) > 0 for workload in workloads) and workloads
        ]
        if x:
            estimate = interval(x)
            points.append((batch, estimate.ratio, estimate.low, estimate.high))
    return plots.Ribbon(
        None if subject is None else subject.position,
        "no grammar" if subject is None else subject.label,
        tuple(points),
    )
