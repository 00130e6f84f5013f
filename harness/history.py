"""Measurements over time: append-only files by hardware and workload, ratios to the reference beside absolute values, and the alert rule.

    DIR/<hardware key>/<workload key>/<UTC>_<run>.jsonl.gz

Two figures are comparable if they lie in the same folder and are of the same reference. Merging two histories is copying files.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from harness.errors import BadInput
from harness.measure.estimate import METRICS, Figures, compare, is_proven
from harness.measure.record import read_measurement
from harness.measure.statistics import geometric_mean

HISTORY = 1
"""The form of the files."""

RECENT, EARLIER, STEP = 3, 8, 1.05
"""Alert when the smallest of the last three ratios exceeds the largest of the eight before them by five percent: a step that stays."""

State = Literal["alert", "better", "quiet", "no baseline"]


@dataclass(frozen=True)
class Entry:
    """One arm in one metric over one family of cases, in one run."""

    time: str
    run: str
    backend: str
    version: str
    options: str
    metric: str
    family: str
    cases: int
    nanoseconds: float
    """The geometric mean over the cases of the median over forks and rounds: for people."""
    reference: str
    """The arm that the ratio is to, with its version."""
    ratio: float
    low: float
    high: float
    forks: int
    proven: bool


@dataclass(frozen=True)
class Series:
    """The same figure over time, the ratios to the reference of its last entry."""

    backend: str
    options: str
    metric: str
    family: str
    entries: tuple[Entry, ...]
    state: State


def entries_of(folder: Path) -> tuple[str, str, list[Entry]]:
    """Hardware key, workload key and entries of a complete measurement. Raises BadInput."""
    recorded = read_measurement(folder)
    if recorded.end is None:
        raise BadInput(f"{folder}: this measurement has no end and goes into no history")
    figures, measurement = Figures(recorded), recorded.measurement
    comparisons = compare(figures)
    proven = is_proven(comparisons, figures)
    arms = {each.name: each for each in measurement.arms}
    reference = next(each for each in measurement.arms if each.role == "reference")
    ratios = {(each.head, each.metric, each.family): each for each in comparisons if each.base == reference.name}
    found = []
    for name in figures.arms:
        for metric in METRICS:
            for family, traces in figures.families.items():
                values = [value for each in traces if (value := figures.median(name, metric, each.case_id)) is not None]
                ratio = ratios.get((name, metric, family))
                if not values or (ratio is None and name != reference.name):
                    continue
                arm = arms[name]
                found.append(
                    Entry(
                        time=measurement.started,
                        run=measurement.run,
                        backend=arm.backend,
                        version=arm.version,
                        options=arm.options,
                        metric=metric,
                        family=family,
                        cases=len(values),
                        nanoseconds=geometric_mean(values),
                        reference=_full(reference.backend, reference.version, reference.options),
                        ratio=ratio.found.ratio if ratio else 1.0,
                        low=ratio.found.low if ratio else 1.0,
                        high=ratio.found.high if ratio else 1.0,
                        forks=len(figures.forks),
                        proven=proven,
                    )
                )
    return measurement.hardware, measurement.workload, found


def _full(backend: str, version: str, options: str) -> str:
    return f"{backend}=={version}" + (f":{options}" if options else "")


def append(history: Path, folder: Path) -> Path:
    """Add one run; the file that was written. Raises BadInput if it is there already."""
    hardware, workload, entries = entries_of(folder)
    if not entries:
        raise BadInput(f"{folder}: nothing was measured on two arms; there is nothing for a history")
    where = history / hardware / workload
    stamp = "".join(each for each in entries[0].time if each.isalnum())[:15]
    path = where / f"{stamp}_{entries[0].run}.jsonl.gz"
    if path.exists():
        raise BadInput(f"{path} is there already; a history is only appended to")
    where.mkdir(parents=True, exist_ok=True)
    lines = [{"history": HISTORY, "hardware": hardware, "workload": workload}, *map(asdict, entries)]
    draft = path.with_suffix(".new")
    with gzip.GzipFile(draft, "wb", mtime=0) as file:
        file.write(b"".join(json.dumps(line, allow_nan=True).encode() + b"\n" for line in lines))
    draft.replace(path)
    return path


def read(history: Path) -> dict[tuple[str, str], list[Entry]]:
    """By hardware and workload: all entries, the oldest first. Raises BadInput."""
    if not history.is_dir():
        raise BadInput(f"{history} is no folder; `grammarbench history {history} --add RUN` begins one")
    found: dict[tuple[str, str], list[Entry]] = {}
    for path in sorted(history.glob("*/*/*.jsonl.gz")):
        for entry in _entries(path):
            found.setdefault((path.parent.parent.name, path.parent.name), []).append(entry)
    return {key: sorted(entries, key=lambda each: (each.time, each.run)) for key, entries in found.items()}


def _entries(path: Path) -> Iterator[Entry]:
    try:
        with gzip.open(path, "rb") as file:
            header, *lines = [json.loads(line) for line in file]
        if header["history"] != HISTORY:
            raise BadInput(f"{path}: history of form {header['history']}, this version reads {HISTORY}")
        yield from (Entry(**line) for line in lines)
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path}: no file of a history ({error})") from error


def series(entries: Iterable[Entry]) -> list[Series]:
    """The entries of one hardware and workload by arm, metric and family, each with what the alert rule says of it."""
    entries = list(entries)
    groups: dict[tuple[str, str, str, str], list[Entry]] = {}
    for each in entries:
        groups.setdefault((each.backend, each.options, each.metric, each.family), []).append(each)
    found = []
    for key, group in groups.items():
        spliced = splice(group, entries)
        found.append(Series(*key, tuple(spliced), state([each.ratio for each in spliced if each.proven])))
    return found


def splice(group: Sequence[Entry], entries: Iterable[Entry]) -> list[Entry]:
    """The group's entries with all ratios to the last one's reference, back to where that cannot be known.

    Where the reference changed, a run that measured the old one against the new one has the factor.
    """
    last = group[-1]
    factors = {last.reference: 1.0}
    for each in entries:
        if each.reference == last.reference and (each.metric, each.family) == (last.metric, last.family):
            factors[_full(each.backend, each.version, each.options)] = each.ratio
    found = []
    for each in reversed(group):
        factor = factors.get(each.reference)
        if factor is None:
            break
        low, ratio, high = (value * factor for value in (each.low, each.ratio, each.high))
        found.append(replace(each, reference=last.reference, ratio=ratio, low=low, high=high))
    return found[::-1]


def state(ratios: Sequence[float]) -> State:
    """What the alert rule says of the last runs; without enough of them there is no baseline, and that is neutral."""
    values = [each for each in ratios if math.isfinite(each) and each > 0]
    if len(values) < RECENT + EARLIER:
        return "no baseline"
    recent, earlier = values[-RECENT:], values[-RECENT - EARLIER : -RECENT]
    if min(recent) > STEP * max(earlier):
        return "alert"
    return "better" if max(recent) * STEP < min(earlier) else "quiet"


def text(history: Path) -> str:
    """What there is, alerts first."""
    found = read(history)
    if not found:
        return f"{history}: no run yet; `grammarbench history {history} --add RUN`"
    order: dict[State, int] = {"alert": 0, "better": 1, "quiet": 2, "no baseline": 3}
    lines = []
    for (hardware, workload), entries in found.items():
        runs = len({each.run for each in entries})
        lines += ["", f"hardware {hardware}, workload {workload}: {runs} run(s)"]
        for each in sorted(series(entries), key=lambda one: order[one.state]):
            last = each.entries[-1]
            arm = each.backend + (f":{each.options}" if each.options else "")
            what = f"{arm} {last.version}  {each.metric} {each.family}"
            lines.append(f"  {each.state:11} {what:60} {last.ratio:8.3f} of {last.reference}, {len(each.entries)} run(s)")
    return "\n".join(lines[1:])


def alerts(history: Path) -> list[Series]:
    """Every series that is in alert."""
    return [each for entries in read(history).values() for each in series(entries) if each.state == "alert"]


def to_json(history: Path) -> list[dict[str, Any]]:
    """Every series, for machines."""
    return [
        {"hardware": hardware, "workload": workload, **asdict(each)}
        for (hardware, workload), entries in read(history).items()
        for each in series(entries)
    ]
