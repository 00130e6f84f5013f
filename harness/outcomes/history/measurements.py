"""Measurements over time: append-only files by hardware and workload, ratios to the reference beside absolute
values, and the alert rule.

    DIR/<hardware key>/<workload key>/<UTC>_<run>.jsonl.gz      measurements; beside them what harness/outcomes/history/conformance.py keeps of outcomes

Two figures are comparable if they lie in the same folder and are of the same reference. Merging two histories
is copying files.
"""  # noqa: E501

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from harness.backend.arm import pinned
from harness.backend.environments.releases import release
from harness.errors import BadInput, Incomplete
from harness.measure.estimate import Comparison, compare, is_proven, log_ratios
from harness.measure.figures import METRICS, Figures
from harness.measure.record import Recorded, read_measurement
from harness.measure.statistics import geometric_mean
from harness.outcomes.history.alert_rule import Event, State, events, state
from harness.outcomes.history.files import NewFile, read_lines
from harness.shape import shaped
from harness.text import counted, our_command

HISTORY = 1
"""The form of the files."""


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
    """On how many forks the ratio rests."""
    proven: bool
    ratio_cases: int = 0
    """On how many cases the ratio rests: those that both arms solve and that are judged; 0 in older files."""
    ratio_digest: str = ""
    """The digest of which these are; empty in older files, and for the reference itself."""


@dataclass(frozen=True)
class Series:
    """The same figure over time, the ratios to the reference of its last entry."""

    backend: str
    options: str
    metric: str
    family: str
    beside: str
    """The version, where this is one that was measured beside or after a newer one; empty: the newest version
    of each run."""
    entries: tuple[Entry, ...]
    events: tuple[Event, ...]
    """What the alert rule says; the indices in it count the entries."""
    state: State

    @property
    def is_reference(self) -> bool:
        """Does the series show the reference, whose ratios are to itself?"""
        last = self.entries[-1]
        return all(
            entry.ratio == entry.low == entry.high == 1 for entry in self.entries
        ) and last.reference.startswith(f"{last.backend}==")

    @property
    def is_over_other_cases(self) -> bool:
        """Has it runs whose ratio is over other cases than that of the last one, and not held against it?"""
        last = _last_sound(self.entries)
        return any(is_sound(entry) and not is_alike(entry, last) for entry in self.entries)


def compared_entries(recorded: Recorded) -> list[tuple[Entry, Comparison | None]]:
    """Returns the entries of a measurement, each with the comparison from which its ratio comes; the
    reference has none.

    No confirming forks are looked at, so a change that the comparison claims may not be confirmed.
    """
    figures, measurement = Figures(recorded), recorded.measurement
    comparisons = compare(figures)
    proven = is_proven(comparisons)
    arms = {arm.name: arm for arm in measurement.arms}
    reference = measurement.reference
    ratios = {
        (comparison.head, comparison.metric, comparison.family): comparison
        for comparison in comparisons
        if comparison.base == reference.name
    }
    entries = []
    for name in figures.arms:
        for metric in METRICS:
            for family, traces in figures.families.items():
                values = [
                    value
                    for trace in traces
                    if (value := figures.median(name, metric, trace.case_id)) is not None
                ]
                ratio = ratios.get((name, metric, family))
                if not values or (ratio is None and name != reference.name):
                    continue
                arm = arms[name]
                rests_on = [] if ratio is None else _judged_cases(figures, ratio)
                entries.append(
                    (
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
                            forks=ratio.found.forks if ratio else len(figures.forks),
                            proven=proven and (ratio is None or _is_judged(ratio)),
                            ratio_cases=len(rests_on) if ratio else len(values),
                            ratio_digest=_digest("\n".join(rests_on)) if ratio else "",
                        ),
                        ratio,
                    )
                )
    return entries


def _is_judged(ratio: Comparison) -> bool:
    """Returns whether every case that both arms solve is judged, and by the figures of identical code. The
    others may be those that became slow, and which they are may change from run to run."""
    return not ratio.unjudged and not math.isnan(ratio.floor)


def _judged_cases(figures: Figures, ratio: Comparison) -> list[str]:
    """Returns the cases on which the ratio rests, by their ids."""
    cases = figures.cases_of(ratio.family)
    judged = log_ratios(figures, ratio.metric, ratio.base, ratio.head, cases)
    return sorted(set().union(*judged.values()))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _full(backend: str, version: str, options: str) -> str:
    return f"{backend}=={version}" + (f":{options}" if options else "")


