"""What a result is made of: plain data, of which every export is a function."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from harness.outcomes import outcome
from harness.outcomes.controls import CONTROLS
from harness.outcomes.delayed import Delayed
from harness.outcomes.gate import Gate
from harness.outcomes.metrics import Better

Kind = Literal["worse", "better", "other"]


@dataclass(frozen=True)
class Arm:
    """A backend with its options, on one vocabulary."""

    name: str
    backend: str
    version: str
    options: str
    vocabulary: str


@dataclass(frozen=True)
class Figure:
    """One number of one arm, with its interval where it has one."""

    arm: str
    family: str
    """The cases that it is of: a suite, `all`, or a workload."""
    name: str
    title: str
    unit: str
    better: Better
    value: float
    low: float | None = None
    high: float | None = None
    values: int | None = None
    """From how many the figure comes: a ratio from so many forks, a percentile of a run (`us`) from so many
    times, conformance from so many judged cases, and every other figure from so many cases."""
    why: str = ""
    """Why a ratio has no interval (it is unproven, and what makes it so); else empty."""
    headline: bool = False
    """Is it among the few figures that a dashboard plots?"""


@dataclass(frozen=True)
class Failing:
    """A case in which something is wrong on an arm, or diverges as the backend documents, or is refused."""

    arm: str
    suite: str
    case: str
    case_id: str
    faults: tuple[str, ...]
    """Verdicts other than `pass`, and findings as `check:cause`, the worst first; behind them those that fail
    nothing."""
    documented: tuple[str, ...]
    """The faults among them that fail nothing: the backend documents them, or they are policy."""
    said: str
    """What the backend or a check said of the worst fault, on one line; empty if nothing."""
    repro: str
    """The command that shows it."""
    outcome: str
    """What the case comes to: `failed`, `refused`, or `works` where the backend documents all of it."""
    state: str
    """What the case is like (`CaseState`): the same as its outcome, and for a failed case what goes wrong."""


@dataclass(frozen=True)
class Change:
    """Something that is not as it was."""

    kind: Kind
    arm: str
    what: str
    """One line."""


@dataclass(frozen=True)
class Counts(outcome.Counts):
    """Cases of one suite on one arm, by what they came to (harness/outcomes/outcome.py)."""

    arm: str = ""
    suite: str = ""


@dataclass(frozen=True)
class Result:
    """Everything that an export tells."""

    sample: str
    """The sample of its suites that the run walked; empty if it walked them whole."""
    incomplete: str
    """Why the run, or the measurement in its folder, is not whole; empty if it is."""
    run: str
    started: str
    harness: str
    profile: str
    hardware: str
    arms: tuple[Arm, ...]
    counts: tuple[Counts, ...]
    figures: tuple[Figure, ...]
    failing: tuple[Failing, ...]
    delayed: tuple[Delayed, ...]
    """What failed behind other cases and not alone. It is in none of the counts, but for what says `counts`,
    which is also among `failing`."""
    changes: tuple[Change, ...]
    gate: Gate

    @property
    def part(self) -> str:
        """Returns what keeps the figures from being those of whole suites, for beside a figure: that the run
        is incomplete, and its sample; empty for a whole run."""
        return "; ".join(filter(None, ["incomplete" if self.incomplete else "", self.sample]))

    @property
    def controls(self) -> frozenset[str]:
        """Returns the names of the arms that are our controls; none where the run has nothing else."""
        found = frozenset(arm.name for arm in self.arms if arm.backend in CONTROLS)
        return found if len(found) < len(self.arms) else frozenset()

    def to_json(self) -> dict[str, Any]:
        """Returns the result as plain values, which JSON can hold."""
        return asdict(self)
