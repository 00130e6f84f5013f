"""What is concluded from a measurement of growth: for each arm, axis and figure how it grows, where it ended,
and what a cache and many different schemas do."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Literal

from harness.measure.growth.axes import SCHEMAS, axes
from harness.measure.growth.fit import Growth, Slope, growth, slope
from harness.measure.growth.record import SHORT_NS, Block, Grown, Point, Status

Unit = Literal["ns", "bytes"]
MemoryVerdict = Literal["bounded", "grows", "not judged"] | Status
"""Whether the memory of a process grows with different schemas, or what ended it before that was known."""


@dataclass(frozen=True)
class Figure:
    """One cost of a size."""

    name: str
    title: str
    unit: Unit
    value: Callable[[Sequence[Point]], float | None]
    """The cost, from the points of one size in all forks; None if it was not measured."""
    floor: float = 0.0
    """Costs below it cannot be told apart."""
    of_grammar: bool = True
    """Whether it is a cost of the grammar, which says nothing along an axis of positions in the output."""


def compile_cost(points: Sequence[Point]) -> float | None:
    """Returns what a cold compile costs: the least wall time if it is short, else the mean processor time of
    all children (a mean, because ticks are too many as often as too few), and never more than the wall
    time."""
    walls = [wall for point in points for wall in point.wall_ns]
    if not walls:
        return None
    least = float(min(walls))
    return (
        least if least < SHORT_NS else min(least, mean(cpu for point in points for cpu in point.compile_ns))
    )


def first_mask_cost(points: Sequence[Point]) -> float | None:
    """Returns what the first mask costs: the compile, and the least new object and fill after one."""
    compiled = compile_cost(points)
    fills = [fill for point in points for fill in point.first_fill_ns]
    return compiled + min(fills) if compiled is not None and fills else None


def _median(values: Sequence[int]) -> float | None:
    return float(median(values)) if values else None


def _least_mask(points: Sequence[Point], of: Callable[[Sequence[int]], float]) -> float | None:
    """Returns a figure over the places of the output, of each place the minimum over forks."""
    walks = [point.mask_ns for point in points if point.mask_ns]
    shortest = min(map(len, walks), default=0)
    return of([min(walk[place] for walk in walks) for place in range(shortest)]) if shortest else None


FIGURES = {
    figure.name: figure
    for figure in (
        Figure("compile", "cold compile", "ns", compile_cost),
        Figure("first_mask", "first mask: compile, new object and first fill", "ns", first_mask_cost),
        Figure(
            "mask",
            "warm mask, median of the places",
            "ns",
            lambda points: _least_mask(points, median),
            of_grammar=False,
        ),
        Figure(
            "mask_max",
            "warm mask, slowest place",
            "ns",
            lambda points: _least_mask(points, max),
            of_grammar=False,
        ),
        Figure(
            "memory",
            "resident memory that a compile keeps",
            "bytes",
            lambda points: _median([kept for point in points for kept in point.memory_bytes]),
            floor=1 << 20,
        ),
    )
}
"""The figures that are fitted, by name."""


@dataclass(frozen=True)
class End:
    """What ended an arm along an axis."""

    status: Status
    phase: str
    size: int
    text: str

    @property
    def word(self) -> str:
        """Returns how it ended in words; of what was not the compile, what it was."""
        if self.status == "harness_error":
            return "failed in our own code"
        return self.status if self.phase == "compile" else f"{self.phase} {self.status}"


@dataclass(frozen=True)
class Conclusion:
    """How one figure of one arm grows along one axis."""

    vocabulary: str
    axis: str
    arm: str
    figure: str
    growth: Growth
    end: End | None
    """What ended it before the largest size; None if nothing did."""
    values: tuple[tuple[int, float], ...]
    """The size and the cost of each size that was measured."""

    @property
    def verdict(self) -> str:
        """Returns the verdict in words, its end first: what was killed is not judged by what was not."""
        grows = "" if self.growth.kind == "not judged" and self.end else self.growth.kind
        if self.end is None:
            return grows
        ended = f"{self.end.word} at {self.end.size}"
        return f"{ended}, {grows} before" if grows else ended


def conclusions(grown: Grown) -> list[Conclusion]:
    """Returns the conclusions by vocabulary, axis, arm and figure, in the order in which they were asked
    for."""
    found = []
    known = axes()
    for vocabulary in grown.plan.vocabularies:
        for axis in grown.plan.axes:
            figures = [
                figure
                for figure in FIGURES.values()
                if not (figure.of_grammar and axis in known and known[axis].is_position)
            ]
            for arm in grown.plan.arms:
                points = [
                    point
                    for point in grown.points
                    if (point.vocabulary, point.axis, point.arm) == (vocabulary, axis, arm.name)
                ]
                if points:
                    found += [concluded(vocabulary, axis, arm.name, figure, points) for figure in figures]
    return found


def concluded(vocabulary: str, axis: str, arm: str, figure: Figure, points: Sequence[Point]) -> Conclusion:
    """Returns the conclusion about one figure from the points of one arm along one axis. What one fork
    measured beyond the end of another is left out: the verdict is about what was before the end."""
    end = _end(points)
    values = []
    for size in sorted({point.size for point in points if end is None or point.size <= end.size}):
        cost = figure.value([point for point in points if point.size == size])
        if cost is not None:
            values.append((size, cost))
    grows = growth([size for size, _ in values], [cost for _, cost in values], floor=figure.floor)
    return Conclusion(vocabulary, axis, arm, figure.name, grows, end, tuple(values))


def _end(points: Sequence[Point]) -> End | None:
    """Returns what ended an arm along an axis in any fork, at the smallest size; None if nothing did. A
    failure of ours ends it only where no fork was measured so far: it says nothing of the arm."""
    measured = max((point.size for point in points if point.status == "ok"), default=0)
    ends = [
        point
        for point in points
        if point.status != "ok" and (point.status != "harness_error" or point.size > measured)
    ]
    if not ends:
        return None
    first = min(ends, key=lambda point: (point.size, point.status == "harness_error"))
    return End(first.status, first.phase, first.size, first.text)


@dataclass(frozen=True)
class Caching:
    """What it costs an arm to compile the same grammar again, as a share of the cold compile: the median over
    all sizes that took at least a millisecond."""

    vocabulary: str
    arm: str
    again: float
    """The cost where the same adapter compiles it again, with the arm's options as they are."""
    cached: float | None
    """The cost where an adapter with its cache on compiles it again; None where there is no such option."""
    sizes: int


