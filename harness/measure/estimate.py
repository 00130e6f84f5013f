"""From what was recorded to figures: per arm, case, fork and round first, then ratios of arms with interval and verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.measure.record import Nanoseconds, Recorded, Slot, Trace
from harness.measure.statistics import Interval, Judgement, chance, false_discovery, interval, judge

Verdict = Literal["regressed", "improved", "equivalent", "inconclusive", "unproven"]

SMALLEST_MARGIN = 0.05
FLOORS = 3.0
"""The margin is the larger of SMALLEST_MARGIN and so many times the noise floor of this run's A/A arm in the same figures."""

METRICS: dict[str, str] = {
    "compile": "A fresh compile, cache off, one thread unless an option says otherwise.",
    "ttfm": "Time to first mask: compile, new matcher and first fill, of the first pass after a fresh compile.",
    "cold_fill": "All fills of the first pass after a fresh compile, summed over the text.",
    "fill": "Warm fills: per token the minimum over the passes, summed over the text.",
    "accept": "Warm accepts: per token the minimum over the passes, summed over the text.",
    "matcher_new": "A new object of a compiled grammar: the minimum over the passes.",
}
"""What is judged, by name; nanoseconds per case, lower is better."""

OF_ITSELF = "identical code, and not equivalent within its interval"

ALL = "all"
"""The family of all cases."""

Cell = dict[int, dict[int, float]]
"""By fork, by round: nanoseconds of one arm on one case."""


@dataclass(frozen=True)
class Shape:
    """A slot's figures, apart."""

    compile_ns: int | None
    cold_matcher_new_ns: int | None
    cold: Nanoseconds
    """int64 `[tokens, 2]`: fill and accept; `[0, 2]` if the round was not fresh."""
    matcher_new_ns: int
    warm: Nanoseconds
    """int64 `[tokens, 2]`: minima over the passes."""
    sums: Nanoseconds
    """int64 `[passes, 2]`: sums over the tokens."""


def shape(slot: Slot, figures: Nanoseconds) -> Shape:
    """Cut the slice of one slot."""
    steps = 2 * slot.tokens
    compile_ns = matcher_ns = None
    cold = np.zeros((0, 2), np.int64)
    if slot.fresh:
        compile_ns, matcher_ns = int(figures[0]), int(figures[1])
        cold = figures[2 : 2 + steps].reshape(-1, 2)
        figures = figures[2 + steps :]
    return Shape(compile_ns, matcher_ns, cold, int(figures[0]), figures[1 : 1 + steps].reshape(-1, 2), figures[1 + steps :].reshape(-1, 2))


def values_of(found: Shape) -> dict[str, float]:
    """The metrics that this slot has a figure of."""
    values = {
        "fill": float(found.warm[:, 0].sum()),
        "accept": float(found.warm[:, 1].sum()),
        "matcher_new": float(found.matcher_new_ns),
    }
    if found.compile_ns is not None and found.cold_matcher_new_ns is not None:
        values["compile"] = float(found.compile_ns)
        values["cold_fill"] = float(found.cold[:, 0].sum())
        values["ttfm"] = float(found.compile_ns + found.cold_matcher_new_ns + found.cold[0, 0])
    return values


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
    """The noise floor of the A/A arm in this metric and family; NaN where there is none."""
    verdict: Verdict
    why: str
    mean_ratio: float
    """What a plain ratio of means over all passes (of compiles: over all compiles) would say; never judged."""


