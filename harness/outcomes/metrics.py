"""Row → number: what a run says of each backend, counted over cases and walks.

A metric is one function with a decorator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from harness.measure.statistics import has_tail
from harness.outcomes.case_state import CaseState
from harness.outcomes.summary import ArmSummary, MaskbenchError, Nanoseconds, walk_times

Unit = Literal["cases", "walks", "share", "us", "bytes"]
Better = Literal["lower", "higher", "neither"]
Value = int | float | None

QUANTILES = {
    "p25": 0.25,
    "p50": 0.5,
    "p75": 0.75,
    "p90": 0.9,
    "p95": 0.95,
    "p99": 0.99,
    "p99.9": 0.999,
    "p100": 1.0,
}


@dataclass(frozen=True)
class Metric:
    """One number per arm."""

    name: str
    title: str
    unit: Unit
    better: Better
    definition: str
    value: Callable[[ArmSummary], Value]


@dataclass(frozen=True)
class Distribution:
    """Many times per arm, in nanoseconds; shown as average and percentiles in microseconds.

    Lower is better.
    """

    name: str
    title: str
    definition: str
    values: Callable[[ArmSummary], Nanoseconds]


METRICS: dict[str, Metric] = {}
DISTRIBUTIONS: dict[str, Distribution] = {}


def metric(
    title: str, unit: Unit, better: Better
) -> Callable[[Callable[[ArmSummary], Value]], Callable[[ArmSummary], Value]]:
    """The function below is a metric: its name becomes a column, its docstring the definition on the page."""

    def register(function: Callable[[ArmSummary], Value]) -> Callable[[ArmSummary], Value]:
        name = function.__name__
        METRICS[name] = Metric(name, title, unit, better, function.__doc__ or "", function)
        return function

    return register


def distribution(
    title: str,
) -> Callable[[Callable[[ArmSummary], Nanoseconds]], Callable[[ArmSummary], Nanoseconds]]:
    """The function below yields times; its name becomes columns `<name>_n`, `<name>_avg_us`, `<name>_p25_us`,
    ..."""

    def register(function: Callable[[ArmSummary], Nanoseconds]) -> Callable[[ArmSummary], Nanoseconds]:
        name = function.__name__
        DISTRIBUTIONS[name] = Distribution(name, title, function.__doc__ or "", function)
        return function

    return register


def metrics_by_unit(first: Iterable[str]) -> dict[str, list[Metric]]:
    """Returns the metrics of each unit that some metric has: these units first, in this order, and others
    behind them."""
    units = dict.fromkeys([*first, *(metric.unit for metric in METRICS.values())])
    groups = {unit: [metric for metric in METRICS.values() if metric.unit == unit] for unit in units}
    return {unit: group for unit, group in groups.items() if group}


def percentiles(values: Nanoseconds) -> dict[str, float | None]:
    """Returns `avg` and each of QUANTILES, as observed values (the smallest that a share q lies at or below);
    None if there are none."""
    if not len(values):
        return dict.fromkeys(("avg", *QUANTILES))
    levels = np.quantile(values, list(QUANTILES.values()), method="inverted_cdf")
    return {
        "avg": float(values.mean()),
        **{name: float(level) for name, level in zip(QUANTILES, levels, strict=True)},
    }


def few(name: str, count: int) -> bool:
    """Are the values too few for this percentile to be more than an anecdote? Then fewer than ten lie beyond
    it. p100 is what it is."""
    share = QUANTILES.get(name, 0.5)
    return share < 1 and not has_tail(share, count)


def values_of(arm: ArmSummary) -> dict[str, Value]:
    """Returns every distribution (`_n`, `_avg_us`, `_p50_us`, ...) and every metric of the arm, by column
    name."""
    columns: dict[str, Value] = {}
    for name, percentiled in DISTRIBUTIONS.items():
        values = percentiled.values(arm)
        columns[f"{name}_n"] = len(values)
        columns |= {
            f"{name}_{level}_us": None if ns is None else ns / 1e3
            for level, ns in percentiles(values).items()
        }
    return columns | {name: figure.value(arm) for name, figure in METRICS.items()}


# ------------------------------------------------------------------------------------------------ the metrics


@distribution("TBM, time between masks")
def tbm(arm: ArmSummary) -> Nanoseconds:
    """Per token: filling the mask plus accepting the token, end-of-sequence included, over all walks of all
    cases that compiled. There are none where fewer than nine in ten of these cases have samples."""
    if not arm.timed.is_enough:
        return np.zeros(0, np.int64)
    sums = [walk.sum(axis=1) for walk in walk_times(arm, arm.cases.values())]
    return np.concatenate(sums) if sums else np.zeros(0, np.int64)


@distribution("TTFM, time to first mask")
def ttfm(arm: ArmSummary) -> Nanoseconds:
    """Per case: compile plus new matcher plus first fill.

    Cases that did not get that far have none; they are counted as failures.
    """
    return np.array(
        [case.ttfm_ns for case in arm.cases.values() if case.declared and case.ttfm_ns is not None], np.int64
    )


@metric("Cases", "cases", "neither")
def cases(arm: ArmSummary) -> int:
    """Cases of which at least one row is there.

    Each works, failed, is refused, is not judged or is not measured.
    """
    return len(arm.cases)


@metric("Judged", "cases", "neither")
def judged(arm: ArmSummary) -> int:
    """Cases that work, failed, or are refused though there was something to judge them by: the denominator of
    `conformance`."""
    return arm.counts().judged


@metric(CaseState.WORKS.words.title.capitalize(), "cases", "higher")
def works(arm: ArmSummary) -> int:
    """Cases that were judged, every instance rightly, and in which no check found a fault that the backend
    does not document."""
    return arm.counts().works


@metric("Failed", "cases", "lower")
def failed(arm: ArmSummary) -> int:
    """Cases with a wrong verdict, an error, a crash, a timeout, out of memory, or a check's finding that the
    backend does not document."""
    return arm.counts().failed


@metric(CaseState.BREAKS.words.title.capitalize(), "cases", "lower")
def breaks(arm: ArmSummary) -> int:
    """Failed cases in which the backend crashed, raised an exception or ran out of memory, whatever else is
    wrong."""
    return arm.counts().breaks


@metric(CaseState.SILENTLY_WRONG.words.title.capitalize(), "cases", "lower")
def silently_wrong(arm: ArmSummary) -> int:
    """Failed cases that do not break and in which the backend lets through what the case forbids: an invalid
    instance, a token in a mask, or an invalid text that it wrote itself."""
    return arm.counts().silently_wrong


@metric(CaseState.VALID_REFUSED.words.title.capitalize(), "cases", "lower")
def valid_refused(arm: ArmSummary) -> int:
    """Failed cases that are neither of these and in which the backend forbids what the case allows."""
    return arm.counts().valid_refused


@metric(CaseState.TOO_SLOW.words.title.capitalize(), "cases", "lower")
def too_slow(arm: ArmSummary) -> int:
    """Failed cases that are none of these and in which a call met the time limit."""
    return arm.counts().too_slow


@metric(CaseState.OTHER_FAULT.words.title.capitalize(), "cases", "lower")
def other_fault(arm: ArmSummary) -> int:
    """Failed cases that are none of these: a check found something else that the backend does not
    document."""
    return arm.counts().other_fault


@metric(CaseState.REFUSED.words.title.capitalize(), "cases", "lower")
def refused(arm: ArmSummary) -> int:
    """Cases of which the backend says that it cannot do them, and in which nothing else is wrong: they do not
    work, and do not fail either."""
    return arm.counts().refused


@metric(CaseState.NOT_JUDGED.words.title.capitalize(), "cases", "neither")
def not_judged(arm: ArmSummary) -> int:
    """Cases that compiled and of which nobody could say whether they were done rightly: no instance with a
    known verdict, no exact mask."""
    return arm.counts().not_judged


@metric(CaseState.NOT_MEASURED.words.title.capitalize(), "cases", "neither")
def not_measured(arm: ArmSummary) -> int:
    """Cases of which a part is missing through our fault, and in the rest of which nothing is wrong: in no
    share's denominator."""
    return arm.counts().not_measured


