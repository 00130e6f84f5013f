"""The rows of a run folded by arm and by case: what every metric looks at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.backend.arm import arm
from harness.errors import damaged
from harness.outcomes.outcome import MORE, NOT_COMPILED, CaseRows, Counts, counts_of, walk_verdict
from harness.rows.folder import SAMPLES
from harness.rows.row import BROKEN, CHECKS_MODE, DECLINED, OURS, Row, RunInfo
from harness.rows.store import Samples, read_info, read_rows, read_samples

MaskbenchError = Literal[
    "compile_error", "crash", "out_of_memory", "timeout", "validation_error", "invalidation_error"
]
Nanoseconds = NDArray[np.int64]

ArmKey = tuple[str, str, str, str]
"""Backend, version, options, vocabulary."""


def arm_key(row: Row) -> ArmKey:
    """Returns whose row it is."""
    return *row.version_key, row.vocabulary


def maskbench_error(row: Row) -> MaskbenchError | None:
    """Returns which of the errors that are named as MaskBench's the row is, if any.

    MaskBench itself counts otherwise (benchmarks/parts/maskbench_counts.py): a case once, and without
    end-of-sequence.
    """
    if row.status in DECLINED:
        return "compile_error"
    if row.status == "backend_error":
        return "compile_error" if row.phase in NOT_COMPILED else "validation_error"
    if row.status == "crash" or row.status == "timeout":
        return row.status
    if row.status == "oom":
        return "out_of_memory"
    kinds: dict[str, MaskbenchError] = {
        "over_constrained": "validation_error",
        "under_constrained": "invalidation_error",
    }
    return kinds.get(walk_verdict(row))


@dataclass(slots=True)
class CaseSummary:
    """All rows of one case from one arm, folded."""

    rows: CaseRows = field(default_factory=CaseRows)
    """What the case comes to."""
    failures: set[MaskbenchError] = field(default_factory=set)
    """The errors of its walks, by the names that MaskBench has for them."""
    compiled: bool = False
    """A walk got past compiling."""
    compile_failed: bool = False
    ours: bool = False
    """A walk is missing through our fault."""
    compile_ns: int | None = None
    ttfm_ns: int | None = None
    slices: list[tuple[int, int]] = field(default_factory=list)
    first_fill_ns: int | None = None

    @property
    def walked(self) -> bool:
        """Do we know how its walks went?

        Not where some are missing through our fault and none of the others failed.
        """
        return bool(self.failures) or not self.ours

    @property
    def declared(self) -> bool:
        """Did the backend compile it?"""
        return self.walked and self.compiled and not self.compile_failed

    @property
    def solved(self) -> bool:
        """It compiled and no walk is wrong, judged or not: its times may be compared.

        Whether it passes, `rows` says.
        """
        return self.declared and not self.failures

    def add(self, row: Row) -> None:
        """Take in one more row of the case."""
        self.rows.add(row)
        if row.mode == CHECKS_MODE:
            return
        if row.status in OURS:
            self.ours = True
            return
        if kind := maskbench_error(row):
            self.failures.add(kind)
        if row.status in DECLINED or (row.status != "ok" and row.phase in NOT_COMPILED):
            self.compile_failed = True
            return
        self.compiled = True
        if self.compile_ns is None:
            self.compile_ns = row.compile_ns
        if self.first_fill_ns is None:
            self.first_fill_ns = row.first_fill_ns
        if self.ttfm_ns is None and None not in (row.matcher_new_ns, row.first_fill_ns, self.compile_ns):
            self.ttfm_ns = (self.compile_ns or 0) + (row.matcher_new_ns or 0) + (row.first_fill_ns or 0)
        if row.samples:
            self.slices.append(row.samples)


@dataclass(slots=True)
class CheckSummary:
    """What one check said of one arm, counted over cases."""

    passed: int = 0
    failed: int = 0
    documented: int = 0
    """The failed cases whose every finding is a divergence that the backend documents."""
    skipped: int = 0
    """There was nothing to check."""
    lost: int = 0
    """The child was lost in the check: a crash, a timeout, out of memory."""
    ours: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    """Cases by cause; empty where none is known."""
    over: int = 0
    under: int = 0
    """Tokens wrongly forbidden and wrongly allowed, summed over all places looked at."""
    ids: int = 0
    passes: int = 0
    """The forward passes for the texts that a strategy wrote."""

    @property
    def looked(self) -> int:
        """Returns the number of cases of which the check said something."""
        return self.passed + self.failed

    @property
    def saved(self) -> float | None:
        """Returns the share of ids that a strategy wrote without a forward pass of their own; None where
        nothing was written."""
        return 1 - self.passes / self.ids if self.ids else None


ENOUGH_TIMED = 0.9
"""The share of an arm's cases that must have samples for the times of its tokens to be told as the arm's."""


@dataclass(frozen=True)
class Timed:
    """Counts the cases of an arm in which the time of each token is known. Rows that are taken over from
    another run, or published, come without their samples, and so without these times."""

    cases: int
    """The cases that have samples."""
    of: int
    """The cases that compiled and in which a mask was filled."""

    @property
    def is_enough(self) -> bool:
        """Are the times those of the arm, and not of the few cases that happened to be walked again?"""
        return self.cases >= ENOUGH_TIMED * self.of

    @property
    def why_not(self) -> str:
        """Returns why no figure is made of the times, in a few words; empty where one is."""
        if self.is_enough:
            return ""
        return (
            f"samples of only {self.cases:,} of {self.of:,} cases"
            if self.cases
            else "no samples lie beside these rows"
        )


@dataclass
class ArmSummary:
    """All rows of one backend with its options, on one vocabulary, folded; everything that a metric may look
    at."""

    backend: str
    version: str
    options: str
    vocabulary: str
    samples: Samples
    folder: Path = Path()
    """The run's folder, which a message about its samples names."""
    cases: dict[tuple[str, str], CaseSummary] = field(default_factory=dict)
    """The cases, by suite and case id."""
    outcomes: Counter[str] = field(default_factory=Counter)
    by_suite: dict[str, Counter[str]] = field(default_factory=dict)
    rows: int = 0
    with_findings: int = 0
    checks: dict[str, CheckSummary] = field(default_factory=dict)
    peak_rss_bytes: int | None = None
    _counts: dict[str | None, Counts] = field(default_factory=dict, repr=False, compare=False)
    """What `counts` has said since the last row: a page asks for it hundreds of times."""
    _timed: Timed | None = field(default=None, repr=False, compare=False)
    """What `timed` has said since the last row; None before it was asked."""
    _solves_any: bool | None = field(default=None, repr=False, compare=False)
    """What `solves_any` has said since the last row; None before it was asked."""

    @property
    def key(self) -> ArmKey:
        return self.backend, self.version, self.options, self.vocabulary

    @property
    def name(self) -> str:
        return arm(self)

    @property
    def who(self) -> dict[str, str]:
        """Returns the columns of a table that say whose line it is."""
        return {
            "backend": self.backend,
            "backend_version": self.version,
            "options": self.options,
            "vocabulary": self.vocabulary,
        }

    @property
    def timed(self) -> Timed:
        """Returns of how many of its cases the times of single tokens are known."""
        if self._timed is None:
            compiled = [case for case in self.cases.values() if case.declared]
            filled = [case for case in compiled if case.first_fill_ns is not None]
            self._timed = Timed(sum(bool(case.slices) for case in filled), len(filled))
        return self._timed

    def add(self, row: Row) -> None:
        """Take in one more row of the arm."""
        self._counts.clear()
        self._timed = self._solves_any = None
        self.rows += 1
        self.cases.setdefault((row.suite, row.case_id), CaseSummary()).add(row)
        if row.mode == CHECKS_MODE:
            self._add_checks(row)
            return
        kind = walk_verdict(row)
        self.outcomes[kind] += 1
        self.by_suite.setdefault(row.suite, Counter())[kind] += 1
        self.with_findings += bool(row.findings)
        if row.peak_rss_bytes is not None:
            self.peak_rss_bytes = max(self.peak_rss_bytes or 0, row.peak_rss_bytes)

    def _add_checks(self, row: Row) -> None:
        """Counts what the checks found of one case."""
        for name, counted in row.counted.items():
            check = self.checks.setdefault(name, CheckSummary())
            check.ids += counted.get("ids", 0)
            check.passes += counted.get("passes", 0)
        for name, result in row.checks.items():
            check = self.checks.setdefault(name, CheckSummary())
            mine = [finding for finding in row.findings if finding.check == name]
            if result == "failed":
                check.failed += 1
                check.documented += all(finding.documented for finding in mine if finding.cause != MORE)
                check.causes.update({finding.cause for finding in mine})
                check.over += sum(finding.over for finding in mine)
                check.under += sum(finding.under for finding in mine)
            elif result == "passed":
                check.passed += 1
            elif result == "harness_error":
                check.ours += 1
            else:
                check.skipped += 1
        if row.status in BROKEN and row.phase in ("check", "oracle"):
            self.checks.setdefault(row.checking or "unknown", CheckSummary()).lost += 1

    @property
    def solves_any(self) -> bool:
        """False for a baseline that allows everything, and for a backend that does not load."""
        if self._solves_any is None:
            solved = [case for case in self.cases.values() if case.solved]
            judged = any(case.rows.is_judged for case in self.cases.values())
            self._solves_any = any(case.rows.judged for case in solved) if judged else bool(solved)
        return self._solves_any

    def counts(self, suite: str | None = None) -> Counts:
        """Returns how many cases, of one suite or of all, came to what."""
        if suite not in self._counts:
            cases = (case.rows for key, case in self.cases.items() if suite in (None, key[0]))
            self._counts[suite] = counts_of(cases)
        return self._counts[suite]

    def walked(self) -> list[CaseSummary]:
        """Returns the cases of which we know how their walks went."""
        return [case for case in self.cases.values() if case.walked]

    def only(self, keys: set[tuple[str, str]]) -> ArmSummary:
        """Returns the same arm with these cases alone, for the metrics over cases."""
        cases = {key: case for key, case in self.cases.items() if key in keys}
        return ArmSummary(*self.key, self.samples, self.folder, cases)


