"""Which cases of a corpus are walked: all whose schema is one, or a sample that is spread over keywords and
sizes, always the same one."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence

from harness.cases.prepared import problem_with
from harness.cases.suite import find_suite, read_cases
from harness.outcomes.constructs import constructs

Stratum = tuple[tuple[str, ...], int]
"""The constructs of a grammar, and its length in characters."""


def no_schemas(suites: Sequence[str]) -> dict[str, str]:
    """Returns the names of the cases whose schema is none by the meta-schema of its own draft, by the case's
    id: no run can have them. Raises BadInput."""
    return {
        case.id: case.name for suite in suites for case in read_cases(find_suite(suite)) if problem_with(case)
    }


def strata_of(suites: Sequence[str]) -> dict[str, Stratum]:
    """Returns the stratum of each case of the suites, by the case's id. Raises BadInput."""
    return {
        case.id: (constructs(case.grammar), len(case.grammar.text))
        for suite in suites
        for case in read_cases(find_suite(suite))
    }


def stratified(strata: Mapping[str, Stratum], size: int) -> tuple[str, ...]:
    """Returns the ids of `size` cases, each case as likely as any other.

    The cases are put in the order of their rarest construct among all of them, then of their length, and
    every n-th is taken: so each construct and each size has its share.
    """
    counts = Counter(name for names, _ in strata.values() for name in names)
    ranked = sorted(
        strata,
        key=lambda case: (
            min(((counts[name], name) for name in strata[case][0]), default=(0, "")),
            strata[case][1],
            case,
        ),
    )
    if size >= len(ranked):
        return tuple(sorted(ranked))
    digest = hashlib.sha256("".join(ranked).encode()).digest()
    offset = int.from_bytes(digest[:8], "big") / 2**64
    step = len(ranked) / size
    return tuple(sorted(ranked[int((place + offset) * step)] for place in range(size)))