@metric("Solved", "cases", "higher")
def solved(arm: ArmSummary) -> int:
    """Cases that compiled and have none of the errors below, judged or not: near what MaskBench calls
    passing.

    Times are compared on them.
    """
    return sum(case.solved for case in arm.cases.values())


def _cases_with(arm: ArmSummary, kind: MaskbenchError) -> int:
    return sum(kind in case.failures for case in arm.cases.values())


@metric("Compile error", "cases", "lower")
def compile_error(arm: ArmSummary) -> int:
    """Cases that the backend refused (unsupported, or invalid in its view), or for which compiling raised
    something else."""
    return _cases_with(arm, "compile_error")


@metric("Crash", "cases", "lower")
def crash(arm: ArmSummary) -> int:
    """Cases in which the backend's process died in a walk, at any phase."""
    return _cases_with(arm, "crash")


@metric("Out of memory", "cases", "lower")
def out_of_memory(arm: ArmSummary) -> int:
    """Cases in which the memory limit was reached, at any phase."""
    return _cases_with(arm, "out_of_memory")


@metric("Timeout", "cases", "lower")
def timeout(arm: ArmSummary) -> int:
    """Cases that were ended at the deadline, at any phase."""
    return _cases_with(arm, "timeout")


@metric("Validation error", "cases", "lower")
def validation_error(arm: ArmSummary) -> int:
    """Cases with a valid instance refused (over-constrained), or an exception out of the backend after
    compiling."""
    return _cases_with(arm, "validation_error")


