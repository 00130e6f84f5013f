"""What became of each feature of the cases, run by run: the conformance runs of a history, folded.

    DIR/conformance/<UTC>_<run>.jsonl.gz      the header; then one line per arm and suite: how many cases of each tag came to what

Counts only, so that years of nightly runs stay small; which cases they are, the run says, or `grammarbench compare` of two runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from harness.errors import BadInput, Incomplete
from harness.history import read_lines, release, write_once
from harness.ratchet import TIMEOUT, faults
from harness.row import BROKEN, OURS, Row, arm
from harness.store import read_end, read_info, read_rows

FORM, FOLDER = 1, "conformance"

FATES = ("pass", "declined", "finding", "over_constrained", "under_constrained", "broken", "timeout", "unmeasured")
"""Of a case, from the best to the gravest fault; then what says nothing about the backend for certain."""

EVERY = ""
"""The feature that every case of a suite has."""

Counts = Mapping[str, int]
"""How many cases by fate; those that are not there are 0."""


@dataclass(frozen=True)
class Seen:
    """One arm on one suite in one run."""

    time: str
    run: str
    backend: str
    version: str
    options: str
    vocabulary: str
    suite: str
    work: str
    """A digest of what must be equal for two of these to be comparable: cases, vocabulary, effort, seed."""
    features: Mapping[str, Counts]


@dataclass(frozen=True)
class Step:
    """A feature of which more or fewer cases pass than in the release before, whatever the cases were that ran out of time."""

    before: Seen
    after: Seen
    feature: str

    @property
    def lost(self) -> int:
        """At least so many pass no more."""
        return lost(self._counts(self.before), self._counts(self.after))

    @property
    def won(self) -> int:
        """At least so many pass that did not."""
        return lost(self._counts(self.after), self._counts(self.before))

    def _counts(self, seen: Seen) -> Counts:
        return seen.features.get(self.feature, {})


def lost(before: Counts, after: Counts) -> int:
    """How many fewer cases pass, even if all that are undecided afterwards passed."""
    return max(0, before.get("pass", 0) - sum(after.get(each, 0) for each in ("pass", "timeout", "unmeasured")))


def fate(found: set[str]) -> str:
    """The gravest of the faults (harness/ratchet.py) of one case."""
    if TIMEOUT in found:
        return "timeout"
    if found & set(BROKEN):
        return "broken"
    for each in ("under_constrained", "over_constrained"):
        if each in found:
            return each
    return "finding" if found - {"declined"} else "declined" if found else "pass"


def add(history: Path, folder: Path) -> Path:
    """Fold one complete run into the history; the file that was written. Raises BadInput."""
    if read_end(folder) is None:
        raise Incomplete(f"{folder}: the run is incomplete and goes into no history; `grammarbench run --resume` completes it")
    info = read_info(folder)
    if info.shard:
        raise BadInput(f"{folder}: shard {info.shard} of a run goes into no history; put the shards together first (grammarbench merge)")
    lines: list[dict[str, Any]] = [{"fates": FORM, "run": info.run, "started": info.started, "harness": info.harness}]
    for (backend, version, options, vocabulary, suite), features in _fold(read_rows(folder)).items():
        of_suite, of_vocabulary = info.suites.get(suite, {}), info.vocabularies.get(vocabulary, {})
        work = [suite, of_suite.get("sha256"), vocabulary, of_vocabulary.get("sha256"), info.effort, info.seed]
        work += ["decode"] if info.decode else []
        of_arm = {"backend": backend, "version": version, "options": options, "vocabulary": vocabulary, "suite": suite}
        lines.append(of_arm | {"work": hashlib.sha256(json.dumps(work).encode()).hexdigest()[:12], "features": features})
    if len(lines) == 1:
        raise BadInput(f"{folder}: this run has no rows; there is nothing for a history")
    return write_once(history / FOLDER, info.started, info.run, lines)


def _fold(rows: Iterable[Row]) -> dict[tuple[str, ...], dict[str, dict[str, int]]]:
    """By backend, version, options, vocabulary and suite; then by feature and fate: how many cases."""
    cases: dict[tuple[str, ...], tuple[set[str], set[str]]] = {}
    ours = set()
    for row in rows:
        key: tuple[str, ...] = (row.backend, row.backend_version, row.options, row.vocabulary, row.suite, row.case_id)
        tags, found = cases.setdefault(key, (set(), set()))
        tags.update(row.tags)
        found |= faults(row)
        if row.status in OURS:
            ours.add(key)
    folded: dict[tuple[str, ...], dict[str, dict[str, int]]] = {}
    for key, (tags, found) in cases.items():
        said = "unmeasured" if key in ours and not found else fate(found)
        features = folded.setdefault(key[:-1], {})
        for tag in {EVERY, *tags}:
            counts = features.setdefault(tag, {})
            counts[said] = counts.get(said, 0) + 1
    return folded


def read(history: Path) -> list[Seen]:
    """Everything, the oldest first. Raises BadInput."""
    found = []
    for path in sorted((history / FOLDER).glob("*.jsonl.gz")):
        header, *lines = read_lines(path)
        if header.get("fates") != FORM:
            raise BadInput(f"{path}: of form {header.get('fates')}, this version reads {FORM}")
        try:
            found += [Seen(time=header["started"], run=header["run"], **line) for line in lines]
        except (KeyError, TypeError) as error:
            raise BadInput(f"{path}: no file of a history ({error})") from error
    return sorted(found, key=lambda each: (each.time, each.run))


def releases(seen: Iterable[Seen]) -> list[Seen]:
    """The last run of each version, the oldest version first; in the order of time where a version is none of a release."""
    latest: dict[str, Seen] = {}
    first: dict[str, int] = {}
    for number, each in enumerate(seen):
        latest[each.version] = each
        first.setdefault(each.version, number)
    ordered = all(release(version)[0] for version in latest)
    return sorted(latest.values(), key=lambda each: (release(each.version), first[each.version]) if ordered else first[each.version])


def steps(seen: Iterable[Seen]) -> list[Step]:
    """Every feature of which a release lost or won cases, against the release before it that was run on the same work."""

    def key(each: Seen) -> tuple[str, ...]:
        return each.backend, each.options, each.vocabulary, each.suite, each.work

    found = []
    for _, group in groupby(sorted(seen, key=lambda each: (key(each), each.time, each.run)), key=key):
        for before, after in pairwise(releases(group)):
            every = (Step(before, after, feature) for feature in after.features)
            found += [step for step in every if step.lost or step.won]
    return found


def losses(seen: Iterable[Seen]) -> list[Step]:
    """The steps down."""
    return [each for each in steps(seen) if each.lost]


def text(history: Path) -> str:
    """How many runs there are, and what was lost."""
    seen = read(history)
    lines = [f"outcomes: {len({(each.time, each.run) for each in seen})} run(s)"]
    for each in losses(seen):
        what = f"{arm(each.after)} {each.after.version} on {each.after.suite}: {each.feature or 'all cases'}"
        lines.append(f"  lost        {what}: at least {each.lost} fewer pass than in {each.before.version}")
    return "\n".join(lines)
