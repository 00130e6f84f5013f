"""The slowest compiles of a run by case and backend, and how many are slow: a tail that no median shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median_low

from harness.backend.arm import arm
from harness.outcomes.summary import ArmKey, arm_key
from harness.rows.row import DECLINED, Row
from harness.text import duration

SECOND = 1_000_000_000
TIMES = 10
"""A compile that takes so many times its backend's median is called slow."""

MOST = 10
"""Compiles of all backends that are named at most."""


@dataclass(frozen=True)
class Compile:
    """One case's compile by one backend."""

    key: ArmKey
    backend: str
    """The backend with its options, its version and the vocabulary, as people call them."""
    suite: str
    case_id: str
    case: str
    ns: int
    unfinished: bool
    """It met the deadline, which is `ns`."""

    @property
    def duration_text(self) -> str:
        """Returns the time in words."""
        return f"{'over ' if self.unfinished else ''}{duration(self.ns)}"


@dataclass(frozen=True)
class Tail:
    """What the compiles of one backend are like."""

    slowest: Compile
    compiles: int
    over_a_second: int
    over_the_median: int
    """How many take more than `TIMES` times the median of this backend."""

    @property
    def counts_text(self) -> str:
        """Returns how many compiles are slow, in words."""
        return (
            f"{self.over_a_second:,} of {self.compiles:,} compiles over 1 s, {self.over_the_median:,} "
            f"over {TIMES} times the median"
        )


@dataclass
class Compiles:
    """Takes in rows; keeps the first compile of each case by each backend. A refusal is no compile, however
    long it took."""

    timeout_s: float
    first_compiles: dict[tuple[ArmKey, str, str], Compile] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        """Takes in one row."""
        if row.status in DECLINED:
            return
        unfinished = row.status == "timeout" and row.phase == "compile"
        ns = int(self.timeout_s * SECOND) if unfinished else row.compile_ns
        where = arm_key(row), row.suite, row.case_id
        if ns is not None and where not in self.first_compiles:
            backend = " ".join(filter(None, (arm(row), row.backend_version, row.vocabulary)))
            self.first_compiles[where] = Compile(
                arm_key(row), backend, row.suite, row.case_id, row.case, ns, unfinished
            )

    def tails(self) -> list[Tail]:
        """Returns one for each backend, the one with the slowest compile first."""
        by_key: dict[ArmKey, list[Compile]] = {}
        for compiled in self.first_compiles.values():
            by_key.setdefault(compiled.key, []).append(compiled)
        return sorted(map(_tail, by_key.values()), key=lambda tail: -tail.slowest.ns)

    def slowest(self) -> list[Compile]:
        """Returns the MOST slowest compiles of all backends, the slowest first."""
        return sorted(self.first_compiles.values(), key=lambda compiled: -compiled.ns)[:MOST]


def _tail(compiles: list[Compile]) -> Tail:
    middle = median_low(compiled.ns for compiled in compiles)
    slow = sum(compiled.ns > TIMES * middle for compiled in compiles)
    return Tail(
        max(compiles, key=lambda compiled: compiled.ns),
        len(compiles),
        sum(compiled.ns > SECOND or (compiled.unfinished and compiled.ns >= SECOND) for compiled in compiles),
        slow,
    )
