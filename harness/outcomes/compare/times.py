"""Times of two runs: told as ratios to the reference arm of each, and never judged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.backend.arm import version_key
from harness.measure.estimate import conclude
from harness.measure.figures import Figures
from harness.measure.record import Recorded, read_measurement

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
        (comparison.head, comparison.metric, comparison.family): comparison.found.ratio
        for comparison in conclude(old)
        if comparison.base == reference
    }
    for comparison in conclude(new):
        was = before.get((comparison.head, comparison.metric, comparison.family))
        if comparison.base == reference and was is not None and comparison.head in new.arms:
            now = comparison.found.ratio
            span = f"{was:.3f} -> {now:.3f} of {reference} ({now / was - 1:+.1%})"
            yield comparison.head, f"{comparison.metric} {comparison.family}: {span}"