def times_file(history: Path, folder: Path) -> NewFile:
    """Returns the file of the run's measurement. Raises BadInput."""
    recorded = read_measurement(folder)
    if recorded.end is None:
        raise Incomplete(f"{folder}: this measurement has no end and goes into no history")
    entries = [entry for entry, _ in compared_entries(recorded)]
    if not entries:
        raise BadInput(f"{folder}: nothing was measured on two arms; there is nothing for a history")
    hardware, workload = recorded.measurement.hardware, recorded.measurement.workload
    where = history / safe_name(hardware) / safe_name(workload)
    lines = [{"history": HISTORY, "hardware": hardware, "workload": workload}, *map(asdict, entries)]
    return new_file(where, entries[0].time, entries[0].run, lines)


def new_file(where: Path, time: str, run: str, lines: Iterable[dict[str, Any]]) -> NewFile:
    """Returns the file of a run with these lines."""
    stamp = "".join(character for character in time if character.isascii() and character.isalnum())[:15]
    return NewFile(where / f"{stamp}_{safe_name(run)}.jsonl.gz", tuple(lines))


def safe_name(text: str) -> str:
    """Returns the text as a part of a file's name: itself where it can be, else what can be of it and a
    digest."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._=+-]{0,79}", text):
        return text
    return f"{re.sub(r'[^A-Za-z0-9=+]+', '-', text[:60]).strip('-=+') or 'name'}-{_digest(text)}"


def refuse_no_folder(history: Path) -> None:
    """Raises BadInput if there is no folder where a history is to be."""
    if not history.is_dir():
        raise BadInput(f"{history} is no folder; {_adding(history)} begins one")


def _adding(history: Path) -> str:
    return our_command("history", str(history), "--add", "RUN")


def read_entries(history: Path) -> dict[tuple[str, str], list[Entry]]:
    """Returns all entries by hardware and workload, the oldest first. Raises BadInput."""
    refuse_no_folder(history)
    by_workload: dict[tuple[str, str], list[Entry]] = {}
    for path in sorted(history.glob("*/*/*.jsonl.gz")):
        for entry in _entries(path):
            by_workload.setdefault((path.parent.parent.name, path.parent.name), []).append(entry)
    return {
        key: sorted(entries, key=lambda entry: (entry.time, entry.run))
        for key, entries in by_workload.items()
    }


def _entries(path: Path) -> Iterator[Entry]:
    header, *lines = read_lines(path)
    if header.get("history") != HISTORY:
        raise BadInput(f"{path}: history of form {header.get('history')}, this version reads {HISTORY}")
    try:
        yield from (shaped(Entry, line) for line in lines)
    except ValueError as error:
        raise BadInput(f"{path}: no file of a history ({error})") from error


def series(entries: Iterable[Entry]) -> list[Series]:
    """Returns the entries of one hardware and workload by arm, metric and family, each with what the alert
    rule says of it.

    A series follows the newest version of its backend. A version that a run measured beside a newer one, or
    after one, is a series of its own: two versions side by side in one series would look like steps to and
    fro.
    """
    entries = list(entries)
    groups: dict[tuple[str, str, str, str], list[Entry]] = {}
    for entry in entries:
        groups.setdefault((entry.backend, entry.options, entry.metric, entry.family), []).append(entry)
    all_series = []
    for key, group in groups.items():
        for beside, track in _tracks(group).items():
            spliced = splice(track, entries)
            all_series.append(Series(*key, beside, tuple(spliced), *_judged(spliced)))
    return all_series


def _judged(entries: Sequence[Entry]) -> tuple[tuple[Event, ...], State]:
    """Returns what the alert rule says, and of the last entry of which something may be concluded.

    An entry is held only against those over the same cases, as a ratio over others changes though no time
    does; and a run that proves nothing is shown, and neither makes a baseline nor an alert.
    """
    found: set[Event] = set()
    for one in {entry.ratio_digest: entry for entry in entries}.values():
        alike = _held_against(entries, one)
        ratios = [entries[place].ratio for place in alike]
        found |= {replace(event, since=alike[event.since], at=alike[event.at]) for event in events(ratios)}
    ratios = [entries[place].ratio for place in _held_against(entries, _last_sound(entries))]
    return tuple(sorted(found, key=lambda event: (event.at, event.since))), state(ratios)


def _held_against(entries: Sequence[Entry], one: Entry) -> list[int]:
    """Returns the places of the entries of one kind, of which something may be concluded."""
    return [place for place, entry in enumerate(entries) if is_sound(entry) and is_alike(entry, one)]


def _last_sound(entries: Sequence[Entry]) -> Entry:
    """Returns the last sound entry, or the last one: an unproven run over fewer cases ends no alert."""
    return next((entry for entry in reversed(entries) if is_sound(entry)), entries[-1])


def is_alike(entry: Entry, other: Entry) -> bool:
    """Returns whether the ratio of the entry may be held against the other's: both are over the same cases,
    as far as is known of the entry."""
    return entry.ratio_digest in ("", other.ratio_digest)


def _tracks(group: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Returns the entries of older versions by version, those that are not the newest of their run and of all
    before it; under "" the rest."""
    tracks: dict[str, list[Entry]] = {}
    newest = release("")
    for _, run in groupby(group, key=lambda entry: (entry.time, entry.run)):
        *others, head = sorted(run, key=lambda entry: (release(entry.version), entry.version))
        is_release, _ = of_head = release(head.version)
        tracks.setdefault(head.version if is_release and of_head < newest else "", []).append(head)
        newest = max(newest, of_head)
        for other in others:
            tracks.setdefault(other.version, []).append(other)
    return tracks


