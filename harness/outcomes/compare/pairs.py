"""Pairs of arms that are compared: within one run, or between two; and what a gate says of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.backend.arm import are_versions, base_of
from harness.errors import BadInput
from harness.measure.estimate import Comparison, conclude
from harness.measure.figures import Figures
from harness.measure.record import has_measurement
from harness.outcomes.compare.counts import (
    WORSE,
    Counted,
    changed_passes,
    compared_counts,
)
from harness.outcomes.compare.runs import counterpart, missing, refuse_other_settings
from harness.outcomes.compare.sides import Side, SideKey, Told, read_told, sides_of
from harness.outcomes.compare.times import ratio_lines
from harness.outcomes.differences import POLICY, Differences, differences_of
from harness.outcomes.expected import states_in_words
from harness.outcomes.gate import Gate
from harness.outcomes.settings import moved_vocabularies
from harness.rows.sample import cases_left_out
from harness.rows.store import read_info
from harness.text import counted


@dataclass(frozen=True)
class Pair:
    """Everything about base and head."""

    base: Side
    head: Side
    outcomes: Differences
    counted: tuple[Counted, ...]
    times: tuple[Comparison, ...]
    """The comparisons of one interleaved run, which are judged."""
    time_notes: tuple[str, ...]
    """Lines about times of two runs: how the ratios to the reference moved, or why they say nothing."""
    count_note: str = ""
    """A line about counts that are not compared, because they are of other texts; empty if all are."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Returns all lines about what is not judged."""
        counts = (self.count_note,) if self.count_note else ()
        return (*self.outcomes.checks_alone, *counts, *self.time_notes)

    @property
    def is_change(self) -> bool:
        """Are base and head versions of one thing (or the same arm of two runs)?

        Only then may a difference between them gate.
        """
        return are_versions(self.base.arm, self.head.arm)

    @property
    def why_no_change(self) -> str:
        """Returns what the two are if they are no versions of one thing; empty if they are."""
        if self.is_change:
            return ""
        return "two settings" if self.base.arm.backend == self.head.arm.backend else "two backends"

    @property
    def counts_worse(self) -> bool:
        """Is an outcome or a count worse? A missed deadline depends on the machine and is not counted."""
        return bool(self.what_is_worse)

    @property
    def what_is_worse(self) -> str:
        """Returns which outcomes and counts are worse, in how many cases; empty if none is."""
        new_faults = [
            case
            for case in self.outcomes.cases
            if case.kind not in ("better", POLICY) and not case.depends_on_the_machine
        ]
        worse = dict.fromkeys((counted.count, counted.case_id) for counted in self.counted if counted.worse)
        counts = {"new faults": len(new_faults)} | Counter(WORSE.get(count, count) for count, _ in worse)
        states = {"new faults": states_in_words(new_faults)}
        return ", ".join(
            f"{what} in {count} case{'s' if count > 1 else ''}{states.get(what, '')}"
            for what, count in counts.items()
            if count
        )

    @property
    def slower(self) -> bool:
        """Is a time proven to be longer?"""
        return any(comparison.verdict == "regressed" for comparison in self.times)

    @property
    def unproven(self) -> bool:
        """Is there a time that the measurement does not prove either way?"""
        return any(comparison.verdict == "unproven" for comparison in self.times)


def compare_arms(folder: Path) -> list[Pair]:
    """Compares the arms of one run. Raises BadInput.

    The first arm of each backend and its options is compared with its later versions, other options with the
    backend's first arm, and whatever else was measured against each other.
    """
    sides = {side.name: side for side in sides_of(folder)}
    recorded = next((side.recorded for side in sides.values()), None)
    comparisons = conclude(Figures(recorded)) if recorded else []
    wanted: dict[tuple[str, str], None] = {}
    arms = [side.arm for side in sides.values()]
    names = dict(zip(arms, sides, strict=True))
    for head in arms:
        if (base := base_of(head, arms)) is not None:
            wanted[names[base], names[head]] = None
    for comparison in comparisons:
        if comparison.base in sides and comparison.head in sides:
            wanted[comparison.base, comparison.head] = None
    told = read_told(sides[name] for pair in wanted for name in pair)
    return [_pair(sides[base_name], sides[head_name], told, comparisons) for base_name, head_name in wanted]


def compare_versions(folder: Path) -> list[Pair]:
    """Compares the versions of one thing within one run. Raises BadInput."""
    return [pair for pair in compare_arms(folder) if pair.is_change]


