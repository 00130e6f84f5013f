"""How many masks of a run are right, place by place, where a reference automaton knows it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pandas as pd

from harness.backend.arm import arm_names
from harness.backend.grammar import DIALECTS
from harness.checks.documents import TOKENS_LEAD
from harness.checks.exact_mask import MASK_IS_EXACT
from harness.checks.layouts import LAYOUT_IS_WRITTEN
from harness.rows.row import CHECKS_MODE, Row, RunInfo
from harness.rows.store import read_info, read_rows

COLUMNS = ["vocabulary", "arm", "dialect", "cases", "exact", "sound", "places", "complete", "layout_places"]
CHECKS = (MASK_IS_EXACT, TOKENS_LEAD, LAYOUT_IS_WRITTEN)


@dataclass
class ExactMasks:
    """Takes in the rows of a run; counts the places and the cases at which masks are right, where a reference
    knows it."""

    info: RunInfo
    counts: dict[tuple[str, str, str], Counter[str]] = field(default_factory=dict)
    """The counts by vocabulary, name of the arm, and dialect, each under its name in COLUMNS."""

    @cached_property
    def names(self) -> dict[tuple[str, str, str], str]:
        """Returns the `arm_names` of the run."""
        return arm_names(self.info.arms)

    def add(self, row: Row) -> None:
        """Takes in one row."""
        if row.mode != CHECKS_MODE:
            return
        exact, leads, written = (row.counted.get(check, {}) for check in CHECKS)
        if exact or leads or written:
            arm = self.names[row.version_key]
            total = self.counts.setdefault((row.vocabulary, arm, row.dialect), Counter())
            for check in (exact, leads):
                total.update(sound=check.get("sound", 0), places=check.get("places", 0))
            for check in (exact, written):
                total.update(complete=check.get("complete", 0), layout_places=check.get("places", 0))
            is_exact = _is_exact(row)
            total["cases"] += is_exact is not None
            total["exact"] += is_exact is True

    def frame(self) -> pd.DataFrame:
        """Returns one line per vocabulary, arm and dialect: of how many cases with a reference it is known
        whether their masks are exact (`cases`), in how many of these the checks of the masks find nothing but
        documented policy (`exact`), at how many of how many places the mask allows no wrong token (`sound` of
        `places`), and at how many it lacks none (`complete` of `layout_places`). It is not known where a
        check was not made and no other finds a fault.

        Of JSON Schema and structural tags the second is counted where the text is spelled in the layout that
        the backend declares; documents in other spellings it need not allow.
        """
        return pd.DataFrame(
            [
                [*key, *(self.counts[key][name] for name in COLUMNS[3:])]
                for vocabulary in self.info.vocabularies
                for arm in self.names.values()
                for dialect in DIALECTS
                if (key := (vocabulary, arm, dialect)) in self.counts
            ],
            columns=COLUMNS,
            dtype=object,
        )


def masks_frame(run: Path) -> pd.DataFrame:
    """Returns the `ExactMasks.frame` of a run on disk. Raises BadInput."""
    masks = ExactMasks(read_info(run))
    for row in read_rows(run):
        masks.add(row)
    return masks.frame()


def _is_exact(row: Row) -> bool | None:
    """Do the checks of masks that the row's dialect has find no fault? None: one was not made, and no other
    finds a fault."""
    if any(not finding.documented and finding.check in CHECKS for finding in row.findings):
        return False
    of_dialect = CHECKS[:1] if row.counted.get(MASK_IS_EXACT) else CHECKS[1:]
    is_whole = not any(row.checks.get(check, "").startswith("skipped") for check in of_dialect)
    return True if is_whole else None
