"""What each strategy wrote in a run with `--decode`, and with how many forward passes; no times are in it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pandas as pd

from harness.backend.arm import arm_names
from harness.checks import WRITES
from harness.errors import BadInput
from harness.rows.row import CHECKS_MODE
from harness.rows.store import read_info, read_rows

COUNTS = (
    "texts",
    "written",
    "ids",
    "passes",
    "forced",
    "retokenized",
    "rolled_back",
    "drafted",
    "accepted_drafts",
)
COLUMNS = ["vocabulary", "cases", "arm", "strategy", "of", *COUNTS, "ids_per_pass", "saved"]

Case = tuple[str, str]
Decoded = dict[Case, dict[str, dict[str, int]]]
"""What was counted, by suite and case id, and then by strategy."""


def passes_frame(run: Path) -> pd.DataFrame:
    """Returns one line per vocabulary, set of cases, arm and strategy.

    `cases`: `common` (those in which every arm wrote all texts under every strategy) or `own` (those that the
    arm decoded), with their number in `of`. All counts are of the written texts. `ids_per_pass`: 1 for one
    token a pass. `saved`: of the ids, those without a pass of their own. Raises BadInput for a run without
    `--decode`.
    """
    info = read_info(run)
    if not info.decode:
        raise BadInput(f"{run}: nothing was decoded in this run; `grammarbench run --decode` does")
    names = arm_names(info.arms)
    ran: set[str] = set()
    """The strategies of this run; those of today may be more."""
    decoded: dict[tuple[str, str], Decoded] = {
        (name, arm): {} for name in info.vocabularies for arm in names.values()
    }
    for row in read_rows(run):
        if row.mode == CHECKS_MODE:
            counted = {
                name.removesuffix(WRITES): count
                for name, count in row.counted.items()
                if name.endswith(WRITES)
            }
            ran |= counted.keys()
            if counted:
                arm = names[row.version_key]
                decoded[row.vocabulary, arm][row.suite, row.case_id] = counted
    lines = []
    for vocabulary in info.vocabularies:
        of_arms = {arm: cases for (name, arm), cases in decoded.items() if name == vocabulary}
        common = set.intersection(
            *(
                {case for case, counts in cases.items() if _is_whole(counts, ran)}
                for cases in of_arms.values()
            )
        )
        for which in ("common", "own"):
            for arm, cases in of_arms.items():
                chosen = [counts for case, counts in cases.items() if which == "own" or case in common]
                lines += [[vocabulary, which, arm, *line] for line in _lines(chosen)]
    return pd.DataFrame(lines, columns=COLUMNS, dtype=object)


def _is_whole(counted: dict[str, dict[str, int]], ran: set[str]) -> bool:
    """Returns whether every strategy of the run had its turn in the case, and wrote every text."""
    return counted.keys() == ran and all(
        of_strategy.get("written") == of_strategy.get("texts") for of_strategy in counted.values()
    )


def _lines(chosen: list[dict[str, dict[str, int]]]) -> list[list[object]]:
    sums: dict[str, Counter[str]] = {}
    cases: Counter[str] = Counter()
    for counts in chosen:
        for strategy, counted in counts.items():
            sums.setdefault(strategy, Counter()).update(counted)
            cases[strategy] += 1
    lines: list[list[object]] = []
    for strategy, total in sums.items():
        ids, passes = total["ids"], total["passes"]
        shares = [f"{ids / passes:.3f}" if passes else None, f"{1 - passes / ids:.1%}" if ids else None]
        lines.append([strategy, cases[strategy], *(total[name] for name in COUNTS), *shares])
    return lines
