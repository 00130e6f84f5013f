"""The command that shows a failure of a run step by step."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from pathlib import Path

from harness.errors import BadInput
from harness.rows.store import read_cases, read_info


def repro_words(
    run: Path, suite: str, case_id: str, backend: str, vocabulary: str = "", check: str = ""
) -> tuple[str, ...]:
    """Returns the words of `grammarbench repro` for a case of the run; `backend` is as `arm_names` has it.

    With a check its finding is shown, else the worst failure of the case; without a vocabulary, in the first
    one with which it fails.
    """
    words: tuple[str, ...] = ("grammarbench", "repro", str(run), case_word(run, suite, case_id))
    words += ("--backends", backend)
    if vocabulary:
        words += ("--vocabularies", vocabulary)
    return (*words, "--check", check) if check else words


def case_word(run: Path, suite: str, case_id: str) -> str:
    """Returns the word that names a case of the run: its id, and where several suites of the run have a case
    with that grammar `SUITE/ID`."""
    return f"{suite}/{case_id}" if case_id in _shared_ids(run) else case_id


@lru_cache(maxsize=8)
def _shared_ids(run: Path) -> frozenset[str]:
    """Returns the ids that stand in several suites of the run; none of a run without its cases, of which
    nothing can be shown."""
    try:
        if len(read_info(run).suites) < 2:
            return frozenset()
        suites = Counter(case.id for _, _, case in read_cases(run))
    except BadInput:
        return frozenset()
    return frozenset(case_id for case_id, count in suites.items() if count > 1)
