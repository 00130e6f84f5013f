"""A run, and what it is held against, made into one result."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from harness.backend.arm import arm_names, full_name
from harness.measure.figures import ALL
from harness.measure.record import Recorded, has_measurement, read_measurement
from harness.measure.statistics import share_bounds
from harness.outcomes import compare, differences, expected, metrics, outcome
from harness.outcomes.delayed import DelayedCases
from harness.outcomes.gate import Gate
from harness.outcomes.history import measurements
from harness.outcomes.repro_command import repro_words
from harness.outcomes.result.parts import Arm, Change, Counts, Failing, Figure, Kind, Result
from harness.outcomes.summary import ArmKey, ArmSummary, arm_key, each_taken_in, summarize
from harness.rows.again import how_to_complete
from harness.rows.machine import hardware, hardware_key
from harness.rows.row import Row, RunInfo
from harness.rows.sample import sample_of
from harness.rows.store import read_end, read_info, read_rows, read_samples, why_not_whole
from harness.text import counted, one_line, some

HEADLINE = ("conformance", "walks_under_constrained", "tbm_p50_us")
"""The metrics over rows that are headline figures; with the measured ratios they are a few series per
backend, as many as a dashboard of charts can bear."""

EXAMPLES = 3
"""Cases that a change of counts names."""

KINDS: dict[str, Kind] = {"worse": "worse", "better": "better", "other": "other", "policy": "other"}


def result_of(
    run: Path,
    base: Path | None = None,
    *,
    time: bool = False,
    read: tuple[Noticed, Sequence[ArmSummary]] | None = None,
    versions: Sequence[compare.Pair] | None = None,
) -> Result:
    """Returns the run, held against `base`: another run's folder, or a file of expected outcomes.

    Without `base`, versions of one backend with the same options within the run are held against the first.
    With `time` a proven slowdown fails the gate as well. `read`: what was gathered from its rows, where they
    were read already; `versions`: what `compare_versions` returns, where it was asked already. Raises
    BadInput.
    """
    info = read_info(run)
    end = read_end(run)
    recorded = read_measurement(run) if has_measurement(run) else None
    if read is None:
        noticed = Noticed(run)
        rows = each_taken_in(read_rows(run, whole=False), noticed.add)
        read = noticed, summarize(rows, read_samples(run), info, run)
    noticed, arms = read
    changes: list[Change] = []
    gate: Gate
    incomplete = ""
    if end is None:
        incomplete = f"the run has no end; {how_to_complete(run, info)}"
    elif why := why_not_whole(run, end, sum(arm.rows for arm in arms)):
        incomplete = f"{run}: {why}"
    elif recorded and recorded.end is None:
        incomplete = f"the measurement in {run} has no end; measure anew"
    if incomplete:
        gate = Gate("incomplete", "", (incomplete,))
    elif base and expected.is_record(base):
        changes, gate = _held_to_record(run, base)
    elif base:
        changes, gate = held_to_pairs(info, compare.compare_runs(base, run), base, time=time)
    elif pairs := compare.compare_versions(run) if versions is None else versions:
        changes, gate = held_to_pairs(info, pairs, time=time)
    else:
        gate = Gate("ok", "", ())
    measured = list(_measured(recorded)) if recorded and recorded.end is not None else []
    return Result(
        sample=sample_of(info),
        incomplete=incomplete,
        run=info.run,
        started=info.started,
        harness=info.harness,
        profile=info.profile,
        hardware=recorded.measurement.hardware if measured and recorded else hardware_key(hardware()),
        arms=tuple(Arm(full_name(arm), *arm.key) for arm in arms),
        counts=tuple(_counts(arms)),
        figures=(*_figures(arms), *measured),
        failing=tuple(noticed.failing(arms)),
        delayed=tuple(noticed.delayed.cases),
        changes=tuple(changes),
        gate=gate,
    )


def _samples(info: RunInfo, base: Path | None) -> Iterator[str]:
    """Says which samples the run, and the run that it is held against, are."""
    walked, of_base = sample_of(info), sample_of(read_info(base)) if base else ""
    if walked:
        yield walked
    if of_base and of_base != walked:
        yield f"{base}: {of_base}"


class Noticed:
    """What the rows say case by case, gathered while they pass."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.faults: dict[ArmKey, dict[tuple[str, str], set[str]]] = {}
        """The names of the faults of each arm that has rows, by suite and case; `undocumented` has those
        that the backend does not document."""
        self.undocumented: dict[ArmKey, dict[tuple[str, str], set[str]]] = {}
        self.messages: dict[tuple[ArmKey, str, str], tuple[outcome.Order, str]] = {}
        """For each arm, suite and case the order of its worst fault, and the message about that."""
        self.order: dict[str, tuple[int, ...]] = {}
        """For each name of a fault its key in the order of gravity."""
        self.names: dict[tuple[str, str], str] = {}
        self.delayed = DelayedCases()

    def add(self, row: Row) -> None:
        """Takes in one row."""
        self.delayed.add(row)
        arm, key = arm_key(row), (row.suite, row.case_id)
        cases, undocumented = self.faults.setdefault(arm, {}), self.undocumented.setdefault(arm, {})
        # Checks that had no time left are no fault, though a record concludes nothing from such a case.
        named = [(expected.fault_name(fault), fault) for fault in outcome.faults(row)]
        if not named:
            return
        self.names[key] = row.case
        self.order |= {name: fault.order[:2] for name, fault in named}
        cases.setdefault(key, set()).update(name for name, _ in named)
        # Of two faults of one name in a row one may be documented; the other costs the case all the same.
        undocumented.setdefault(key, set()).update(name for name, fault in named if not fault.documented)
        order = min((fault.order for _, fault in named if not fault.documented), default=outcome.LAST)
        if (arm, *key) not in self.messages or order < self.messages[arm, *key][0]:
            said = _said(row, [fault for _, fault in named])
            self.messages[arm, *key] = order, one_line(said)[:400]

    def failing(self, arms: Iterable[ArmSummary]) -> Iterator[Failing]:
        """Yields every case with a fault, refused and documented ones too; `arms` are those of the rows."""
        by_key = {arm.key: arm for arm in arms}
        names = arm_names(by_key[key] for key in self.faults)
        for key, cases in self.faults.items():
            of, name = by_key[key], names[key[:3]]
            for (suite, case_id), wrong in cases.items():
                rows = of.cases[suite, case_id].rows
                undocumented = self._worst_first(self.undocumented[key][suite, case_id])
                documented = self._worst_first(wrong.difference(undocumented))
                yield Failing(
                    arm=full_name(of),
                    suite=suite,
                    case=self.names[suite, case_id],
                    case_id=case_id,
                    faults=(*undocumented, *documented),
                    documented=documented,
                    said=self.messages[key, suite, case_id][1],
                    repro=shlex.join(repro_words(self.run, suite, case_id, name, of.vocabulary)),
                    outcome=rows.outcome.value,
                    state=rows.state.value,
                )

    def _worst_first(self, names: Iterable[str]) -> tuple[str, ...]:
        """Returns the names of faults by gravity, those of one gravity by name."""
        return tuple(sorted(names, key=lambda name: (self.order.get(name, outcome.LAST), name)))


