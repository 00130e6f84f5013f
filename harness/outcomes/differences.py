"""What two sets of rows do not agree on, case by case: the verdict of each instance, and what the checks
found.

Pure functions over rows. Each side is one arm (a backend with its options at one version) over the same
cases; what only one side has, and what is missing through our fault, is counted and compared with nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.outcomes.case_state import CaseState
from harness.outcomes.expected import (
    TIMEOUT,
    WRONG_VERDICTS,
    Faults,
    changed_faults,
    faults_of_row,
    gravity_of,
    is_cut_off,
    state_of_name,
    undocumented_faults_of_row,
)
from harness.outcomes.new_checks import ChecksOfCase, are_new, check_of
from harness.outcomes.outcome import IN_A_CHECK
from harness.rows.row import CHECKS_MODE, OURS, Row

POLICY = "policy"
"""The kind of a difference in documented behaviour alone, which fails nothing."""

TITLES = {
    "worse": "new faults",
    "better": "faults that are gone",
    "other": "other faults than before",
    POLICY: "other documented behaviour",
}
"""The words for each kind of difference, in the order in which they are told."""

CHECKS = "checks"
"""The part of a case that is no instance of it."""

Key = tuple[str, str, str]
"""Vocabulary, suite and case id."""

Place = tuple[str, int]
"""What stays of a part where an instance is put before others: the part without the number of its instance,
and how many of that name come before it."""


@dataclass
class CaseDifferences:
    """What a case came to on one arm."""

    name: str
    dialect: str
    parts: dict[str, Faults] = field(default_factory=dict)
    """What is wrong, by instance or under `CHECKS`; empty where nothing is. A part that we did not measure is
    not there."""
    documented: dict[str, Faults] = field(default_factory=dict)
    """The faults of each part that the backend documents, or that are its choice."""
    places: dict[Place, str] = field(default_factory=dict)
    """All parts by their places, those that we did not measure too."""
    looked: frozenset[str] = frozenset()
    """The checks that passed or failed; the others say nothing."""
    unjudged: set[str] = field(default_factory=set)
    """The parts of which nobody knows whether the instance is valid: they say nothing of the verdict."""
    unmeasured: int = 0
    """Parts that are missing through our fault."""
    placed: set[str] = field(default_factory=set)
    """The parts that have a place."""
    of_name: Counter[str] = field(default_factory=Counter)
    """How many parts have a place under each name."""
    is_cut_off: bool = False
    """Did its checks end with a missed deadline, so that the further ones were not made?"""
    begun: ChecksOfCase = field(default_factory=ChecksOfCase)
    """The checks that were begun, whatever came of them."""

    @property
    def is_late(self) -> bool:
        """Was a deadline missed in every part that was measured?"""
        return all(TIMEOUT in part_faults for part_faults in self.parts.values())

    def place(self, row: Row) -> None:
        """Give the row's part its place, if it has none."""
        part = part_of(row)
        if part not in self.placed:
            nameless = _part(row, "instance")
            self.places[nameless, self.of_name[nameless]] = part
            self.of_name[nameless] += 1
            self.placed.add(part)

    def shown(self, place: Place, others: CaseDifferences) -> Faults | None:
        """Returns what is wrong with the part at that place, without the checks that only one of the two
        made, and without the verdict where one of them does not know it; None if it is missing."""
        part = self.places[place]
        part_faults = self.parts.get(part)
        if part_faults is None:
            return None
        if part in self.unjudged or others.places[place] in others.unjudged:
            part_faults -= WRONG_VERDICTS
        if part != CHECKS:
            return part_faults
        silent = self.looked ^ others.looked
        if self.begun.lost_in in self.begun.alone(others.begun):
            part_faults = frozenset(fault for fault in part_faults if not fault.endswith(IN_A_CHECK))
        return frozenset(fault for fault in part_faults if check_of(fault) not in silent)

    def found_alone(self, others: CaseDifferences) -> frozenset[str]:
        """Returns the checks of this side alone that cost the case, or in which the backend was lost."""
        faults = self.parts.get(CHECKS, frozenset()) - self.documented.get(CHECKS, frozenset())
        return self.begun.alone(others.begun) & {self.begun.lost_in, *map(check_of, faults)}


@dataclass(frozen=True)
class Changed:
    """One part of a case that came out differently."""

    part: str
    before: Faults
    after: Faults
    documented: Faults = frozenset()
    """The faults on either side that the backend documents, or that are its choice."""

    @property
    def new(self) -> Faults:
        return self.after - self.before

    @property
    def gone(self) -> Faults:
        return self.before - self.after

    @property
    def proven(self) -> tuple[Faults, Faults]:
        """Returns the new faults and the gone ones on which no missed deadline has a say."""
        return changed_faults(self.before, self.after)


