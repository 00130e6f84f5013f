"""A measurement in all its figures: per arm every kind of time with percentiles, on the cases that all arms
solve and on its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from harness.measure.figures import Figures
from harness.measure.record import Trace, read_measurement
from harness.measure.statistics import quantile_interval, shown_quantiles

SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}

COLUMNS = ["arm", "cases", "figure", "of", "unit", "n", *SHARES, "p50_low", "p50_high", "max"]

Values = NDArray[np.float64]


def time_frame(run: Path) -> pd.DataFrame:
    """Returns one line per arm, set of cases and figure.

    `cases`: `common` (those that every arm solves) or `own`, with their number in `of`, as `solved/all`.

    A value is the median over forks and rounds of a case's compile, time to first mask or new object, or of a
    token's cold fill, and of a token's warm fill or accept the minimum over the forks in which every arm was
    measured. Percentiles are values that are there, and none between two; one beyond which fewer than ten
    values lie is left out.
    `p50_low` and `p50_high` are the 99 % interval of the median, by whole cases; both are left out below
    eight cases, of which even the smallest and the largest miss the median too often. Raises BadInput.
    """
    figures = Figures(read_measurement(run))
    lines = [line for arm in figures.arms for line in _of_arm(figures, arm)]
    return pd.DataFrame(lines, columns=COLUMNS, dtype=object)


def _of_arm(figures: Figures, arm: str) -> Iterator[dict[str, Any]]:
    everything = len(figures.measurement.traces)
    own = figures.own_set(arm)
    for name, traces in (("common", figures.common_set), ("own", own)):
        who = {"arm": arm, "cases": name, "of": f"{len(traces)}/{everything}"}
        if traces:
            yield from ({**who, **line} for line in _of_set(figures, arm, traces))
    yield from (
        {"arm": arm, "cases": "own", "of": f"{len(own)}/{everything}", **line} for line in _once(figures, arm)
    )


def _of_set(figures: Figures, arm: str, traces: Sequence[Trace]) -> Iterator[dict[str, Any]]:
    """Yields the figures of an arm: per case what is per case, per token what is per token."""
    for metric in ("compile", "ttfm", "matcher_new"):
        values = [
            value for trace in traces if (value := figures.median(arm, metric, trace.case_id)) is not None
        ]
        yield _line(f"{metric} per case", "ns", [np.array([value]) for value in values])
    steps = figures.structural(arm, traces)
    yield _line("fill per token, warm", "ns", [step[:, 0] for step in steps])
    yield _line("accept per token, warm", "ns", [step[:, 1] for step in steps])
    yield _line("fill per token, cold", "ns", figures.cold(arm, traces))
    for low, high in ((0, 1), (1, 8), (8, 32), (32, 128), (128, 1 << 30)):
        here = [step[low:high, 0] for step in steps if len(step) > low]
        if here:
            yield _line(f"fill at tokens {low} to {min(high, max(map(len, steps))) - 1}, warm", "ns", here)
    jitter = figures.jitter(arm, traces)
    yield _line(
        "slowest pass over the fastest (noise, or a rare slow path)",
        "ratio",
        [np.array([value]) for value in jitter],
    )


def _once(figures: Figures, arm: str) -> Iterator[dict[str, Any]]:
    """Yields what was measured in the first fork: mechanisms, batches, caches, threads, sizes."""
    recorded = figures.recorded
    mine = [record for record in recorded.others if record.get("arm") == arm and "error" not in record]
    mechanisms: dict[str, list[Values]] = {}
    for record in mine:
        values = recorded.of(record["figures"]).astype(float) if "figures" in record else np.zeros(0)
        if record["kind"] == "mechanisms":
            start = 0
            for name in ("rollback", "copy", "jump_forward"):
                if record[name]:
                    mechanisms.setdefault(f"{name} per token", []).append(
                        values[start : start + record[name]]
                    )
                start += record[name]
        elif record["kind"] == "batch" and len(values):
            threads = "serial" if record["threads"] == 1 else f"{record['threads']} threads"
            mechanisms.setdefault(f"batch of {record['size']}, {threads}", []).append(values)
        elif record["kind"] == "variant" and len(values):
            name = "compile, cached" if record["option"] == "cache" else f"compile, {record['value']} threads"
            mechanisms.setdefault(name, []).append(values)
    for name, groups in mechanisms.items():
        yield _line(name, "ns", groups)
    for name in ("compile_peak_bytes", "serialized_bytes"):
        sizes = [
            np.array([float(record[name])])
            for record in mine
            if record["kind"] == "counts" and record.get(name) is not None
        ]
        if sizes:
            yield _line(name, "bytes", sizes)


def _line(figure: str, unit: str, groups: Sequence[Values]) -> dict[str, Any]:
    """Returns percentiles over all values; the interval by groups, where they are enough for one."""
    if not groups:
        return {"figure": figure, "unit": unit, "n": 0}
    values = np.concatenate(list(groups))
    # Times stay as they are: where they are shown they are rounded once, everywhere to the same digits.
    kept = _round if unit == "ratio" else float
    shown: dict[str, float | None] = {
        name: None if value is None else kept(value)
        for name, value in shown_quantiles(values, SHARES).items()
    }
    bounds = quantile_interval(groups, SHARES["p50"])
    shown["p50_low"], shown["p50_high"] = map(kept, bounds) if bounds else (None, None)
    return {"figure": figure, "unit": unit, "n": len(values), **shown, "max": kept(values.max())}


def _round(value: float) -> float:
    return float(f"{value:.4g}")
