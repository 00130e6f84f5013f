"""CSV: one file of how many cases came to what, one of figures, one of failing cases."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from harness.outcomes.case_state import FAILED
from harness.outcomes.metrics import METRICS
from harness.outcomes.result import Result
from harness.text import one_line, spreadsheet

COUNTED = (
    "cases", "judged", "works", "failed", *(state.value for state in FAILED), "refused", "not_judged",
    "not_measured",
)  # fmt: skip
"""How many cases came to what, in the order of every table; the failed ones by what goes wrong."""

COUNTED_TITLES = {name: METRICS[name].title.lower() for name in COUNTED}
"""How tables for people head these columns."""


def files(result: Result) -> dict[str, str]:
    figures = [
        (
            figure.arm,
            figure.family,
            figure.name,
            figure.unit,
            figure.better,
            figure.value,
            figure.low,
            figure.high,
            figure.values,
            result.sample,
        )
        for figure in result.figures
    ]
    failing = [
        (
            failing_case.arm,
            failing_case.suite,
            failing_case.case,
            failing_case.case_id,
            " ".join(failing_case.faults),
            " ".join(failing_case.documented),
            failing_case.outcome,
            failing_case.state,
            failing_case.said,
            failing_case.repro,
            result.sample,
        )
        for failing_case in result.failing
    ]
    counts = [
        (
            count.arm,
            count.suite,
            *(getattr(count, name) for name in COUNTED),
            count.conformance,
            result.sample,
        )
        for count in result.counts
    ]
    return {
        "cases.csv": _table(("arm", "suite", *COUNTED, "conformance", "sample"), counts),
        "figures.csv": _table(
            ("arm", "family", "name", "unit", "better", "value", "low", "high", "values", "sample"), figures
        ),
        "failing.csv": _table(
            (
                "arm",
                "suite",
                "case",
                "case_id",
                "faults",
                "documented",
                "outcome",
                "state",
                "said",
                "repro",
                "sample",
            ),
            failing,
        ),
    }


def _table(header: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    for line in lines:
        writer.writerow(
            [
                ""
                if cell is None
                else spreadsheet(one_line(cell, 2000, spelled=True))
                if isinstance(cell, str)
                else cell
                for cell in line
            ]
        )
    return file.getvalue()
