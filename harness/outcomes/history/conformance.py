"""What became of each feature of the cases, run by run: the conformance runs of a history, folded.

    DIR/conformance/<UTC>_<run>.jsonl.gz      the header; then one line per arm and suite: how many cases of each tag came to what

Counts only, so that years of nightly runs stay small; which cases they are, the run says, or `grammarbench
compare` of two runs.
"""  # noqa: E501

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from harness.backend.arm import arm
from harness.backend.environments.releases import release
from harness.errors import BadInput, Incomplete
from harness.outcomes.case_state import CaseState
from harness.outcomes.history.files import NewFile, read_lines
from harness.outcomes.history.measurements import new_file
from harness.outcomes.new_checks import MadeChecks, in_words, with_row
from harness.outcomes.outcome import CaseRows, faults
from harness.rows.again import how_to_complete
from harness.rows.row import OUT_OF_TIME, Row
from harness.rows.sample import sample_of
from harness.rows.store import read_end, read_info, read_rows
from harness.shape import shaped
from harness.text import counted

FORM, FOLDER = 3, "conformance"

WORKS, REFUSED, TOO_SLOW = CaseState.WORKS.value, CaseState.REFUSED.value, CaseState.TOO_SLOW.value

SILENT = (CaseState.NOT_JUDGED.value, CaseState.NOT_MEASURED.value)
"""The states of a case that say nothing of the backend."""

HURRIED, BESIDE = "hurried", "beside"
"""Counted in addition: of the cases that work, the ones whose checks ran out of time; of the refused ones,
those that nothing could judge."""

NO_CHECKS = "a run without checks"
"""These words stand for a run that made no checks, as the walks of a measurement make none."""

EVERY = ""
"""The feature that every case of a suite has."""

Counts = Mapping[str, int]
"""How many cases by state (`CaseState`), and HURRIED and BESIDE; those that are not there are 0."""


@dataclass(frozen=True)
class SuiteHistory:
    """One arm on one suite in one run."""

    time: str
    run: str
    backend: str
    version: str
    options: str
    vocabulary: str
    suite: str
    work: str
    """A digest of what must be equal for two of these to be comparable: cases, vocabulary, effort, checks
    that were asked for, seed. The checks that GrammarBench had to make are in `checks`."""
    features: Mapping[str, Counts]
    sample: str = ""
    """Says what the run left out: which sample of its suites it walked, and which checks it made. It is
    empty if the run walked them whole with all checks, and in histories that do not tell."""
    checks: Mapping[str, int] | None = None
    """The checks that were made in every case, with the number of cases that fail each; None where the run
    made none, and in histories from before this field."""

    @property
    def made_checks(self) -> bool:
        """Did the run make checks? Where a history does not tell, it did."""
        return NO_CHECKS not in self.sample

    def is_comparable(self, other: SuiteHistory) -> bool:
        """Were both run on the same work, with the same checks as far as they tell?"""
        return self.work == other.work and not (self.checks_beyond(other) or other.checks_beyond(self))

    def checks_beyond(self, other: SuiteHistory) -> dict[str, int]:
        """Returns the checks that only this one of the two has, with the number of cases that fail each; none
        where one does not tell."""
        if self.checks is None or other.checks is None:
            return {}
        return {name: cases for name, cases in self.checks.items() if name not in other.checks}


@dataclass(frozen=True)
class FeatureChange:
    """A feature of which more or fewer cases work than in the release before, whatever the cases were that
    ran out of time."""

    before: SuiteHistory
    after: SuiteHistory
    feature: str

    @property
    def lost(self) -> int:
        """Returns the least number of cases that work no more."""
        return lost(self._counts(self.before), self._counts(self.after))

    @property
    def won(self) -> int:
        """Returns the least number of cases that work and did not before."""
        return lost(self._counts(self.after), self._counts(self.before))

    def _counts(self, history: SuiteHistory) -> Counts:
        return history.features.get(self.feature, {})


def lost(before: Counts, after: Counts) -> int:
    """Returns how many fewer cases work, even if all that are undecided afterwards worked, and none that was
    undecided before."""
    undecided = (WORKS, TOO_SLOW, *SILENT)
    return max(
        0, before.get(WORKS, 0) - before.get(HURRIED, 0) - sum(after.get(state, 0) for state in undecided)
    )


def judged(counts: Counts) -> int:
    """Returns how many of these cases were judged: the denominator of `conformance`."""
    told = (counts.get(state.value, 0) for state in CaseState if state.value not in SILENT)
    return sum(told) - counts.get(BESIDE, 0)


