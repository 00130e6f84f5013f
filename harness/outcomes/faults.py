"""The faults that a run found, by category: what is wrong, of which known cause, and in how many cases of
each arm; and how many cases were not judged to the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from harness.backend.arm import version_key
from harness.checks import category, checks
from harness.outcomes import outcome
from harness.outcomes.summary import ArmKey, arm_key
from harness.rows.row import BROKEN, CHECKS_MODE, OUT_OF_TIME, Row
from harness.rows.store import read_info, read_rows
from harness.running.case_rows import LOST
from harness.running.endings import CHANGED, LEFT

CATEGORIES = (
    "breakage", "verdicts", "masks", "special tokens", "UTF-8", "tokenization", "going back", "life cycle",
    "drafts", "reasoning", "jump-forward", "decoding",
    "documents", "spellings",
)  # fmt: skip
"""The most serious first. A check's category that is not named here comes after those that are."""

VERDICT_FAULTS = {
    "over_constrained": "a valid instance is refused",
    "under_constrained": "an instance that is not valid is accepted",
}


class Fault(NamedTuple):
    """One kind of fault."""

    category: str
    fault: str
    """The fact that does not hold, or what happened."""
    cause: str
    """The class of causes that the check names; of a verdict the dialect, of a breakage the phase; may be
    empty."""


NOT_BEGUN = Fault("not judged", "a check had no time left", "")
"""What is no fault and comes last: its cases may have more of the faults above it."""


@dataclass
class Cases:
    """The cases in which one arm has the fault, as `(suite, case id)`."""

    cases: set[tuple[str, str]] = field(default_factory=set)
    undocumented: bool = False
    """The fault is undocumented in at least one of the cases: the backend does not state it of itself."""

    def __str__(self) -> str:
        return f"{len(self.cases)}{'' if self.undocumented else '*'}" if self.cases else ""


def faults(rows: Iterator[Row]) -> dict[Fault, dict[ArmKey, Cases]]:
    """Returns every fault of every arm, the arms in the order of the rows, the faults by category and then as
    the checks run."""
    table: dict[Fault, dict[ArmKey, Cases]] = {}
    arms: dict[ArmKey, None] = {}
    for row in rows:
        arms.setdefault(arm_key(row))
        for fault, documented in _of_row(row):
            cases = table.setdefault(fault, {}).setdefault(arm_key(row), Cases())
            cases.cases.add((row.suite, row.case_id))
            cases.undocumented |= not documented
    order = {name: place for place, name in enumerate(checks())}
    places = {name: place for place, name in enumerate(CATEGORIES)}

    def rank(fault: Fault) -> tuple[bool, int, int, str, str]:
        return (
            fault == NOT_BEGUN,
            places.get(fault.category, len(places) + (not fault.category)),
            order.get(fault.fault.replace(" ", "_"), -1),
            fault.fault,
            fault.cause,
        )

    return {fault: {arm: table[fault].get(arm, Cases()) for arm in arms} for fault in sorted(table, key=rank)}


def _of_row(row: Row) -> Iterator[tuple[Fault, bool]]:
    """Yields what is wrong in one row, and whether the backend says so itself; then whether it was judged in
    part only."""
    for fault in outcome.faults(row):
        if fault.finding is not None:
            of_its_process = "life cycle" if fault.finding.check in (LEFT, CHANGED, LOST) else ""
            about = (
                category(fault.finding.check)
                or of_its_process
                or ("masks" if row.mode != CHECKS_MODE else "")
            )
            yield (
                Fault(about, fault.finding.check[:80].replace("_", " "), fault.finding.cause[:40]),
                fault.finding.documented,
            )
        elif row.status in BROKEN:
            yield Fault("breakage", row.status.replace("_", " "), row.phase), fault.documented
        elif fault.kind in VERDICT_FAULTS:
            yield Fault("verdicts", VERDICT_FAULTS[fault.kind], row.dialect), fault.documented
    if OUT_OF_TIME in row.checks.values():
        yield NOT_BEGUN, False


def fault_frame(run: Path) -> pd.DataFrame:
    """Returns one line per fault: category, fault, cause, and per arm the number of cases (`*`: all of it
    documented by the backend)."""
    table, info = faults(read_rows(run)), read_info(run)
    arms = [version_key(arm) for arm in info.arms]
    vocabularies = list(info.vocabularies)

    def place(arm: ArmKey) -> tuple[int, int]:
        """Returns a key that sorts by the header's order; what it does not name comes last."""
        of_arm = arms.index(arm[:3]) if arm[:3] in arms else len(arms)
        return of_arm, vocabularies.index(arm[3]) if arm[3] in vocabularies else len(vocabularies)

    ordered = sorted({arm for by_arm in table.values() for arm in by_arm}, key=place)
    names = {arm: " ".join(part for part in arm if part) for arm in ordered}
    columns = {
        "category": [f.category for f in table],
        "fault": [f.fault for f in table],
        "cause": [f.cause for f in table],
    }
    return pd.DataFrame(
        columns | {name: [str(by_arm[arm]) for by_arm in table.values()] for arm, name in names.items()},
        dtype=object,
    )
