"""The table of times in docs/results.md: percentiles of a measurement, by arm."""

from __future__ import annotations

import csv
from pathlib import Path

from harness.rows.store import read_rows
from harness.text import duration

TIMES = {
    "compile": "compile per case",
    "first mask": "ttfm per case",
    "mask, warm": "fill per token, warm",
    "mask, cold": "fill per token, cold",
    "accept": "accept per token, warm",
}
"""The columns of a table of times, and what `grammarbench table RUN times` calls them."""


def times(run: Path, _: str) -> str:
    """Returns percentiles (50, 90, 99) of the times of a measurement, by arm: over the cases that every arm
    solves, and over all that the arm solves, of those with a valid document. `run` holds what `grammarbench
    table RUN times` said, as CSV, and the rows of the first walk: the CSV leaves out of its denominators the
    cases that no arm compiled."""
    documents = len({row.case_id for row in read_rows(run) if row.instance is not None and row.valid})
    with open(run / "times.csv", encoding="utf-8", newline="") as file:
        said = {(line["cases"], line["arm"], line["figure"]): line for line in csv.DictReader(file)}
    lines = [f"| arm | over | {' | '.join(TIMES)} |", "| --- | --- " + "| ---: " * len(TIMES) + "|"]
    for cases, over in (("common", "what all solve"), ("own", "what it solves")):
        for arm in dict.fromkeys(arm for _, arm, _ in said):
            found = [said.get((cases, arm, figure)) for figure in TIMES.values()]
            if found[0] is not None:
                cells = ["" if line is None else percentiles(line) for line in found]
                solved = found[0]["of"].partition("/")[0]
                lines.append(f"| {arm} | {over}, {solved}/{documents} | {' | '.join(cells)} |")
    return "\n".join(lines)


def percentiles(line: dict[str, str]) -> str:
    """Returns the percentiles of a line that are there: too few values have no 99th."""
    return ", ".join(duration(float(line[name])) for name in ("p50", "p90", "p99") if line[name])