class Figures:
    """A measurement, indexed: every figure by arm, case, fork and round."""

    def __init__(self, recorded: Recorded, *, confirming: bool = False) -> None:
        """With `confirming` the forks that were made to confirm a verdict, else all others."""
        self.recorded = recorded
        self.measurement = recorded.measurement
        forks = {each["fork"] for each in recorded.others if each["kind"] == "fork" and each["confirming"] == confirming}
        last: dict[tuple[str, str, int, int], Slot] = {}
        for slot in recorded.slots:
            if slot.fork in forks:
                last[slot.arm, slot.case_id, slot.fork, slot.round] = slot
        self.slots = last
        self.forks = sorted({fork for _, _, fork, _ in last})
        self.lost = {(each["arm"], each["case_id"]): each["text"] for each in recorded.others if each["kind"] == "lost"}

    @cached_property
    def shapes(self) -> dict[tuple[str, str, int, int], Shape]:
        """By arm, case, fork and round; nothing of a case that was lost while it was measured."""
        return {key: shape(slot, self.recorded.of(slot.figures)) for key, slot in self.slots.items() if (key[0], key[1]) not in self.lost}

    @cached_property
    def cells(self) -> dict[str, dict[tuple[str, str], Cell]]:
        """By metric, by arm and case."""
        found: dict[str, dict[tuple[str, str], Cell]] = {metric: {} for metric in METRICS}
        for (arm, case, fork, number), each in self.shapes.items():
            for metric, value in values_of(each).items():
                found[metric].setdefault((arm, case), {}).setdefault(fork, {})[number] = value
        return found

    @cached_property
    def tokens(self) -> dict[str, int]:
        """By case: tokens of its text, end-of-sequence included."""
        return {slot.case_id: slot.tokens for slot in self.slots.values()}

    @property
    def arms(self) -> list[str]:
        """Names of all arms but the A/A copy, in the order asked for."""
        return [each.name for each in self.measurement.arms if each.role != "a/a"]

    @cached_property
    def families(self) -> dict[str, list[Trace]]:
        """Cases by suite and dialect, and where these are several, all of them once more."""
        found: dict[str, list[Trace]] = {}
        for trace in self.measurement.traces:
            found.setdefault(trace.family, []).append(trace)
        return found if len(found) == 1 else found | {ALL: list(self.measurement.traces)}

    def own_set(self, arm: str) -> list[Trace]:
        """The cases that were measured on this arm."""
        measured = {case for name, case, _, _ in self.shapes if name == arm}
        return [each for each in self.measurement.traces if each.case_id in measured]

    @cached_property
    def common_set(self) -> list[Trace]:
        """The cases that were measured on every arm."""
        sets = [{each.case_id for each in self.own_set(arm)} for arm in self.arms]
        shared = set.intersection(*sets) if sets else set()
        return [each for each in self.measurement.traces if each.case_id in shared]

    def structural(self, arm: str, traces: Iterable[Trace]) -> list[NDArray[np.float64]]:
        """Per case: float64 `[tokens, 2]`, fill and accept of every token, the minimum over everything measured."""
        wanted = [each.case_id for each in traces]
        least: dict[str, Nanoseconds] = {}
        for (name, case, _, _), each in self.shapes.items():
            if name == arm:
                least[case] = np.minimum(least[case], each.warm) if case in least else each.warm
        return [least[case].astype(float) for case in wanted if case in least]

    def cold(self, arm: str, traces: Iterable[Trace]) -> list[NDArray[np.float64]]:
        """Per case: the fills of the first passes after fresh compiles; per token the median over them."""
        wanted = {each.case_id for each in traces}
        found: dict[str, list[Nanoseconds]] = {}
        for (name, case, _, _), each in self.shapes.items():
            if name == arm and case in wanted and len(each.cold):
                found.setdefault(case, []).append(each.cold[:, 0])
        return [np.median(np.stack(passes), axis=0) for passes in found.values()]

    def jitter(self, arm: str, traces: Iterable[Trace]) -> list[float]:
        """Per case: the slowest pass of all over the fastest; what the machine added, and no figure of the backend's."""
        wanted = {each.case_id for each in traces}
        found: dict[str, list[float]] = {}
        for (name, case, _, _), each in self.shapes.items():
            if name == arm and case in wanted:
                found.setdefault(case, []).extend(each.sums.sum(axis=1).tolist())
        return [max(sums) / min(sums) for sums in found.values()]

    def median(self, arm: str, metric: str, case: str) -> float | None:
        """Over forks and rounds; None if there is no figure."""
        cell = self.cells[metric].get((arm, case))
        return None if not cell else float(np.median([value for rounds in cell.values() for value in rounds.values()]))


