"""How MaskBench counts what a run has walked, what it publishes itself, and how we count the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from harness.errors import BadInput
from harness.outcomes.case_state import CaseState
from harness.outcomes.outcome import CaseRows
from harness.report.figures import estimates
from harness.rows.row import CHECKS_MODE, DECLINED, Row
from harness.rows.store import read_cases, read_info, read_rows

Count = Literal[
    "passing",
    "compile error",
    "segmentation fault",
    "out of memory",
    "timeout",
    "validation error",
    "invalidation error",
]
COUNTS: tuple[Count, ...] = get_args(Count)

PUBLISHED: dict[tuple[str, str], dict[Count, int]] = {
    (backend, version): dict(zip(COUNTS, counts, strict=True))
    for backend, version, counts in (
        ("llguidance", "0.7.10", (8909, 2377, 0, 0, 0, 20, 0)),
        ("xgrammar", "0.1.17", (8122, 90, 37, 0, 241, 1408, 1368)),
        ("llama-cpp", "0.3.8", (6505, 1301, 0, 0, 1, 2850, 649)),
        ("outlines-core", "0.2.3", (7050, 1773, 0, 188, 60, 1415, 822)),
    )
}
"""What MaskBench's README publishes of 11,306 schemas, by backend and version: with the vocabulary of Llama
3.1, a deadline of 900 s for a schema, and 40 GiB."""

FILES = 11_306
WALKABLE = FILES - 4
"""Its repository has 11,305 files, and three of them are no schemas by their own draft."""


def makes_none(argv: Sequence[str]) -> bool:
    """Does a run by this command make no documents for schemas of MaskBench? Such is `grammarbench run
    --bare`, and benchmarks/reference.py always: its command has no name in front of its options."""
    return "--bare" in argv or (bool(argv) and argv[0].startswith("--"))


@dataclass
class MaskBenchCase:
    """One schema on one arm, counted as MaskBench counts; rows come in the order of the instances."""

    name: str
    count: Count = "passing"
    ours: CaseRows = field(default_factory=CaseRows)

    def add(self, row: Row, is_from_file: bool) -> None:
        """Takes in one row of the case; `is_from_file` is false for an instance that we made."""
        self.ours.add(row)
        if self.count in ENDINGS:
            return
        if ending := _ending(row):
            self.count = ending
        elif is_from_file and row.instance is not None:
            self.count = _error(row) or self.count


ENDINGS = COUNTS[1:5]
"""What ends a schema, whatever its instances do."""
BY_STATUS: dict[str, Count] = {"timeout": "timeout", "crash": "segmentation fault", "oom": "out of memory"}


def _ending(row: Row) -> Count | None:
    """Returns what ends the schema at this row; None where it goes on."""
    if row.status in BY_STATUS:
        return BY_STATUS[row.status]
    is_raised = row.status == "backend_error" and row.phase in ("compile", "start")
    return "compile error" if row.status in DECLINED or is_raised else None


def _error(row: Row) -> Count | None:
    """Returns the error that the instance is for MaskBench; None where it is none, or was not walked."""
    raised = row.status == "backend_error"
    if raised and row.phase != "end":
        return "validation error"
    valid = row.contested if row.valid is None else row.valid
    if valid is None or (row.accepted is None and not raised):
        return None
    # What is raised behind the last token, at end-of-sequence, MaskBench does not get to see.
    taken = raised or row.accepted or row.stopped_at == row.tokens
    if taken == valid:
        return None
    return "validation error" if valid else "invalidation error"


@dataclass(frozen=True)
class Walked:
    """The schemas that one arm of a run has walked, by id."""

    backend: str
    version: str
    vocabulary: str
    timeout_s: float
    cases: dict[str, MaskBenchCase]

    @property
    def name(self) -> str:
        return f"{self.backend} {self.version}, {self.vocabulary}"

    @property
    def is_sample(self) -> bool:
        """Are schemas missing that could be walked?"""
        return len(self.cases) < WALKABLE


def walked_in(run: Path) -> list[Walked]:
    """Returns what each arm of a run has walked with each vocabulary, in the order of its arms. Of a
    published run there are only rows, which do not tell documents that we made from others. Raises BadInput
    for one that may have such."""
    info = read_info(run)
    made: set[str] = set()
    if (run / "cases.jsonl").exists():
        made = {case.id for _, _, case in read_cases(run) if any(one.made_for for one in case.instances)}
    elif not makes_none(info.argv):
        raise BadInput(f"{run}: it has no cases.jsonl, and was not walked with --bare; name a run that has")
    found: dict[tuple[str, str, str, str], dict[str, MaskBenchCase]] = {
        (one.backend, one.version, one.options, vocabulary): {}
        for one in info.arms
        for vocabulary in info.vocabularies
    }
    for row in read_rows(run):
        cases = found[row.backend, row.backend_version, row.options, row.vocabulary]
        case = cases.setdefault(row.case_id, MaskBenchCase(row.case))
        if row.mode != CHECKS_MODE:
            case.add(row, row.case_id not in made)
    return [
        Walked(backend, version, vocabulary, info.timeout_s, cases)
        for (backend, version, _, vocabulary), cases in found.items()
    ]


def share(count: int, of: int, is_sample: bool = False) -> str:
    """Returns a count with its share in percent, and of a sample with the interval (LEVEL) of the share."""
    found = estimates.share(count, of)
    if found is None or found.bounds is None:
        return "0"
    low, high = (f"{100 * bound:.1f}" for bound in found.bounds)
    return f"{count:,} ({found.value:.1%}{f'; {low} to {high}' if is_sample else ''})"


def as_maskbench(walked: Sequence[Walked]) -> str:
    """Returns the table of MaskBench's counts as Markdown: a line for each arm and vocabulary, and before the
    first of a version what MaskBench publishes of it, where it does."""
    lines: list[tuple[str, list[int], bool]] = []
    told = set()
    for one in walked:
        version = (one.backend, one.version)
        if version in PUBLISHED and version not in told:
            published = [PUBLISHED[version][count] for count in COUNTS]
            lines.append((f"{' '.join(version)}, as MaskBench publishes it", published, False))
        told.add(version)
        counts = Counter(case.count for case in one.cases.values())
        lines.append((one.name, [counts[count] for count in COUNTS], one.is_sample))
    return _table(COUNTS, lines)


def as_we(walked: Sequence[Walked]) -> str:
    """Returns the table of our counts of the same walks, without masks and checks."""
    counted = [(one, Counter(case.ours.state for case in one.cases.values())) for one in walked]
    lines = [(one.name, [counts[state] for state in CaseState], one.is_sample) for one, counts in counted]
    return _table([state.words.title for state in CaseState], lines)


def _table(heads: Sequence[str], lines: Sequence[tuple[str, Sequence[int], bool]]) -> str:
    """Returns the lines, each with its name, its counts, and whether they are of a sample, as Markdown;
    without the columns in which no line has any."""
    kept = [number for number in range(len(heads)) if any(counts[number] for _, counts, _ in lines)]
    table = [
        f"| schemas | {' | '.join(heads[number] for number in kept)} | in all |",
        f"| --- |{' ---: |' * (len(kept) + 1)}",
    ]
    for name, counts, is_sample in lines:
        cells = [share(counts[number], sum(counts), is_sample) for number in kept]
        table.append(f"| {name} | {' | '.join(cells)} | {sum(counts):,} |")
    return "\n".join(table)


AGREE: dict[Count, tuple[CaseState, ...]] = {
    "passing": (CaseState.WORKS, CaseState.NOT_JUDGED),
    "compile error": (CaseState.REFUSED,),
    "segmentation fault": (CaseState.BREAKS,),
    "out of memory": (CaseState.BREAKS,),
    "timeout": (CaseState.TOO_SLOW,),
    "validation error": (CaseState.VALID_REFUSED,),
    "invalidation error": (CaseState.SILENTLY_WRONG,),
}
"""Our states that say the same as a count of MaskBench."""


def differences(walked: Sequence[Walked]) -> Iterator[tuple[Walked, MaskBenchCase]]:
    """Yields each schema on which the two ways of counting differ, with what walked it."""
    for one in walked:
        yield from ((one, case) for case in one.cases.values() if case.ours.state not in AGREE[case.count])
