"""What the runs of benchmarks/reference.py will take, estimated by a sample of each part."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reference_about import minutes
from reference_walk import changed, request, taken_from
from stratified import Stratum, stratified

from harness.backend.registry import parse_specs
from harness.rows.store import case_identity, read_rows
from harness.running.progress import RunProgress
from harness.running.session import run


@dataclass(frozen=True)
class Estimate:
    """What one backend will take for one part, as a sample of `sampled` of its cases says."""

    part: str
    backend: str
    cases: int
    """The number of cases to be walked; a case on two vocabularies counts as two."""
    sampled: int
    seconds: float


class Clock:
    """Takes the time from the first case that is done to the last, so that loading is not in it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.marks: list[tuple[int, float]] = []

    def __call__(self, progress: RunProgress) -> None:
        if progress.done and (not self.marks or progress.done > self.marks[-1][0]):
            self.marks.append((progress.done, self.clock()))

    def seconds_per_case(self) -> float:
        """0 where fewer than two cases were seen."""
        if len(self.marks) < 2:
            return 0.0
        (first, started), (last, ended) = self.marks[0], self.marks[-1]
        return (ended - started) / (last - first)


def estimate(
    options: argparse.Namespace, part: str, suites: Sequence[str], strata: Mapping[str, Stratum]
) -> Iterator[Estimate]:
    """Walks a sample through each backend by itself, in a folder that is thrown away. It tells what is to be
    walked: the cases of a sample if one is walked, a share of them if a share is, and none that is taken
    over."""
    chosen = stratified(strata, options.sample)
    wanted = set(options.chosen[part] or strata)
    here = changed(options, shard=None, executor="", take_over=None)
    earlier = taken_from(options, part)
    known = {case_identity(row) for row in read_rows(earlier)} if earlier else set()
    for spec in parse_specs(options.backends):
        clock = Clock()
        with tempfile.TemporaryDirectory() as scratch:
            asked = request(here, part, suites, Path(scratch) / "run", str(spec), chosen)
            told = run(asked, lambda _: None, clock).described
        (arm,) = told.arms
        taken = Counter(
            vocabulary
            for *of_arm, vocabulary, _, case in known
            if of_arm == [arm.backend, arm.version, arm.options] and case in wanted
        )
        walks = sum(len(wanted) - taken[name] for name in told.vocabularies)
        walks //= options.shard.of if options.shard else 1
        yield Estimate(part, str(spec), walks, len(chosen), walks * clock.seconds_per_case())


def estimates_text(estimates: Sequence[Estimate]) -> str:
    """Returns a line for each backend and part, and the sum."""
    lines = [
        f"{estimate.part:10} {estimate.backend:20} about {minutes(estimate.seconds)} "
        f"for {estimate.cases} cases"
        for estimate in estimates
    ]
    total = minutes(sum(estimate.seconds for estimate in estimates))
    size = max(estimate.sampled for estimate in estimates)
    return "\n".join(
        [
            *lines,
            f"in all about {total}; so says a sample of {size} cases, and a few that meet "
            "the deadline change it much",
        ]
    )