def log_ratios(figures: Figures, metric: str, base: str, head: str, cases: Iterable[str]) -> dict[int, dict[str, dict[int, float]]]:
    """ln(head / base) by fork, case and round, where both have a figure."""
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
    """One number per fork: per case the median over its rounds, then the mean over cases (the logarithm of a geometric mean).

    Only cases that every fork has: a case that is missing in one would move that fork.
    """
    if not ratios:
        return []
    shared = set.intersection(*(set(cases) for cases in ratios.values()))
    if not shared:
        return []
    return [float(np.mean([np.median(list(cases[case].values())) for case in sorted(shared)])) for _, cases in sorted(ratios.items())]


def noise_floor(figures: Figures, metric: str, family: str, reference: str, again: str) -> float:
    """How far two arms of identical code scatter: over pairs of rounds (forwards and backwards) and forks, the median distance from
    their median; NaN if unknown. An offset that is the same everywhere is no noise: the A/A verdict tells it.
    """
    apart = []
    for cases in log_ratios(figures, metric, reference, again, [each.case_id for each in figures.families[family]]).values():
        pairs: dict[int, list[float]] = {}
        for rounds in cases.values():
            for number, value in rounds.items():
                pairs.setdefault(number // 2, []).append(value)
        apart += [float(np.mean(each)) for each in pairs.values()]
    return float(np.median(np.abs(np.array(apart) - np.median(apart)))) if apart else math.nan


def margin_of(floor: float) -> float:
    """What counts as no change."""
    return SMALLEST_MARGIN if math.isnan(floor) else max(SMALLEST_MARGIN, FLOORS * floor)


def mean_ratio(figures: Figures, metric: str, base: str, head: str, cases: Sequence[str]) -> float:
    """The geometric mean over cases of plain ratios of means: of all passes of all forks where the metric is one of passes."""
    column = {"fill": 0, "accept": 1}.get(metric)
    ratios = []
    for case in cases:
        means = []
        for arm in (head, base):
            if column is None:
                cell = figures.cells[metric].get((arm, case), {})
                values = [value for rounds in cell.values() for value in rounds.values()]
            else:
                values = [float(s) for key, each in figures.shapes.items() if key[:2] == (arm, case) for s in each.sums[:, column]]
            means.append(np.mean(values) if values else math.nan)
        ratios.append(math.log(means[0] / means[1]))
    return math.exp(float(np.nanmean(ratios))) if ratios and not np.isnan(ratios).all() else math.nan


def pairs(figures: Figures) -> list[tuple[str, str]]:
    """Base and head of every comparison: the reference with every other arm, and the first arm of a backend with its later ones."""
    arms = [each for each in figures.measurement.arms if each.role != "a/a"]
    reference = next(each for each in arms if each.role == "reference")
    found = [(reference.name, each.name) for each in arms if each is not reference]
    for number, head in enumerate(arms):
        first = next(each for each in arms if each.backend == head.backend)
        if arms.index(first) < number and (first.name, head.name) not in found:
            found.append((first.name, head.name))
    return found


def compare(figures: Figures, confirming: Figures | None = None) -> list[Comparison]:
    """Every pair in every metric and family, the A/A pair first; see docs/measuring.md for each step.

    Where the A/A arm is not equivalent in the metric and family, a verdict is `unproven`. Of the verdicts that say that something
    changed, those are kept that a false discovery rate of one percent leaves, and, where `confirming` forks were made of the same pair,
    metric and family, that these alone say too; the others are `inconclusive`.
    """
    reference = next(each.name for each in figures.measurement.arms if each.role == "reference")
    again = next((each.name for each in figures.measurement.arms if each.role == "a/a"), None)
    floors = {
        (metric, family): noise_floor(figures, metric, family, reference, again) if again else math.nan
        for metric in METRICS
        for family in figures.families
    }
    controls = [each for each, _ in _compared(figures, [(reference, again)], floors)] if again else []
    proven = {(each.metric, each.family) for each in controls if each.verdict == "equivalent"}
    found = _compared(figures, pairs(figures), floors)
    judged = []
    standing = false_discovery([chance(x, each.margin) for each, x in found])
    for (each, _), stands in zip(found, standing, strict=True):
        if (each.metric, each.family) not in proven and again:
            judged.append(_because(each, "unproven", "two arms of identical code were not equivalent here"))
        elif each.verdict in ("regressed", "improved") and not stands:
            judged.append(_because(each, "inconclusive", "does not stand at a false discovery rate of one percent"))
        elif each.verdict in ("regressed", "improved") and confirming is not None:
            judged.append(_confirmed(each, confirming))
        else:
            judged.append(each)
    return [*(_because(each, "unproven", OF_ITSELF) if each.verdict == "inconclusive" else each for each in controls), *judged]


def _compared(
    figures: Figures, wanted: Sequence[tuple[str, str]], floors: Mapping[tuple[str, str], float]
) -> list[tuple[Comparison, list[float]]]:
    """Each comparison with the numbers per fork that it rests on."""
    found = []
    for base, head in wanted:
        for metric in METRICS:
            for family, traces in figures.families.items():
                ratios = log_ratios(figures, metric, base, head, [each.case_id for each in traces])
                x = per_fork(ratios)
                if not x:
                    continue
                shared = sorted(set.intersection(*(set(cases) for cases in ratios.values())))
                floor = floors[metric, family]
                estimate, margin = interval(x), margin_of(floor)
                verdict: Judgement = judge(estimate, margin)
                plain = mean_ratio(figures, metric, base, head, shared)
                found.append((Comparison(base, head, metric, family, len(shared), estimate, margin, floor, verdict, "", plain), x))
    return found


def confirmation(each: Comparison, confirming: Figures) -> tuple[Interval | None, Judgement]:
    """What fresh forks alone say of it; no interval and `inconclusive` if they have no figure of it."""
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
            each, each.verdict, f"confirmed by {second.forks} fresh forks: {second.ratio:.3f} [{second.low:.3f}, {second.high:.3f}]"
        )
    return _because(each, "inconclusive", f"{each.verdict}, but {second.forks} fresh forks say {said}")


