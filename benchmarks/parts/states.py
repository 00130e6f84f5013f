"""In how many cases of a run each backend works, is refused, and goes wrong."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Set
from pathlib import Path

from harness.backend.arm import arm_names
from harness.outcomes.case_state import CaseState
from harness.outcomes.outcome import CaseRows
from harness.rows.store import case_identity, read_info, read_rows


def state_counts(
    run: Path, only: Set[tuple[str, ...]] | None = None
) -> dict[tuple[str, str], Counter[CaseState]]:
    """Returns the number of cases in each state, by vocabulary and arm; of these cases only (by
    `case_identity`), or of all."""
    names = arm_names(read_info(run).arms)
    cases: dict[tuple[str, ...], CaseRows] = defaultdict(CaseRows)
    for row in read_rows(run):
        case = case_identity(row)
        if only is None or case in only:
            cases[case].add(row)
    counts: dict[tuple[str, str], Counter[CaseState]] = defaultdict(Counter)
    for (backend, version, options, vocabulary, *_), rows in cases.items():
        counts[vocabulary, names[backend, version, options]][rows.state] += 1
    return counts