@dataclass(frozen=True)
class Difference:
    """A case that came out differently."""

    key: Key
    name: str
    dialect: str
    parts: tuple[Changed, ...]

    @property
    def depends_on_the_machine(self) -> bool:
        """Does it differ in nothing that a missed deadline does not hide?"""
        return not any(faults for part in self.parts for faults in part.proven)

    @property
    def gravity(self) -> tuple[int, int]:
        """Returns a key that puts first the case whose worst new fault is gravest; where none is new, or all
        that is new is documented, it goes by the worst of all that differ."""
        return gravity_of(self._worst)

    @property
    def state(self) -> CaseState:
        """Returns the state in which that fault puts the case."""
        return state_of_name(self._worst)

    @property
    def _worst(self) -> str:
        new = frozenset[str]().union(*(part.new - part.documented for part in self.parts))
        every = frozenset[str]().union(*(part.before ^ part.after for part in self.parts))
        return min(new or every, key=lambda fault: (gravity_of(fault), fault))

    @property
    def kind(self) -> str:
        """`worse` if there are only new faults, `better` if there are none, else `other`; `policy` if all
        that came or went is documented. A missed deadline counts only where nothing else differs."""
        alone = self.depends_on_the_machine
        changed = [((part.new, part.gone) if alone else part.proven, part.documented) for part in self.parts]
        new = any(came - documented for (came, _), documented in changed)
        gone = any(went - documented for (_, went), documented in changed)
        if not new and not gone:
            return POLICY
        return "other" if new and gone else "worse" if new else "better"

    def to_json(self) -> dict[str, Any]:
        """Returns the difference as a flat JSON object."""
        vocabulary, suite, case_id = self.key
        parts = [
            {"part": part.part, "before": sorted(part.before), "after": sorted(part.after)}
            for part in self.parts
        ]
        return {
            "vocabulary": vocabulary,
            "suite": suite,
            "case_id": case_id,
            "case": self.name,
            "kind": self.kind,
            "parts": parts,
        }


@dataclass(frozen=True)
class Differences:
    """All differences between two sets of rows, and what they were looked for in."""

    cases: tuple[Difference, ...]
    compared: int
    """Cases that both sides have and that were measured in part at least."""
    unmeasured: int
    """Cases of which something is missing through our fault, on either side."""
    only_before: int
    """Cases that only the first side has, and below those that only the second has, each counted once
    however many vocabularies it lacks on the other side."""
    only_after: int
    parts_alone: int = 0
    """Parts of cases which both sides have that only one of the two has."""
    strangers: int = 0
    """Cases that both sides have, but no part of them."""
    half_judged: int = 0
    """Parts of which only one side knows whether the instance is valid: their verdicts are not compared."""
    uncompared: tuple[str, ...] = ()
    """The vocabularies on which the first side has cases of which none was compared."""
    late: tuple[str, ...] = ()
    """The vocabularies on which the second side missed a deadline in every case that was compared: in all of
    it, or in the checks."""
    checks_alone: tuple[str, ...] = ()
    """A line about the checks that only the second side made, and one about those that only the first side
    made: what they find is compared with nothing."""


def case_key(row: Row) -> Key:
    """Returns which case the row is of."""
    return row.vocabulary, row.suite, row.case_id


def add_outcome(by_key: dict[Key, CaseDifferences], row: Row) -> None:
    """Notes under its case what the row came to."""
    case = by_key.setdefault(case_key(row), CaseDifferences(row.case, row.dialect))
    case.place(row)
    if row.mode == CHECKS_MODE:
        case.looked |= {name for name, result in row.checks.items() if result in ("passed", "failed")}
        case.begun.add(row)
    case.is_cut_off |= is_cut_off(row)
    if row.status in OURS:
        case.unmeasured += 1
        return
    part, faults = part_of(row), faults_of_row(row)
    documented = faults - undocumented_faults_of_row(row)
    case.parts[part] = case.parts.get(part, frozenset()) | faults
    case.documented[part] = case.documented.get(part, frozenset()) | documented
    if row.mode != CHECKS_MODE and row.valid is None:
        case.unjudged.add(part)


def outcomes(rows: Iterable[Row]) -> dict[Key, CaseDifferences]:
    """Returns what every case came to. Raises ValueError if the rows are of more than one arm."""
    by_key: dict[Key, CaseDifferences] = {}
    arms = set()
    for row in rows:
        arms.add(row.version_key)
        if len(arms) > 1:
            raise ValueError(f"rows of more than one arm: {sorted(arms)}")
        add_outcome(by_key, row)
    return by_key


