"""From figures to conclusions: ratios of arms, each with its interval and verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from harness.backend.arm import are_versions, base_of
from harness.measure.figures import METRICS, OF_FRESH_COMPILES, Figures
from harness.measure.protocol import VERY_SLOW_COMPILE_NS
from harness.measure.record import Trace
from harness.measure.statistics import Interval, Judgement, chance, false_discovery, interval, judge
from harness.text import counted

Verdict = Literal["regressed", "improved", "equivalent", "inconclusive", "unproven"]

SMALLEST_MARGIN = 0.05
FLOORS = 3.0
"""The margin is the larger of SMALLEST_MARGIN and this factor times the noise floor of this run's A/A arm in
the same figures."""

OF_ITSELF = "identical code, and not equivalent within its interval"
NOT_EQUIVALENT = "two arms of identical code were not equivalent here"
NO_CONTROL = "no case of two arms of identical code is judged here"
"""The reference solves none, was lost in all, or has too few figures of them; no further fork helps."""


@dataclass(frozen=True)
class Comparison:
    """Head against base in one metric over one family of cases."""

    base: str
    head: str
    metric: str
    family: str
    cases: int
    """The cases on which it rests; 0 if there is an estimate and nothing to judge it by."""
    found: Interval
    margin: float
    floor: float
    """The noise floor of the A/A arm in this metric and family; NaN if there is none."""
    verdict: Verdict
    why: str
    mean_ratio: float
    """The plain ratio of means over all passes (for compiles, over all compiles); it is never judged."""
    is_control: bool
    """Is it the A/A pair, the reference against itself, which must come out equivalent?"""
    unjudged: int = 0
    """The cases that both arms solve and that are not judged, because one of the arms has no figure in every
    fork that was to measure them; `why` says so."""

    @property
    def smallest_effect(self) -> float:
        """Returns the smallest change that would have been seen: the margin and the width of the interval."""
        return self.margin + 2 * self.found.half_width


LogRatios = dict[int, dict[str, dict[int, float]]]
"""The values ln(head / base) by fork, case and round."""


def log_ratios(figures: Figures, metric: str, base: str, head: str, cases: Iterable[str]) -> LogRatios:
    """Returns the values of the cases that both arms have in each of the `whole_forks`, and of those further
    forks that have all of these cases too.

    A further fork leaves slow cases out. It is left out rather than they: a head that became slow would else
    take the case that shows it out of the comparison.
    """
    found = log_ratios_of_both(figures, metric, base, head, cases)
    whole = [set(found.get(fork, ())) for fork in figures.whole_forks]
    judged = set.intersection(*whole) if whole else set()
    return {
        fork: {case: of_case for case, of_case in of_fork.items() if case in judged}
        for fork, of_fork in found.items()
        if judged and judged <= of_fork.keys()
    }


def log_ratios_of_both(
    figures: Figures, metric: str, base: str, head: str, cases: Iterable[str]
) -> LogRatios:
    """Returns the values wherever both arms have a figure."""
    cells = figures.cells[metric]
    ratios_by_fork: LogRatios = {}
    for case in cases:
        ours, theirs = cells.get((head, case), {}), cells.get((base, case), {})
        for fork in ours.keys() & theirs.keys():
            rounds = ours[fork].keys() & theirs[fork].keys()
            if rounds:
                ratios = {number: math.log(ours[fork][number] / theirs[fork][number]) for number in rounds}
                ratios_by_fork.setdefault(fork, {})[case] = ratios
    return ratios_by_fork


def per_fork(ratios: Mapping[int, Mapping[str, Mapping[int, float]]]) -> list[float]:
    """Returns one number for each fork: for each case the median over its rounds, then the mean over cases
    (the logarithm of a geometric mean).

    Only cases that every fork has count, because a case that is missing in one would move that fork.
    """
    if not ratios:
        return []
    shared = set.intersection(*(set(cases) for cases in ratios.values()))
    if not shared:
        return []
    return [
        float(np.mean([np.median(list(cases[case].values())) for case in sorted(shared)]))
        for _, cases in sorted(ratios.items())
    ]


def noise_floor(figures: Figures, metric: str, family: str, reference: str, again: str) -> float:
    """Returns how far two arms of identical code scatter: over pairs of rounds (forwards and backwards) and
    forks, the median distance from their median; NaN if unknown.

    An offset that is the same everywhere is no noise; the A/A verdict shows it.
    """
    apart = []
    for cases in log_ratios(figures, metric, reference, again, figures.cases_of(family)).values():
        pairs: dict[int, list[float]] = {}
        for rounds in cases.values():
            for number, value in rounds.items():
                pairs.setdefault(number // 2, []).append(value)
        apart += [float(np.mean(pair)) for pair in pairs.values()]
    return float(np.median(np.abs(np.array(apart) - np.median(apart)))) if apart else math.nan


def margin_of(floor: float) -> float:
    """Returns the largest relative difference that counts as no change, for this noise floor."""
    return SMALLEST_MARGIN if math.isnan(floor) else max(SMALLEST_MARGIN, FLOORS * floor)


def mean_ratio(figures: Figures, metric: str, base: str, head: str, cases: Sequence[str]) -> float:
    """Returns the geometric mean over cases of plain ratios of means; if the metric is one of passes, over
    all passes of all forks."""
    column = {"fill": 0, "accept": 1}.get(metric)
    ratios = []
    for case in cases:
        means = []
        for arm in (head, base):
            if column is None:
                cell = figures.cells[metric].get((arm, case), {})
                values = [value for rounds in cell.values() for value in rounds.values()]
            else:
                slots = figures.by_arm.get(arm, {}).get(case, {})
                values = [float(s) for slot in slots.values() for s in slot.sums[:, column]]
            means.append(np.mean(values) if values else math.nan)
        if all(mean > 0 for mean in means):  # a clock that saw no time pass has measured nothing
            ratios.append(math.log(means[0] / means[1]))
    return math.exp(float(np.mean(ratios))) if ratios else math.nan


def pairs(figures: Figures) -> list[tuple[str, str]]:
    """Returns base and head of every comparison: the reference with every other arm, and each arm with the
    one of its backend against which it is compared (`base_of`)."""
    arms = [measured for measured in figures.measurement.arms if measured.role != "a/a"]
    reference = figures.measurement.reference
    paired = [(reference.name, arm.name) for arm in arms if arm is not reference]
    for head in arms:
        base = base_of(head, arms)
        if base is not None and (base.name, head.name) not in paired:
            paired.append((base.name, head.name))
    return paired


def is_change(comparison: Comparison, figures: Figures) -> bool:
    """Returns whether the comparison is one of two versions of one thing.

    Between two backends or two settings of one, a ratio is only a difference.
    """
    arms = {one.name: one for one in figures.measurement.arms}
    return are_versions(arms[comparison.base], arms[comparison.head])


def compare(figures: Figures, confirming: Figures | None = None) -> list[Comparison]:
    """Returns every pair in every metric and family, the A/A pair first; see docs/measuring.md for each step.

    Where the A/A arm is not equivalent in the metric and family, or has no case there that is judged, a
    verdict is `unproven`. Of the verdicts that say that something changed, those are kept that a false
    discovery rate of one percent leaves; the others are `inconclusive`. So are those between versions of one
    thing that `confirming` forks, where some were made, do not say too. What is not slower between versions
    in the cases that are judged is `unproven` while there are others that are not.
    """
    reference, again = figures.measurement.reference.name, figures.measurement.again
    floors = {
        (metric, family): noise_floor(figures, metric, family, reference, again) if again else math.nan
        for metric in METRICS
        for family in figures.families
    }
    controls = [control for control, _ in _compared(figures, [(reference, again)], floors)] if again else []
    judged_by = {(control.metric, control.family) for control in controls if control.cases}
    proven = {(control.metric, control.family) for control in controls if control.verdict == "equivalent"}
    compared = _compared(figures, pairs(figures), floors)
    judged = []
    significant = false_discovery([chance(x, comparison.margin) for comparison, x in compared])
    for (comparison, _), stands in zip(compared, significant, strict=True):
        here = comparison.metric, comparison.family
        differs = comparison.verdict in ("regressed", "improved")
        if here not in proven and again:
            why = NOT_EQUIVALENT if here in judged_by else NO_CONTROL
            judged.append(replace(comparison, verdict="unproven", why=why))
        elif differs and not stands:
            why = "does not stand at a false discovery rate of one percent"
            judged.append(replace(comparison, verdict="inconclusive", why=why))
        elif differs and confirming is not None and is_change(comparison, figures):
            judged.append(_confirmed(comparison, confirming))
        else:
            judged.append(comparison)
    judged_controls = [
        replace(control, verdict="unproven", why=OF_ITSELF if control.cases else "")
        if control.verdict == "inconclusive"
        else control
        for control in controls
    ]
    return [_censored(comparison, figures) for comparison in (*judged_controls, *judged)]


def conclude(figures: Figures) -> list[Comparison]:
    """Returns the comparisons of a measurement, with the changes that its fresh forks confirmed or not."""
    confirming = Figures(figures.recorded, confirming=True)
    return compare(figures, confirming if confirming.made else None)


def _compared(
    figures: Figures, wanted: Sequence[tuple[str, str]], floors: Mapping[tuple[str, str], float]
) -> list[tuple[Comparison, list[float]]]:
    """Returns each comparison with the numbers per fork on which it rests."""
    compared = (
        _compared_in(figures, base, head, metric, family, floors[metric, family])
        for base, head in wanted
        for metric in METRICS
        for family in figures.families
    )
    return [one for one in compared if one is not None]


def _compared_in(
    figures: Figures, base: str, head: str, metric: str, family: str, floor: float
) -> tuple[Comparison, list[float]] | None:
    """Returns one comparison with its numbers per fork; None if no case has figures of both arms."""
    solved = _solved_by_both(figures.families[family], base, head)
    ratios = log_ratios(figures, metric, base, head, solved)
    judged = set().union(*ratios.values())
    if not ratios:  # nothing can be judged; the first fork has an estimate, and no interval
        some = log_ratios_of_both(figures, metric, base, head, solved)
        ratios = dict(sorted(some.items())[:1])
    x = per_fork(ratios)
    if not x:
        return None
    estimate, margin = interval(x), margin_of(floor)
    comparison = Comparison(
        base,
        head,
        metric,
        family,
        cases=len(judged),
        found=estimate,
        margin=margin,
        floor=floor,
        verdict=judge(estimate, margin),
        why="",
        mean_ratio=mean_ratio(figures, metric, base, head, sorted(set().union(*ratios.values()))),
        is_control=head == figures.measurement.again,
        unjudged=len(solved) - len(judged),
    )
    return comparison, x


def confirmation(comparison: Comparison, confirming: Figures) -> tuple[Interval | None, Judgement]:
    """Returns the interval and verdict of fresh forks alone; no interval and `inconclusive` if they do not
    have a figure of every case on which it rests, or an arm was lost in them."""
    pair = comparison.base, comparison.head
    ratios = log_ratios(confirming, comparison.metric, *pair, confirming.cases_of(comparison.family))
    has_all = bool(ratios) and len(set().union(*ratios.values())) >= comparison.cases
    if not has_all or confirming.was_lost(pair, comparison.family):
        return None, "inconclusive"
    second = interval(per_fork(ratios))
    return second, judge(second, comparison.margin)


def _confirmed(comparison: Comparison, confirming: Figures) -> Comparison:
    """Returns a change as fresh forks leave it: confirmed, open, or unproven as an arm was lost in them."""
    second, verdict = confirmation(comparison, confirming)
    if second is None:
        if confirming.was_lost((comparison.base, comparison.head), comparison.family):
            why = "not confirmed: an arm was lost in fresh forks"
            return replace(comparison, verdict="unproven", why=why)
        has_some = bool(confirming.forks_by_arm.get(comparison.head))
        why = "not every fresh fork has every case" if has_some else "no figure in fresh forks"
        return replace(comparison, verdict="inconclusive", why=f"not confirmed: {why}")
    if verdict == comparison.verdict:
        return replace(
            comparison,
            why=f"confirmed by {second.forks} fresh forks: {second.ratio:.3f} "
            f"[{second.low:.3f}, {second.high:.3f}]",
        )
    return replace(
        comparison,
        verdict="inconclusive",
        why=f"{comparison.verdict}, but {second.forks} fresh forks say {verdict}",
    )


def _solved_by_both(traces: Iterable[Trace], base: str, head: str) -> list[str]:
    """Returns the cases that are to be measured on both arms."""
    return [trace.case_id for trace in traces if {base, head} <= set(trace.solved_by)]


def _censored(comparison: Comparison, figures: Figures) -> Comparison:
    """Returns the comparison with a word about the cases that are not judged. A change that is not slower
    without them is unproven, because they may be what became slow. So is one that stayed open because an arm
    was lost in a further fork."""
    may_be_slower = is_change(comparison, figures) and not comparison.is_control
    pair = comparison.base, comparison.head
    if comparison.unjudged:
        sentence = _too_few(comparison, figures)
    elif may_be_slower and comparison.verdict == "inconclusive" and figures.was_lost(pair, comparison.family):
        sentence = "an arm was lost in a further fork"
    else:
        return comparison
    why = f"{comparison.why}; {sentence}" if comparison.why else sentence
    if may_be_slower and comparison.verdict != "regressed":
        return replace(comparison, verdict="unproven", why=why)
    return replace(comparison, why=why)


def _too_few(comparison: Comparison, figures: Figures) -> str:
    """Returns how many cases are not judged, and why they have too few figures."""
    pair = comparison.base, comparison.head
    solved = _solved_by_both(figures.families[comparison.family], *pair)
    last = figures.last_whole_fork
    lost = sum(any(figures.lost.get((arm, case), math.inf) <= last for arm in pair) for case in solved)
    causes = []
    if comparison.metric in OF_FRESH_COMPILES and lost < comparison.unjudged:
        causes.append(f"a compile takes over {VERY_SLOW_COMPILE_NS / 1e9:g} s")
    if lost:
        causes.append("an arm was lost")
    because = f", because {' or '.join(causes)}," if causes else ""
    were, are = ("was", "is") if comparison.unjudged == 1 else ("were", "are")
    measured = f"{counted(comparison.unjudged, 'case')} {were} measured in too few forks"
    return f"{measured}{because} and {are} not judged"


def flagged(comparisons: Iterable[Comparison], figures: Figures) -> list[Comparison]:
    """Returns the comparisons that must be confirmed before they are reported: changes between versions of
    one backend with the same options."""
    return [
        comparison
        for comparison in comparisons
        if comparison.verdict in ("regressed", "improved")
        and is_change(comparison, figures)
        and not comparison.is_control  # of identical code no change is claimed
    ]


def undecided(comparisons: Iterable[Comparison], figures: Figures) -> set[str]:
    """Returns the arms whose verdict more forks would help to reach, with their controls. Where no change is
    claimed, a wide interval is an answer too."""
    open_ones = [
        comparison
        for comparison in comparisons
        if comparison.verdict in ("inconclusive", "unproven")
        and is_change(comparison, figures)
        and _more_forks_help(comparison, figures)
    ]
    controls = (
        {measured.name for measured in figures.measurement.arms if measured.role != "arm"}
        if open_ones
        else set()
    )
    return controls | {name for comparison in open_ones for name in (comparison.base, comparison.head)}


def _more_forks_help(comparison: Comparison, figures: Figures) -> bool:
    """Returns whether a further fork would count, and could decide what is judged."""
    pair = comparison.base, comparison.head
    made = figures.forks_by_arm[comparison.base] & figures.forks_by_arm[comparison.head]
    since = figures.last_whole_fork + 1
    if comparison.found.forks < len(made) or figures.was_lost(pair, comparison.family, since):
        return False  # one was left out, because it lacks a slow or a lost case, and so would the next be
    if comparison.verdict == "unproven" and math.isnan(comparison.floor):
        return False  # there is no A/A figure here, and will be none
    return not comparison.unjudged or judge(comparison.found, comparison.margin) == "inconclusive"


def is_proven(comparisons: Iterable[Comparison]) -> bool:
    """Returns whether the A/A arm is equivalent wherever a case of it is judged."""
    controls = [comparison for comparison in comparisons if comparison.is_control and comparison.cases]
    return bool(controls) and all(control.verdict == "equivalent" for control in controls)
