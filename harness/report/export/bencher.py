"""Bencher Metric Format: benchmark, measure, value with its interval as bounds
(https://bencher.dev/bmf.json)."""

from __future__ import annotations

import json
from typing import Any

from harness.outcomes.result import Result
from harness.text import one_line

LONGEST_BENCHMARK, LONGEST_MEASURE = 1024, 64


def files(result: Result) -> dict[str, str]:
    """Returns `bencher.json`: every figure by its arm and family, then by its name."""
    benchmarks: dict[str, dict[str, Any]] = {}
    for figure in result.figures:
        measure: dict[str, float] = {"value": figure.value}
        if figure.low is not None and figure.high is not None:
            measure |= {"lower_value": figure.low, "upper_value": figure.high}
        benchmarks.setdefault(
            one_line(f"{figure.arm} / {figure.family}", LONGEST_BENCHMARK, spelled=True), {}
        )[one_line(figure.name, LONGEST_MEASURE, spelled=True)] = measure
    return {"bencher.json": json.dumps(benchmarks, indent=1, allow_nan=False) + "\n"}
