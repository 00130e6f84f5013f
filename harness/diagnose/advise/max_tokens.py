"""Below which `max_tokens` no output of some case can be complete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import process_time

from harness.backend.vocabulary import load_vocabulary
from harness.cases.budget import budget_of_case
from harness.cases.case import Case
from harness.oracle.fewest_tokens import FewestTokens, fewest_tokens_of
from harness.oracle.trie import TokenTrie, trie_of

SECONDS = 20.0
"""Processor time after which no further case is looked at."""

MOST_DOCUMENTS, LONGEST_DOCUMENT = 3, 4000
"""How many valid outputs of a case have their tokens counted where the search was ended, the shortest first;
and the most bytes that one may have, with which the time grows."""


@dataclass(frozen=True)
class Unfound:
    """A case of which the smallest `max_tokens` was not found, because the search was ended."""

    case: str
    least: int
    """No smaller `max_tokens` suffices."""
    known: int | None
    """This `max_tokens` suffices; None where no output is known."""


@dataclass(frozen=True)
class CaseBudget:
    """A case, and a `max_tokens` below which no output of it can be complete."""

    case: str
    tokens: int
    """End-of-sequence included; where the case is among `unfound` it may need more."""
    looked_at: int
    """The number of cases that were looked at. None of them is known to need more, and none can but those of
    `unfound`."""
    unfound: tuple[Unfound, ...] = ()
    """The cases that may need more: of them only bounds were found."""


def largest_budget(cases: Sequence[Case], vocabulary: str) -> CaseBudget | None:
    """Returns the case whose outputs are known to take the most tokens of the vocabulary at least; None where
    no case has a reference. Raises BadInput for a vocabulary that is not to be had."""
    trie, began = trie_of(load_vocabulary(vocabulary)), process_time()
    found: list[Unfound] = []
    for case in cases:
        if process_time() - began > SECONDS:
            break
        budget = budget_of_case(case, trie)
        if budget is not None:
            known = _known(case, budget, trie)
            found.append(Unfound(case.name, budget.least + 1, None if known is None else known + 1))
    if not found:
        return None
    largest = max(found, key=lambda each: (each.least, each.case))
    unfound = [each for each in found if each.known is None or each.known > largest.least]
    return CaseBudget(largest.case, largest.least, len(found), tuple(unfound))


def _known(case: Case, budget: FewestTokens, trie: TokenTrie) -> int | None:
    """Returns the fewest tokens with which an output is known, end-of-sequence not counted; None if none is.
    Where the search was ended, the outputs that the case has are counted too."""
    counts = [budget.most]
    if budget.most != budget.least:
        valid = (each.content for each in case.instances if each.valid and not each.tokens)
        documents = sorted((text for text in valid if len(text) <= LONGEST_DOCUMENT), key=len)
        counts += [fewest_tokens_of(text, trie) for text in documents[:MOST_DOCUMENTS]]
    return min((count for count in counts if count is not None), default=None)
