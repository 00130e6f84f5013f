"""Which spellings of a value each backend accepts, and whether it says so itself: of a run with
`--spellings`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from harness.backend.arm import arm_names, version_key
from harness.cases.spellings import BASES, FAMILY, PLAIN, SpelledName
from harness.errors import BadInput
from harness.rows.row import Row
from harness.rows.store import read_info, read_rows


@dataclass
class Count:
    """Counts how many documents of a suite were accepted in one spelling, and how many were refused."""

    accepted: int = 0
    refused: int = 0


ArmName = tuple[str, str, str]
"""Backend, version, options."""


def spelling_table(rows: Iterable[Row]) -> dict[ArmName, dict[str, Count]]:
    """Returns the counts by arm and spelling, from the rows of a run over cases that `spelled` made.

    A layout counts where the arm takes the document in some layout, and the document is written otherwise in
    the others; another spelling where it takes the document in that layout. Raises ValueError if an instance
    is none that `spelled` made.
    """
    documents: dict[tuple[ArmName, str, str, str, int], dict[tuple[str, str], bool]] = {}
    for row in rows:
        if row.valid and row.accepted is not None:
            spelled = SpelledName.parse(row.instance_name)
            which = (row.version_key, row.vocabulary, row.suite, row.case_id, spelled.document)
            document = documents.setdefault(which, {})
            document[spelled.layout, spelled.spelling] = row.accepted
    table: dict[ArmName, dict[str, Count]] = {}
    for (backend, *_), outcomes in documents.items():
        counts = table.setdefault(backend, {name: Count() for name in FAMILY})
        plain = {layout for (layout, name), accepted in outcomes.items() if name == PLAIN and accepted}
        # `spelled` leaves out the layouts that would repeat the compact one: a number is written in one only.
        is_apart = all((layout, PLAIN) in outcomes for layout in BASES)
        for (layout, name), accepted in outcomes.items():
            if name == PLAIN:
                if plain and (is_apart or layout != BASES[0]):
                    _count(counts[layout], accepted)
            elif layout in plain and layout == min(plain & set(BASES)):
                _count(counts[name], accepted)
    return table


def _count(count: Count, accepted: bool) -> None:
    count.accepted += accepted
    count.refused += not accepted


def spelling_frame(run: Path) -> pd.DataFrame:
    """Returns one line per spelling: its family, and per arm `accepted/tried` documents; `*` where the
    backend documents that it refuses some.

    Raises BadInput for a run that is none over spellings.
    """
    info = read_info(run)
    try:
        table = spelling_table(read_rows(run))
    except ValueError:
        raise BadInput(
            f"{run} is no run over spellings; make one with grammarbench run --spellings"
        ) from None
    names = arm_names(info.arms)
    documented = {names[version_key(arm)]: frozenset(arm.documented) for arm in info.arms}
    # The arms in the order in which the run has them, and not in that in which they were done.
    named = {name: table[key] for key, name in names.items() if key in table}
    columns = {
        name: [_cell(counts[spelling], name, spelling, documented) for spelling in FAMILY]
        for name, counts in named.items()
    }
    frame = pd.DataFrame({"family": list(FAMILY.values()), "spelling": list(FAMILY)} | columns, dtype=object)
    return frame[[any(line) for line in zip(*columns.values(), strict=True)]] if columns else frame


def _cell(count: Count, name: str, spelling: str, documented: dict[str, frozenset[str]]) -> str:
    tried = count.accepted + count.refused
    says_so = count.refused and {f"spelling:{spelling}", FAMILY[spelling]} & documented.get(name, frozenset())
    return f"{count.accepted}/{tried}{'*' if says_so else ''}" if tried else ""
