"""From the record to figures: the nanoseconds of every arm, by case, fork and round."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from harness.errors import BadInput
from harness.measure.record import Nanoseconds, Recorded, Slot, Trace

METRICS: dict[str, str] = {
    "compile": "It is the time of a fresh compile with the cache off, on one thread unless an option says "
    "otherwise.",
    "ttfm": "It is the time to the first mask: compile, new matcher and first fill, of the first pass after "
    "a fresh compile.",
    "cold_fill": "It is the time of all fills of the first pass after a fresh compile, summed over the text.",
    "fill": "It is the time of warm fills: the minimum over the round's passes for each token, summed over "
    "the text.",
    "accept": "It is the time of warm accepts: the minimum over the round's passes for each token, summed "
    "over the text.",
    "matcher_new": "It is the time to make a new object of a compiled grammar: the minimum over the round's "
    "passes.",
}
"""The metrics that are judged, by name: nanoseconds per case in each round, lower is better."""

OF_FRESH_COMPILES = frozenset({"compile", "ttfm", "cold_fill"})
"""The metrics that only a round with a fresh compile has a figure of."""

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
    """Returns the slice of one slot, taken apart. Raises BadInput if it has another length than the slot
    says."""
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


def values_of(slot: SlotFigures) -> dict[str, float]:
    """Returns the metrics for which this slot has a figure, in nanoseconds above 0."""
    values = {
        "fill": float(slot.warm[:, 0].sum()),
        "accept": float(slot.warm[:, 1].sum()),
        "matcher_new": float(slot.matcher_new_ns),
    }
    if slot.compile_ns is not None and slot.cold_matcher_new_ns is not None:
        values["compile"] = float(slot.compile_ns)
        values["cold_fill"] = float(slot.cold[:, 0].sum())
        values["ttfm"] = float(slot.compile_ns) + float(slot.cold_matcher_new_ns) + float(slot.cold[0, 0])
    # A clock that saw no time pass has measured nothing, and there is no ratio to it.
    return {metric: value for metric, value in values.items() if value > 0}


class Figures:
    """A measurement, indexed: every figure by arm, case, fork and round."""

    def __init__(self, recorded: Recorded, *, confirming: bool = False) -> None:
        """Takes the forks that were made to confirm a verdict if `confirming`, else all others."""
        self.recorded = recorded
        self.confirming = confirming
        self.measurement = recorded.measurement
        self.made = {
            other["fork"]
            for other in recorded.others
            if other["kind"] == "fork" and other["confirming"] == confirming
        }
        last: dict[tuple[str, str, int, int], Slot] = {}
        for slot in recorded.slots:
            if slot.fork in self.made:
                last[slot.arm, slot.case_id, slot.fork, slot.round] = slot
        self.slots = last
        self.forks = sorted({fork for _, _, fork, _ in last})
        self.lost: dict[tuple[str, str], int] = {}
        for other in recorded.others:
            if other["kind"] == "lost":
                fork, key = other["fork"], (other["arm"], other["case_id"])
                self.lost[key] = min(fork, self.lost.get(key, fork))

    @cached_property
    def whole_forks(self) -> list[int]:
        """Returns the forks in which every arm was measured on every case that it solves: the profile's, or
        all that confirm. The others leave slow cases out."""
        return [fork for fork in self.forks if self.confirming or fork < self.measurement.forks]

    @property
    def last_whole_fork(self) -> int:
        """Returns the last of the `whole_forks`; -1 if there is none."""
        return max(self.whole_forks, default=-1)

    def cases_of(self, family: str) -> list[str]:
        """Returns the ids of the family's cases."""
        return [trace.case_id for trace in self.families[family]]

    def was_lost(self, arms: Iterable[str], family: str, since: int = 0) -> bool:
        """Returns whether one of the arms was lost in a case of the family in one of these forks, from the
        fork `since` on."""
        of_family = [self.lost.get((arm, trace.case_id)) for arm in arms for trace in self.families[family]]
        return any(fork in self.made and fork >= since for fork in of_family if fork is not None)

    @cached_property
    def forks_by_arm(self) -> dict[str, set[int]]:
        """Returns the forks in which each arm was measured."""
        forks: dict[str, set[int]] = {}
        for arm, _, fork, _ in self.slots:
            forks.setdefault(arm, set()).add(fork)
        return forks

    @cached_property
    def shapes(self) -> dict[tuple[str, str, int, int], SlotFigures]:
        """Returns the shapes by arm, case, fork and round. Where an arm was lost in a case, the case has none
        from that fork on; what whole forks before it measured stays."""
        return {
            key: shape(slot, self.recorded.of(slot.figures))
            for key, slot in self.slots.items()
            if key[2] < self.lost.get((key[0], key[1]), math.inf)
        }

    @cached_property
    def by_arm(self) -> dict[str, dict[str, dict[tuple[int, int], SlotFigures]]]:
        """Returns the shapes by arm and case, and then by fork and round."""
        found: dict[str, dict[str, dict[tuple[int, int], SlotFigures]]] = {}
        for (arm, case, fork, number), slot in self.shapes.items():
            found.setdefault(arm, {}).setdefault(case, {})[fork, number] = slot
        return found

    @cached_property
    def cells(self) -> dict[str, dict[tuple[str, str], CaseTimes]]:
        """Returns the cells by metric, and then by arm and case."""
        times: dict[str, dict[tuple[str, str], CaseTimes]] = {metric: {} for metric in METRICS}
        for (arm, case, fork, number), slot in self.shapes.items():
            for metric, value in values_of(slot).items():
                times[metric].setdefault((arm, case), {}).setdefault(fork, {})[number] = value
        return times

    @cached_property
    def tokens(self) -> dict[str, int]:
        """Returns the number of tokens of each case's text, end-of-sequence included."""
        return {slot.case_id: slot.tokens for slot in self.slots.values()}

    @property
    def arms(self) -> list[str]:
        """Returns the names of all arms but the A/A copy, in the order asked for."""
        return [measured.name for measured in self.measurement.arms if measured.role != "a/a"]

    @cached_property
    def families(self) -> dict[str, list[Trace]]:
        """Returns the cases by suite and dialect; if there are several families, also all cases as one."""
        families: dict[str, list[Trace]] = {}
        for trace in self.measurement.traces:
            families.setdefault(trace.family, []).append(trace)
        return families if len(families) == 1 else families | {ALL: list(self.measurement.traces)}

    def own_set(self, arm: str) -> list[Trace]:
        """Returns the cases that were measured on this arm."""
        measured = self.by_arm.get(arm, {})
        return [trace for trace in self.measurement.traces if trace.case_id in measured]

    @cached_property
    def common_set(self) -> list[Trace]:
        """Returns the cases that were measured on every arm that measured any: a control measures none."""
        sets = [{trace.case_id for trace in own} for own in map(self.own_set, self.arms) if own]
        shared = set.intersection(*sets) if sets else set()
        return [trace for trace in self.measurement.traces if trace.case_id in shared]

    def structural(self, arm: str, traces: Iterable[Trace]) -> list[NDArray[np.float64]]:
        """Returns, for each case, fill and accept of every token as float64 `[tokens, 2]`: the minimum over
        the `whole_forks`, since that of an arm with more forks than others would be smaller by luck."""
        whole = {*self.whole_forks}
        slots = (self.by_arm.get(arm, {}).get(trace.case_id, {}) for trace in traces)
        warm = ([slot.warm for (fork, _), slot in of_case.items() if fork in whole] for of_case in slots)
        return [reduce(np.minimum, of_case).astype(float) for of_case in warm if of_case]

    def cold(self, arm: str, traces: Iterable[Trace]) -> list[NDArray[np.float64]]:
        """Returns, for each case, the fills of the first passes after fresh compiles: for each token the
        median over them."""
        slots = (self.by_arm.get(arm, {}).get(trace.case_id, {}) for trace in traces)
        passes = ([slot.cold[:, 0] for slot in of_case.values() if len(slot.cold)] for of_case in slots)
        return [np.median(np.stack(of_case), axis=0) for of_case in passes if of_case]

    def jitter(self, arm: str, traces: Iterable[Trace]) -> list[float]:
        """Returns, for each case, the slowest pass over the fastest: noise that the machine added, or a slow
        path that the backend takes now and then. Nothing is concluded from it."""
        slots = (self.by_arm.get(arm, {}).get(trace.case_id, {}) for trace in traces)
        sums = (
            np.concatenate([slot.sums.sum(axis=1) for slot in of_case.values()])
            for of_case in slots
            if of_case
        )
        return [float(of_case.max() / of_case.min()) for of_case in sums if of_case.min() > 0]

    def median(self, arm: str, metric: str, case: str) -> float | None:
        """Returns the median over forks and rounds; None if there is no figure."""
        cell = self.cells[metric].get((arm, case))
        return (
            None
            if not cell
            else float(np.median([value for rounds in cell.values() for value in rounds.values()]))
        )