@metric("Invalidation error", "cases", "lower")
def invalidation_error(arm: ArmSummary) -> int:
    """Cases with an invalid instance accepted to the end (under-constrained).

    A case may count here and above.
    """
    return _cases_with(arm, "invalidation_error")


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


@metric("Declared coverage", "share", "higher")
def declared_coverage(arm: ArmSummary) -> float | None:
    """Share of walked cases that compiled without refusal, exception, crash, timeout or running out of
    memory; JSONSchemaBench's declared coverage."""
    cases = arm.walked()
    return _share(sum(case.declared for case in cases), len(cases))


@metric("Conformance", "share", "higher")
def conformance(arm: ArmSummary) -> float | None:
    """Share of judged cases that work: cases that the backend refused count against it, as in
    JSONSchemaBench's empirical coverage. None where no case was judged."""
    return arm.counts().conformance


@metric("Compliance", "share", "higher")
def compliance(arm: ArmSummary) -> float | None:
    """Share of judged cases that work, of those that compiled: when the backend takes a grammar on, does it
    keep it? JSONSchemaBench's compliance."""
    taken_on = sum(case.declared and case.rows.is_judged for case in arm.cases.values())
    return _share(arm.counts().works, taken_on)


@metric("Pass", "walks", "higher")
def walks_pass(arm: ArmSummary) -> int:
    """Walks whose instance was judged as the grammar says, end of the output included."""
    return arm.outcomes["pass"]


@metric("Over-constrained", "walks", "lower")
def walks_over_constrained(arm: ArmSummary) -> int:
    """Walks in which an instance that the grammar allows was refused."""
    return arm.outcomes["over_constrained"]


@metric("Under-constrained", "walks", "lower")
def walks_under_constrained(arm: ArmSummary) -> int:
    """Walks in which an instance that the grammar forbids was accepted to the end."""
    return arm.outcomes["under_constrained"]


@metric("Declined", "walks", "lower")
def walks_declined(arm: ArmSummary) -> int:
    """Walks that did not take place because the backend says that it cannot do this grammar: honest, not
    wrong."""
    return arm.outcomes["declined"]


@metric("Broken", "walks", "lower")
def walks_broken(arm: ArmSummary) -> int:
    """Walks that ended in an exception, a crash, a timeout or out of memory."""
    return arm.outcomes["broken"]


@metric("Unjudged", "walks", "neither")
def walks_unjudged(arm: ArmSummary) -> int:
    """Walks of which nobody said whether the instance is valid; a case without instances is one of them if it
    compiles."""
    return arm.outcomes["unjudged"]


@metric("Harness error", "walks", "neither")
def walks_harness_error(arm: ArmSummary) -> int:
    """Walks that we lost through our own fault; never counted against a backend."""
    return arm.outcomes["harness_error"]


@metric("Skipped", "walks", "neither")
def walks_skipped(arm: ArmSummary) -> int:
    """Walks that we did not do."""
    return arm.outcomes["skipped"]


@metric("With findings", "walks", "lower")
def walks_with_findings(arm: ArmSummary) -> int:
    """Walks in which a check saw something (mask and accept disagree, no way to end, ...), whatever the
    verdict."""
    return arm.with_findings


@metric("Peak resident memory", "bytes", "lower")
def peak_rss(arm: ArmSummary) -> int | None:
    """The largest resident set of the backend's process in any walk, vocabulary and libraries included; what
    it grows to in checks, which take memory of ours too, is left out."""
    return arm.peak_rss_bytes
