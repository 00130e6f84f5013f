"""What the decode records say: overhead and latency over batch sizes, and what the strategies gain."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from harness.decode import latency
from harness.decode.figures import Cell, Decoded
from harness.loop.outcome import Completed
from harness.measure.statistics import Interval, interval
from harness.report import plots
from harness.report.charts import duration
from harness.report.estimates import Estimate
from harness.report.inputs import Inputs, Subject
from harness.table import percent

BARS, LINES = 36, 200
"""Of the chart of gains and of a table, at most."""


def combined(found: Iterable[Sequence[float]]) -> Interval | None:
    """The interval of the mean over several loads, fork by fork; None of nothing, or where the loads have different forks."""
    rows = [list(each) for each in found if each]
    if not rows or len({len(each) for each in rows}) > 1:
        return None
    return interval(np.mean(rows, axis=0).tolist())


def usual(decoded: Decoded, arm: str, role: str = "constrained") -> list[Cell]:
    """Stepwise, all requests there at the start, every knob as usual: what the figures over batch sizes are of."""
    return [
        each
        for each in decoded.cells
        if each.arm == arm and each.role == role and each.setting.rate is None
        and each.setting.strategy == "stepwise" and (role == "none" or not each.setting.unusual)
    ]  # fmt: skip


def batches(inputs: Inputs) -> list[int]:
    """Every batch size at which something was decoded."""
    return sorted({each.setting.batch for one in inputs.decoded for arm in one.decoding.setup.arms for each in usual(one, arm.name)})


def chosen(sizes: Sequence[int], count: int = 3) -> list[int]:
    """The smallest, the largest, and the one in between."""
    if len(sizes) <= count:
        return list(sizes)
    return [sizes[0], sizes[len(sizes) // 2], sizes[-1]]


def overhead(subject: Subject, batch: int) -> Estimate | None:
    """What TPOT takes more than without a grammar, as a share, over all workloads; of the first record that has it."""
    for decoded, arm in subject.decoded:
        paired = [decoded.over_none(each) for each in usual(decoded, arm) if each.setting.batch == batch]
        found = combined(each.x for each in paired if each is not None)
        if found is not None:
            return _less_one(found)
    return None


def speed_up(subject: Subject, strategy: str = "jump_forward") -> Estimate | None:
    """Stepwise over the strategy, over all its loads."""
    for decoded, arm in subject.decoded:
        cells = [each for each in decoded.cells if each.arm == arm and each.role == "constrained" and each.strategy == strategy]
        gained = [decoded.speed_up(each) for each in cells if not each.setting.unusual]
        found = combined(each.found.x for each in gained if each is not None)
        if found is not None:
            return Estimate(found.ratio, *_bounds(found))
    return None


def _bounds(found: Interval) -> tuple[float | None, float | None]:
    return (found.low, found.high) if math.isfinite(found.high) else (None, None)


def _less_one(found: Interval) -> Estimate:
    low, high = _bounds(found)
    return Estimate(found.ratio - 1, None if low is None else low - 1, None if high is None else high - 1)


def tpot_guide(inputs: Inputs) -> tuple[float, str] | None:
    """One TPOT without a grammar at batch 1 (the smallest there is), and whose; None where nothing was decoded."""
    for decoded in inputs.decoded:
        cells = [each for arm in decoded.decoding.setup.arms for each in usual(decoded, arm.name, "none")]
        least = min((each.setting.batch for each in cells), default=0)
        values = [value for each in cells if each.setting.batch == least for value in _values(each.completed, latency.tpot)]
        if values:
            return float(np.median(values)), f"one TPOT of {decoded.decoding.setup.model[:24]}, batch {least}"
    return None


def _values(completed: Iterable[Completed], figure: Callable[[Completed], float | None]) -> list[float]:
    return [value for each in latency.answered(completed) if (value := figure(each)) is not None]


# -------------------------------------------------------------------------------------------------------- batch scaling


@dataclass(frozen=True)
class Chart:
    """A chart and the same as a table."""

    title: str
    svg: Markup
    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left_off: int = 0


@dataclass(frozen=True)
class Scaling:
    """Of one record."""

    title: str
    about: str
    charts: tuple[Chart, ...]


def scaling(inputs: Inputs) -> list[Scaling]:
    """TTFT, TPOT and overhead over batch sizes, one group of charts per record."""
    return [_scaling(inputs, number, each) for number, each in enumerate(inputs.decoded)]


def about(decoded: Decoded) -> str:
    """Which model, and where."""
    setup, model = decoded.decoding.setup, decoded.decoding.model
    shape = " (a shape: random weights)" if model.get("kind") == "shape" else ""
    where = model.get("device_name", model.get("device", setup.device))
    often = f"{_many(setup.forks, 'fork')} of {_many(setup.rounds, 'round')}"
    return f"{setup.model[:60]}{shape} on {where}; vocabulary {setup.vocabulary[:60]}; {often}"


def _many(count: int, what: str) -> str:
    return f"{count} {what}" + "s" * (count != 1)


def _scaling(inputs: Inputs, number: int, decoded: Decoded) -> Scaling:
    arms = [(each, arm) for each in inputs.subjects for one, arm in each.decoded if one is decoded]
    sets = [{each.setting.workload for each in usual(decoded, arm)} for _, arm in arms]
    workloads = sorted(set.intersection(*sets)) if sets else []
    charts = []
    for name, title, figure in (("ttft", "TTFT", latency.ttft), ("tpot", "TPOT", latency.tpot)):
        runs = [_run(usual(decoded, arm), workloads, figure, subject) for subject, arm in arms]
        plain = [each for _, arm in arms for each in usual(decoded, arm, "none")]
        runs.append(_run(plain, workloads, figure, None))
        svg = plots.over_batches(f"{name}{number}", f"{title} over batch size: one line per arm", title, runs, times=True)
        charts.append(_chart(f"{title} over batch size", svg, "", runs, duration))
    over = []
    for subject, arm in arms:
        points = []
        for batch in sorted({each.setting.batch for each in usual(decoded, arm)}):
            paired = [decoded.over_none(each) for each in usual(decoded, arm) if each.setting.batch == batch]
            found = combined(each.x for each in paired if each is not None)
            if found is not None:
                points.append((batch, found.ratio - 1, found.low - 1, found.high - 1))
        over.append(plots.Run(subject.position, subject.label, tuple(points)))
    svg = plots.over_batches(f"over{number}", "TPOT over that without a grammar: one line per arm", "TPOT overhead", over, times=False)
    caption = "Requests of equal length, each paired with itself without a grammar, in the same round."
    charts.append(_chart("Overhead over no grammar", svg, caption, over, lambda value: f"{value:+.1%}"))
    said = (
        f"{about(decoded)}. Geometric mean over the workloads {', '.join(workloads) or '(none)'} of the median request. "
        "Ribbons: intervals at 99 %, drawn where they fit into the chart (more forks narrow them); the tables have all."
    )
    sizes = {each.setting.batch for _, arm in arms for each in usual(decoded, arm)}
    if len(sizes) == 1:
        said += f" Only batch {sizes.pop()}: how it scales was not measured (grammarbench decode --batch 1,8,32)."
    return Scaling(decoded.decoding.setup.run, said, tuple(charts))


def _chart(title: str, svg: str, caption: str, runs: Sequence[plots.Run], say: Callable[[float], str]) -> Chart:
    sizes = sorted({point[0] for each in runs for point in each.points})
    rows = []
    for each in runs:
        said = {batch: f"{say(value)} [{say(low)}, {_upper(high, say)}]" for batch, value, low, high in each.points}
        rows.append((each.label, *(said.get(batch, "–") for batch in sizes)))
    return Chart(title, Markup(svg), caption, ("Arm", *(f"batch {each}" for each in sizes)), tuple(rows))


def _upper(value: float, say: Callable[[float], str]) -> str:
    return say(value) if math.isfinite(value) else "∞"


def _run(
    cells: Sequence[Cell], workloads: Sequence[str], figure: Callable[[Completed], float | None], subject: Subject | None
) -> plots.Run:
    """Per batch and fork the mean over the workloads of the logarithm of the median request; a ribbon over the forks."""
    points = []
    for batch in sorted({each.setting.batch for each in cells}):
        by_fork: dict[int, dict[str, list[float]]] = {}
        for cell in cells:
            if cell.setting.batch == batch:
                for run in cell.warm:
                    values = _values([each.completed for each in run.completed], figure)
                    by_fork.setdefault(run.fork, {}).setdefault(cell.setting.workload, []).extend(values)
        x = [
            float(np.mean([math.log(float(np.median(of[each]))) for each in workloads]))
            for _, of in sorted(by_fork.items())
            if all(of.get(each) for each in workloads) and workloads
        ]
        if x:
            found = interval(x)
            points.append((batch, found.ratio, found.low, found.high))
    return plots.Run(None if subject is None else subject.position, "no grammar" if subject is None else subject.label, tuple(points))


# --------------------------------------------------------------------------------------------------------- jump-forward


def gains(inputs: Inputs) -> list[tuple[str, Chart]]:
    """Of every strategy but stepwise: what it saves and gains, on beside off. Per record, with what it is of."""
    found = []
    for number, decoded in enumerate(inputs.decoded):
        positions = {arm: each.position for each in inputs.subjects for one, arm in each.decoded if one is decoded}
        bars, rows = [], []
        for cell in decoded.cells:
            gain = decoded.speed_up(cell) if cell.role == "constrained" and cell.strategy != "stepwise" else None
            off = next((each for each in decoded.cells if decoded.key_of(each) == decoded.stepwise(cell)), None)
            if gain is None or off is None or cell.arm not in positions:
                continue
            on_values, off_values = decoded.values(cell), decoded.values(off)
            saved = on_values["saved_share"]
            ratio = gain.found.found
            label = f"{cell.setting.workload} ×{cell.setting.batch} {cell.strategy.replace('_', '-')}"
            if isinstance(saved, float):
                low, high = (ratio.low, ratio.high) if ratio else (0.0, math.inf)
                told = f"{label} {cell.arm}"
                bars.append(plots.Bar(positions[cell.arm], told, saved, ratio.ratio if ratio else None, low, high, gain.ceiling))
            speed = f"{ratio.ratio:.2f} [{ratio.low:.2f}, {_upper(ratio.high, '{:.2f}'.format)}]" if ratio else "no equal texts"
            ceiling = f"{gain.ceiling:.2f}" if gain.ceiling else "–"
            times = [_pair(off_values[name], on_values[name]) for name in ("tpot", "e2e")]
            rows.append((label, cell.arm, percent(saved) if isinstance(saved, float) else "–", speed, ceiling, *times))
        svg = plots.gains(f"gains{number}", "What each strategy saves and gains: bars and intervals", bars[:BARS])
        caption = (
            "On against off in the same rounds, of equal texts. Left: emitted tokens that needed no forward pass of their own. Right: "
            "stepwise over strategy of the time in the batch, with its interval; ◇ the speed-up if only passes cost."
        )
        caption += f" The chart shows the first {BARS} of {len(bars)}." if len(bars) > BARS else ""
        heads = ("Load", "Arm", "Tokens saved", "Speed-up", "Ceiling", "TPOT off → on", "E2E off → on")
        chart = Chart("Jump-forward and other strategies", Markup(svg), caption, heads, tuple(rows[:LINES]), max(0, len(rows) - LINES))
        found.append((f"{decoded.decoding.setup.run}: {about(decoded)}", chart))
    return [(title, chart) for title, chart in found if chart.rows]


def _pair(off: object, on: object) -> str:
    def say(levels: object) -> str:
        value = levels.get("p50") if isinstance(levels, dict) else None
        return "–" if value is None else duration(value)

    return f"{say(off)} → {say(on)}"
