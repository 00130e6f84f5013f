"""The quick set as items of pytest-benchmark: a measurement, the labels of its items, and what a file says of
each.

What is measured, and what is concluded, is the measuring engine's (`harness.measure`). Here its figures
become samples: a clock that stands still but for what an item moves it by is the `timer` of the item's
marker, and `benchmark.pedantic` reads it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from harness.backend.registry import parse_specs
from harness.cases.suite import MEASURED, find_suite, read_cases
from harness.errors import BadInput
from harness.measure.estimate import Comparison, conclude, is_proven, log_ratios, per_fork
from harness.measure.figures import METRICS, Figures
from harness.measure.protocol import MeasuredArm
from harness.measure.record import Trace, read_measurement
from harness.measure.statistics import LEVEL, Interval, interval
from harness.outcomes.metrics import few, percentiles
from harness.rows.store import read_cases as read_stored_cases


class Clock:
    """The time that the items say has passed, in seconds."""

    __name__ = "grammarbench_engine"  # shown as options.timer
    now = 0.0

    def __call__(self) -> float:
        return self.now


CLOCK = Clock()


@dataclass(frozen=True)
class Wanted:
    """What the items are of, known before anything is measured."""

    cases: dict[str, str]
    """Ids by label, `suite-name`."""
    backends: tuple[str, ...]
    """Labels of the arms, in the order of the measurement: the backend and its options, its version only
    beside another one of it."""


@dataclass(eq=False)
class Speed:
    """A finished measurement, and the labels of its items."""

    folder: Path
    wanted: Wanted
    figures: Figures
    comparisons: list[Comparison]

    def replay(self, benchmark: Any, metric: str, case: str, backend: str) -> None:
        """Hands the series of one item to the plugin, sample by sample; skips, with the reason, where there
        is none."""
        arm, case_id = self.arms[backend], self.wanted.cases[case]
        by_fork = self.figures.cells[metric].get((arm.name, case_id), {})
        samples = [rounds[number] / 1e9 for _, rounds in sorted(by_fork.items()) for number in sorted(rounds)]
        if not samples:
            pytest.skip(f"{backend}: {self.why_not(arm.name, case_id)}")
        left = iter(samples)

        def reset() -> None:
            CLOCK.now = 0.0  # so that the difference of two readings is the sample, to the last bit

        def advance() -> None:
            CLOCK.now += next(left, 0.0)  # asked for once more by --benchmark-cprofile

        benchmark.pedantic(advance, setup=reset, rounds=len(samples), iterations=1)
        benchmark.extra_info.update(self.of_item(metric, arm, self.traces[case_id]))

    @cached_property
    def arms(self) -> dict[str, MeasuredArm]:
        """Returns the measured arms by their label."""
        return dict(
            zip(
                self.wanted.backends,
                (arm for arm in self.figures.measurement.arms if arm.role != "a/a"),
                strict=True,
            )
        )

    @cached_property
    def traces(self) -> dict[str, Trace]:
        """Returns the traces by the id of their case."""
        return {trace.case_id: trace for trace in self.figures.measurement.traces}

    @cached_property
    def reference(self) -> str:
        """Returns the arm that all others are held against."""
        return next(arm.name for arm in self.arms.values() if arm.role == "reference")

    def why_not(self, arm: str, case_id: str) -> str:
        """Why there is no figure."""
        if case_id not in self.traces:
            return "not measured: the profile leaves this case out, or no backend walked a valid text of it"
        solved = self.figures.measurement.unsolved.get(arm, {}).get(case_id)
        return (
            f"not solved: {solved}"
            if solved
            else f"no figure: {self.lost(arm, case_id) or 'the arm was lost'}"
        )

    def lost(self, arm: str, case_id: str) -> str | None:
        """Returns what ended the arm's process on this case, if anything did."""
        lost = (other for other in self.figures.recorded.others if other["kind"] == "lost")
        return next((line["text"] for line in lost if (line["arm"], line["case_id"]) == (arm, case_id)), None)

    def of_item(self, metric: str, arm: MeasuredArm, trace: Trace) -> dict[str, Any]:
        """Returns what is known of an item besides its samples."""
        of = self.figures.measurement
        return {
            "metric": metric,
            "definition": METRICS[metric],
            "suite": trace.suite,
            "case": trace.case,
            "case_id": trace.case_id,
            "tokens": self.figures.tokens[trace.case_id],
            "backend": arm.backend,
            "version": arm.version,
            "options": arm.options,
            "lost": self.lost(arm.name, trace.case_id),
            "reference": self.reference,
            "ratio_to_reference": self.ratio(metric, arm.name, trace.case_id),
            "judged": self.judged(metric, arm, trace.family),
            "per_token_ns": self.per_token(metric, arm.name, trace),
            "vocabulary": of.vocabulary,
            "profile": of.profile,
            "hardware": of.hardware,
            "workload": of.workload,
            "protocol": of.protocol,
            "software": of.software,
            "run": of.run,
            "measurement": str(self.folder.resolve()),
        }

    def ratio(self, metric: str, arm: str, case_id: str) -> dict[str, Any] | None:
        """This case alone, the arm over the reference; descriptive, for verdicts are of families.

        None for the reference itself.
        """
        x = (
            []
            if arm == self.reference
            else per_fork(log_ratios(self.figures, metric, self.reference, arm, [case_id]))
        )
        if not x:
            return None
        return _interval(interval(x))

    def judged(self, metric: str, arm: MeasuredArm, family: str) -> dict[str, Any] | None:
        """Returns the verdict on the family of cases, of the arm over the reference; of the reference, that
        of its A/A copy."""
        head = (
            next((one.name for one in self.figures.measurement.arms if one.role == "a/a"), "")
            if arm.name == self.reference
            else arm.name
        )
        comparisons = (
            comparison
            for comparison in self.comparisons
            if (comparison.base, comparison.head, comparison.metric, comparison.family)
            == (self.reference, head, metric, family)
        )
        return next(map(_comparison, comparisons), None)

    def per_token(self, metric: str, arm: str, trace: Trace) -> dict[str, float] | None:
        """Percentiles over the tokens of the text; only those that at least ten tokens lie beyond.

        None for what is not per token.
        """
        values: Any
        if metric == "cold_fill":
            (values,) = self.figures.cold(arm, [trace])
        elif metric in ("fill", "accept"):
            values = self.figures.structural(arm, [trace])[0][:, ("fill", "accept").index(metric)]
        else:
            return None
        by_name = percentiles(values)
        return {"n": len(values)} | {
            name: value for name, value in by_name.items() if value is not None and not few(name, len(values))
        }

    def as_block(self) -> dict[str, Any]:
        """Returns what the file says of the measurement as a whole."""
        of = self.figures.measurement
        labels = {case_id: label for label, case_id in self.wanted.cases.items()}
        return {
            **{
                name: getattr(of, name)
                for name in (
                    "run",
                    "started",
                    "profile",
                    "vocabulary",
                    "hardware",
                    "workload",
                    "software",
                    "protocol",
                )
            },
            "measurement": str(self.folder.resolve()),
            "reference": self.reference,
            "forks": len(self.figures.forks),
            "proven": is_proven(self.comparisons),
            "arms": [asdict(arm) for arm in of.arms],
            "unsolved": {
                arm: {labels[case]: why for case, why in cases.items()} for arm, cases in of.unsolved.items()
            },
            "comparisons": [_comparison(comparison) for comparison in self.comparisons],
        }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    names = ("base", "head", "metric", "family", "cases", "margin", "verdict", "why")
    return {
        **{name: getattr(comparison, name) for name in names},
        **_interval(comparison.found),
        "floor": _finite(comparison.floor),
        "mean_ratio": _finite(comparison.mean_ratio),
    }


