"""CSV: one file of figures, one of failing cases."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from harness.export.text import cut, spreadsheet
from harness.result import Result


def files(result: Result) -> dict[str, str]:
    figures = [
        (each.arm, each.family, each.name, each.unit, each.better, each.value, each.low, each.high, each.values) for each in result.figures
    ]
    failing = [
        (each.arm, each.suite, each.case, each.case_id, " ".join(each.faults), each.declined, each.said, each.repro)
        for each in result.failing
    ]
    return {
        "figures.csv": _table(("arm", "family", "name", "unit", "better", "value", "low", "high", "values"), figures),
        "failing.csv": _table(("arm", "suite", "case", "case_id", "faults", "declined", "said", "repro"), failing),
    }


def _table(header: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    for line in lines:
        writer.writerow(["" if each is None else spreadsheet(cut(each, 2000)) if isinstance(each, str) else each for each in line])
    return file.getvalue()