def _said(row: Row, faults: Sequence[outcome.Fault]) -> str:
    """Returns what was said of the worst of the row's faults of which anything was; those that fail nothing
    speak only where no other does."""
    failing = [fault for fault in faults if not fault.documented] or faults
    ordered = sorted(failing, key=lambda fault: fault.order)
    said = [fault.finding.text if fault.finding is not None else row.text for fault in ordered]
    return next(filter(None, said), row.text)


def _counts(arms: Iterable[ArmSummary]) -> Iterator[Counts]:
    for arm in arms:
        for suite in dict.fromkeys(key[0] for key in arm.cases):
            yield Counts(arm=full_name(arm), suite=suite, **vars(arm.counts(suite)))


def _figures(arms: Iterable[ArmSummary]) -> Iterator[Figure]:
    """Yields every metric of every arm that has a value; none of an arm that walked no case, whose counts
    would be good news."""
    for arm in arms:
        if not arm.cases:
            continue
        values = metrics.values_of(arm)
        for name, metric in metrics.METRICS.items():
            value = values[name]
            if value is not None:
                cases, low, high = len(arm.cases), None, None
                if name == "conformance":
                    cases = arm.counts().judged
                    low, high = share_bounds(arm.counts().works, cases)
                yield Figure(
                    full_name(arm),
                    ALL,
                    name,
                    metric.title,
                    metric.unit,
                    metric.better,
                    float(value),
                    low,
                    high,
                    headline=name in HEADLINE,
                    values=cases,
                )
        for name, times in metrics.DISTRIBUTIONS.items():
            count = int(values[f"{name}_n"] or 0)
            for level in ("p50", "p99"):
                value = values[f"{name}_{level}_us"]
                if value is not None and not metrics.few(level, count):
                    column = f"{name}_{level}_us"
                    title = f"{times.title}, {level}"
                    yield Figure(
                        full_name(arm),
                        ALL,
                        column,
                        title,
                        "us",
                        "lower",
                        float(value),
                        values=count,
                        headline=column in HEADLINE,
                    )


