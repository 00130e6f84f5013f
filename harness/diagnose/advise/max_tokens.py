"""Below which `max_tokens` no output of some case can be complete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import process_time

from harness.backend.vocabulary import load_vocabulary
from harness.cases.budget import budget_of_case
from harness.cases.case import Case
from harness.oracle.trie import trie_of

SECONDS = 20.0
"""Processor time after which no further case is looked at."""


@dataclass(frozen=True)
class CaseBudget:
    """A case, and the smallest `max_tokens` with which an output of it can be complete."""

    case: str
    tokens: int
    """End-of-sequence included; where the search was ended it may be more."""
    looked_at: int
    """The number of cases that were looked at, of which this is the largest."""


def largest_budget(cases: Sequence[Case], vocabulary: str) -> CaseBudget | None:
    """Returns the case whose shortest output has the most tokens of the vocabulary; None where no case has a
    reference. Raises BadInput for a vocabulary that is not to be had."""
    trie, began = trie_of(load_vocabulary(vocabulary)), process_time()
    found: list[tuple[int, str]] = []
    for case in cases:
        if process_time() - began > SECONDS:
            break
        budget = budget_of_case(case, trie)
        if budget is not None:
            found.append((budget.least + 1, case.name))
    if not found:
        return None
    tokens, name = max(found)
    return CaseBudget(name, tokens, len(found))