def each_taken_in(rows: Iterable[Row], *takers: Callable[[Row], None]) -> Iterator[Row]:
    """Yields the rows unchanged, each after every taker has had it, so that one reading serves all."""
    for row in rows:
        for take in takers:
            take(row)
        yield row


def summarize(
    rows: Iterable[Row], samples: Samples, info: RunInfo | None = None, folder: Path = Path()
) -> list[ArmSummary]:
    """Returns the rows by arm: one for each backend with options of the run and vocabulary, in the run's
    order, seen or not. `folder` is where the run lies."""
    arms: dict[ArmKey, ArmSummary] = {}
    # A plain view: slicing a memmap 10^5 times is slow.
    samples = samples.view(np.ndarray)
    for run_arm in info.arms if info else ():
        for vocabulary in info.vocabularies if info else ():
            key = run_arm.backend, run_arm.version, run_arm.options, vocabulary
            arms[key] = ArmSummary(*key, samples, folder)
    for row in rows:
        key = arm_key(row)
        if key not in arms:
            arms[key] = ArmSummary(*key, samples, folder)
        arms[key].add(row)
    return list(arms.values())


def read_arms(run: Path) -> list[ArmSummary]:
    """Returns the arms of a run on disk. Raises BadInput."""
    return summarize(read_rows(run), read_samples(run), read_info(run), run)


