"""What a measurement says of its arms in one figure: ratios to its reference, over the cases that all of them
solve."""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.measure.estimate import log_ratios, log_ratios_of_both, margin_of, noise_floor, per_fork
from harness.measure.figures import Figures
from harness.measure.statistics import interval, judge
from harness.report.figures.estimates import Estimate
from harness.report.page.inputs import Inputs, Measured
from harness.text import counted


def ranked(inputs: Inputs) -> Measured | None:
    """Returns the measurement that arms are ranked by, which is the one with the most of them; None where
    nothing was measured.

    Arms of two measurements are not ranked against each other: each stands beside what ran in its own rounds.
    """
    return max(inputs.measured, key=lambda measured: len(measured.figures.arms), default=None)


def solved_by_all(figures: Figures) -> list[str]:
    """Returns the cases that every arm solves of which anything was measured, also those in which an arm was
    lost at once: without the case in which it hangs, an arm would be as quick as if there were none."""
    arms = {arm for arm in figures.arms if figures.own_set(arm)}
    return [trace.case_id for trace in figures.measurement.traces if arms and arms <= set(trace.solved_by)]


def not_judged(count: int) -> str:
    """Returns why there is no interval where so many cases are not judged; empty where all are."""
    return f"{counted(count, 'case')} not judged" if count else ""


def over_reference(figures: Figures, metric: str) -> dict[str, Estimate]:
    """Returns, by arm, how many times the reference's figure it takes, with its interval over forks.

    The interval is that of the ratio, as every table has it. Arms are ranked with `room` for the margin of
    this measurement, within which identical code is called equal: two of them are told apart only if they
    differ by more than that. There is none where the reference's copy did not come out equivalent, and none
    for an arm of which not every case is judged: its value is then that of the first fork that has them all.
    """
    cases = solved_by_all(figures)
    reference, copy = figures.measurement.reference.name, figures.measurement.again
    margin = margin_of(_floor(figures, metric, reference, copy))
    why = (
        ""
        if copy is not None and _is_equivalent(figures, metric, reference, copy, cases, margin)
        else ("the measurement is unproven")
    )
    room = math.sqrt(1 + margin)
    estimates = {}
    for arm in figures.arms:
        x, unjudged = ([0.0], 0) if arm == reference else _per_fork(figures, metric, reference, arm, cases)
        if not x or not cases or not figures.own_set(arm):
            continue
        one = interval(x)
        low, high = (1.0, 1.0) if arm == reference else (one.low, one.high)
        too_few = not_judged(unjudged)
        has_bounds = not why and not too_few and low > 0 and math.isfinite(high)
        estimates[arm] = Estimate(
            one.ratio,
            low if has_bounds else None,
            high if has_bounds else None,
            why="" if has_bounds else why or too_few or "one fork",
            room=room,
        )
    return estimates


def _per_fork(
    figures: Figures, metric: str, reference: str, arm: str, cases: Sequence[str]
) -> tuple[list[float], int]:
    """Returns the numbers per fork, and how many of the cases are not judged.

    Those that are not are the slow ones, and a ratio without them would flatter the arm. Where there are
    some, the only number is that of the first fork that has all; where none has, those of the rest are given.
    """
    judged = log_ratios(figures, metric, reference, arm, cases)
    unjudged = len(cases) - len(set().union(*judged.values()))
    if not unjudged:
        return per_fork(judged), 0
    made = sorted(log_ratios_of_both(figures, metric, reference, arm, cases).items())
    whole = next((of_fork for _, of_fork in made if len(of_fork) == len(cases)), None)
    return per_fork(judged if whole is None else {0: whole}), unjudged


def _floor(figures: Figures, metric: str, reference: str, copy: str | None) -> float:
    """Returns the widest noise floor of the families, NaN where there is no copy."""
    floors = (
        [noise_floor(figures, metric, family, reference, copy) for family in figures.families] if copy else []
    )
    return max((floor for floor in floors if not math.isnan(floor)), default=math.nan)


def _is_equivalent(
    figures: Figures, metric: str, reference: str, copy: str, cases: Sequence[str], margin: float
) -> bool:
    x = per_fork(log_ratios(figures, metric, reference, copy, cases))
    return bool(x) and judge(interval(x), margin) == "equivalent"