def _because(each: Comparison, verdict: Verdict, why: str) -> Comparison:
    return replace(each, verdict=verdict, why=why)


def flagged(comparisons: Iterable[Comparison], figures: Figures) -> list[Comparison]:
    """What must be confirmed before anybody is told: changes between arms of one backend."""
    backends = {each.name: each.backend for each in figures.measurement.arms}
    return [each for each in comparisons if each.verdict in ("regressed", "improved") and backends[each.base] == backends[each.head]]


def undecided(comparisons: Iterable[Comparison], figures: Figures) -> set[str]:
    """The arms that more forks would help to a verdict, with their controls; between two backends a wide interval is an answer too."""
    arms = figures.measurement.arms
    backends = {each.name: each.backend for each in arms}
    open_ones = [
        each for each in comparisons if each.verdict in ("inconclusive", "unproven") and backends[each.base] == backends[each.head]
    ]
    controls = {each.name for each in arms if each.role != "arm"} if open_ones else set()
    return controls | {name for each in open_ones for name in (each.base, each.head)}


def is_proven(comparisons: Iterable[Comparison], figures: Figures) -> bool:
    """Is the A/A arm equivalent wherever it was measured?"""
    copies = {each.name for each in figures.measurement.arms if each.role == "a/a"}
    controls = [each for each in comparisons if each.head in copies]
    return bool(controls) and all(each.verdict == "equivalent" for each in controls)
