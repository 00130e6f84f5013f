"""The empirical distributions that the page draws: over all cases, so that failures keep them below 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.outcomes.summary import ArmSummary, Nanoseconds, fills_of


@dataclass(frozen=True)
class Curve:
    """An empirical distribution over all walked cases: `share[i]` of them lie at or below `ns[i]`; the rest
    never arrive."""

    ns: Nanoseconds
    share: NDArray[np.float64]

    @property
    def plateau(self) -> float:
        return float(self.share[-1]) if len(self.share) else 0.0

    def at(self, share: float) -> int | None:
        """Returns the time by which this share of all cases is reached; None if it never is."""
        index = int(np.searchsorted(self.share, share - 1e-12))
        return int(self.ns[index]) if index < len(self.ns) else None


def compile_curve(arm: ArmSummary) -> Curve:
    """Returns the curve of compile times, one value per case; it ends at the share of walked cases that
    compiled (declared coverage)."""
    cases = arm.walked()
    values = np.array(
        [case.compile_ns for case in cases if case.declared and case.compile_ns is not None], np.int64
    )
    return _curve(values, np.ones(len(values)), len(values), len(cases))


def fill_curve(arm: ArmSummary, suite: str | None = None) -> Curve:
    """Returns the curve of fill times per token: each solved case weighs 1 / walked cases, shared evenly by
    its fills; it ends at the share solved."""
    cases = [case for key, case in arm.cases.items() if case.walked and (suite is None or key[0] == suite)]
    times: list[Nanoseconds] = []
    weights: list[NDArray[np.float64]] = []
    for case in cases:
        if not case.solved:
            continue
        fills = fills_of(arm, case)
        if not len(fills) and case.first_fill_ns is not None:
            fills = np.array([case.first_fill_ns], np.int64)
        if len(fills):
            times.append(fills)
            weights.append(np.full(len(fills), 1 / len(fills)))
    if not times:
        return _curve(np.zeros(0, np.int64), np.zeros(0), 0, len(cases))
    return _curve(np.concatenate(times), np.concatenate(weights), len(times), len(cases))


def has_compile_times(arm: ArmSummary) -> bool:
    """Returns whether the compile of a case was timed, or none compiled. A live server's compiles are not
    timed: a curve would say that it compiles nothing."""
    compiled = [case for case in arm.walked() if case.declared]
    return not compiled or any(case.compile_ns is not None for case in compiled)


def has_fill_times(arm: ArmSummary) -> bool:
    """Returns whether a fill of a solved case was timed, or no case is solved; a live server's are not."""
    solved = [case for case in arm.walked() if case.solved]
    return not solved or any(case.slices or case.first_fill_ns is not None for case in solved)


def token_curve(cases: Sequence[NDArray[np.float64]], total: int) -> Curve:
    """Returns the same curve of times that are known per case, of so many cases in all."""
    if not cases:
        return _curve(np.zeros(0, np.int64), np.zeros(0), 0, max(1, total))
    weights = [np.full(len(case), 1 / len(case)) for case in cases]
    return _curve(np.rint(np.concatenate(cases)).astype(np.int64), np.concatenate(weights), len(cases), total)


def _curve(values: Nanoseconds, weights: NDArray[np.float64], arrived: int, cases: int) -> Curve:
    order = np.argsort(values, kind="stable")
    values, share = values[order], np.cumsum(weights[order])
    if len(share):
        # The sum's rounding must not show: the end is a count of cases.
        share *= arrived / cases / share[-1]
        share[-1] = arrived / cases
    last = np.append(values[1:] != values[:-1], True)[: len(values)]
    return Curve(values[last], share[last])


def thin(curve: Curve, points: int = 200) -> Curve:
    """Returns at most so many points of the curve, each exact, denser towards the top; its first and last are
    kept."""
    if len(curve.ns) <= points:
        return curve
    tail = 1 - np.geomspace(0.05, 1e-5, points // 3)
    levels = np.concatenate([np.linspace(0, 0.95, points - 2 - len(tail)), tail]) * curve.plateau
    chosen = np.unique(
        np.concatenate([[0], np.searchsorted(curve.share, levels), [len(curve.ns) - 1]]).clip(
            0, len(curve.ns) - 1
        )
    )
    return Curve(curve.ns[chosen], curve.share[chosen])
