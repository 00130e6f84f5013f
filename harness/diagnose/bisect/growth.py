"""Finds the releases at which a cost at one size of an axis of growth changes: every release between two is
measured, because a slow stretch begins at one release and ends at another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from harness.backend.environments.build import place
from harness.backend.environments.releases import between, released
from harness.backend.process.lost import Lost
from harness.backend.process.service import Service
from harness.backend.registry import BackendSpec
from harness.diagnose.bisect.outcome import without_version
from harness.errors import BadInput, did_you_mean
from harness.measure.growth.axes import Axis, axes
from harness.measure.growth.conclude import FIGURES, Figure
from harness.measure.growth.record import Point
from harness.measure.growth.session import LOADER, SLOW_NS, measured_point
from harness.measure.growth.show import amount
from harness.running.limits import MEMORY_GB
from harness.text import one_line

FORKS = 3
"""Fresh processes of every release; one where the compile takes longer than SLOW_NS."""

CHANGED = 1.5
"""The ratio of the costs of two neighbouring releases from which on it is called a change, if all processes
of the one are beyond all of the other."""
LEAST = 1.0
"""A nanosecond or a byte, which stands for a cost of nothing in a ratio."""


@dataclass(frozen=True)
class GrowthQuestion:
    """What every release is measured at."""

    backend: str
    """The backend's name and options, without a version."""
    axis: str
    size: int
    metric: str
    vocabulary: str
    timeout_s: float = 10.0


@dataclass(frozen=True)
class ReleaseCost:
    """What one release costs."""

    version: str
    costs: tuple[float, ...]
    """A cost for each process; empty if there is none."""
    smallest: float | None
    """The cost at size 1, beside which that at the size shows how it grows."""
    ended: str
    """What ended it where it has no cost, or why it cannot be had."""
    killed: bool
    """Whether it was killed at a limit, which is slower than anything that was measured."""

    @property
    def cost(self) -> float | None:
        """Returns the least cost; None if there is none."""
        return min(self.costs) if self.costs else None

    def text(self, figure: Figure) -> str:
        """Returns the cost for people."""
        if self.cost is None:
            return self.ended
        beside = "" if self.smallest is None else f" (at size 1 {amount(self.smallest, figure.unit)})"
        return f"{amount(self.cost, figure.unit)}{beside}"


@dataclass(frozen=True)
class Change:
    """A release that is slower or faster than the one before it."""

    version: str
    before: str
    """The release before it that has a cost."""
    ratio: float | None
    """The cost over that of the one before; None where one of them was killed."""
    slower: bool


@dataclass(frozen=True)
class GrowthBisection:
    """What a cost did over releases."""

    question: GrowthQuestion
    releases: tuple[ReleaseCost, ...]
    changes: tuple[Change, ...]

    def to_json(self) -> dict[str, Any]:
        """Returns the answer as one JSON object; `ratio` is that of the last release over the first."""
        costs = [one.cost for one in self.releases if one.cost is not None]
        return {
            "metric": self.question.metric,
            "axis": self.question.axis,
            "size": self.question.size,
            "ratio": [_ratio(costs[0], costs[-1], FIGURES[self.question.metric].floor)] if costs[1:] else [],
            "changes": self.changes,
            "steps": [
                {"version": one.version, "costs": one.costs, "smallest": one.smallest, "outcome": one.ended}
                for one in self.releases
            ],
        }

    def text(self, backend: str) -> str:
        """Returns the answer as text for people: each change, then what every release costs."""
        question, figure = self.question, FIGURES[self.question.metric]
        lines = [sentence(backend, change) for change in self.changes]
        if not lines:
            lines = [f"no release of {backend} changes it by {CHANGED:g} times or more"]
        lines += ["", f"{figure.title}, {question.axis} {question.size}, {question.vocabulary}"]
        widest = max(len(one.version) for one in self.releases)
        lines += [f"  {one.version:{widest}}  {one.text(figure)}" for one in self.releases]
        return "\n".join(lines)


