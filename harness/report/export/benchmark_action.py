"""github-action-benchmark's custom JSON: two files, because its tool is told for all series of a file which
way is better."""

from __future__ import annotations

import json

from harness.outcomes.result import Result
from harness.text import counted, one_line

MOST = 40
"""Series; more charts than that nobody looks at."""

OF = {"us": "time", "ratio": "fork"}
"""What a figure comes from, by its unit (`Figure.values`); the others come from cases."""


def files(result: Result) -> dict[str, str]:
    """Returns two files: the headline figures of which less is better, and those of which more is."""
    return {
        "benchmark-smaller-is-better.json": _series(result, "lower"),
        "benchmark-bigger-is-better.json": _series(result, "higher"),
    }


def _series(result: Result, better: str) -> str:
    entries = []
    for figure in [figure for figure in result.figures if figure.headline and figure.better == better][:MOST]:
        entry = {
            "name": one_line(f"{figure.arm} / {figure.family} / {figure.title}", 300, spelled=True),
            "unit": figure.unit,
            "value": figure.value,
        }
        if figure.low is not None and figure.high is not None:
            entry["range"] = f"{_number(figure.low)} to {_number(figure.high)}"
        if figure.values is not None:
            come_from = f"from {counted(figure.values, OF.get(figure.unit, 'case'))}"
            entry["extra"] = "; ".join(filter(None, [come_from, figure.why, result.part]))
        entries.append(entry)
    return json.dumps(entries, indent=1, allow_nan=False) + "\n"


def _number(value: float) -> str:
    """Returns the number with four digits that count, and without an exponent where people read it."""
    if value == int(value) and abs(value) < 1e12:
        return f"{int(value):,}"
    return f"{value:,.4g}" if abs(value) < 1e5 else f"{value:,.0f}"
