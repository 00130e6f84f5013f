"""The alert rule: a step that stays, or a drift that has come to as much, in the ratios of one series over
time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

RECENT, EARLIER, STEP = 3, 8, 1.05
"""Alert when the smallest of the last three ratios exceeds by five percent what some eight runs in a row had
kept to: a step that stays."""

State = Literal["alert", "better", "quiet", "no baseline"]


@dataclass(frozen=True)
class Event:
    """The alert rule fired."""

    kind: Literal["alert", "better"]
    since: int
    """Index of the first of the three runs."""
    at: int
    """Index of the third, in which it fired."""
    before: float
    """What the runs before had kept to."""
    now: float
    """The middle one of the three."""


def events(ratios: Sequence[float]) -> list[Event]:
    """Returns where the rule fires, for finite ratios above 0.

    The last three are held against every eight runs in a row before them, since the last event: against the
    eight that lay lowest, so that a drift, which the eight just before have followed, is seen. Of eight, the
    largest does not count: one bad run hides no step. After an event the three that it rests on are the first
    baseline.
    """
    changes: list[Event] = []
    start, founding = 0, None
    highest, lowest = math.inf, 0.0
    for at in range(RECENT - 1, len(ratios)):
        recent = sorted(ratios[at - RECENT + 1 : at + 1])
        first = at - RECENT + 1
        if first - EARLIER >= start:
            ordered = sorted(ratios[first - EARLIER : first])
            highest, lowest = min(highest, ordered[-2]), max(lowest, ordered[1])
        elif founding is None or first < start + RECENT:
            continue
        if recent[0] > STEP * highest:
            changes.append(Event("alert", first, at, highest, recent[1]))
        elif recent[-1] * STEP < lowest:
            changes.append(Event("better", first, at, lowest, recent[1]))
        else:
            continue
        start, founding = first, recent
        highest, lowest = recent[-1], recent[0]
    return changes


def state(ratios: Sequence[float]) -> State:
    """Returns what the rule says of the last run. An event lasts until eight runs are on its level.

    Without eleven runs there is no baseline, and that is neutral.
    """
    changes = events(ratios)
    if changes and len(ratios) - changes[-1].since < EARLIER:
        return changes[-1].kind
    return "quiet" if len(ratios) >= RECENT + EARLIER else "no baseline"
