"""In how many cases of a run white space, digits or one character of a string have no end under a backend's
masks."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from harness.backend.arm import arm_names
from harness.backend.grammar import DIALECTS
from harness.outcomes.endless import read_endless
from harness.rows.store import read_info

COLUMNS = [
    "vocabulary", "arm", "dialect", "white_space", "longest_white_space", "digits", "digits_by_spelling",
    "string",
]  # fmt: skip


def endless_frame(run: Path) -> pd.DataFrame:
    """Returns one line per vocabulary, arm and dialect.

    `white_space`, `digits` and `string` are `endless/possible` cases: of those in which such a run can begin
    at a place that was looked at, in how many it was not over after 200 tokens. `longest_white_space` is the
    longest that was over, in characters. `digits_by_spelling`: in how many cases digits have no end though
    the schema bounds the number, because the backend allows it longer spellings. Raises BadInput.
    """
    info, counts = read_info(run), read_endless(run).counts
    lines = []
    for vocabulary in info.vocabularies:
        for arm in arm_names(info.arms).values():
            for dialect in DIALECTS:
                if (line := counts.get((vocabulary, arm, dialect))) is not None:
                    longest = "" if line.longest_white_space is None else line.longest_white_space
                    lines.append(
                        [vocabulary, arm, dialect, line.share("white_space"), longest, line.share("digits"),
                         line.by_spelling, line.share("string")]
                    )  # fmt: skip
    return pd.DataFrame(lines, columns=COLUMNS, dtype=object)
