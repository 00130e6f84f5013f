"""A measurement on disk: `rounds.jsonl` and `rounds.i64` beside the rows of the same run. Appended to, never rewritten.

The first line says what is measured, then a line per slot (one arm, one case, one round of one fork) or other figure, then the end.
Nothing in it is a mean, a percentile or a verdict: those are functions of it (`harness.measure.estimate`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import BadInput
from harness.measure.appending import Appender, read_figures, whole_lines
from harness.measure.protocol import PROTOCOL, MeasuredArm

ROUNDS, FIGURES = "rounds.jsonl", "rounds.i64"

Nanoseconds = NDArray[np.int64]


@dataclass(frozen=True)
class Trace:
    """One case as it is measured: along one instance."""

    offset: int
    """Where the case begins in the run's `cases.jsonl`."""
    suite: str
    family: str
    """The cases that are judged together: the suite, and the dialect where a suite has several."""
    case_id: str
    case: str
    instance: int
    solved_by: tuple[str, ...]
    """The arms that judged every instance of the case rightly when it was scouted; only they are measured on it."""


@dataclass(frozen=True)
class Measurement:
    """The first line."""

    run: str
    started: str
    profile: str
    vocabulary: str
    arms: tuple[MeasuredArm, ...]
    traces: tuple[Trace, ...]
    unsolved: dict[str, dict[str, str]]
    """By arm, by case id: why the case is not measured on it (a status, or a wrong verdict); censored, not dropped."""
    hardware: str
    workload: str
    software: dict[str, str]
    cpu: int | None
    """The processor that all arms are bound to."""
    protocol: int = PROTOCOL


@dataclass(frozen=True)
class Slot:
    """One arm's turn on one case. `figures` names a slice of `rounds.i64`; its layout is that of `ArmHandler.round`."""

    fork: int
    round: int
    again: int
    """How often this round of the case had been made before; only the last one counts."""
    place: int
    """Of the arm in the round's order."""
    arm: str
    case_id: str
    fresh: bool
    passes: int
    tokens: int
    wall_ns: int
    cpu_ns: int
    switches: int
    """Involuntary context switches of the arm's process."""
    stolen_s: float
    """What the hypervisor took from all processors meanwhile."""
    load: float
    figures: tuple[int, int]


class Recorder(Appender):
    """Appends the lines of a measurement, each with its figures."""

    def __init__(self, folder: Path, measurement: Measurement) -> None:
        super().__init__(folder / ROUNDS, folder / FIGURES, "measurement", asdict(measurement))


@dataclass(frozen=True)
class Recorded:
    """A measurement as read."""

    folder: Path
    measurement: Measurement
    slots: tuple[Slot, ...]
    others: tuple[dict[str, Any], ...]
    """Lines of other kinds: `counts`, `mechanisms`, `batch`, `variant`, `fork`."""
    end: dict[str, Any] | None
    figures: Nanoseconds

    def of(self, figures: tuple[int, int]) -> Nanoseconds:
        """The int64s that a line names."""
        return self.figures[figures[0] : sum(figures)]


def has_measurement(folder: Path) -> bool:
    """Was anything measured in this run?"""
    return (folder / ROUNDS).is_file()


def read_measurement(folder: Path) -> Recorded:
    """All of it. Raises BadInput."""
    if not has_measurement(folder):
        raise BadInput(f"{folder}: no measurement here (no {ROUNDS}); `grammarbench measure --out {folder}` makes one")
    found: Measurement | None = None
    slots, others, end = [], [], None
    names = [each.name for each in fields(Slot)]
    for number, line in whole_lines(folder / ROUNDS):
        try:
            kind = line.pop("kind")
            if number == 1:
                found = _measurement(line)
                if found.protocol != PROTOCOL:
                    raise BadInput(f"{folder}: measured by protocol {found.protocol}, this version reads {PROTOCOL}; measure anew")
            elif kind == "slot":
                slots.append(Slot(**{name: line[name] for name in names} | {"figures": tuple(line["figures"])}))
            elif kind == "end":
                end = line
            else:
                others.append({"kind": kind, **line})
        except (KeyError, TypeError, AttributeError) as error:
            raise BadInput(f"{folder / ROUNDS}:{number}: not a line of a measurement ({error!r})") from error
    if found is None:
        raise BadInput(f"{folder / ROUNDS}: empty; the measurement did not start")
    return Recorded(folder, found, tuple(slots), tuple(others), end, read_figures(folder / FIGURES))


def _measurement(line: dict[str, Any]) -> Measurement:
    arms = tuple(MeasuredArm(**each) for each in line["arms"])
    traces = tuple(Trace(**{**each, "solved_by": tuple(each["solved_by"])}) for each in line["traces"])
    return Measurement(**{**line, "arms": arms, "traces": traces})
