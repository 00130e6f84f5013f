"""How many tokens an output of each case of a run takes at least: with a smaller `max_tokens` none can be
completed."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from harness.backend.vocabulary import load_vocabulary
from harness.cases.budget import budget_of_case
from harness.oracle.trie import trie_of
from harness.rows.store import read_cases, read_info

COLUMNS = ["suite", "vocabulary", "case", "dialect", "least_tokens", "known_tokens"]


def budgets_frame(run: Path) -> pd.DataFrame:
    """Returns one line per case and vocabulary, the most tokens first: no output of the case has fewer than
    `least_tokens`, and one with `known_tokens` exists. Two different numbers are bounds, because the search
    was ended; `known_tokens` is None where no output was found. Cases without a reference are left out.

    Raises BadInput.
    """
    lines: list[tuple[int, list[object]]] = []
    for name in read_info(run).vocabularies:
        trie = trie_of(load_vocabulary(name))
        for suite, _, case in read_cases(run):
            budget = budget_of_case(case, trie)
            if budget is not None:
                line = [suite, name, case.name, case.grammar.dialect, budget.least, budget.most]
                lines.append((budget.least, line))
    lines.sort(key=lambda line: -line[0])
    return pd.DataFrame([line for _, line in lines], columns=COLUMNS, dtype=object)