def outcomes_file(history: Path, folder: Path) -> NewFile:
    """Returns the file of how many cases work in a complete run. Raises BadInput."""
    info = read_info(folder)
    if read_end(folder) is None:
        how = how_to_complete(folder, info)
        raise Incomplete(f"{folder}: the run is incomplete and goes into no history; {how}")
    if info.shard:
        raise BadInput(
            f"{folder}: shard {info.shard} of a run goes into no history; put the shards "
            "together first (grammarbench merge)"
        )
    header = {
        "form": FORM,
        "run": info.run,
        "started": info.started,
        "harness": info.harness,
        "sample": "; ".join(filter(None, (sample_of(info), "" if info.effort != 0 else NO_CHECKS))),
    }
    lines: list[dict[str, Any]] = [header]
    checks: dict[tuple[str, ...], _Checks] = {}
    for key, features in _fold(read_rows(folder), checks).items():
        backend, version, options, vocabulary, suite = key
        of_suite, of_vocabulary = info.suites.get(suite, {}), info.vocabularies.get(vocabulary, {})
        work = [
            suite,
            of_suite.get("sha256"),
            vocabulary,
            of_vocabulary.get("sha256"),
            info.effort,
            info.seed,
            FORM,
        ]
        work += ["decode"] if info.decode else []
        work += ["checks", *sorted(info.checks)] if info.checks else []
        of_arm = {
            "backend": backend,
            "version": version,
            "options": options,
            "vocabulary": vocabulary,
            "suite": suite,
        }
        of_arm["work"] = hashlib.sha256(json.dumps(work).encode()).hexdigest()[:12]
        made = checks[key].failed()
        lines.append(of_arm | {"features": features} | ({} if made is None else {"checks": made}))
    if len(lines) == 1:
        raise BadInput(f"{folder}: this run has no rows; there is nothing for a history")
    return new_file(history / FOLDER, info.started, info.run, lines)


@dataclass
class _Checks:
    """The checks of one arm on one suite."""

    made: MadeChecks = field(default_factory=MadeChecks)
    cases: Counter[str] = field(default_factory=Counter)
    """How many cases fail each."""

    def add(self, row: Row) -> None:
        """Takes in one row."""
        self.made = with_row(self.made, row)
        self.cases.update({fault.finding.check for fault in faults(row) if fault.fails and fault.finding})

    def failed(self) -> dict[str, int] | None:
        """Returns how many cases fail each check that was made in all of them; None where that is not
        known."""
        made = self.made.always
        return None if made is None else {name: self.cases[name] for name in sorted(made)}


Folded = dict[tuple[str, ...], dict[str, dict[str, int]]]


def _fold(rows: Iterable[Row], checks: dict[tuple[str, ...], _Checks] | None = None) -> Folded:
    """Returns the number of cases by backend, version, options, vocabulary and suite, then by feature and
    state; notes their checks in `checks`."""
    cases: dict[tuple[str, ...], tuple[set[str], CaseRows]] = {}
    hurried = set()
    checks = {} if checks is None else checks
    for row in rows:
        key: tuple[str, ...] = (
            row.backend,
            row.backend_version,
            row.options,
            row.vocabulary,
            row.suite,
            row.case_id,
        )
        tags, case_rows = cases.setdefault(key, (set(), CaseRows()))
        tags.update(row.tags)
        case_rows.add(row)
        checks.setdefault(key[:-1], _Checks()).add(row)
        if OUT_OF_TIME in row.checks.values():
            hurried.add(key)
    folded: Folded = {}
    for key, (tags, case_rows) in cases.items():
        state = case_rows.state.value
        counted = [state]
        counted += [HURRIED] * (state == WORKS and key in hurried)
        counted += [BESIDE] * (state == REFUSED and not case_rows.is_judged)
        features = folded.setdefault(key[:-1], {})
        for tag in {EVERY, *tags}:
            counts = features.setdefault(tag, {})
            for name in counted:
                counts[name] = counts.get(name, 0) + 1
    return folded


def read_histories(history: Path) -> list[SuiteHistory]:
    """Returns what each run of the history came to in each of its suites, the oldest first. Raises
    BadInput."""
    histories = []
    for path in sorted((history / FOLDER).glob("*.jsonl.gz")):
        header, *lines = read_lines(path)
        form = header.get("form")
        if form != FORM:
            raise BadInput(
                f"{path}: of form {form}, this version reads {FORM}; add the runs "
                "anew to a history of their own"
            )
        try:
            who = {
                "time": header.get("started"),
                "run": header.get("run"),
                "sample": header.get("sample", ""),
            }
            histories += [shaped(SuiteHistory, {**line, **who}) for line in lines]
        except ValueError as error:
            raise BadInput(f"{path}: no file of a history ({error})") from error
    return sorted(histories, key=lambda entry: (entry.time, entry.run))


