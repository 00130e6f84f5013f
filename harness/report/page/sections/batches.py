"""Batch scaling: latency and overhead over batch sizes, and what the mask kernels take."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from harness.measure.statistics import interval
from harness.report.figures import plots
from harness.report.page.chart import Chart
from harness.report.page.content import Content
from harness.report.page.decodes import about, overheads, shared_workloads, upper, usual, values_of
from harness.report.page.inputs import Inputs, Subject
from harness.report.page.kernels import applied
from harness.report.page.section import Section, Values
from harness.serve.decode import right
from harness.serve.decode.figures import DecodeCell, Decoded
from harness.serve.decode.show import median, number
from harness.serve.requests import latency
from harness.serve.requests.titles import say
from harness.text import duration
from harness.walk.loop.outcome import Completed


def values(page: Content) -> Values | None:
    """Returns the charts of every decode record and of every record of kernels; None where there is neither.
    Raises BadInput."""
    drawn, kernels = scaling(page.inputs), applied(page.inputs)
    if not (drawn or kernels):
        return None
    return {"scaling": drawn, "applied": kernels, "open_heads": OPEN}


SECTION = Section("batches", "Batches", 70, values, "serving")


NOT_DRAWN = (
    "There is no chart over batch sizes. It needs stepwise decoding with the default settings, and all "
    "requests present at the start."
)
OPEN = ("Load", "Arm", "Strategy", "TTFT", "TPOT", "E2E", "tok/s", "goodput/s")


@dataclass(frozen=True)
class Scaling:
    """The charts of one decode record."""

    title: str
    about: str
    counts: tuple[str, ...]
    """For each arm how many of its requests are solved, were cut at their limit, and ran without their
    grammar."""
    charts: tuple[Chart, ...]
    open_loads: tuple[tuple[str, ...], ...]
    """A line for each setting whose requests arrived at a rate, with a cell for each of OPEN."""
    objectives: str
    """The objectives of goodput that the decoding was asked with."""


FIGURES: tuple[tuple[str, str, Callable[[Completed], float | None]], ...] = (
    ("ttft", "TTFT", latency.ttft),
    ("first", "TTFT from row", latency.ttft_from_row),
    ("tpot", "TPOT", latency.tpot),
)
"""The figures drawn over batch sizes: a name for the file, the title, and the function. The second one is
drawn where requests queue."""


def queues(decoded: Decoded) -> str:
    """Returns at which batch sizes requests wait for a row, and what that does to TTFT; empty where none
    does."""
    cells = [cell for arm in decoded.decoding.setup.arms for cell in usual(decoded, arm.name)]
    loads = {cell.setting.batch: cell.setting.texts for cell in cells if cell.setting.queues}
    if not loads:
        return ""
    sizes = ", ".join(f"{texts} at batch {batch}" for batch, texts in sorted(loads.items()))
    return (
        f"All requests of a run are there at the start ({sizes}). Where they are more than the rows, the "
        "time of the requests before is in TTFT; TTFT from row is without the waits for row and grammar."
    )


def scaling(inputs: Inputs) -> list[Scaling]:
    """Returns TTFT, TPOT and overhead over batch sizes, one group of charts per record."""
    return [_scaling(inputs, number, decoded) for number, decoded in enumerate(inputs.decoded)]


def _scaling(inputs: Inputs, number: int, decoded: Decoded) -> Scaling:
    arms = [(subject, arm) for subject in inputs.subjects for one, arm in subject.decoded if one is decoded]
    workloads = shared_workloads({cell.setting.workload for cell in usual(decoded, arm)} for _, arm in arms)
    charts = []
    queued = queues(decoded)
    for name, title, figure in FIGURES:
        if name == "first" and not queued:
            continue
        runs = [_run(usual(decoded, arm), workloads, figure, subject) for subject, arm in arms]
        for subject, arm in arms:
            run = _run(usual(decoded, arm, "none"), workloads, figure, subject)
            label = f"no grammar, beside {subject.label}" if len(arms) > 1 else "no grammar"
            runs.append(replace(run, label=label, is_baseline=True))
        svg = plots.over_batches(
            f"{name}{number}", f"{title} over batch size: one line per arm", title, runs, times=True
        )
        charts.append(_chart(f"{title} over batch size", svg, "", runs, duration, lambda value: 99 * value))
    pools, paired = overheads(decoded)
    over = []
    for subject, arm in arms:
        points = []
        for batch, of_arm in pools.items():
            pooled = of_arm.get(arm)
            # An arm that lost a workload at this size is over others than the caption or the note says.
            if pooled is not None and [*pooled.workloads] == paired:
                points.append((batch, pooled.found.ratio - 1, pooled.found.low - 1, pooled.found.high - 1))
        over.append(plots.Ribbon(subject.position, subject.label, tuple(points)))
    svg = plots.over_batches(
        f"over{number}",
        "TPOT over that without a grammar: one line per arm",
        "TPOT overhead",
        over,
        times=False,
    )
    caption = "Requests of equal length, each paired with itself without a grammar, in the same round."
    if paired and paired != workloads:
        caption += f" Over the workloads {', '.join(paired)}."
    charts.append(
        _chart("Overhead over no grammar", svg, caption, over, lambda value: f"{value:+.1%}", lambda _: 98.0)
    )
    note = (
        f"{about(decoded)}. Geometric mean over the workloads {', '.join(workloads) or '(none)'} of the "
        "median request of all forks. "
        "Ribbons: intervals at 99 % over the forks, drawn where they fit into the chart (more forks "
        "narrow them); the tables have all. Open marks: the same requests without a grammar, beside the arm "
        "of that colour; arms run one after the other, and a machine drifts."
    )
    if queued:
        note += f" {queued}"
    counts = tuple(_counts(decoded, subject.label, arm) for subject, arm in arms)
    sizes = {cell.setting.batch for _, arm in arms for cell in usual(decoded, arm)}
    if not sizes:
        note, charts = f"{about(decoded)}. {NOT_DRAWN}", []
    if len(sizes) == 1:
        note += (
            f" Only batch {sizes.pop()}: how it scales was not measured (grammarbench decode --batch 1,8,32)."
        )
    setup, loads = decoded.decoding.setup, tuple(_open_loads(decoded))
    return Scaling(setup.run, note, counts, tuple(charts), loads, str(setup.objectives))


def _open_loads(decoded: Decoded) -> Iterator[tuple[str, ...]]:
    """Yields a line for each setting whose requests arrived at a rate; times are medians over these."""
    for cell in decoded.cells:
        setting = cell.setting
        if setting.rate is None:
            continue
        found = decoded.values(cell, decoded.decoding.setup.objectives)
        times = (say(name, median(found, name)) for name in ("ttft", "tpot", "e2e"))
        rates = (say(name, number(found, name)) for name in ("output_throughput", "goodput"))
        load = f"{setting.workload} ×{setting.batch}, {setting.rate:g}/s ({setting.arrivals})"
        how = " ".join([cell.strategy.replace("_", "-"), *(() if cell.role == "none" else setting.unusual)])
        yield load, cell.arm, how, *times, *rates


def _counts(decoded: Decoded, label: str, arm: str) -> str:
    """Returns how the arm's requests came out, all warm runs with a grammar together."""
    requests = [
        request
        for cell in decoded.cells
        if cell.arm == arm and cell.role == "constrained"
        for request in cell.judged
    ]
    solved, cut, fell_back = right.solved(requests), right.cut(requests), right.fallback(requests)
    short = f"; {cut} were cut at their limit" if cut.part else ""
    without = f"; {fell_back} ran without their grammar: no time here is of these" if fell_back.part else ""
    return f"{label}: {solved} requests solved{short}{without}"


