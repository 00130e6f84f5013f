"""Finds the first release of a backend that is slower, by the same search as for an outcome, with a
measurement at every step."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.backend.environments.releases import between, released
from harness.backend.registry import BackendSpec
from harness.cases.plan import check_named
from harness.cases.suite import find_suite
from harness.diagnose.bisect.outcome import Question, SearchResult, Unavailable, first_bad, without_version
from harness.errors import BadInput
from harness.measure.figures import METRICS
from harness.measure.session import SUITES, MeasureRequest, measure
from harness.measure.statistics import Interval
from harness.running.limits import MEMORY_GB
from harness.text import one_line


@dataclass(frozen=True)
class Slowdown:
    """The first version whose time is nearer to the last one's than to the first one's."""

    metric: str
    search: SearchResult
    total: Interval
    """The time of the last version divided by that of the first."""
    steps: tuple[tuple[str, str], ...]

    @property
    def is_proven(self) -> bool:
        """Is it that of one known version?"""
        return self.search.is_proven

    def to_json(self) -> dict[str, Any]:
        """Returns the slowdown as one JSON object."""
        return {
            "metric": self.metric,
            "first_bad": self.search.first_bad if not self.search.skipped else None,
            "candidates": list(self.search.candidates),
            "last_good": self.search.last_good,
            "ratio": [self.total.ratio, self.total.low, self.total.high],
            "steps": [{"version": version, "outcome": outcome} for version, outcome in self.steps],
        }

    def text(self, backend: str) -> str:
        """Returns the slowdown as text for people."""
        search = self.search
        names = (
            f"one of {', '.join(search.candidates)}" if search.skipped else f"{backend}=={search.first_bad}"
        )
        whole = f"over the whole range {self.metric} takes {shown(self.total)} times as long"
        return f"{names} is the first version with it; {search.last_good} is the last without\n{whole}"


def shown(interval: Interval) -> str:
    """Returns the ratio with its interval."""
    return f"{interval.ratio:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def slowdown(
    question: Question,
    metric: str,
    good: str,
    bad: str,
    say: Callable[[str], None],
    releases: Callable[[str], list[str]] = released,
) -> Slowdown:
    """Measures released versions between the two against the first, each in one interleaved run.

    A version shows the slowdown if its interval lies above the middle (geometric) between the first version
    and the last, and does not if it lies below; across it, or where the run is unproven, it cannot be told.
    Raises BadInput, also if the last is not proven to be slower.
    """
    if metric not in METRICS:
        raise BadInput(f'"{metric}" is not measured; choose one of {", ".join(METRICS)}')
    check_named([find_suite(name) for name in question.suites or SUITES["quick"]], (question.case,))
    spec, distribution, _ = without_version(question.backend)
    versions = between(lambda: releases(distribution), good, bad)
    steps: list[tuple[str, str]] = []

    def step(version: str, outcome: str) -> None:
        steps.append((version, outcome))
        say(f"{version}: {outcome}")

    try:
        total, verdict = ratio(question, spec, metric, good, bad, say)
    except Unavailable as why:
        raise BadInput(
            f"{distribution} {good} and {bad} cannot be measured against each other: {why}"
        ) from why
    if verdict != "regressed":
        raise BadInput(
            f"{distribution} {bad} is not proven to be slower than {good} in {metric}: "
            f"{shown(total)}, {verdict}"
        )
    step(good, "does not show it")
    step(bad, f"shows it: {shown(total)}")
    middle = math.sqrt(total.ratio)

    def probe(version: str) -> bool | None:
        try:
            estimate, verdict = ratio(question, spec, metric, good, version, say)
        except Unavailable as why:
            step(version, f"skipped: {why}")
            return None
        if verdict == "unproven" or estimate.low <= middle <= estimate.high:
            step(version, f"skipped: {shown(estimate)}, which is not clear of {middle:.3f}")
            return None
        step(version, f"{'shows' if estimate.low > middle else 'does not show'} it: {shown(estimate)}")
        return estimate.low > middle

    return Slowdown(metric, first_bad(versions, probe), total, tuple(steps))


def ratio(
    question: Question, spec: BackendSpec, metric: str, good: str, version: str, say: Callable[[str], None]
) -> tuple[Interval, str]:
    """Returns the time of the version divided by that of the good one, and the verdict. Raises
    Unavailable."""
    with tempfile.TemporaryDirectory(prefix="grammarbench-bisect-") as folder:
        arms = [str(replace(spec, version=arm_version)) for arm_version in (good, version)]
        request = MeasureRequest(
            suites=question.suites,
            backends=",".join(arms),
            reference=None,
            vocabulary=question.vocabulary,
            profile="quick",
            out=Path(folder, "run"),
            forks=None,
            timeout_s=question.timeout_s,
            memory_gb=MEMORY_GB,
            argv=(),
            case=question.case,
        )
        say(f"{version}: measuring against {good} ...")
        try:
            _, comparisons = measure(request, lambda _: None)
        except BadInput as error:
            raise Unavailable(one_line(str(error))) from error
    of_version = next(
        (
            comparison
            for comparison in comparisons
            if comparison.metric == metric and not comparison.is_control
        ),
        None,
    )
    if of_version is None:
        raise Unavailable("the case is not solved by both")
    return of_version.found, of_version.verdict
