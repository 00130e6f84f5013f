"""Finds the first release of a backend that shows an outcome, or that is rid of a fault, by a binary search
over the released versions, as `git bisect` does. As there, it is assumed that the
outcome changes only once."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from harness.backend.describe import places
from harness.backend.environments.build import place
from harness.backend.environments.releases import between, released
from harness.backend.registry import BackendSpec, parse_specs
from harness.cases.plan import check_named
from harness.cases.suite import find_suite, walked_by_default
from harness.diagnose.bisect.sought import Fault, Wanted, difference_of, shown
from harness.errors import UNPROVEN, BadInput
from harness.outcomes.difference_lines import case_lines
from harness.outcomes.differences import Difference, differences, outcomes
from harness.outcomes.result.parts import Kind
from harness.rows.row import OURS, Row
from harness.rows.store import read_rows
from harness.running.session import Request
from harness.running.session import run as run_session
from harness.text import counted, one_line

Probe = Callable[[str], bool | None]
"""A function that says whether a version shows the outcome; None means that this version cannot tell."""


@dataclass(frozen=True)
class SearchResult:
    """The result of a search. Only versions that could not tell lie between `last_good` and `first_bad`: one
    of them, or `first_bad`, is the first."""

    last_good: str
    first_bad: str
    skipped: tuple[str, ...]

    @property
    def candidates(self) -> tuple[str, ...]:
        return (*self.skipped, self.first_bad)

    @property
    def is_proven(self) -> bool:
        """Is the first known, and not only that it is one of several?"""
        return not self.skipped


def first_bad(versions: Sequence[str], probe: Probe) -> SearchResult:
    """Finds the first version that shows the outcome. The first of `versions` is known not to show it and the
    last to show it; neither is asked again. It is assumed that all before the first do not show it, and all
    after it do."""
    good, bad = 0, len(versions) - 1
    skipped: set[int] = set()
    while unknown := [index for index in range(good + 1, bad) if index not in skipped]:
        middle = min(unknown, key=lambda index: abs(2 * index - good - bad))
        shows = probe(versions[middle])
        if shows is None:
            skipped.add(middle)
        elif shows:
            bad = middle
        else:
            good = middle
    return SearchResult(versions[good], versions[bad], tuple(versions[good + 1 : bad]))


@dataclass(frozen=True)
class Question:
    """The question that every version is asked: one case, walked and checked."""

    backend: str
    """The backend's name and options, without a version."""
    case: str
    """The name or id of the case."""
    suites: tuple[str, ...]
    """The suites in which the case is looked for; empty for all of ours."""
    vocabulary: str = "probe"
    effort: int = 2
    timeout_s: float = 10.0


@dataclass(frozen=True)
class ChangedAt:
    """The first version that shows some of what the last one shows, and the first does not."""

    search: SearchResult
    differences: tuple[Difference, ...]
    """The differences between the last version without the outcome and the first with it."""
    kind: Kind
    also_in: tuple[str, ...] = ()
    """The older versions that show some of it too, of those that were tried."""
    not_in: tuple[str, ...] = ()
    """The newer versions that do not show all of it, of those that were tried."""

    def to_json(self) -> dict[str, Any]:
        """Returns it as one JSON object; the keys of a repair are `first_good` and `last_bad`."""
        first, last = ("first_good", "last_bad") if self.kind == "better" else ("first_bad", "last_good")
        return {
            "kind": self.kind,
            first: self.search.first_bad if not self.search.skipped else None,
            "candidates": list(self.search.candidates),
            last: self.search.last_good,
            "also_in": list(self.also_in),
            "not_in": list(self.not_in),
            "differences": [difference.to_json() for difference in self.differences],
        }

    def text(self, backend: str) -> str:
        """Returns it as text for people."""
        search = self.search
        one = f"{backend}=={search.first_bad}"
        untried = f"one of {', '.join(search.candidates)}: the others of these could not be tried"
        if self.kind == "better":
            sentence = (
                f"fixed in {untried if search.skipped else one}; {search.last_good} is the last version "
                "with the fault"
            )
        else:
            first = (
                f"the first version with it is {untried}"
                if search.skipped
                else (f"{one} is the first version with it")
            )
            sentence = f"{first}; {search.last_good} is the last without"
        without, with_it = SHOWS[self.kind]
        against = [f"{version} {with_it}" for version in self.also_in]
        against += [f"{version} {without}" for version in self.not_in]
        if against:
            sentence += f"\nyet {', '.join(against)}: the outcome changed more than once"
        return "\n".join(
            [sentence, *(line for difference in self.differences for line in case_lines(difference))]
        )