CACHE_NS = 1_000_000


def caching(grown: Grown) -> list[Caching]:
    """Returns what compiling again costs each arm."""
    found = []
    for vocabulary in grown.plan.vocabularies:
        for arm in grown.plan.arms:
            points = [
                point
                for point in grown.points
                if (point.vocabulary, point.arm) == (vocabulary, arm.name)
                and point.again_ns is not None
                and (compile_cost([point]) or 0) >= CACHE_NS
            ]
            if not points:
                continue
            colds = [compile_cost([point]) or math.inf for point in points]
            again = median((point.again_ns or 0) / cold for point, cold in zip(points, colds, strict=True))
            hits = [
                point.cached_ns / cold
                for point, cold in zip(points, colds, strict=True)
                if point.cached_ns is not None
            ]
            found.append(Caching(vocabulary, arm.name, again, median(hits) if hits else None, len(points)))
    return found


KEPT = 256.0
"""Bytes for each schema. A process that keeps fewer is bounded as far as this can tell: with 10,000 schemas
that is two and a half megabytes, which an allocator takes by itself."""


@dataclass(frozen=True)
class ManySchemas:
    """What many different schemas in one process do to its memory."""

    vocabulary: str
    arm: str
    compiled: int
    """The most that one process compiled."""
    slope: Slope | None
    verdict: MemoryVerdict
    text: str
    first_bytes: int | None
    last_bytes: int | None
    again: float | None
    """What one of the first schemas costs once more at the end, as a share of the median compile: near 0 for
    a cache that still holds it."""
    series: tuple[tuple[tuple[int, float], ...], ...]
    """For each fork the number of schemas and the resident bytes after them."""


def many_schemas(grown: Grown) -> list[ManySchemas]:
    """Returns what was seen of each arm along the axis `schemas`."""
    found = []
    for vocabulary in grown.plan.vocabularies if SCHEMAS in grown.plan.axes else ():
        for arm in grown.plan.arms:
            forks: dict[int, list[Block]] = {}
            for block in grown.blocks:
                if (block.vocabulary, block.arm) == (vocabulary, arm.name):
                    forks.setdefault(block.fork, []).append(block)
            if forks:
                found.append(_many(vocabulary, arm.name, list(forks.values())))
    return found


def _many(vocabulary: str, arm: str, forks: Sequence[Sequence[Block]]) -> ManySchemas:
    series = tuple(
        tuple(
            (block.first + block.done, float(block.rss_bytes))
            for block in blocks
            if block.rss_bytes is not None and block.done
        )
        for blocks in forks
    )
    rise = slope(series)
    last = [blocks[-1] for blocks in forks]
    ended = next((block for block in last if block.status not in ("ok", "harness_error")), None)
    if ended is None and all(block.status == "harness_error" for block in last):
        ended = last[0]  # a failure of ours in one fork does not overrule what another one shows
    verdict: MemoryVerdict = "not judged"
    if ended is not None:
        verdict = ended.status
    elif rise is not None and rise.high < KEPT:
        verdict = "bounded"
    elif rise is not None and rise.low > 0 and rise.per_step >= KEPT:
        verdict = "grows"
    again = [
        block.first_again_ns / block.compile_ns for block in last if block.first_again_ns and block.compile_ns
    ]
    longest = max(series, key=len)
    return ManySchemas(
        vocabulary,
        arm,
        max((one[-1][0] for one in series if one), default=0),
        rise,
        verdict,
        next((block.text for block in ([ended] if ended else last) if block.text), ""),
        int(longest[0][1]) if longest else None,
        int(longest[-1][1]) if longest else None,
        median(again) if again else None,
        series,
    )