def sentence(backend: str, change: Change) -> str:
    """Returns one change as a sentence."""
    word = "slower" if change.slower else "faster"
    if change.ratio is None:
        how = "it is killed at the limit" if change.slower else f"{change.before} was killed at the limit"
    else:
        times = change.ratio if change.slower else 1 / change.ratio
        how = f"{times:.3g} times"
    return f"{backend}=={change.version} is {word} than {change.before}: {how}"


def growth_over_releases(
    question: GrowthQuestion,
    good: str,
    bad: str,
    say: Callable[[str], None],
    releases: Callable[[str], list[str]] = released,
) -> GrowthBisection:
    """Measures every release from one to the other, and returns where the cost changed. Raises BadInput."""
    known = axes()
    if question.axis not in known:
        raise BadInput(f'there is no axis "{question.axis}"{did_you_mean(question.axis, list(known))}')
    if question.metric not in FIGURES:
        raise BadInput(f'"{question.metric}" is not measured along an axis; choose {", ".join(FIGURES)}')
    spec, distribution, installed = without_version(question.backend)
    found = []
    for version in between(lambda: releases(distribution), good, bad):
        try:
            placed, python = place(replace(spec, version=version), distribution, installed, say)
            one = release_cost(question, known[question.axis], placed, python)
        except BadInput as error:
            one = ReleaseCost(version, (), None, f"cannot be had: {one_line(str(error), 200)}", False)
        say(f"{version}: {one.text(FIGURES[question.metric])}")
        found.append(one)
    if not any(one.costs for one in found):
        raise BadInput(f"no release of {distribution} could be measured; the first: {found[0].ended}")
    changed = changes(found, FIGURES[question.metric].floor)
    return GrowthBisection(question, tuple(found), tuple(changed))


def release_cost(question: GrowthQuestion, axis: Axis, spec: BackendSpec, python: str) -> ReleaseCost:
    """Returns what one release costs, in fresh processes."""
    figure = FIGURES[question.metric]
    costs: list[float] = []
    smallest: list[float] = []
    for fork in range(FORKS):
        arguments = {"spec": str(spec), "vocabulary": question.vocabulary}
        with Service(
            LOADER, arguments, int(MEMORY_GB * 1e9), python, {"PYTHONHASHSEED": str(fork)}, keeps_output=True
        ) as service:
            try:
                service.wait()
            except Lost as lost:
                return ReleaseCost(str(spec.version), (), None, f"cannot be loaded: {lost}", False)
            for size, into in ((1, smallest), (question.size, costs)):
                empty = Point(fork, str(spec), question.vocabulary, axis.name, size, "ok")
                point = measured_point(service, empty, question.timeout_s)
                cost = figure.value([point])
                if cost is None:
                    ended = f"{point.status} at size {size}: {one_line(point.text, 200)}"
                    return ReleaseCost(str(spec.version), (), None, ended, point.status == "killed")
                into.append(cost)
        if point.compile_ns and point.compile_ns[-1] > SLOW_NS:
            break  # what takes long is not made again
    return ReleaseCost(str(spec.version), tuple(costs), min(smallest), "", False)


def _ratio(before: float, after: float, floor: float) -> float:
    """Returns the second cost over the first. Costs below `floor` cannot be told apart; that of memory may be
    0."""
    return max(after, floor, LEAST) / max(before, floor, LEAST)


def changes(found: list[ReleaseCost], floor: float = 0.0) -> list[Change]:
    """Returns the releases that differ from the one before them; those without a cost are passed over, but
    for what was killed. Costs below `floor` cannot be told apart."""
    made = []
    for before, after in pairwise(one for one in found if one.costs or one.killed):
        if before.cost is None or after.cost is None:
            if before.killed != after.killed:
                made.append(Change(after.version, before.version, None, after.killed))
            continue
        ratio = _ratio(before.cost, after.cost, floor)
        if ratio >= CHANGED and min(after.costs) > max(before.costs):
            made.append(Change(after.version, before.version, ratio, True))
        elif ratio <= 1 / CHANGED and max(after.costs) < min(before.costs):
            made.append(Change(after.version, before.version, ratio, False))
    return made
