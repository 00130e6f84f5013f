"""The times of walks, measurements and decodings as lines of one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np

from harness.measure.protocol import MeasuredArm
from harness.measure.record import read_measurement
from harness.measure.statistics import shown_quantiles
from harness.outcomes.controls import solved_by_all
from harness.outcomes.summary import ArmSummary, Nanoseconds, walk_times
from harness.report.figures.estimates import quantile
from harness.report.frames.rows import COUNT, TEXT, TIME, WHOSE, Line, Seen
from harness.report.tables.time import SHARES, time_frame
from harness.serve.decode.figures import Decoded
from harness.serve.decode.record import Decoding

TIMES = {
    **WHOSE, "source": TEXT, "figure": TEXT, "cases": TEXT, "of": TEXT, "workload": TEXT, "strategy": TEXT,
    "batch": COUNT, "rate": "Float64", "knobs": TEXT, "n": COUNT, **{f"{level}_us": TIME for level in SHARES},
    "p50_low_us": TIME, "p50_high_us": TIME, "max_us": TIME,
}  # fmt: skip

REQUESTS = {
    "ttft": "TTFT", "ttft_from_row": "TTFT from row", "tpot": "TPOT", "itl": "ITL", "e2e": "end to end",
}  # fmt: skip
"""The times of a decoding's requests that the table has, and how they are called."""


def of_walks(arms: Sequence[ArmSummary], seen: Seen) -> Iterator[Line]:
    """Yields the times that were taken while walking, of every arm of a run."""
    common = solved_by_all([(arm, arm.key in seen.controls) for arm in arms])
    for arm in arms:
        yield from of_arm(arm, seen, common)


def of_arm(arm: ArmSummary, seen: Seen, common: Set[tuple[str, str]]) -> Iterator[Line]:
    """Yields the times that were taken while walking, each call made once after a fresh compile.

    They are of the `common` cases, which every arm but the controls solves, and of all that the arm compiles
    (`own`); only the first may be compared between arms. The times of masks are missing where most cases have
    no samples.
    """
    for name, keys in (("common", common), ("own", set(arm.cases))):
        compiled = [case for key, case in arm.cases.items() if key in keys and case.declared]
        walks = [list(walk_times(arm, [case])) for case in compiled] if arm.timed.is_enough else []
        figures = {
            "compile per case": [_one(case.compile_ns) for case in compiled],
            "first fill per case": [_one(case.first_fill_ns) for case in compiled],
            "ttfm per case": [_one(case.ttfm_ns) for case in compiled],
            "fill per token, walked once": [_all([walk[:, 0] for walk in of_case]) for of_case in walks],
            "accept per token, walked once": [_all([walk[:, 1] for walk in of_case]) for of_case in walks],
        }
        for figure, groups in figures.items():
            if sum(map(len, groups)):
                yield {
                    **seen.whose(*arm.key),
                    "source": "walked",
                    "figure": figure,
                    "cases": name,
                    "of": f"{len(compiled)}/{len(arm.cases)}",
                    **_percentiles(groups),
                }


def _one(ns: int | None) -> Nanoseconds:
    return np.array([] if ns is None else [ns], np.int64)


def _all(times: Sequence[Nanoseconds]) -> Nanoseconds:
    return np.concatenate([np.zeros(0, np.int64), *times])


def _percentiles(groups: Sequence[Nanoseconds]) -> Line:
    """Returns the percentiles of all values, and the interval of the median by whole groups."""
    values = np.concatenate(list(groups))
    shown = {f"{name}_us": ns / 1e3 for name, ns in shown_quantiles(values, SHARES).items() if ns is not None}
    middle = quantile(groups, 0.5)
    if middle is not None and middle.bounds is not None:
        low, high = middle.bounds
        shown |= {"p50_low_us": low / 1e3, "p50_high_us": high / 1e3}
    return {"n": len(values), **shown, "max_us": int(values.max()) / 1e3}


def of_measurement(folder: Path, run: str) -> Iterator[Line]:
    """Yields the times of a measurement, as `grammarbench table RUN times` has them. Raises BadInput."""
    measurement = read_measurement(folder).measurement
    arms = {arm.name: arm for arm in measurement.arms}
    for line in time_frame(folder).to_dict("records"):
        if line["unit"] != "ns" or not line["n"]:
            continue
        values = {
            f"{name}_us": None if line[name] is None else line[name] / 1e3
            for name in (*SHARES, "p50_low", "p50_high", "max")
        }
        what: dict[str, Any] = {name: line[name] for name in ("figure", "cases", "of", "n")}
        yield {
            **whose(run, arms[line["arm"]], measurement.vocabulary),
            "source": "measured",
            **what,
            **values,
        }


def of_decoding(decoding: Decoding, run: str) -> Iterator[Line]:
    """Yields the times of the requests of a decoding, warm runs only, per setting and arm; the strategy
    `none` is without a grammar."""
    decoded, setup = Decoded(decoding), decoding.setup
    arms = {arm.name: arm for arm in setup.arms}
    for cell in decoded.cells:
        if cell.arm not in arms:
            continue
        values = decoded.values(cell)
        for name, title in REQUESTS.items():
            levels = values[name]
            if isinstance(levels, dict) and levels["n"]:
                percentiles = {
                    f"{level}_us": value / 1e3
                    for level, value in levels.items()
                    if level in SHARES and value is not None
                }
                yield {
                    **whose(run, arms[cell.arm], setup.vocabulary),
                    "source": "decoded",
                    "figure": title,
                    "workload": cell.setting.workload,
                    "strategy": cell.strategy,
                    "batch": cell.setting.batch,
                    "rate": cell.setting.rate,
                    "knobs": " ".join(cell.setting.unusual),
                    "n": int(levels["n"]),
                    **percentiles,
                }


def whose(run: str, arm: MeasuredArm, vocabulary: str) -> Line:
    """Returns the columns of WHOSE for an arm of a measurement or a decoding."""
    who = {"backend": arm.backend, "version": arm.version, "options": arm.options, "vocabulary": vocabulary}
    return {"run": run, "arm": arm.name, **who}
