"""A measurement on disk: `rounds.jsonl` and `rounds.i64` beside the rows of the same run. Both are appended
to and never rewritten.

The first line says what is measured. Then come a line for each slot (one arm, one case, one round of one
fork) or other figure, and the end. Nothing in it is a mean, a percentile or a verdict: those are functions of
it (`harness.measure.estimate`).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from harness.cases.case import Case
from harness.errors import BadInput, damaged
from harness.measure.protocol import PROTOCOL, MeasuredArm
from harness.rows.appending import Appender, RecordLines, sliced
from harness.rows.store import is_published, read_integers
from harness.shape import shaped
from harness.text import our_command

ROUNDS, FIGURES = "rounds.jsonl", "rounds.i64"

Nanoseconds = NDArray[np.int64]


@dataclass(frozen=True)
class Trace:
    """One case as it is measured, along one instance."""

    offset: int
    """The offset at which the case begins in the run's `cases.jsonl`."""
    suite: str
    family: str
    """The name of the cases that are judged together: the suite, with the dialect if a suite has several."""
    case_id: str
    case: str
    instance: int
    solved_by: tuple[str, ...]
    """The arms that judged every judged instance of the case rightly when it was scouted; it is measured on
    these only."""
    sha256: str
    """The digest of what is measured (`digest_of`)."""


def digest_of(case: Case, instance: int) -> str:
    """Returns a digest, in 64 hex digits, of what is measured of a case beside its grammar, which its id
    names: the instance's text, or its tokens where the case says tokens, and the case's options."""
    measured = case.instances[instance]
    # A text is no list of tokens, even where it shows them.
    output = list(measured.tokens) if measured.tokens else measured.content.hex()
    return hashlib.sha256(json.dumps([output, case.options], sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Measurement:
    """The first line: what is measured, with what, and on which machine."""

    run: str
    started: str
    profile: str
    vocabulary: str
    arms: tuple[MeasuredArm, ...]
    traces: tuple[Trace, ...]
    unsolved: dict[str, dict[str, str]]
    """Why cases are not measured, by arm and case id (a status, or a wrong verdict); such cases are censored,
    not dropped."""
    hardware: str
    workload: str
    """What `harness.measure.session.workload_key` returns: times of two records are compared only where it is
    the same."""
    software: dict[str, str]
    cpu: int | None
    """The processor that all arms are bound to."""
    forks: int
    """How many forks, the first ones, measure every arm on every case that it solves; those that an open
    verdict adds leave slow cases out."""
    protocol: int = PROTOCOL

    @property
    def reference(self) -> MeasuredArm:
        """Returns the arm that all others are compared with."""
        return next(arm for arm in self.arms if arm.role == "reference")

    @property
    def again(self) -> str | None:
        """Returns the name of the A/A arm, which is the reference once more; None if there is none."""
        return next((arm.name for arm in self.arms if arm.role == "a/a"), None)


@dataclass(frozen=True)
class Slot:
    """One arm's turn on one case.

    `figures` names a slice of `rounds.i64`; its layout is that of `MeasureHandler.round`.
    """

    fork: int
    round: int
    again: int
    """How often this round of the case had been made before; only the last one counts."""
    place: int
    """The arm's place in the round's order."""
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
    """Seconds that the hypervisor took meanwhile from the processor that the arms are bound to; from all
    processors where they are bound to none."""
    load: float
    figures: tuple[int, int]


class MeasureRecorder(Appender):
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
        """Returns the int64s that a line names. Raises BadInput if they are not there."""
        try:
            return sliced(figures, self.figures)
        except ValueError as error:
            raise damaged(f"{self.folder / FIGURES}: {error}") from error


def has_measurement(folder: Path) -> bool:
    """Returns whether this run has a measurement."""
    return (folder / ROUNDS).is_file()


def read_measurement(folder: Path) -> Recorded:
    """Returns the whole record. Raises BadInput."""
    if not has_measurement(folder):
        # A published run is only read, so nothing can be measured into it.
        command = our_command("measure", "--out", str(folder))
        way = "" if is_published(folder) else f"; {command} makes one"
        raise BadInput(f"{folder}: no measurement here (no {ROUNDS}){way}")
    slots: list[Slot] = []
    others: list[dict[str, Any]] = []
    end = None
    names = [column.name for column in fields(Slot)]
    with RecordLines(folder / ROUNDS, PROTOCOL, "measurement") as lines:
        measurement = _measurement(lines.first())
        arms, cases = {arm.name for arm in measurement.arms}, {trace.case_id for trace in measurement.traces}
        for kind, line in lines:
            if kind == "slot":
                slot = shaped(Slot, {name: line[name] for name in names if name in line})
                if slot.arm not in arms or slot.case_id not in cases or min(slot.tokens, slot.passes) < 1:
                    raise ValueError(
                        "a slot of no arm or case of this measurement, or without tokens or passes"
                    )
                slots.append(slot)
            elif kind == "end":
                end = line
            else:
                line = dict(shaped(_Figures, line))
                is_shaped = kind in _OTHERS and "error" not in line
                others.append({"kind": kind, **(shaped(_OTHERS[kind], line) if is_shaped else line)})
    return Recorded(folder, measurement, tuple(slots), tuple(others), end, read_integers(folder / FIGURES))


def _measurement(line: dict[str, Any]) -> Measurement:
    measurement = shaped(Measurement, line)
    if [arm.role for arm in measurement.arms].count("reference") != 1 or len(
        {arm.name for arm in measurement.arms}
    ) < len(measurement.arms):
        raise ValueError("a measurement has one reference among its arms, and no two arms of one name")
    if len({trace.case_id for trace in measurement.traces}) < len(measurement.traces):
        raise ValueError("a case is measured twice")
    return measurement


class _Figures(TypedDict):
    """What a line of any kind may name, whatever else it holds."""

    figures: NotRequired[tuple[int, int]]


class _Fork(TypedDict):
    fork: int
    confirming: bool


class _Lost(TypedDict):
    arm: str
    case_id: str
    fork: int
    text: str


class _Counts(TypedDict):
    arm: str
    case_id: str
    masks_sha256: str
    allowed: int
    forced_bytes: int | None
    serialized_bytes: int | None
    compile_peak_bytes: NotRequired[int | None]


class _Mechanisms(TypedDict):
    arm: str
    case_id: str
    rollback: int
    copy: int
    jump_forward: int
    figures: tuple[int, int]


class _Batch(TypedDict):
    arm: str
    case_id: str
    size: int
    threads: int
    figures: tuple[int, int]


class _Variant(TypedDict):
    arm: str
    case_id: str
    option: str
    value: str
    figures: tuple[int, int]


_OTHERS: dict[str, type] = {
    "fork": _Fork,
    "lost": _Lost,
    "counts": _Counts,
    "mechanisms": _Mechanisms,
    "batch": _Batch,
    "variant": _Variant,
}
"""The fields of other kinds of lines that readers use; any other field is kept as it is."""
