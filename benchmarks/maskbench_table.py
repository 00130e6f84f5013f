"""A run over MaskBench as MaskBench counts, beside the table that it publishes, and as we count.

    python benchmarks/maskbench_table.py RUN ... [--differences FILE]

MaskBench counts schemas: a compile that raises is a `compile error`, a process that ends is a `segmentation
fault`, `out of memory` or `timeout`, and of the instances that go wrong the last one decides between a
`validation error` (a valid one is refused) and an `invalidation error` (an invalid one is taken). Its runner
never asks for end-of-sequence: an instance all of whose tokens are allowed counts as taken, though the output
may not end there (https://github.com/guidance-ai/jsonschemabench, maskbench/maskbench/runner.py, of 27 March
2025). A schema without instances passes as soon as it compiles. We count a case by its gravest fault, ask for
end-of-sequence, and call a case that nothing judges `not judged`; instances that we made are left out of
MaskBench's counts, and so are masks and checks. A run of some of the files shows shares beside the published
ones. --differences writes each schema on which the two counts say otherwise, as lines of JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from harness.backend.arm import arm_names
from harness.outcomes.case_state import CaseState
from harness.outcomes.outcome import CaseRows
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


def counted(run: Path) -> dict[str, dict[str, MaskBenchCase]]:
    """Returns the cases of a run by arm and id."""
    made = {case.id for _, _, case in read_cases(run) if any(one.made_for for one in case.instances)}
    names = arm_names(read_info(run).arms)
    found: dict[str, dict[str, MaskBenchCase]] = {}
    for row in read_rows(run):
        cases = found.setdefault(names[row.backend, row.backend_version, row.options], {})
        case = cases.setdefault(row.case_id, MaskBenchCase(row.case))
        if row.mode != CHECKS_MODE:
            case.add(row, row.case_id not in made)
    return found


def share(count: int, of: int) -> str:
    """Returns a count with its share in percent."""
    return f"{count:,} ({count / of:.1%})" if of else "0"


def as_maskbench(arms: dict[str, dict[str, MaskBenchCase]], versions: dict[str, tuple[str, str]]) -> str:
    """Returns the table of MaskBench's counts as Markdown: of each arm what MaskBench publishes of that
    version, where it does, and what was walked here."""
    columns: list[tuple[str, dict[Count, int]]] = []
    for arm, cases in arms.items():
        backend, version = versions[arm]
        if published := PUBLISHED.get((backend, version)):
            columns.append((f"{backend} {version}, published", published))
        columns.append((f"{backend} {version}, here", Counter(case.count for case in cases.values())))
    lines = [
        f"| schemas | {' | '.join(name for name, _ in columns)} |",
        "| --- " + "| ---: " * len(columns) + "|",
    ]
    for count in COUNTS:
        cells = [share(counts.get(count, 0), sum(counts.values())) for _, counts in columns]
        lines.append(f"| {count} | {' | '.join(cells)} |")
    lines.append(f"| in all | {' | '.join(f'{sum(counts.values()):,}' for _, counts in columns)} |")
    return "\n".join(lines)


def as_we(arms: dict[str, dict[str, MaskBenchCase]], versions: dict[str, tuple[str, str]]) -> str:
    """Returns the table of our counts of the same walks, without masks and checks."""
    heads = [" ".join(versions[arm]) for arm in arms]
    lines = [f"| schemas | {' | '.join(heads)} |", "| --- " + "| ---: " * len(heads) + "|"]
    for state in CaseState:
        counts = [sum(case.ours.state == state for case in cases.values()) for cases in arms.values()]
        if any(counts):
            cells = [share(count, len(cases)) for count, cases in zip(counts, arms.values(), strict=True)]
            lines.append(f"| {state.words.title} | {' | '.join(cells)} |")
    return "\n".join(lines)


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


def differences(arms: dict[str, dict[str, MaskBenchCase]]) -> Iterator[dict[str, str]]:
    """Yields each schema on which the two ways of counting differ, by arm."""
    for arm, cases in arms.items():
        for case in cases.values():
            if case.ours.state not in AGREE[case.count]:
                yield {"arm": arm, "schema": case.name, "maskbench": case.count, "ours": case.ours.state}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    parser.add_argument("--differences", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    arms: dict[str, dict[str, MaskBenchCase]] = {}
    versions: dict[str, tuple[str, str]] = {}
    for number, run in enumerate(options.runs):
        info = read_info(run)
        names = arm_names(info.arms)
        for one in info.arms:
            name = names[one.backend, one.version, one.options]
            versions[f"{number}:{name}"] = one.backend, one.version
        arms |= {f"{number}:{arm}": cases for arm, cases in counted(run).items()}
        cases = sum(suite["cases"] for suite in info.suites.values())
        said = "all" if cases >= FILES - 1 else "a sample"
        print(f"{run}: {cases:,} of {FILES:,} files, {said}; {info.timeout_s:g} s for a call")
    print(f"\nAs MaskBench counts:\n\n{as_maskbench(arms, versions)}")
    print(f"\nAs we count the same walks:\n\n{as_we(arms, versions)}")
    found = list(differences(arms))
    kinds = Counter((versions[one["arm"]], one["maskbench"], one["ours"]) for one in found)
    print(f"\nThe two counts differ on {len(found):,} schemas:")
    for ((backend, version), theirs, ours), count in kinds.most_common():
        print(f"- {backend} {version}: {count:,} that MaskBench counts as {theirs} are {ours} for us")
    if options.differences:
        options.differences.write_text("".join(json.dumps(one) + "\n" for one in found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