def part_of(row: Row) -> str:
    """Returns which part of its case the row is of."""
    return _part(row, f"instance {row.instance}")


def _part(row: Row, instance: str) -> str:
    if row.mode == CHECKS_MODE:
        return CHECKS
    walked = "the grammar" if row.instance is None else f"{instance} ({row.instance_name})"
    return f"{walked}, jumping" if row.jump_forward else walked


def differences(before: Iterable[Row], after: Iterable[Row]) -> Differences:
    """Returns what two sets of rows do not agree on. Raises ValueError if a side is of more than one arm."""
    return differences_of(outcomes(before), outcomes(after))


def differences_of(old: dict[Key, CaseDifferences], new: dict[Key, CaseDifferences]) -> Differences:
    """Returns the cases that came out differently, the gravest first, and of one gravity in the order of the
    first rows of `old`."""
    both = [key for key in old if key in new]
    changed = []
    for key in both:
        if parts := tuple(_changed(old[key], new[key])):
            changed.append(Difference(key, old[key].name, old[key].dialect, parts))
    compared = [key for key in both if any(_measured(old[key], new[key]))]
    changed.sort(key=lambda difference: difference.gravity)
    newer = _checks_alone("made on the newer side only", ((new[key], old[key]) for key in compared))
    older = _checks_alone("made on the older side only", ((old[key], new[key]) for key in compared))
    seen = {vocabulary for vocabulary, _, _ in compared}
    in_time = {
        key[0]
        for key in compared
        if not new[key].is_late and (not new[key].is_cut_off or old[key].is_cut_off)
    }
    return Differences(
        tuple(changed),
        compared=len(compared),
        unmeasured=sum(bool(old[key].unmeasured or new[key].unmeasured) for key in both),
        only_before=len({key[1:] for key in old if key not in new}),
        only_after=len({key[1:] for key in new if key not in old}),
        parts_alone=sum(len(old[key].places.keys() ^ new[key].places.keys()) for key in both),
        half_judged=sum(_half_judged(old[key], new[key]) for key in both),
        strangers=sum(old[key].places.keys().isdisjoint(new[key].places) for key in both),
        uncompared=tuple(dict.fromkeys(vocabulary for vocabulary, _, _ in old if vocabulary not in seen)),
        late=tuple(sorted(seen - in_time)),
        checks_alone=tuple(filter(None, (newer, older))),
    )


def _checks_alone(which: str, pairs: Iterable[tuple[CaseDifferences, CaseDifferences]]) -> str:
    """Returns a line about the checks that only the first of each pair has; empty where there is none."""
    failed: Counter[str] = Counter()
    cases = 0
    for one, other in pairs:
        failed.update(dict.fromkeys(one.begun.alone(other.begun), 0))
        found = one.found_alone(other)
        failed.update(found)
        cases += bool(found)
    return are_new(failed, cases, which, "and they are compared with nothing")


def _measured(old: CaseDifferences, new: CaseDifferences) -> Iterator[tuple[Place, Faults, Faults]]:
    """Yields the place of each part that both have and that was measured on both sides, and what is wrong
    with it on each."""
    for place in old.places:
        if place in new.places:
            before, after = old.shown(place, new), new.shown(place, old)
            if before is not None and after is not None:
                yield place, before, after


def _half_judged(old: CaseDifferences, new: CaseDifferences) -> int:
    """Counts the parts that both have and of which only one knows whether the instance is valid."""
    shared = [(old.places[place], new.places[place]) for place in old.places if place in new.places]
    return sum((before in old.unjudged) != (after in new.unjudged) for before, after in shared)


def _changed(old: CaseDifferences, new: CaseDifferences) -> Iterator[Changed]:
    for place, before, after in _measured(old, new):
        part = new.places[place]  # by its number in the newer run, where it can be seen again
        was, now = old.documented[old.places[place]], new.documented[part]
        # What the backend documents on one side only is no fault there, and one on the other.
        half = before & after & (was ^ now)
        before, after = before - (half & was), after - (half & now)
        if before != after:
            yield Changed(part, before, after, (was | now) - half)


def in_words(parts: Sequence[Changed]) -> str:
    """Returns the faults that are new and those that are gone, each once, with the number of parts that have
    it."""
    counts = {
        "new": Counter(fault for part in parts for fault in part.new),
        "gone": Counter(fault for part in parts for fault in part.gone),
    }
    return "; ".join(
        f"{title} {', '.join(f'{count} × {fault}' if count > 1 else fault for fault, count in sorted(faults.items()))}"  # noqa: E501
        for title, faults in counts.items()
        if faults
    )