def common_solved(arms: Sequence[ArmSummary]) -> set[tuple[str, str]]:
    """Returns the cases that every arm solves, but for arms that solve none: the set on which their times can
    be compared."""
    solved = [
        {key for key, case in summary.cases.items() if case.solved} for summary in arms if summary.solves_any
    ]
    return set.intersection(*solved) if solved else set()


def fills_of(arm: ArmSummary, case: CaseSummary) -> Nanoseconds:
    """Returns the nanoseconds of every fill of the case's walks, `[fills]`; empty where the run has no
    samples of it. Raises BadInput as `walk_times` does."""
    return np.concatenate([np.zeros(0, np.int64), *(walk[:, 0] for walk in walk_times(arm, [case]))])


def walk_times(arm: ArmSummary, cases: Iterable[CaseSummary]) -> Iterator[Nanoseconds]:
    """Yields, for each walk of the cases, the nanoseconds of fill and accept of each token, `[tokens, 2]`.
    Raises BadInput where there are fewer samples than the rows say."""
    for case in cases:
        for start, count in case.slices:
            if start + count > len(arm.samples):
                where = arm.folder / SAMPLES
                raise damaged(f"{where}: shorter than the rows say")
            yield arm.samples[start : start + count // 2 * 2].reshape(-1, 2)
