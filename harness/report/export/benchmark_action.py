"""github-action-benchmark's custom JSON: two files, because its tool is told for all series of a file which
way is better."""

from __future__ import annotations

import json

from harness.outcomes.result import Result
from harness.report.export.text import number
from harness.text import one_line

MOST = 40
"""Series; more charts than that nobody looks at."""


def files(result: Result) -> dict[str, str]:
    return {
        "benchmark-smaller-is-better.json": _series(result, "lower"),
        "benchmark-bigger-is-better.json": _series(result, "higher"),
    }


def _series(result: Result, better: str) -> str:
    found = []
    for each in [figure for figure in result.figures if figure.headline and figure.better == better][:MOST]:
        entry = {
            "name": one_line(f"{each.arm} / {each.family} / {each.title}", 300, spelled=True),
            "unit": each.unit,
            "value": each.value,
        }
        if each.low is not None and each.high is not None:
            entry["range"] = f"{number(each.low)} to {number(each.high)}"
        if each.values is not None:
            entry["extra"] = f"from {each.values}{f'; {result.sample}' if result.sample else ''}"
        found.append(entry)
    return json.dumps(found, indent=1, allow_nan=False) + "\n"