@dataclass(frozen=True)
class BisectResult:
    """Since which versions a case comes to what it comes to in the last one, and not in the first."""

    changes: tuple[ChangedAt, ...]
    """One if everything changed at once, else one for each version at which some of it did, in order."""
    kind: Kind
    """What became of the case from the first version to the last."""
    steps: tuple[tuple[str, str], ...]
    """Every version that was tried, and its result."""

    @property
    def main(self) -> ChangedAt:
        """Returns the change that is named first: of a repair the last one, after which nothing is wrong,
        else the first that brought a fault."""
        if self.kind == "better":
            return self.changes[-1]
        return next((change for change in self.changes if change.kind != "better"), self.changes[0])

    @property
    def is_proven(self) -> bool:
        """Is each change that of one known version?"""
        return all(change.search.is_proven for change in self.changes)

    def to_json(self) -> dict[str, Any]:
        """Returns the outcome as one JSON object: the main change, and under `changes` all of them."""
        return {
            **replace(self.main, kind=self.kind).to_json(),
            "changes": [change.to_json() for change in self.changes],
            "steps": [{"version": version, "outcome": outcome} for version, outcome in self.steps],
        }

    def text(self, backend: str) -> str:
        """Returns the answer as text for people."""
        parts = [change.text(backend) for change in self.changes]
        if len(parts) > 1:
            parts.insert(0, f"it did not change at once, but in {len(parts)} steps:")
        return "\n".join(parts)


SHOWS: Mapping[Kind, tuple[str, str]] = {
    "worse": ("does not show it", "shows it"),
    "better": ("still has the fault", "has the repair"),
    "other": ("does not show it", "shows it"),
}
"""For each kind of change, the words for a version that is like the first one, and for one that is like the
last."""


class Unavailable(Exception):
    """A version cannot be judged; the message says why in one line."""


class Unproven(BadInput):
    """What was measured does not tell whether there is something to search for; the command line exits with
    4."""

    exit_code = UNPROVEN


def bisect(
    question: Question,
    good: str,
    bad: str,
    say: Callable[[str], None],
    releases: Callable[[str], list[str]] = released,
) -> BisectResult:
    """Walks the released versions between the two, and returns where the outcome changed. Raises BadInput,
    also if both show the same, or if one of them cannot tell.

    Every fault in which the two differ is searched by itself, because each may have come with another
    version. Whatever the versions that were tried say against an answer is told with it.
    """
    # The case first: to look a backend up is to import it, in seconds.
    check_named([find_suite(name) for name in question.suites or walked_by_default()], (question.case,))
    spec, distribution, installed = without_version(question.backend)
    versions = between(lambda: releases(distribution), good, bad)
    tried = _Tried(question, spec, distribution, installed, say)
    for look, end in ((tried.placed, good), (tried.placed, bad), (tried.rows, good), (tried.rows, bad)):
        try:
            look(end)
        except Unavailable as why:
            raise BadInput(
                f"{distribution} {end} cannot be judged, so there is nothing to search between: {why}"
            ) from why
    wanted = difference_of(tried.rows(good), tried.rows(bad))
    if not wanted:
        raise BadInput(
            f"{distribution} {good} and {bad} have the same outcome in this case; there is nothing to search "
            "for"
        )
    kind = kind_of(differences(tried.rows(good), tried.rows(bad)).cases)
    tried.step(good, SHOWS[kind][0])
    tried.step(bad, SHOWS[kind][1])

    faults_by_search: dict[SearchResult, list[Fault]] = {}
    for fault in wanted:
        search = first_bad(versions, partial(tried.shows, fault, wanted, kind))
        faults_by_search.setdefault(search, []).append(fault)

    def against(search: SearchResult, faults: list[Fault], answer: bool) -> tuple[str, ...]:
        """Returns the tried versions outside the search's range that give one of the faults this answer."""
        low, high = versions.index(search.last_good), versions.index(search.first_bad)
        outside = versions[:low] if answer else versions[high + 1 :]
        return tuple(
            version
            for version in outside
            if any(tried.answers.get(version, {}).get(fault) is answer for fault in faults)
        )

    changes = [
        ChangedAt(
            search,
            differences(tried.rows(search.last_good), tried.rows(search.first_bad)).cases,
            kind if len(faults_by_search) == 1 else kind_of_faults(wanted[fault].there for fault in faults),
            also_in=against(search, faults, True),
            not_in=against(search, faults, False),
        )
        for search, faults in faults_by_search.items()
    ]
    changes.sort(key=lambda change: versions.index(change.search.first_bad))
    return BisectResult(tuple(changes), kind, tuple(tried.steps))


