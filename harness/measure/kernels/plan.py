"""The sizes that are timed, and how often."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.measure.kernels.rounds import Effort
from harness.measure.kernels.timing import Point


@dataclass(frozen=True)
class KernelPlan:
    """The sizes of a run. Every combination is a point on one thread; on all threads only
    `shares_on_all_threads` are timed."""

    vocabularies: tuple[int, ...] = (32_768, 131_072, 262_208)
    batches: tuple[int, ...] = (1, 8, 64, 512)
    dtypes: tuple[str, ...] = ("float32", "bfloat16")
    shares: tuple[float, ...] = (0.00001, 0.5, 0.999)
    shares_on_all_threads: tuple[float, ...] = (0.5,)
    effort: Effort = Effort()  # noqa: RUF009
    probes: bool = True
    """Whether each kernel is probed for correctness before anything is timed."""

    def points(self, on_all_threads: bool) -> Iterator[Point]:
        """Yields the points, one element type after the other, because a kernel that compiles itself does so
        once for each type."""
        for dtype in self.dtypes:
            for vocabulary in self.vocabularies:
                for batch in self.batches:
                    for share in self.shares_on_all_threads if on_all_threads else self.shares:
                        yield Point(vocabulary, batch, dtype, share)


DEFAULT = KernelPlan()
QUICK = KernelPlan(
    batches=(1, 64),
    shares=(0.00001, 0.5),
    shares_on_all_threads=(),
    effort=Effort(rounds=15, budget_ns=50_000_000),
)
