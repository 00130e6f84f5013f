"""The Pareto chart: how often an arm is right against how long its masks take."""

from __future__ import annotations

from markupsafe import Markup

from harness.report.figures import pareto_chart
from harness.report.figures.estimates import is_better
from harness.report.page.chart import Chart
from harness.report.page.content import Content
from harness.report.page.matrix import Matrix
from harness.report.page.matrix_cells import is_candidate
from harness.report.page.section import Section, Values
from harness.text import duration

TITLE = "Conformance against mask time"


def values(page: Content) -> Values | None:
    """Returns the chart; None where there is nothing to draw."""
    chart = pareto(page.matrix)
    return {"pareto": chart} if chart.svg else None


SECTION = Section("times", "Pareto", 20, values, "figures")


def pareto(matrix: Matrix) -> Chart:
    """Returns the chart of warm times where any arm was measured, else of those of the walks; arms that solve
    nothing, or have no time, and controls are in its table only."""
    places = {column.key: place for place, column in enumerate(matrix.columns)}
    warm = "warm_p99" in places and any(
        cells[places["warm_p99"]].value is not None for _, cells in matrix.rows
    )
    key = "warm_p99" if warm else "walked_p99"
    bubbles, rows = [], []
    for subject, cells in matrix.rows:
        right, ns, size = (cells[places[column]] for column in ("conformance", key, "compile_p50"))
        if right.value is not None and ns.value is not None and is_candidate(subject):
            bubbles.append(
                pareto_chart.Bubble(subject.position, subject.label, ns.value, right.value, size.value)
            )
        rows.append((subject.label, ns.text, right.text, size.text))
    edge = _on_frontier(matrix, key, {bubble.position for bubble in bubbles})
    heads = (
        "Arm",
        f"{'warm mask' if warm else 'mask, walked once'} p99",
        "conformance",
        "compile p50",
        "on the frontier",
    )
    table = tuple((*row, on_edge) for row, on_edge in zip(rows, edge, strict=True))
    label = (
        "mask time p99, warm (measured)" if warm else ("mask time p99, walked once (cold; not measured warm)")
    )
    caption = (
        f"Left and up is better. Right: {label}. Up: judged cases that work. The disc grows with the median "
        "compile time. "
        "Dashed: the frontier of these values. The table says which arms are on it when intervals are taken "
        "into account (no other arm is proven both faster and more often right); where an interval is "
        "missing, an arm is not ranked."
    )
    most = max((bubble.ns for bubble in bubbles), default=0.0)
    about = f"{TITLE}: one bubble per arm, the slowest at {duration(most)}"
    return Chart(TITLE, Markup(pareto_chart.pareto(about, bubbles, label)), caption, heads, table)


def _on_frontier(matrix: Matrix, key: str, drawn: set[int]) -> list[str]:
    """Returns for each row `yes` if nobody is proven better in both figures, `no` if somebody is, `not
    ranked` if an interval is missing, and `–` for a control."""
    pairs = [
        (time, right) if subject.position in drawn else (None, None)
        for (subject, _), time, right in zip(
            matrix.rows, matrix.estimates[key], matrix.estimates["conformance"], strict=True
        )
    ]
    words = []
    for (time, right), (subject, _) in zip(pairs, matrix.rows, strict=True):
        if subject.line is not None and subject.line.is_control:
            words.append("–")
            continue
        if time is None or right is None:
            words.append("no figure")
            continue
        others = [(one, other) for one, other in pairs if one is not None and other is not None]
        if any(is_better(one, time) and is_better(other, right, lower=False) for one, other in others):
            words.append("no")
            continue
        # Who has both better values, but no intervals, may beat this one.
        ahead = [
            (one, other) for one, other in others if one.value < time.value and other.value > right.value
        ]
        known = all(estimate.can_rank for pair in ((time, right), *ahead) for estimate in pair)
        words.append("yes" if known else "not ranked")
    return words