@dataclass(eq=False)
class _Tried:
    """The versions that a search has tried, each of which is walked once at most."""

    question: Question
    spec: BackendSpec
    distribution: str
    installed: str
    say: Callable[[str], None]
    steps: list[tuple[str, str]] = field(default_factory=list)
    """The versions in the order in which they were tried, each with what it showed."""
    answers: dict[str, dict[Fault, bool | None]] = field(default_factory=dict)
    """Whether a version between the two ends shows each of the faults; None where it cannot tell."""
    _rows: dict[str, tuple[Row, ...]] = field(default_factory=dict)

    def placed(self, version: str) -> BackendSpec:
        """Returns the backend at that version, installed if need be. Raises Unavailable."""
        try:
            spec = replace(self.spec, version=version)
            return place(spec, self.distribution, self.installed, self.say)[0]
        except BadInput as error:
            raise Unavailable(one_line(str(error))) from error

    def rows(self, version: str) -> tuple[Row, ...]:
        """Returns the rows of the case on that version. Raises Unavailable."""
        if version not in self._rows:
            placed = self.placed(version)
            self.say(f"{version}: walking ...")
            self._rows[version] = walked(self.question, placed)
        return self._rows[version]

    def shows(self, fault: Fault, wanted: Wanted, kind: Kind, version: str) -> bool | None:
        """Returns whether a version between the two ends shows one of the faults in which these differ; None
        where it cannot tell."""
        if version not in self.answers:
            try:
                cases = outcomes(self.rows(version))
            except Unavailable as why:
                self.answers[version] = dict.fromkeys(wanted)
                self.step(version, f"skipped: {why}")
            else:
                self.answers[version] = {one: shown({one: sought}, cases) for one, sought in wanted.items()}
                self.step(version, in_words(list(self.answers[version].values()), kind))
        return self.answers[version][fault]

    def step(self, version: str, outcome: str) -> None:
        """Notes and says what a version showed."""
        self.steps.append((version, outcome))
        self.say(f"{version}: {outcome}")


def in_words(answers: Sequence[bool | None], kind: Kind) -> str:
    """Returns what a version shows of the faults that are searched for."""
    known = {answer for answer in answers if answer is not None}
    if not known:
        return "skipped: it lacks the part or the check in question, or broke or missed a deadline in it"
    if len(known) == 1:
        return SHOWS[kind][known.pop()]
    return f"agrees with the last version in {answers.count(True)} of {counted(len(answers), 'fault')}"


def kind_of(changed: Sequence[Difference]) -> Kind:
    """Returns the kind of the change: `worse` if faults only came, `better` if they only went (a repair),
    else `other`."""
    kinds = {change.kind for change in changed}
    return "worse" if kinds == {"worse"} else "better" if kinds == {"better"} else "other"


def kind_of_faults(there: Iterable[bool]) -> Kind:
    """Returns the kind of a change by which faults came (true) or went (false)."""
    known = set(there)
    return "other" if len(known) > 1 else "worse" if known.pop() else "better"


def without_version(backend: str) -> tuple[BackendSpec, str, str]:
    """Returns the backend, its distribution and the version of it that is installed.

    Raises BadInput if there is nothing to search in.
    """
    spec, *others = parse_specs(backend)
    if others:
        raise BadInput(f'"{backend}" names {1 + len(others)} backends; one is bisected at a time')
    if spec.version is not None:
        raise BadInput(
            f'"{spec}" has a version; write the backend without one, and the versions as GOOD..BAD'
        )
    ((distribution, installed),) = places([spec.name]).values()
    if not distribution:
        raise BadInput(f'backend "{spec.name}" belongs to no distribution, so it has no releases')
    return spec, distribution, installed


def walked(question: Question, spec: BackendSpec) -> tuple[Row, ...]:
    """Returns the rows of the case on that version.

    Raises Unavailable if there are none.
    """
    with tempfile.TemporaryDirectory(prefix="grammarbench-bisect-") as folder:
        request = Request(
            suites=question.suites,
            backends=str(spec),
            vocabularies=(question.vocabulary,),
            out=Path(folder, "run"),
            timeout_s=question.timeout_s,
            effort=question.effort,
            only=(question.case,),
        )
        try:
            outcome = run_session(request, lambda _: None, lambda _: None)
        except BadInput as error:
            raise Unavailable(one_line(str(error))) from error
        rows = tuple(read_rows(outcome.folder))
    ours = next((row for row in rows if row.status == "harness_error"), None)
    if ours is not None:
        raise Unavailable(f"our own failure: {one_line(ours.text)}")
    if all(row.status in OURS for row in rows):
        raise Unavailable(f"not walked: {one_line(rows[0].text)}")
    return rows