def _interval(estimate: Interval) -> dict[str, Any]:
    return {
        "ratio": estimate.ratio,
        "low": estimate.low,
        "high": _finite(estimate.high),
        "level": LEVEL,
        "forks": estimate.forks,
    }


def _finite(value: float) -> float | None:
    """JSON has neither infinity nor NaN."""
    return value if math.isfinite(value) else None


def wanted(backends: str) -> Wanted:
    """Returns the items of what is going to be measured. Raises BadInput."""
    suite = find_suite(MEASURED)
    specs = parse_specs(backends)
    versions = {spec.name: {other.version for other in specs if other.name == spec.name} for spec in specs}
    labels = []
    for spec in specs:
        version = f"=={spec.version}" if len(versions[spec.name]) > 1 and spec.version is not None else ""
        labels.append(spec.name + version + "".join(f":{name}={value}" for name, value in spec.options))
    return Wanted(_labelled((suite.name, case.name, case.id) for case in read_cases(suite)), tuple(labels))


def read_speed(folder: Path, planned: Wanted | None = None) -> Speed:
    """Returns a stored measurement, which must be complete. Raises BadInput."""
    recorded = read_measurement(folder)
    if recorded.end is None:
        raise BadInput(
            f"{folder}: the measurement has no end, it was killed; measure anew into another folder"
        )
    figures = Figures(recorded)
    measured = Wanted(
        _labelled((suite, case.name, case.id) for suite, _, case in read_stored_cases(folder)),
        tuple(figures.arms),
    )
    return Speed(folder, planned or measured, figures, conclude(figures))


def _labelled(cases: Iterator[tuple[str, str, str]]) -> dict[str, str]:
    """Ids by label; a second case of the same name has its id in the label."""
    labelled: dict[str, str] = {}
    for suite, name, case_id in cases:
        label = f"{suite}-{name}"
        labelled[label if label not in labelled else f"{label} {case_id}"] = case_id
    return labelled
