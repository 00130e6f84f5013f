"""Jump-forward and the other strategies: what each saves and gains."""

from __future__ import annotations

import math

from markupsafe import Markup

from harness.report.figures import plots
from harness.report.page.chart import Chart
from harness.report.page.content import Content
from harness.report.page.decodes import about, upper
from harness.report.page.inputs import Inputs
from harness.report.page.section import Section, Values
from harness.report.values import percent
from harness.serve.decode.figures import DecodeCell, Decoded
from harness.text import duration

BARS, LINES = 36, 200
"""Most bars of the chart, and most lines of the table."""


def values(page: Content) -> Values | None:
    """Returns the chart of every decode record in which a strategy besides stepwise was used; None where
    there is none."""
    gained = gains(page.inputs)
    return {"gains": gained} if gained else None


SECTION = Section("jumps", "Jump-forward", 80, values, "serving")


def gains(inputs: Inputs) -> list[tuple[str, Chart]]:
    """Returns what every strategy but stepwise saves and gains, on beside off: a chart for each record, with
    what the record is of."""
    charts = []
    for number, decoded in enumerate(inputs.decoded):
        positions = {
            arm: subject.position
            for subject in inputs.subjects
            for one, arm in subject.decoded
            if one is decoded
        }
        gained = [
            gained
            for cell in decoded.cells
            if cell.arm in positions and (gained := _gained(decoded, cell, positions[cell.arm])) is not None
        ]
        bars, rows = [bar for bar, _ in gained if bar is not None], [row for _, row in gained]
        svg = plots.gains(f"gains{number}", bars[:BARS])
        more = f" The chart shows the first {BARS} of {len(bars)}." if len(bars) > BARS else ""
        chart = Chart(
            "Jump-forward and other strategies",
            Markup(svg),
            CAPTION + more,
            HEADS,
            tuple(rows[:LINES]),
            max(0, len(rows) - LINES),
        )
        charts.append((f"{decoded.decoding.setup.run}: {about(decoded)}", chart))
    return [(title, chart) for title, chart in charts if chart.rows]


CAPTION = (
    "On against off in the same rounds. Left: emitted tokens of all answered requests that needed no forward "
    "pass of their own. Right, of the requests with equal texts alone: stepwise over strategy of the time in "
    "the batch, with its interval; the hollow mark is the speed-up if only passes cost."
)
HEADS = ("Load", "Arm", "Tokens saved", "Speed-up", "Ceiling", "Equal texts", "TPOT off → on", "E2E off → on")


def _gained(
    decoded: Decoded, cell: DecodeCell, position: int
) -> tuple[plots.Bar | None, tuple[str, ...]] | None:
    """Returns the bar and the line of a setting held against stepwise; None if it is stepwise itself, or was
    not run beside it."""
    gain = decoded.speed_up(cell) if cell.role == "constrained" and cell.strategy != "stepwise" else None
    off = next((other for other in decoded.cells if decoded.key_of(other) == decoded.stepwise(cell)), None)
    if gain is None or off is None:
        return None
    on_values, off_values = decoded.values(cell), decoded.values(off)
    saved = on_values["saved_share"]
    ratio = gain.ratio.interval
    label = f"{cell.setting.workload} ×{cell.setting.batch} {cell.strategy.replace('_', '-')}"
    bar = None
    if isinstance(saved, float):
        low, high = (ratio.low, ratio.high) if ratio else (0.0, math.inf)
        middle = ratio.ratio if ratio else None
        bar = plots.Bar(position, f"{label} {cell.arm}", saved, middle, low, high, gain.ceiling)
    speed = (
        f"{ratio.ratio:.2f} [{ratio.low:.2f}, {upper(ratio.high, '{:.2f}'.format)}]"
        if ratio
        else "no equal texts"
    )
    ceiling = f"{gain.ceiling:.2f}" if gain.ceiling else "–"
    equal = f"{gain.ratio.requests} of {gain.ratio.requests + gain.ratio.left_out}"
    times = [_pair(off_values[name], on_values[name]) for name in ("tpot", "e2e")]
    share = percent(saved) if isinstance(saved, float) else "–"
    return bar, (label, cell.arm, share, speed, ceiling, equal, *times)


def _pair(off: object, on: object) -> str:
    def say(levels: object) -> str:
        value = levels.get("p50") if isinstance(levels, dict) else None
        return "–" if value is None else duration(value)

    return f"{say(off)} → {say(on)}"
