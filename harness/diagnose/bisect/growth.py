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
from harness.diagnose.bisect.outcome import Unproven, without_version
from harness.errors import BadInput, did_you_mean
from harness.measure.growth.asking import SLOW_NS, measured_point
from harness.measure.growth.axes import Axis, axes
from harness.measure.growth.conclude import FIGURES, Figure
from harness.measure.growth.record import Point
from harness.measure.growth.session import LOADER
from harness.measure.growth.show import amount
from harness.running.limits import MEMORY_GB
from harness.text import counted, one_line

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
    def is_known(self) -> bool:
        """Returns whether it can be held against another: it has a cost, or was killed."""
        return bool(self.costs) or self.killed

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
    """The release before it that has a cost or was killed."""
    ratio: float | None
    """The cost over that of the one before; None where one of them was killed."""
    slower: bool
    untried: tuple[str, ...] = ()
    """The releases between the two, which could not be measured: the change may have come with one of
    them."""


@dataclass(frozen=True)
class GrowthBisection:
    """What a cost did over releases."""

    question: GrowthQuestion
    releases: tuple[ReleaseCost, ...]
    changes: tuple[Change, ...]

    @property
    def is_proven(self) -> bool:
        """Returns whether each change is that of one known release, and the first and the last release are
        known too: what changed beyond the last known one is not seen."""
        ends = self.releases[0], self.releases[-1]
        return all(end.is_known for end in ends) and not any(change.untried for change in self.changes)

    def to_json(self) -> dict[str, Any]:
        """Returns the answer as one JSON object; `ratio` is that of the last release over the first, and
        empty if one of the two has no cost."""
        first, last = self.releases[0].cost, self.releases[-1].cost
        floor = FIGURES[self.question.metric].floor
        return {
            "metric": self.question.metric,
            "axis": self.question.axis,
            "size": self.question.size,
            "ratio": [] if first is None or last is None else [_ratio(first, last, floor)],
            "changes": self.changes,
            "steps": [
                {"version": one.version, "costs": one.costs, "smallest": one.smallest, "outcome": one.ended}
                for one in self.releases
            ],
        }

    def text(self, backend: str) -> str:
        """Returns the answer as text for people: each change, how many releases could not be measured, then
        what every release costs."""
        question, figure = self.question, FIGURES[self.question.metric]
        lines = [sentence(backend, change) for change in self.changes]
        unknown = [one.version for one in self.releases if not one.is_known]
        if not lines:
            which = " that could be measured" if unknown else ""
            lines = [f"no release of {backend}{which} changes it by {CHANGED:g} times or more"]
        if unknown:
            many = counted(len(self.releases), "release")
            lines.append(f"{len(unknown)} of {many} could not be measured: {', '.join(unknown)}")
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
    whole = f"{backend}=={change.version} is {word} than {change.before}: {how}"
    if not change.untried:
        return whole
    candidates = ", ".join((*change.untried, change.version))
    return f"{whole}; it came with one of {candidates}: the others of these could not be measured"


def growth_over_releases(
    question: GrowthQuestion,
    good: str,
    bad: str,
    say: Callable[[str], None],
    releases: Callable[[str], list[str]] = released,
) -> GrowthBisection:
    """Measures every release from one to the other, and returns where the cost changed. Raises BadInput, and
    Unproven if none has a cost and one was killed."""
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
        kind = Unproven if any(one.killed for one in found) else BadInput
        raise kind(f"no release of {distribution} could be measured; the first: {found[0].ended}")
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
    """Returns the releases that differ from the last known one before them; those without a cost are passed
    over, but for what was killed. Costs below `floor` cannot be told apart."""
    made = []
    for earlier, later in pairwise(index for index, one in enumerate(found) if one.is_known):
        before, after = found[earlier], found[later]
        differs, ratio, slower = _difference(before, after, floor)
        if differs:
            untried = tuple(one.version for one in found[earlier + 1 : later])
            made.append(Change(after.version, before.version, ratio, slower, untried))
    return made


def _difference(before: ReleaseCost, after: ReleaseCost, floor: float) -> tuple[bool, float | None, bool]:
    """Returns whether two releases differ, the ratio of their costs (None where one was killed), and whether
    the second is slower."""
    if before.cost is None or after.cost is None:
        return before.killed != after.killed, None, after.killed
    ratio = _ratio(before.cost, after.cost, floor)
    slower = ratio >= CHANGED and min(after.costs) > max(before.costs)
    faster = ratio <= 1 / CHANGED and max(after.costs) < min(before.costs)
    return slower or faster, ratio, slower
