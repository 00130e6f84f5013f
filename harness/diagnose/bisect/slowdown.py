"""Finds the first release of a backend that is slower, by the same search as for an outcome, with a
measurement at every step."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from harness.backend.environments.releases import between, released
from harness.backend.registry import BackendSpec
from harness.cases.plan import check_named
from harness.cases.suite import Suite, find_suite, read_cases
from harness.diagnose.bisect.outcome import (
    Question,
    SearchResult,
    Unavailable,
    Unproven,
    first_bad,
    without_version,
)
from harness.errors import LISTED, BadInput
from harness.measure.estimate import Verdict
from harness.measure.figures import METRICS
from harness.measure.record import read_measurement
from harness.measure.session import SUITES, MeasureRequest, measure
from harness.measure.statistics import Interval
from harness.running.limits import MEMORY_GB
from harness.text import counted, one_line, some


class LostWhileMeasured(Unavailable):
    """A version works on the case, and its process was lost while it was measured."""


class Measured(NamedTuple):
    """The time of a version divided by that of the first one, as `measure` found and judged it."""

    found: Interval
    verdict: Verdict
    why: str = ""

    def text(self) -> str:
        """Returns the ratio with its verdict and the reason of that for people."""
        because = f" ({self.why})" if self.why else ""
        return f"{shown(self.found)}, {self.verdict}{because}"


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
    and the last, and does not if it lies below; across it, or where the run is unproven, it cannot be told,
    nor where it lies above and is not proven to be slower: fresh forks may have said otherwise. Raises
    BadInput, also if the last is not slower, and Unproven if that is not known.
    """
    if metric not in METRICS:
        raise BadInput(f'"{metric}" is not measured; choose one of {", ".join(METRICS)}')
    suites = [find_suite(name) for name in question.suites or SUITES["quick"]]
    check_named(suites, (question.case,))
    check_is_one(suites, question.case)
    spec, distribution, _ = without_version(question.backend)
    versions = between(lambda: releases(distribution), good, bad)
    steps: list[tuple[str, str]] = []

    def step(version: str, outcome: str) -> None:
        steps.append((version, outcome))
        say(f"{version}: {outcome}")

    try:
        total = ratio(question, spec, metric, good, bad, say)
    except Unavailable as why:
        kind = Unproven if isinstance(why, LostWhileMeasured) else BadInput
        raise kind(f"{distribution} {good} and {bad} cannot be measured against each other: {why}") from why
    if total.verdict != "regressed":
        kind = Unproven if total.verdict in ("unproven", "inconclusive") else BadInput
        raise kind(f"{distribution} {bad} is not proven to be slower than {good} in {metric}: {total.text()}")
    step(good, "does not show it")
    step(bad, f"shows it: {shown(total.found)}")
    middle = math.sqrt(total.found.ratio)

    def probe(version: str) -> bool | None:
        try:
            measured = ratio(question, spec, metric, good, version, say)
        except Unavailable as why:
            step(version, f"skipped: {why}")
            return None
        found, shows = measured.found, shows_it(measured, middle)
        if shows is not None:
            step(version, f"{'shows' if shows else 'does not show'} it: {shown(found)}")
        elif found.low <= middle <= found.high:
            step(version, f"skipped: {measured.text()}; it is not clear of {middle:.3f}")
        else:
            step(version, f"skipped: {measured.text()}")
        return shows

    return Slowdown(metric, first_bad(versions, probe), total.found, tuple(steps))


def check_is_one(suites: Sequence[Suite], name: str) -> None:
    """Raises BadInput if the name is that of several cases: each may have become slower with another
    version."""
    found = {
        case.id: f"{case.id} ({suite.name})"
        for suite in reversed(suites)
        for case in read_cases(suite)
        if name in (case.id, case.name)
    }
    if len(found) > 1:
        which = some(sorted(found.values()), LISTED)
        raise BadInput(
            f'"{name[:100]}" is the name of {counted(len(found), "case")}; give the id of one: {which}'
        )


def shows_it(measured: Measured, middle: float) -> bool | None:
    """Returns whether a version is slower than the middle; None where that cannot be told."""
    found, verdict = measured.found, measured.verdict
    if verdict == "unproven" or found.low <= middle <= found.high:
        return None
    is_above = found.low > middle
    # The interval is that of the first forks alone, which fresh ones may have refuted.
    return None if is_above and verdict == "inconclusive" else is_above


def ratio(
    question: Question, spec: BackendSpec, metric: str, good: str, version: str, say: Callable[[str], None]
) -> Measured:
    """Returns the time of the version divided by that of the good one, with its verdict. Raises
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
            measured_in, comparisons = measure(request, lambda _: None)
            lost = losses(measured_in)
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
    if lost and (of_version is None or not of_version.cases):
        raise LostWhileMeasured(lost[0])
    if of_version is None:
        raise Unavailable("the case is not solved by both")
    return Measured(of_version.found, of_version.verdict, of_version.why)


def losses(folder: Path) -> list[str]:
    """Returns what a measurement says of the arms that were lost in it, but for the reference's copy. Raises
    BadInput."""
    recorded = read_measurement(folder)
    arms = {arm.name for arm in recorded.measurement.arms if arm.role != "a/a"}
    return [
        f"{other['arm']} was lost while it was measured: {one_line(other['text'], 200)}"
        for other in recorded.others
        if other["kind"] == "lost" and other["arm"] in arms
    ]
