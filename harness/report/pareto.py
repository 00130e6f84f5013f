"""The Pareto chart: how often an arm is right against how long its masks take."""

from __future__ import annotations

from markupsafe import Markup

from harness.report import plots
from harness.report.charts import duration
from harness.report.decodes import Chart
from harness.report.inputs import Inputs
from harness.report.matrix import Matrix

TITLE = "Conformance against mask time"


def pareto(inputs: Inputs, matrix: Matrix) -> Chart:
    """Warm times where any arm was measured, else those of the walks; arms that solve nothing, or have no time, are named in the table."""
    places = {each.key: place for place, each in enumerate(matrix.columns)}
    warm = "warm_p99" in places and any(cells[places["warm_p99"]].value is not None for _, cells in matrix.rows)
    key = "warm_p99" if warm else "walked_p99"
    bubbles, rows = [], []
    for subject, cells in matrix.rows:
        right, ns, size = (cells[places[each]] for each in ("conformance", key, "compile_p50"))
        hopeless = subject.line is not None and not subject.line.arm.solves_any
        if right.value is not None and ns.value is not None and not hopeless:
            bubbles.append(plots.Bubble(subject.position, subject.label, ns.value, right.value, size.value))
        rows.append((subject.label, ns.text, right.text, size.text))
    edge = {each.position for each in plots.frontier(bubbles)}
    on_edge = {subject.label for subject, _ in matrix.rows if subject.position in edge}
    heads = ("Arm", f"{'warm mask' if warm else 'mask, walked once'} p99", "conformance", "compile p50", "on the frontier")
    table = tuple((*row, "yes" if row[0] in on_edge else "no") for row in rows)
    label = "mask time p99, warm (measured)" if warm else "mask time p99, walked once (cold; not measured warm)"
    caption = (
        f"Left and up is better. Right: {label}. Up: cases right on all instances. The disc grows with the median compile time. "
        "Dashed: the frontier, on which no other arm is both faster and more often right."
    )
    most = max((each.ns for each in bubbles), default=0.0)
    about = f"{TITLE}: one bubble per arm, the slowest at {duration(most)}"
    return Chart(TITLE, Markup(plots.pareto("pareto", about, bubbles, label)), caption, heads, table)