def compare_runs(base: Path, head: Path, *, gates: bool = False) -> list[Pair]:
    """Compares each arm of the head with the base's of its options and its version, or of the newest version
    there. Raises BadInput, also for runs with other settings; another seed is refused only where the answer
    `gates`."""
    old = {side.arm: side for side in sides_of(base)}
    shared = [(old[there], side) for side in sides_of(head) if (there := counterpart(side.arm, old))]
    if not shared:
        raise BadInput(f"{base} and {head} have no backend with the same options in common")
    refuse_other_settings(base, head, gates=gates)
    lines = list(ratio_lines(base, head)) if has_measurement(base) and has_measurement(head) else []
    moved = moved_vocabularies(read_info(base).vocabularies, read_info(head).vocabularies)
    told = read_told((side for pair in shared for side in pair), {head: moved})
    return [
        _pair(before, after, told, [], [line for name, line in lines if name in ("", after.name)])
        for before, after in shared
    ]


def _pair(
    base: Side,
    head: Side,
    told: Mapping[SideKey, Told],
    comparisons: Iterable[Comparison],
    time_notes: Sequence[str] = (),
) -> Pair:
    names = (base.name, head.name)
    times = tuple(comparison for comparison in comparisons if (comparison.base, comparison.head) == names)
    outcomes = differences_of(told[base.key].outcomes, told[head.key].outcomes)
    # Where a fault is gone and none came, other masks are what was wanted; those of documented behaviour are
    # the backend's choice.
    mended = {case.key[2] for case in outcomes.cases if case.kind in ("better", POLICY)}
    changed, count_note = compared_counts(base, head)
    counted = tuple(
        replace(count, worse=False) if count.count == "masks" and count.case_id in mended else count
        for count in (*changed, *changed_passes(base, head, told))
    )
    return Pair(base, head, outcomes, counted, times, tuple(time_notes), count_note)


def gate_pairs(pairs: Sequence[Pair], *, time: bool) -> Gate:
    """Returns what a gate says of the pairs, with `time` of proven slowdowns too. Raises BadInput.

    Only changes are judged, which are versions of one thing. They prove nothing where something of their base
    is missing.
    """
    changes = [pair for pair in pairs if pair.is_change]
    worse = [f"{pair.head.title} has {pair.what_is_worse}" for pair in changes if pair.counts_worse]
    worse += [f"{pair.head.title} is proven slower" for pair in changes if time and pair.slower]
    alone = [f"of {pair.head.title}, {line}" for pair in changes for line in pair.outcomes.checks_alone]
    if worse:
        return Gate("failed", "", (*worse, *alone))
    if not changes:
        return Gate("unproven", "", ("no two versions of one backend with the same options were compared",))
    if reasons := tuple(_missing(changes)):
        return Gate("unproven", "", (*reasons, *alone))
    if time and not all(pair.times and not pair.unproven for pair in changes):
        why = "not every time is proven either way; measure both versions in one run, on a quiet machine"
        return Gate("unproven", "", (why, *alone))
    why = "no outcome and no count is worse" + (", and no time" if time else "")
    late = sum(
        case.depends_on_the_machine and case.kind not in ("better", POLICY)
        for pair in changes
        for case in pair.outcomes.cases
    )
    why += f", but for {counted(late, 'case')} that missed a deadline" if late else ""
    return Gate("ok", "", (why, *alone))


def _missing(changes: Sequence[Pair]) -> Iterator[str]:
    """Yields what of the bases was not compared, a sentence each."""
    nothing_of = [
        f"{pair.head.title} on {', '.join(pair.outcomes.uncompared)}"
        if pair.outcomes.compared
        else pair.head.title
        for pair in changes
        if pair.outcomes.uncompared or not pair.outcomes.compared
    ]
    if nothing_of:
        yield f"no case of {'; '.join(nothing_of)} could be compared"
    if strangers := max(pair.outcomes.strangers for pair in changes):
        have = "has" if strangers == 1 else "have"
        yield f"{counted(strangers, 'case')} that both sides hold {have} no instance in common"
    for pair in changes:
        if pair.outcomes.late:
            where = f"{pair.head.title} on {', '.join(pair.outcomes.late)}"
            yield f"in every compared case of {where} the walks or the checks missed a deadline"
    for base, head in dict.fromkeys((pair.base.folder, pair.head.folder) for pair in changes):
        if base == head:
            continue
        yield from missing(base, head)
        # A case that was left out is missing on each backend.
        lost = max(
            pair.outcomes.only_before
            for pair in changes
            if (pair.base.folder, pair.head.folder) == (base, head)
        )
        if lost and (walked := cases_left_out(read_info(head))):
            were = "was" if lost == 1 else "were"
            yield f"{counted(lost, 'case')} of {base} {were} not walked in {head}, {walked}"