def _log_median(values: Mapping[str, Sequence[float]], workloads: Sequence[str]) -> float | None:
    """Returns the mean over the workloads of the logarithm of the median request, which is an observed one;
    None where a workload has none, or one that no time can be."""
    medians = [latency.percentiles(values.get(workload, ()))["p50"] for workload in workloads]
    logs = [math.log(median) for median in medians if median is not None and median > 0]
    return float(np.mean(logs)) if logs and len(logs) == len(medians) else None


def _chart(
    title: str,
    svg: str,
    caption: str,
    runs: Sequence[plots.Ribbon],
    words: Callable[[float], str],
    most: Callable[[float], float],
) -> Chart:
    """Returns the chart; `most` is the bound for a value above which the bound is 99 times and more."""
    sizes = sorted({point[0] for run in runs for point in run.points})
    rows = []
    for run in runs:
        cells = {
            batch: f"{words(value)} [{words(low)}, {upper(high, words, most(value), '>99×')}]"
            for batch, value, low, high in run.points
        }
        rows.append((run.label, *(cells.get(batch, "–") for batch in sizes)))
    return Chart(title, Markup(svg), caption, ("Arm", *(f"batch {size}" for size in sizes)), tuple(rows))


def _run(
    cells: Sequence[DecodeCell],
    workloads: Sequence[str],
    figure: Callable[[Completed], float | None],
    subject: Subject,
) -> plots.Ribbon:
    """Returns, for each batch, the geometric mean over the workloads of the median request, with a ribbon of
    the forks' own means."""
    points = []
    for batch in sorted({cell.setting.batch for cell in cells}):
        pooled: dict[str, list[float]] = {}
        by_fork: dict[int, dict[str, list[float]]] = {}
        for cell in cells:
            if cell.setting.batch == batch:
                for run in cell.warm:
                    values = values_of([request.completed for request in run.completed], figure)
                    by_fork.setdefault(run.fork, {}).setdefault(cell.setting.workload, []).extend(values)
                    pooled.setdefault(cell.setting.workload, []).extend(values)
        middle = _log_median(pooled, workloads)
        x = [
            of_fork
            for _, of in sorted(by_fork.items())
            if (of_fork := _log_median(of, workloads)) is not None
        ]
        if middle is not None and x:
            estimate, value = interval(x), math.exp(middle)
            points.append((batch, value, min(estimate.low, value), max(estimate.high, value)))
    return plots.Ribbon(subject.position, subject.label, tuple(points))
