"""Histories whose truth is known, written by the history's own writer."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.outcomes.history.conformance import EVERY, FOLDER, FORM, outcomes_file
from harness.outcomes.history.files import append
from harness.outcomes.history.measurements import HISTORY, Entry, new_file, safe_name, times_file


def time_of(number: int) -> str:
    """Noon of the `number`-th day."""
    return f"2026-{7 + number // 28:02}-{number % 28 + 1:02}T12:00:00+00:00"


def entry(number: int, ratio: float, **fields: Any) -> Entry:
    """Returns what one run says of one arm."""
    defaults: dict[str, Any] = {
        "time": time_of(number), "run": f"run{number:03}", "backend": "alpha", "version": "1.0",
        "options": "", "metric": "fill",
        "family": "speed", "cases": 12, "nanoseconds": 9000.0 * ratio, "reference": "ref==1", "ratio": ratio,
        "low": ratio * 0.985,
        "high": ratio * 1.015, "forks": 5, "proven": True,
    }  # fmt: skip
    return Entry(**(defaults | fields))


def noise(ratios: Iterable[float], seed: int, share: float = 0.01) -> list[float]:
    """Returns each times one plus a normal deviate."""
    random_ = random.Random(seed)
    return [ratio * (1 + random_.gauss(0, share)) for ratio in ratios]


def write_entries(
    history: Path, entries: Sequence[Entry], hardware: str = "h" * 12, workload: str = "w" * 12
) -> None:
    """One file per run."""
    runs: dict[tuple[str, str], list[Entry]] = {}
    for one in entries:
        runs.setdefault((one.time, one.run), []).append(one)
    for (time, run), every in runs.items():
        header = {"history": HISTORY, "hardware": hardware, "workload": workload}
        where = history / safe_name(hardware) / safe_name(workload)
        append([new_file(where, time, run, [header, *map(asdict, every)])])


def write_conformance(
    history: Path, number: int, features: Mapping[str, Mapping[str, int]], **fields: Any
) -> None:
    """One conformance run of one arm; the counts of all cases are those of the feature EVERY."""
    arm = {
        "backend": "alpha",
        "version": "1.0",
        "options": "",
        "vocabulary": "tiny",
        "suite": "keywords",
        "work": "x",
    } | fields
    time, run = arm.pop("time", time_of(number)), arm.pop("run", f"run{number:03}-{arm['backend'][:9]}")
    header = {"form": FORM, "run": run, "started": time, "harness": "0"}
    lines = [header, arm | {"features": {EVERY: {"works": 1}, **features}}]
    append([new_file(history / FOLDER, time, run, lines)])


def add_times(history: Path, run: Path) -> Path:
    """Adds the measurement of a run to the history; returns the file."""
    file = times_file(history, run)
    append([file])
    return file.path


def add_outcomes(history: Path, run: Path) -> None:
    """Adds to the history how many cases work in a run."""
    append([outcomes_file(history, run)])
