"""From the record to figures: first per arm, case, fork and round, then ratios of arms with interval and
verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.backend.arm import are_versions, base_of
from harness.errors import BadInput
from harness.measure.record import Nanoseconds, Recorded, Slot, Trace
from harness.measure.statistics import Interval, Judgement, chance, false_discovery, interval, judge

Verdict = Literal["regressed", "improved", "equivalent", "inconclusive", "unproven"]

SMALLEST_MARGIN = 0.05
FLOORS = 3.0
"""The margin is the larger of SMALLEST_MARGIN and this factor times the noise floor of this run's A/A arm in
the same figures."""

METRICS: dict[str, str] = {
    "compile": "A fresh compile, cache off, one thread unless an option says otherwise.",
    "ttfm": "Time to first mask: compile, new matcher and first fill, of the first pass after a fresh "
    "compile.",
    "cold_fill": "All fills of the first pass after a fresh compile, summed over the text.",
    "fill": "Warm fills: per token the minimum over the passes, summed over the text.",
    "accept": "Warm accepts: per token the minimum over the passes, summed over the text.",
    "matcher_new": "A new object of a compiled grammar: the minimum over the passes.",
}
"""The metrics that are judged, by name: nanoseconds per case, lower is better."""

OF_ITSELF = "identical code, and not equivalent within its interval"

ALL = "all"
"""The family of all cases."""

CaseTimes = dict[int, dict[int, float]]
"""Nanoseconds of one arm on one case, by fork and then by round."""


@dataclass(frozen=True)
class SlotFigures:
    """A slot's figures, taken apart."""

    compile_ns: int | None
    cold_matcher_new_ns: int | None
    cold: Nanoseconds
    """Int64 `[tokens, 2]`, fill and accept of each token; `[0, 2]` if the round was not fresh."""
    matcher_new_ns: int
    warm: Nanoseconds
    """Int64 `[tokens, 2]`, minima over the passes."""
    sums: Nanoseconds
    """Int64 `[passes, 2]`, sums over the tokens."""


def shape(slot: Slot, figures: Nanoseconds) -> SlotFigures:
    """Take apart the slice of one slot. Raises BadInput if it has another length than the slot says."""
    steps = 2 * slot.tokens
    wanted = (2 + steps if slot.fresh else 0) + 1 + steps + 2 * slot.passes
    if len(figures) != wanted:
        raise BadInput(
            f"a slot of {slot.arm} on {slot.case_id} has {len(figures)} figures, not {wanted}; "
            "the record was changed"
        )
    compile_ns = matcher_ns = None
    cold = np.zeros((0, 2), np.int64)
    if slot.fresh:
        compile_ns, matcher_ns = int(figures[0]), int(figures[1])
        cold = figures[2 : 2 + steps].reshape(-1, 2)
        figures = figures[2 + steps :]
    return SlotFigures(
        compile_ns,
        matcher_ns,
        cold,
        int(figures[0]),
        figures[1 : 1 + steps].reshape(-1, 2),
        figures[1 + steps :].reshape(-1, 2),
    )


def values_of(found: SlotFigures) -> dict[str, float]:
    """The metrics for which this slot has a figure, in nanoseconds above 0."""
    values = {
        "fill": float(found.warm[:, 0].sum()),
        "accept": float(found.warm[:, 1].sum()),
        "matcher_new": float(found.matcher_new_ns),
    }
    if found.compile_ns is not None and found.cold_matcher_new_ns is not None:
        values["compile"] = float(found.compile_ns)
        values["cold_fill"] = float(found.cold[:, 0].sum())
        values["ttfm"] = float(found.compile_ns) + float(found.cold_matcher_new_ns) + float(found.cold[0, 0])
    # A clock that saw no time pass has measured nothing, and there is no ratio to it.
    return {metric: value for metric, value in values.items() if value > 0}


@dataclass(frozen=True)
class Comparison:
    """Head against base in one metric over one family of cases."""

    base: str
    head: str
    metric: str
    family: str
    cases: int
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