def releases(histories: Iterable[SuiteHistory]) -> list[SuiteHistory]:
    """Returns the last run of each version, of those with checks if there is one, the oldest version first;
    in the order of time where a version is none of a release."""
    latest: dict[str, SuiteHistory] = {}
    first: dict[str, int] = {}
    for number, history in enumerate(histories):
        before = latest.get(history.version)
        if before is None or history.made_checks or not before.made_checks:
            latest[history.version] = history
        first.setdefault(history.version, number)
    ordered = all(release(version)[0] for version in latest)
    return sorted(
        latest.values(),
        key=lambda history: (
            (release(history.version), first[history.version]) if ordered else first[history.version]
        ),
    )


def successive(histories: Iterable[SuiteHistory]) -> Iterator[tuple[SuiteHistory, SuiteHistory]]:
    """Yields each release behind the release before it that was run on the same work and with the same
    checks; a run of which no history tells the checks stands beside those of any."""
    for group in _of_one_work(histories):
        sets = dict.fromkeys(frozenset(one.checks) for one in group if one.checks is not None)
        pairs: dict[tuple[int, int], tuple[SuiteHistory, SuiteHistory]] = {}
        for made in sets or [None]:
            alike = [one for one in group if one.checks is None or frozenset(one.checks) == made]
            pairs |= {(id(before), id(after)): (before, after) for before, after in pairwise(releases(alike))}
        yield from pairs.values()


def _of_one_work(histories: Iterable[SuiteHistory]) -> Iterator[list[SuiteHistory]]:
    """Yields what was run of one arm on the same work, the oldest first."""

    def key(history: SuiteHistory) -> tuple[str, ...]:
        return history.backend, history.options, history.vocabulary, history.suite, history.work

    ordered = sorted(histories, key=lambda history: (key(history), history.time, history.run))
    for _, group in groupby(ordered, key=key):
        yield list(group)


def not_compared(histories: Iterable[SuiteHistory]) -> Iterator[str]:
    """Yields a line for each release whose last run is not compared with that of the release before it,
    because only one of the two has some checks; and one for a loss where a history does not tell these."""
    for group in _of_one_work(histories):
        for before, after in pairwise(releases(group)):
            what = f"{arm(after)} {after.version} on {after.suite} is"
            for here, there in ((after, before), (before, after)):
                if alone := here.checks_beyond(there):
                    made = f"{counted(len(alone), 'check')} {'was' if len(alone) == 1 else 'were'} made"
                    why = f"{made} of {here.version} only ({in_words(alone)})"
                    yield f"{what} not compared with {before.version}: {why}"
            unknown = [one.version for one in (before, after) if one.checks is None and one.made_checks]
            if unknown and FeatureChange(before, after, EVERY).lost:
                had = f"which checks {' and '.join(unknown)} had is not known"
                yield f"{what} compared with {before.version}, but {had}"


def steps(histories: Iterable[SuiteHistory]) -> list[FeatureChange]:
    """Returns every feature of which a release lost or won cases, against the release before it that was run
    on the same work."""
    return [
        step
        for before, after in successive(histories)
        for step in (FeatureChange(before, after, feature) for feature in after.features)
        if step.lost or step.won
    ]


def losses(histories: Iterable[SuiteHistory]) -> list[FeatureChange]:
    """Returns the steps down."""
    return [step for step in steps(histories) if step.lost]


def last_sample(histories: Sequence[SuiteHistory]) -> str:
    """Returns the sample of its suites that the last run walked; empty if it walked them whole."""
    return histories[-1].sample if histories else ""


def histories_text(history: Path) -> str:
    """Returns how many runs there are, and what was lost."""
    histories = read_histories(history)
    last = last_sample(histories)
    lines = [
        f"outcomes: {counted(len({(history.time, history.run) for history in histories}), 'run')}"
        + (f"; the last is {last}" if last else "")
    ]
    for loss in losses(histories):
        what = f"{arm(loss.after)} {loss.after.version} on {loss.after.suite}: {loss.feature or 'all cases'}"
        lines.append(f"  lost        {what}: at least {loss.lost} fewer work than in {loss.before.version}")
    lines += [f"  checks      {line}" for line in not_compared(histories)]
    return "\n".join(lines)