def can_be_drawn(entry: Entry) -> bool:
    """Returns whether the ratio is a number above 0."""
    return 0 < entry.ratio < math.inf


def is_sound(entry: Entry) -> bool:
    """Returns whether something may be concluded from the ratio: its run is proven, and it can be drawn."""
    return entry.proven and can_be_drawn(entry)


def splice(group: Sequence[Entry], entries: Iterable[Entry]) -> list[Entry]:
    """Returns the group's entries with all ratios to the last one's reference, back to where that cannot be
    known.

    Where the reference changed, a run that measured the old one against the new one has the factor, if that
    run proves something: an unproven one would move every entry before it.
    """
    last = group[-1]
    if len({entry.reference for entry in group}) == 1:
        return list(group)
    factors = {last.reference: 1.0}
    for entry in entries:
        is_of_last = (entry.reference, entry.metric, entry.family) == (
            last.reference,
            last.metric,
            last.family,
        )
        if is_of_last and is_sound(entry):
            factors[_full(entry.backend, entry.version, entry.options)] = entry.ratio
    spliced = []
    for entry in reversed(group):
        factor = factors.get(entry.reference)
        if factor is None:
            break
        low, ratio, high = (value * factor for value in (entry.low, entry.ratio, entry.high))
        spliced.append(replace(entry, reference=last.reference, ratio=ratio, low=low, high=high))
    return spliced[::-1]


def measurements_text(history: Path) -> str:
    """Returns what there is: what is in alert or better, one by one; the rest counted."""
    workloads = read_entries(history)
    if not workloads:
        return f"{history}: no measurement yet; {_adding(history)}"
    lines = []
    for (hardware, workload), entries in workloads.items():
        runs = len({entry.run for entry in entries})
        lines.append(f"hardware {hardware}, workload {workload}: {counted(runs, 'run')}")
        rest: dict[str, Counter[str]] = {}
        others: Counter[str] = Counter()
        for one_series in sorted(series(entries), key=lambda one: one.state):
            last = one_series.entries[-1]
            beside = " beside newer ones" if one_series.beside else ""
            name = f"{pinned(one_series, '')} {last.version}{beside}"
            others[name] += one_series.is_over_other_cases
            if one_series.state in ("alert", "better"):
                lines.append(f"  {one_series.state:7} {name}: {one_series.metric} {one_series.family}")
                runs_of_it = counted(len(one_series.entries), "run")
                lines.append(f"          {last.ratio:.3f} of {last.reference}, {runs_of_it}")
            elif not one_series.is_reference:
                rest.setdefault(name, Counter())[one_series.state] += 1
        for name, states in rest.items():
            figures = ", ".join(f"{counted(count, 'figure')} {state}" for state, count in states.items())
            lines.append(f"  {name}: {figures}")
        for name, count in (+others).items():
            lines.append(
                f"  {name}: {counted(count, 'figure')} not held against earlier runs over other cases"
            )
    return "\n".join(lines)


def alerts(history: Path) -> list[Series]:
    """Returns every series that is in alert."""
    return [
        one_series
        for entries in read_entries(history).values()
        for one_series in series(entries)
        if one_series.state == "alert"
    ]


def has_verdict(history: Path) -> bool:
    """Is there a series of times of which the alert rule says anything, so that it has a baseline?"""
    return any(
        one_series.state != "no baseline"
        for entries in read_entries(history).values()
        for one_series in series(entries)
        if not one_series.is_reference
    )


def to_json(history: Path) -> list[dict[str, Any]]:
    """Returns every series, for machines."""
    return [
        {"hardware": hardware, "workload": workload, **asdict(one_series)}
        for (hardware, workload), entries in read_entries(history).items()
        for one_series in series(entries)
    ]
