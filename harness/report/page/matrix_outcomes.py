"""The columns of the summary matrix that come from rows without their times: what was right, and memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.outcomes.metrics import METRICS
from harness.report.figures.estimates import Estimate, conformance, share
from harness.report.page.cells import GLYPHS
from harness.report.page.inputs import Subject
from harness.report.page.lines import Line
from harness.report.page.matrix_cells import ColumnFigures, MatrixCell, MatrixColumn
from harness.report.values import number, percents
from harness.rows.row import OURS

WRONG = {
    "walks_under_constrained": "under_constrained",
    "walks_over_constrained": "over_constrained",
    "walks_declined": "declined",
    "walks_broken": "broken",
}
"""The metrics that have a column, and the verdict on walks that each counts, which is the column's key."""

JUDGED_WALKS = ("pass", "over_constrained", "under_constrained")
"""The verdicts of walks whose output was judged, rightly or wrongly: one that was declined or broke ended
before that."""


def outcomes(lines: Sequence[Line | None]) -> list[ColumnFigures]:
    """Returns the conformance, and the shares of walks that ended wrongly, of each line."""

    def show(subject: Subject, estimate: Estimate) -> MatrixCell:
        assert subject.line is not None
        counts = subject.line.arm.counts()
        rest = (
            (counts.not_judged, "not judged"),
            (counts.refused_unjudged, "refused, with nothing to judge them by"),
            (counts.not_measured, "not measured"),
        )
        details = (
            f"{counts.works:,} of {counts.judged:,} judged",
            *(f"{count:,} {what}" for count, what in rest if count),
            _shares(estimate),
        )
        return MatrixCell(number(estimate.value, "share"), details, estimate.value)

    column = MatrixColumn("conformance", "conformance", METRICS["conformance"].definition, False)
    estimates = [None if line is None else conformance(line.arm.counts()) for line in lines]
    made = [ColumnFigures(column, estimates, show)]
    for name, verdict in WRONG.items():
        title = f"{GLYPHS[verdict]} {METRICS[name].title.lower()}"
        made.append(_walks(lines, name, MatrixColumn(verdict, title, METRICS[name].definition, True)))
    return made


def _walks(lines: Sequence[Line | None], name: str, column: MatrixColumn) -> ColumnFigures:
    by_verdict = column.key in JUDGED_WALKS
    walks = "judged walks" if by_verdict else "walks"

    def show(subject: Subject, estimate: Estimate) -> MatrixCell:
        assert subject.line is not None
        return MatrixCell(
            f"{METRICS[name].value(subject.line.arm):,}",
            (f"{number(estimate.value, 'share')} of {walks}", _shares(estimate)),
            estimate.value,
        )

    def of(line: Line | None) -> Estimate | None:
        if line is None:
            return None
        counted = sum(
            count
            for kind, count in line.arm.outcomes.items()
            if (kind in JUDGED_WALKS if by_verdict else kind not in OURS)
        )
        # The walks of one case hang together: as many are independent as there are cases.
        cases = sum(not by_verdict or case.rows.judged for case in line.arm.cases.values())
        return share(float(METRICS[name].value(line.arm) or 0), counted, min(cases, counted))

    return ColumnFigures(column, [of(line) for line in lines], show)


def _shares(estimate: Estimate) -> str:
    bounds = estimate.bounds
    return "" if bounds is None else f"{'–'.join(percents(bounds))} %"


def memory(lines: Sequence[Line | None]) -> ColumnFigures:
    """Returns the peak memory of each line."""

    def show(subject: Subject, estimate: Estimate) -> MatrixCell:
        return MatrixCell(number(estimate.value, "bytes"), (), estimate.value)

    peaks = [
        None if line is None or line.arm.peak_rss_bytes is None else float(line.arm.peak_rss_bytes)
        for line in lines
    ]
    column = MatrixColumn("rss", "peak RSS", METRICS["peak_rss"].definition, True)
    # A maximum has no interval, so nobody is the best.
    estimates = [None if peak is None else Estimate(peak, -math.inf, math.inf) for peak in peaks]
    return ColumnFigures(column, estimates, show)