class Figures:
    """A measurement, indexed: every figure by arm, case, fork and round."""

    def __init__(self, recorded: Recorded, *, confirming: bool = False) -> None:
        """Takes the forks that were made to confirm a verdict if `confirming`, else all others."""
        self.recorded = recorded
        self.measurement = recorded.measurement
        forks = {
            other["fork"]
            for other in recorded.others
            if other["kind"] == "fork" and other["confirming"] == confirming
        }
        last: dict[tuple[str, str, int, int], Slot] = {}
        for slot in recorded.slots:
            if slot.fork in forks:
                last[slot.arm, slot.case_id, slot.fork, slot.round] = slot
        self.slots = last
        self.forks = sorted({fork for _, _, fork, _ in last})
        self.lost = {
            (other["arm"], other["case_id"]): other["text"]
            for other in recorded.others
            if other["kind"] == "lost"
        }

    @cached_property
    def shapes(self) -> dict[tuple[str, str, int, int], SlotFigures]:
        """The shapes by arm, case, fork and round, without cases that were lost while they were measured."""
        return {
            key: shape(slot, self.recorded.of(slot.figures))
            for key, slot in self.slots.items()
            if (key[0], key[1]) not in self.lost
        }

    @cached_property
    def cells(self) -> dict[str, dict[tuple[str, str], CaseTimes]]:
        """The cells by metric, and then by arm and case."""
        found: dict[str, dict[tuple[str, str], CaseTimes]] = {metric: {} for metric in METRICS}
        for (arm, case, fork, number), each in self.shapes.items():
            for metric, value in values_of(each).items():
                found[metric].setdefault((arm, case), {}).setdefault(fork, {})[number] = value
        return found

    @cached_property
    def tokens(self) -> dict[str, int]:
        """The number of tokens of each case's text, end-of-sequence included."""
        return {slot.case_id: slot.tokens for slot in self.slots.values()}

    @property
    def arms(self) -> list[str]:
        """The names of all arms but the A/A copy, in the order asked for."""
        return [measured.name for measured in self.measurement.arms if measured.role != "a/a"]

    @cached_property
    def families(self) -> dict[str, list[Trace]]:
        """The cases by suite and dialect; if there are several families, also all cases as one."""
        found: dict[str, list[Trace]] = {}
        for trace in self.measurement.traces:
            found.setdefault(trace.family, []).append(trace)
        return found if len(found) == 1 else found | {ALL: list(self.measurement.traces)}

    def own_set(self, arm: str) -> list[Trace]:
        """The cases that were measured on this arm."""
        measured = {case for name, case, _, _ in self.shapes if name == arm}
        return [trace for trace in self.measurement.traces if trace.case_id in measured]

    @cached_property
    def common_set(self) -> list[Trace]:
        """The cases that were measured on every arm."""
        sets = [{trace.case_id for trace in self.own_set(arm)} for arm in self.arms]
        shared = set.intersection(*sets) if sets else set()
        return [trace for trace in self.measurement.traces if trace.case_id in shared]

    def structural(self, arm: str, traces: Iterable[Trace]) -> list[NDArray[np.float64]]:
        """Returns, for each case, fill and accept of every token as float64 `[tokens, 2]`: the minimum over
        everything measured."""
        wanted = [trace.case_id for trace in traces]
        least: dict[str, Nanoseconds] = {}
        for (name, case, _, _), each in self.shapes.items():
            if name == arm:
                least[case] = np.minimum(least[case], each.warm) if case in least else each.warm
        return [least[case].astype(float) for case in wanted if case in least]

    def cold(self, arm: str, traces: Iterable[Trace]) -> list[NDArray[np.float64]]:
        """Returns, for each case, the fills of the first passes after fresh compiles: for each token the
        median over them."""
        wanted = {trace.case_id for trace in traces}
        found: dict[str, list[Nanoseconds]] = {}
        for (name, case, _, _), each in self.shapes.items():
            if name == arm and case in wanted and len(each.cold):
                found.setdefault(case, []).append(each.cold[:, 0])
        return [np.median(np.stack(passes), axis=0) for passes in found.values()]

    def jitter(self, arm: str, traces: Iterable[Trace]) -> list[float]:
        """Returns, for each case, the slowest pass over the fastest: noise that the machine added, not a
        figure of the backend's."""
        wanted = {trace.case_id for trace in traces}
        found: dict[str, list[float]] = {}
        for (name, case, _, _), each in self.shapes.items():
            if name == arm and case in wanted:
                found.setdefault(case, []).extend(each.sums.sum(axis=1).tolist())
        return [max(sums) / min(sums) for sums in found.values() if min(sums) > 0]

    def median(self, arm: str, metric: str, case: str) -> float | None:
        """The median over forks and rounds; None if there is no figure."""
        cell = self.cells[metric].get((arm, case))
        return (
            None
            if not cell
            else float(np.median([value for rounds in cell.values() for value in rounds.values()]))
        )