def _measured(recorded: Recorded) -> Iterator[Figure]:
    """Yields nanoseconds, and ratios to the reference with their intervals.

    An unproven ratio says why and has none: where identical code does not come out as equal, no interval can
    be believed. Nor has one that leaves cases out: they may be those in which the arm is slow.
    """
    found = measurements.compared_entries(recorded)
    # Cases of one family are all cases, and then there is no family of all.
    is_single = len({entry.family for entry, _ in found}) == 1
    for entry, compared in found:
        arm = full_name(Arm("", entry.backend, entry.version, entry.options, recorded.measurement.vocabulary))
        what = entry.metric.replace("_", " ")
        yield Figure(
            arm,
            entry.family,
            f"{entry.metric}_ns",
            f"{what}, geometric mean over its {counted(entry.cases, 'case')}",
            "ns",
            "lower",
            entry.nanoseconds,
            values=entry.cases,
        )
        if math.isfinite(entry.high):
            title = f"{what}, ratio to {entry.reference}"
            main = (is_single or entry.family == ALL) and entry.metric in ("compile", "fill")
            unproven = compared is not None and (compared.verdict == "unproven" or compared.unjudged > 0)
            yield Figure(
                arm,
                entry.family,
                f"{entry.metric}_ratio",
                title,
                "ratio",
                "lower",
                entry.ratio,
                None if unproven else entry.low,
                None if unproven else entry.high,
                compared.found.forks if compared else entry.forks,
                headline=main,
                why=f"unproven: {compared.why}" if compared is not None and unproven else "",
            )


def _held_to_record(run: Path, record: Path) -> tuple[list[Change], Gate]:
    verdict = expected.compare_with_record(run, record)
    changes = [
        Change(
            "worse" if change.new else "better",
            str(change.arm),
            f"{change.name} ({change.case}): {expected.change_in_words(change)}",
        )
        for change in verdict.changes
    ]
    if not verdict.compared and not verdict.uncompared:
        return changes, Gate(
            "unproven", str(record), (*verdict.notes, "nothing of this run is in the record")
        )
    new = [change for change in verdict.changes if change.new]
    gone = len(verdict.changes) - len(new)
    reasons = (
        [f"{counted(len(new), 'new failure')} that the record does not have{expected.states_in_words(new)}"]
        if new
        else []
    )
    reasons += (
        [f"{counted(gone, 'recorded failure')} that {'is' if gone == 1 else 'are'} fixed; record anew"]
        if gone
        else []
    )
    return changes, Gate(verdict.word, str(record), (*reasons, *verdict.notes))


def held_to_pairs(
    info: RunInfo, pairs: Sequence[compare.Pair], base: Path | None = None, *, time: bool
) -> tuple[list[Change], Gate]:
    """Returns what changed in the run since another one, of which these are the pairs, and what a gate says
    of it; without `base` since the first version in the run. Raises BadInput."""
    found = sorted((each for pair in pairs for each in _changes(pair)), key=lambda each: each[0])
    changes = [change for _, change in found]
    held = compare.gate_pairs(pairs, time=time)
    # The first reason of a gate that holds says only that it does; the others say what was not compared.
    reasons = (*_samples(info, base), *(held.reasons[1:] if held.verdict == "ok" else held.reasons))
    against = "the first version in the run" if base is None else str(base)
    return changes, replace(held, against=against, reasons=reasons)


def _alike(counted: Iterable[compare.Counted]) -> dict[tuple[str, bool], list[compare.Counted]]:
    alike: dict[tuple[str, bool], list[compare.Counted]] = {}
    for figure in counted:
        alike.setdefault((figure.count, figure.worse), []).append(figure)
    return alike


def _changes(pair: compare.Pair) -> Iterator[tuple[tuple[int, ...], Change]]:
    """Yields what changed, each behind a key that puts the gravest first; counts and times come last."""
    name = pair.head.title
    for case in pair.outcomes.cases:
        if not case.depends_on_the_machine:
            what = f"{case.name} ({case.key[1]}/{case.key[2]}): {differences.in_words(case.parts)}"
            yield case.gravity, Change(KINDS[case.kind], name, one_line(what))
    for (count, is_worse), every in _alike(pair.counted).items():
        cases = [f"{case.before} -> {case.after} ({case.case})" for case in every]
        number = f" in {len(cases)} cases" if len(cases) > 1 else ""
        kind: Kind = "worse" if is_worse else "other"
        yield outcome.LAST, Change(kind, name, one_line(f"{count}{number}: {some(cases, EXAMPLES)}"))
    for time in pair.times:
        if time.verdict in ("regressed", "improved"):
            interval = time.found
            text = (
                f"{time.metric} {time.family}: {time.verdict}, {interval.ratio:.3f} [{interval.low:.3f}, "
                f"{interval.high:.3f}]"
            )
            kind = "worse" if time.verdict == "regressed" else "better"
            yield outcome.LAST, Change(kind, name, text)
