"""Times of two runs: told as ratios to the reference arm of each, and never judged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.backend.arm import version_key
from harness.measure.estimate import Comparison, LogRatios, conclude, log_ratios, per_fork
from harness.measure.figures import Figures
from harness.measure.record import Recorded, read_measurement
from harness.measure.statistics import interval
from harness.text import counted

NO_BASELINE = "no baseline"


def why_not_comparable(old: Recorded, new: Recorded) -> str:
    """Says why times of these two runs say nothing about each other; empty if they do."""
    before, after = old.measurement, new.measurement
    references = before.reference, after.reference
    if before.hardware != after.hardware:
        return f"hardware {before.hardware} and {after.hardware}"
    if before.workload != after.workload:
        return f"workload {before.workload} and {after.workload}"
    if len({version_key(arm) for arm in references}) > 1:
        return (
            f"reference {references[0].name} {references[0].version} and {references[1].name} "
            f"{references[1].version}"
        )
    pythons = [one.software.get("python", "").rpartition(".")[0] for one in (before, after)]
    return "" if pythons[0] == pythons[1] else f"Python {pythons[0]} and {pythons[1]}"


def ratio_lines(base: Path, head: Path) -> Iterator[tuple[str, str]]:
    """Yields lines about times, each after the name of the arm that it is about (empty: about all)."""
    old, new = Figures(read_measurement(base)), Figures(read_measurement(head))
    if why := why_not_comparable(old.recorded, new.recorded):
        yield "", f"times: {NO_BASELINE}, the runs differ in {why}"
        return
    reference = new.measurement.reference.name
    before = {
        (comparison.head, comparison.metric, comparison.family): comparison
        for comparison in conclude(old)
        if comparison.base == reference
    }
    for comparison in conclude(new):
        was = before.get((comparison.head, comparison.metric, comparison.family))
        if comparison.base == reference and was is not None and comparison.head in new.arms:
            yield (
                comparison.head,
                f"{comparison.metric} {comparison.family}: {_change(old, was, new, comparison)}",
            )


def _change(old: Figures, was: Comparison, new: Figures, now: Comparison) -> str:
    """Returns the ratios of both runs, over the cases that are judged in both: over others they would change
    though no time did."""
    ratios = [
        log_ratios(figures, one.metric, one.base, one.head, figures.cases_of(one.family))
        for figures, one in ((old, was), (new, now))
    ]
    judged = [set().union(*of_run.values()) for of_run in ratios]
    shared = judged[0] & judged[1]
    if not shared:
        return "not compared, no case is judged in both runs"
    then, later = (interval(per_fork(_only(of_run, shared))).ratio for of_run in ratios)
    change = f"{then:.3f} -> {later:.3f} of {now.base} ({later / then - 1:+.1%})"
    if judged[0] != judged[1]:
        numbers = " and ".join(f"{len(cases)}" for cases in judged)
        change += f", over {counted(len(shared), 'case')} judged in both runs, of {numbers}"
    runs = [run for run, one in (("before", was), ("now", now)) if one.verdict == "unproven" or one.unjudged]
    return change + (f", unproven {' and '.join(runs)}" if runs else "")


def _only(ratios: LogRatios, cases: set[str]) -> LogRatios:
    return {
        fork: {case: of_case for case, of_case in of_fork.items() if case in cases}
        for fork, of_fork in ratios.items()
    }
