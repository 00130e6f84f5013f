"""How many masks of a run are right, place by place, where a reference automaton knows it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pandas as pd

from harness.backend.arm import arm_names
from harness.backend.grammar import DIALECTS
from harness.checks.documents import TOKENS_LEAD
from harness.checks.exact_mask import MASK_IS_EXACT
from harness.checks.layouts import LAYOUT_IS_WRITTEN
from harness.rows.row import CHECKS_MODE, Row
from harness.rows.store import read_info, read_rows

COLUMNS = ["vocabulary", "arm", "dialect", "cases", "exact", "sound", "places", "complete", "layout_places"]
CHECKS = (MASK_IS_EXACT, TOKENS_LEAD, LAYOUT_IS_WRITTEN)


def masks_frame(run: Path, *, whole: bool = True) -> pd.DataFrame:
    """Returns one line per vocabulary, arm and dialect: of how many cases with a reference it is known
    whether their masks are exact (`cases`), in how many of these the checks of the masks find nothing but
    documented policy (`exact`), at how many of how many places the mask allows no wrong token (`sound` of
    `places`), and at how many it lacks none (`complete` of `layout_places`). It is not known where a check
    was not made and no other finds a fault.

    Of JSON Schema and structural tags the second is counted where the text is spelled in the layout that the
    backend declares; documents in other spellings it need not allow. Raises BadInput; without `whole` not
    where the run's last line speaks of other rows than are there.
    """
    info = read_info(run)
    names = arm_names(info.arms)
    counts: dict[tuple[str, str, str], Counter[str]] = {}
    for row in read_rows(run, whole=whole):
        if row.mode != CHECKS_MODE:
            continue
        exact, leads, written = (row.counted.get(check, {}) for check in CHECKS)
        if exact or leads or written:
            arm = names[row.backend, row.backend_version, row.options]
            total = counts.setdefault((row.vocabulary, arm, row.dialect), Counter())
            for check in (exact, leads):
                total.update(sound=check.get("sound", 0), places=check.get("places", 0))
            for check in (exact, written):
                total.update(complete=check.get("complete", 0), layout_places=check.get("places", 0))
            is_exact = _is_exact(row)
            total["cases"] += is_exact is not None
            total["exact"] += is_exact is True
    return pd.DataFrame(
        [
            [vocabulary, arm, dialect, *(counts[vocabulary, arm, dialect][name] for name in COLUMNS[3:])]
            for vocabulary in info.vocabularies
            for arm in names.values()
            for dialect in DIALECTS
            if (vocabulary, arm, dialect) in counts
        ],
        columns=COLUMNS,
        dtype=object,
    )


def _is_exact(row: Row) -> bool | None:
    """Do the checks of masks that the row's dialect has find no fault? None: one was not made, and no other
    finds a fault."""
    if any(not finding.documented and finding.check in CHECKS for finding in row.findings):
        return False
    of_dialect = CHECKS[:1] if row.counted.get(MASK_IS_EXACT) else CHECKS[1:]
    is_whole = not any(row.checks.get(check, "").startswith("skipped") for check in of_dialect)
    return True if is_whole else None
