"""Can an output go on until its tokens are used up? By what the masks of a backend let go on without end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from harness.backend.arm import arm_names
from harness.checks.endless import KINDS, RUNS_END, Kind
from harness.rows.row import CHECKS_MODE, Row
from harness.rows.store import read_info, read_rows
from harness.text import counted


@dataclass
class EndlessCounts:
    """What one arm's masks let go on, counted over cases."""

    possible: Counter[Kind] = field(default_factory=Counter)
    """For each kind the number of cases in which a run can begin at a place that was looked at."""
    endless: Counter[Kind] = field(default_factory=Counter)
    """For each kind the number of those cases in which a run has no end."""
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
        self._lengthen(counted.get("white_space_longest"))

    def merge(self, other: EndlessCounts) -> None:
        """Adds what was counted over other cases."""
        self.possible.update(other.possible)
        self.endless.update(other.endless)
        self.by_spelling += other.by_spelling
        self._lengthen(other.longest_white_space)

    def _lengthen(self, longest: int | None) -> None:
        """Takes in the longest run of white space that ended elsewhere."""
        if longest is not None:
            self.longest_white_space = max(longest, self.longest_white_space or 0)

    def share(self, kind: Kind) -> str:
        """Returns `endless/possible` cases of a kind; empty where none is possible."""
        return f"{self.endless[kind]}/{self.possible[kind]}" if self.possible[kind] else ""


@dataclass
class Endless:
    """Takes in the rows of a run; counts what the masks of each arm let go on without end."""

    names: dict[tuple[str, str, str], str]
    """The `arm_names` of the run."""
    counts: dict[tuple[str, str, str], EndlessCounts] = field(default_factory=dict)
    """The counts by vocabulary, name of the arm, and dialect."""

    def add(self, row: Row) -> None:
        """Takes in one row."""
        if row.mode == CHECKS_MODE and (found := row.counted.get(RUNS_END)):
            arm = self.names[row.version_key]
            self.counts.setdefault((row.vocabulary, arm, row.dialect), EndlessCounts()).add(found)

    def sentences(self) -> Iterator[str]:
        """Yields one sentence for each arm and vocabulary of which it is known: can an output go on until its
        tokens are used up, and in what, on how many cases?"""
        totals: dict[tuple[str, str], EndlessCounts] = {}
        for (vocabulary, arm, _), counts in self.counts.items():
            totals.setdefault((arm, vocabulary), EndlessCounts()).merge(counts)
        vocabularies = {vocabulary for _, vocabulary in totals}
        for (arm, vocabulary), counts in totals.items():
            where = f" on {vocabulary}" if len(vocabularies) > 1 else ""
            yield f"{arm}{where}: {'; '.join(_parts(counts))}"


def read_endless(run: Path) -> Endless:
    """Returns what the masks of a run on disk let go on without end. Raises BadInput."""
    endless = Endless(arm_names(read_info(run).arms))
    for row in read_rows(run):
        endless.add(row)
    return endless


def _parts(counts: EndlessCounts) -> Iterator[str]:
    """Yields what one arm's outputs can go on in."""
    endless, possible = counts.endless, counts.possible
    if endless["white_space"]:
        yield f"yes, in white space ({_share(endless, possible, 'white_space')})"
    else:
        yield f"not in white space ({counted(counts.longest_white_space or 0, 'character')} at most)"
    if endless["digits"]:
        bounded = f", though the schema bounds it in {counts.by_spelling}" if counts.by_spelling else ""
        yield f"in the digits of a number ({_share(endless, possible, 'digits')}{bounded})"
    if endless["string"]:
        yield f"in a string ({_share(endless, possible, 'string')})"


def _share(endless: Counter[Kind], possible: Counter[Kind], kind: Kind) -> str:
    return f"{endless[kind]} of {counted(possible[kind], 'case')} looked at"
