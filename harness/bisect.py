"""Which release of a backend was the first to show an outcome? A binary search over the released versions, as `git bisect` does it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.checks import checks
from harness.describe import places
from harness.differences import CHECKS, Difference, Key, Outcome, case_lines, differences, outcomes
from harness.environments import place
from harness.errors import BadInput, one_line
from harness.registry import BackendSpec, parse_specs
from harness.releases import between, released
from harness.row import OURS, Row
from harness.session import Request
from harness.session import run as run_session
from harness.store import read_rows

Probe = Callable[[str], bool | None]
"""Does the version show it? None: that cannot be told of this version."""


@dataclass(frozen=True)
class Found:
    """Between `last_good` and `first_bad` lie only versions of which nothing could be told: one of them, or `first_bad`, is the first."""

    last_good: str
    first_bad: str
    skipped: tuple[str, ...]

    @property
    def candidates(self) -> tuple[str, ...]:
        return (*self.skipped, self.first_bad)


def first_bad(versions: Sequence[str], probe: Probe) -> Found:
    """The first version that shows it, where the first of `versions` is known not to, the last is, and neither is asked again."""
    good, bad = 0, len(versions) - 1
    skipped: set[int] = set()
    while untold := [each for each in range(good + 1, bad) if each not in skipped]:
        middle = min(untold, key=lambda each: abs(2 * each - good - bad))
        shows = probe(versions[middle])
        if shows is None:
            skipped.add(middle)
        elif shows:
            bad = middle
        else:
            good = middle
    return Found(versions[good], versions[bad], tuple(versions[good + 1 : bad]))


@dataclass(frozen=True)
class Question:
    """What is asked of every version: one case, walked and checked."""

    backend: str
    """Name and options, no version."""
    case: str
    """Its name or id."""
    suites: tuple[str, ...]
    """Where to look for it; empty for all of ours."""
    vocabulary: str = "probe"
    effort: int = 2
    timeout_s: float = 10.0
    memory_gb: float = 4.0


@dataclass(frozen=True)
class Answer:
    """The first version that shows what the last one shows, and the first does not."""

    found: Found
    differences: tuple[Difference, ...]
    """Between the last without and the first with it."""
    steps: tuple[tuple[str, str], ...]
    """Every version that was tried, and what came of it."""

    def to_json(self) -> dict[str, Any]:
        """As one object."""
        return {
            "first_bad": self.found.first_bad if not self.found.skipped else None,
            "candidates": list(self.found.candidates),
            "last_good": self.found.last_good,
            "differences": [each.to_json() for each in self.differences],
            "steps": [{"version": version, "outcome": outcome} for version, outcome in self.steps],
        }

    def text(self, backend: str) -> str:
        """For people."""
        found = self.found
        if found.skipped:
            first = f"the first version with it is one of {', '.join(found.candidates)}: the others of these could not be tried"
        else:
            first = f"{backend}=={found.first_bad} is the first version with it"
        lines = [line for each in self.differences for line in case_lines(each)]
        return "\n".join([f"{first}; {found.last_good} is the last without", *lines])


class Untold(Exception):
    """Why nothing can be said of a version, in one line."""


def bisect(
    question: Question,
    good: str,
    bad: str,
    say: Callable[[str], None] = print,
    releases: Callable[[str], list[str]] = released,
) -> Answer:
    """Walk the released versions between the two. Raises BadInput, also if both show the same, or if one of them cannot be told."""
    spec, distribution, installed = without_version(question.backend)
    versions = between(releases(distribution), good, bad)
    seen: dict[str, tuple[Row, ...]] = {}
    steps: list[tuple[str, str]] = []

    def rows(version: str) -> tuple[Row, ...]:
        if version not in seen:
            its_spec = placed(version)
            say(f"{version}: walking ...")
            seen[version] = walked(question, its_spec)
        return seen[version]

    def placed(version: str) -> BackendSpec:
        try:
            return place(replace(spec, version=version), distribution, installed, say)[0]
        except BadInput as error:
            raise Untold(one_line(str(error))) from error

    def step(version: str, outcome: str) -> None:
        steps.append((version, outcome))
        say(f"{version}: {outcome}")

    for look, end in ((placed, good), (placed, bad), (rows, good), (rows, bad)):
        try:
            look(end)
        except Untold as why:
            raise BadInput(f"{distribution} {end} cannot be told, so there is nothing to search between: {why}") from why
    wanted = difference_of(seen[good], seen[bad])
    if not wanted:
        raise BadInput(f"{distribution} {good} and {bad} come to the same in this case; there is nothing to search for")
    step(good, "does not show it")
    step(bad, "shows it")

    def probe(version: str) -> bool | None:
        try:
            shows = shown(wanted, outcomes(rows(version)))
        except Untold as why:
            step(version, f"skipped: {why}")
            return None
        said = {None: "skipped: it lacks the part or the check in question", True: "shows it", False: "does not show it"}
        step(version, said[shows])
        return shows

    found = first_bad(versions, probe)
    return Answer(found, differences(seen[found.last_good], seen[found.first_bad]).cases, tuple(steps))


def without_version(backend: str) -> tuple[BackendSpec, str, str]:
    """The backend, its distribution and the version of it that is installed. Raises BadInput if there is nothing to search in."""
    (spec,) = parse_specs(backend)
    if spec.version is not None:
        raise BadInput(f'"{spec}" has a version; write the backend without one, and the versions as GOOD..BAD')
    ((distribution, installed),) = places([spec.name]).values()
    if not distribution:
        raise BadInput(f'backend "{spec.name}" belongs to no distribution, so it has no releases')
    return spec, distribution, installed


def walked(question: Question, spec: BackendSpec) -> tuple[Row, ...]:
    """The rows of the case on that version. Raises Untold if there are none, BadInput for a question that no version can answer."""
    with tempfile.TemporaryDirectory(prefix="grammarbench-bisect-") as folder:
        request = Request(
            suites=question.suites,
            backends=str(spec),
            vocabularies=(question.vocabulary,),
            profile="full",
            out=Path(folder, "run"),
            resume=False,
            jobs=1,
            timeout_s=question.timeout_s,
            memory_gb=question.memory_gb,
            effort=question.effort,
            spellings=False,
            argv=(),
            only=(question.case,),
        )
        outcome = run_session(request, lambda _: None, lambda _: None)
        rows = tuple(read_rows(outcome.folder))
    ours = next((row for row in rows if row.status == "harness_error"), None)
    if ours is not None:
        raise Untold(f"our own failure: {one_line(ours.text)}")
    if all(row.status in OURS for row in rows):
        raise Untold(f"not walked: {one_line(rows[0].text)}")
    return rows


Wanted = Mapping[tuple[Key, str, str], bool]
"""By case, part and fault: is it there in the last version (and not in the first), or is it gone there?"""


def difference_of(before: Sequence[Row], after: Sequence[Row]) -> Wanted:
    """What the later rows show and the earlier do not."""
    wanted: dict[tuple[Key, str, str], bool] = {}
    for each in differences(before, after).cases:
        for part in each.parts:
            wanted |= {(each.key, part.part, fault): True for fault in part.new}
            wanted |= {(each.key, part.part, fault): False for fault in part.gone}
    return wanted


def shown(wanted: Wanted, cases: Mapping[Key, Outcome]) -> bool | None:
    """Is all of it so here? None if a part of it was not measured, or a check in question was not made."""
    answers = []
    for (key, part, fault), there in wanted.items():
        case = cases[key]
        if part not in case.parts:
            return None
        check = fault.partition(":")[0]
        if part == CHECKS and check in checks() and check not in case.looked:
            return None
        answers.append((fault in case.parts[part]) == there)
    return all(answers)
