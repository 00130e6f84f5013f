"""The command that shows a failure of a run step by step."""

from __future__ import annotations

from pathlib import Path


def repro_words(run: Path, case_id: str, backend: str, vocabulary: str, check: str = "") -> tuple[str, ...]:
    """Returns the words of `grammarbench repro` for a case of the run; `backend` is as `arm_names` has it.

    With a check its finding is shown, else the worst failure of the case.
    """
    words = ("grammarbench", "repro", str(run), case_id, "--backends", backend, "--vocabularies", vocabulary)
    return (*words, "--check", check) if check else words
