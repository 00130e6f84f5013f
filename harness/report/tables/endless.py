"""In how many cases of a run white space, digits or one character of a string have no end under a backend's
masks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from harness.backend.arm import arm_names
from harness.backend.grammar import DIALECTS
from harness.checks.endless import KINDS, RUNS_END, Kind
from harness.rows.row import CHECKS_MODE
from harness.rows.store import read_info, read_rows

COLUMNS = [
    "vocabulary", "arm", "dialect", "white_space", "longest_white_space", "digits", "digits_by_spelling",
    "string",
]  # fmt: skip


@dataclass
class EndlessCounts:
    """What one arm's masks let go on, counted over cases."""

    possible: Counter[Kind] = field(default_factory=Counter)
    """By kind, the cases in which a run can begin at a place that was looked at."""
    endless: Counter[Kind] = field(default_factory=Counter)
    """By kind, the cases of these in which one has no end."""
    by_spelling: int = 0
    """Cases in which digits have no end though the schema bounds the number."""
    longest_white_space: int | None = None
    """The longest run of white space that ended, in characters; None where none did."""

    def add(self, counted: dict[str, int]) -> None:
        """Adds what the check counted in one case."""
        for kind in KINDS:
            self.possible[kind] += counted.get(f"{kind}_places", 0) > 0
            self.endless[kind] += counted.get(f"{kind}_endless", 0) > 0
        self.by_spelling += counted.get("digits_by_spelling", 0) > 0
        if (longest := counted.get("white_space_longest")) is not None:
            self.longest_white_space = max(longest, self.longest_white_space or 0)

    def share(self, kind: Kind) -> str:
        """Returns `endless/possible` cases of a kind; empty where none is possible."""
        return f"{self.endless[kind]}/{self.possible[kind]}" if self.possible[kind] else ""


def endless_counts(run: Path) -> dict[tuple[str, str, str], EndlessCounts]:
    """Returns the counts of a run by vocabulary, name of the arm, and dialect. Raises BadInput."""
    names = arm_names(read_info(run).arms)
    counts: dict[tuple[str, str, str], EndlessCounts] = {}
    for row in read_rows(run):
        if row.mode == CHECKS_MODE and (counted := row.counted.get(RUNS_END)):
            arm = names[row.backend, row.backend_version, row.options]
            counts.setdefault((row.vocabulary, arm, row.dialect), EndlessCounts()).add(counted)
    return counts


def endless_frame(run: Path) -> pd.DataFrame:
    """Returns one line per vocabulary, arm and dialect.

    `white_space`, `digits` and `string` are `endless/possible` cases: of those in which such a run can begin
    at a place that was looked at, in how many it was not over after 200 tokens. `longest_white_space` is the
    longest that was over, in characters. `digits_by_spelling`: in how many cases digits have no end though
    the schema bounds the number, because the backend allows it longer spellings. Raises BadInput.
    """
    info, counts = read_info(run), endless_counts(run)
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