def log_ratios(
    figures: Figures, metric: str, base: str, head: str, cases: Iterable[str]
) -> dict[int, dict[str, dict[int, float]]]:
    """The values ln(head / base) by fork, case and round, where both arms have a figure."""
    cells = figures.cells[metric]
    found: dict[int, dict[str, dict[int, float]]] = {}
    for case in cases:
        ours, theirs = cells.get((head, case), {}), cells.get((base, case), {})
        for fork in ours.keys() & theirs.keys():
            rounds = ours[fork].keys() & theirs[fork].keys()
            if rounds:
                ratios = {number: math.log(ours[fork][number] / theirs[fork][number]) for number in rounds}
                found.setdefault(fork, {})[case] = ratios
    return found


def per_fork(ratios: Mapping[int, Mapping[str, Mapping[int, float]]]) -> list[float]:
    """One number for each fork: for each case the median over its rounds, then the mean over cases (the
    logarithm of a geometric mean).

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
    for cases in log_ratios(
        figures, metric, reference, again, [trace.case_id for trace in figures.families[family]]
    ).values():
        pairs: dict[int, list[float]] = {}
        for rounds in cases.values():
            for number, value in rounds.items():
                pairs.setdefault(number // 2, []).append(value)
        apart += [float(np.mean(pair)) for pair in pairs.values()]
    return float(np.median(np.abs(np.array(apart) - np.median(apart)))) if apart else math.nan


def margin_of(floor: float) -> float:
    """The largest relative difference that counts as no change, for this noise floor."""
    return SMALLEST_MARGIN if math.isnan(floor) else max(SMALLEST_MARGIN, FLOORS * floor)


def mean_ratio(figures: Figures, metric: str, base: str, head: str, cases: Sequence[str]) -> float:
    """The geometric mean over cases of plain ratios of means; if the metric is one of passes, over all passes
    of all forks."""
    column = {"fill": 0, "accept": 1}.get(metric)
    ratios = []
    for case in cases:
        means = []
        for arm in (head, base):
            if column is None:
                cell = figures.cells[metric].get((arm, case), {})
                values = [value for rounds in cell.values() for value in rounds.values()]
            else:
                values = [
                    float(s)
                    for key, each in figures.shapes.items()
                    if key[:2] == (arm, case)
                    for s in each.sums[:, column]
                ]
            means.append(np.mean(values) if values else math.nan)
        ratios.append(math.log(means[0] / means[1]))
    return math.exp(float(np.nanmean(ratios))) if ratios and not np.isnan(ratios).all() else math.nan


def pairs(figures: Figures) -> list[tuple[str, str]]:
    """Base and head of every comparison: the reference with every other arm, and each arm with the one of its
    backend against which it is compared (`base_of`)."""
    arms = [measured for measured in figures.measurement.arms if measured.role != "a/a"]
    reference = next(arm for arm in arms if arm.role == "reference")
    found = [(reference.name, arm.name) for arm in arms if arm is not reference]
    for head in arms:
        base = base_of(head, arms)
        if base is not None and (base.name, head.name) not in found:
            found.append((base.name, head.name))
    return found


def is_change(each: Comparison, figures: Figures) -> bool:
    """Returns whether the comparison is one of two versions of one thing.

    Between two backends or two settings of one, a ratio is only a difference.
    """
    arms = {one.name: one for one in figures.measurement.arms}
    return are_versions(arms[each.base], arms[each.head])


def compare(figures: Figures, confirming: Figures | None = None) -> list[Comparison]:
    """Every pair in every metric and family, the A/A pair first; see docs/measuring.md for each step.

    Where the A/A arm is not equivalent in the metric and family, a verdict is `unproven`. Of the verdicts
    that say that something changed, those are kept that a false discovery rate of one percent leaves, and,
    where `confirming` forks were made of the same pair, metric and family, that these alone say too; the
    others are `inconclusive`.
    """
    reference = next(measured.name for measured in figures.measurement.arms if measured.role == "reference")
    again = next((measured.name for measured in figures.measurement.arms if measured.role == "a/a"), None)
    floors = {
        (metric, family): noise_floor(figures, metric, family, reference, again) if again else math.nan
        for metric in METRICS
        for family in figures.families
    }
    controls = [each for each, _ in _compared(figures, [(reference, again)], floors)] if again else []
    proven = {(control.metric, control.family) for control in controls if control.verdict == "equivalent"}
    found = _compared(figures, pairs(figures), floors)
    judged = []
    standing = false_discovery([chance(x, each.margin) for each, x in found])
    for (each, _), stands in zip(found, standing, strict=True):
        if (each.metric, each.family) not in proven and again:
            judged.append(_because(each, "unproven", "two arms of identical code were not equivalent here"))
        elif each.verdict in ("regressed", "improved") and not stands:
            judged.append(
                _because(each, "inconclusive", "does not stand at a false discovery rate of one percent")
            )
        elif each.verdict in ("regressed", "improved") and confirming is not None:
            judged.append(_confirmed(each, confirming))
        else:
            judged.append(each)
    return [
        *(
            _because(control, "unproven", OF_ITSELF) if control.verdict == "inconclusive" else control
            for control in controls
        ),
        *judged,
    ]


def _compared(
    figures: Figures, wanted: Sequence[tuple[str, str]], floors: Mapping[tuple[str, str], float]
) -> list[tuple[Comparison, list[float]]]:
    """Each comparison with the numbers per fork on which it rests."""
    found = []
    copies = {arm.name for arm in figures.measurement.arms if arm.role == "a/a"}
    for base, head in wanted:
        for metric in METRICS:
            for family, traces in figures.families.items():
                ratios = log_ratios(figures, metric, base, head, [trace.case_id for trace in traces])
                x = per_fork(ratios)
                if not x:
                    continue
                shared = sorted(set.intersection(*(set(cases) for cases in ratios.values())))
                floor = floors[metric, family]
                estimate, margin = interval(x), margin_of(floor)
                verdict: Judgement = judge(estimate, margin)
                plain = mean_ratio(figures, metric, base, head, shared)
                found.append(
                    (
                        Comparison(
                            base,
                            head,
                            metric,
                            family,
                            len(shared),
                            estimate,
                            margin,
                            floor,
                            verdict,
                            "",
                            plain,
                            head in copies,
                        ),
                        x,
                    )
                )
    return found


def confirmation(each: Comparison, confirming: Figures) -> tuple[Interval | None, Judgement]:
    """The interval and verdict of fresh forks alone; no interval and `inconclusive` if they have no figure of
    it."""
    cases = [trace.case_id for trace in confirming.families[each.family]]
    x = per_fork(log_ratios(confirming, each.metric, each.base, each.head, cases))
    if not x:
        return None, "inconclusive"
    second = interval(x)
    return second, judge(second, each.margin)


def _confirmed(each: Comparison, confirming: Figures) -> Comparison:
    second, said = confirmation(each, confirming)
    if second is None:
        return each
    if said == each.verdict:
        return _because(
            each,
            each.verdict,
            f"confirmed by {second.forks} fresh forks: {second.ratio:.3f} "
            f"[{second.low:.3f}, {second.high:.3f}]",
        )
    return _because(each, "inconclusive", f"{each.verdict}, but {second.forks} fresh forks say {said}")


def _because(each: Comparison, verdict: Verdict, why: str) -> Comparison:
    return replace(each, verdict=verdict, why=why)


def flagged(comparisons: Iterable[Comparison], figures: Figures) -> list[Comparison]:
    """The comparisons that must be confirmed before they are reported: changes between versions of one
    backend with the same options."""
    return [
        comparison
        for comparison in comparisons
        if comparison.verdict in ("regressed", "improved") and is_change(comparison, figures)
    ]


def undecided(comparisons: Iterable[Comparison], figures: Figures) -> set[str]:
    """The arms whose verdict more forks would help to reach, with their controls. Where no change is claimed,
    a wide interval is an answer too."""
    open_ones = [
        comparison
        for comparison in comparisons
        if comparison.verdict in ("inconclusive", "unproven") and is_change(comparison, figures)
    ]
    controls = (
        {measured.name for measured in figures.measurement.arms if measured.role != "arm"}
        if open_ones
        else set()
    )
    return controls | {name for comparison in open_ones for name in (comparison.base, comparison.head)}


def is_proven(comparisons: Iterable[Comparison], figures: Figures) -> bool:
    """Returns whether the A/A arm is equivalent wherever it was measured."""
    copies = {measured.name for measured in figures.measurement.arms if measured.role == "a/a"}
    controls = [comparison for comparison in comparisons if comparison.head in copies]
    return bool(controls) and all(control.verdict == "equivalent" for control in controls)
