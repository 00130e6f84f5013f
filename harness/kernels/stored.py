"""A stored run, and what is concluded from its rows: medians, minima, bytes per second, shares of a copy's."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from harness.errors import BadInput
from harness.kernels.session import FILE, FORMAT
from harness.kernels.timing import COPY

Row = dict[str, Any]
POINT = ("threads", "dtype", "vocabulary", "share", "batch")

PLAUSIBLE = 0.25
"""A copy that is slower than so much of a larger copy's bandwidth was disturbed. (A small one may be half as fast for the call itself.)"""


@dataclass(frozen=True)
class Stored:
    """The lines of a file by their kind."""

    run: Row
    kernels: list[Row]
    probes: list[Row]
    times: list[Row]
    """With what `_concluded` adds."""
    moves: list[Row]
    end: Row | None
    """None: it was interrupted."""

    def outcomes(self, kernel: str) -> Counter[str]:
        """How many of its probes had which outcome."""
        return Counter(row["outcome"] for row in self.probes if row["kernel"] == kernel)


def read(folder: Path) -> Stored:
    """Raises BadInput if there is no such run in the folder."""
    path = folder / FILE
    try:
        lines = path.read_text("utf-8").splitlines(keepends=True)
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror}); `grammarbench kernels --out {folder}` makes it") from error
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(json.loads(line))
            rows[-1]["kind"]
        except (ValueError, TypeError, KeyError) as error:
            if number == len(lines) and not line.endswith("\n"):
                rows[:] = [row for row in rows if isinstance(row, dict)]
                break  # it was interrupted there
            raise BadInput(f"{path}, line {number} is no line of a run of kernels") from error
    if not rows or rows[0]["kind"] != "run" or rows[0].get("format") != FORMAT:
        raise BadInput(f"{path} does not begin with a run of kernels in format {FORMAT}")
    of = {kind: [row for row in rows if row["kind"] == kind] for kind in ("kernel", "probe", "time", "move", "end")}
    return Stored(rows[0], of["kernel"], of["probe"], _concluded(of["time"]), [_rate(row) for row in of["move"]], (of["end"] or [None])[0])


def _rate(row: Row) -> Row:
    """Median and minimum of one call in nanoseconds, and gigabytes per second at the minimum."""
    totals = row.get("totals_ns")
    if not totals:
        return row
    least = min(totals) / row["calls"]
    return row | {"median_ns": median(totals) / row["calls"], "min_ns": least, "gb_per_s": row["bytes"] / least}


def _concluded(times: list[Row]) -> list[Row]:
    """`_rate`, and `of_copy`: how long a copy of the bytes that count takes, as a share of the minimum.

    Minima on both sides: a copy that was disturbed would make every kernel beside it look good. One that was disturbed in every sample
    shows in being far slower than copies of more bytes are; then there is no share.
    """
    rated = [_rate(row) for row in times]
    copies = [row for row in rated if row["kernel"] == COPY and "gb_per_s" in row]
    sound = {
        tuple(row[each] for each in POINT): row["gb_per_s"]
        for row in copies
        if row["gb_per_s"] >= PLAUSIBLE * max(each["gb_per_s"] for each in copies if each["bytes"] >= row["bytes"])
    }
    return [
        row | {"of_copy": row["gb_per_s"] / sound[key]}
        if "gb_per_s" in row and (key := tuple(row[each] for each in POINT)) in sound
        else row
        for row in rated
    ]
