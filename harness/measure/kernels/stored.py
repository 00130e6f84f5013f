"""A stored run, and what is concluded from its rows: medians, minima, bytes per second, and shares of a
copy's bandwidth."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NotRequired, TypedDict

from harness.errors import BadInput, damaged
from harness.measure.kernels.session import FILE, FORMAT
from harness.measure.kernels.timing import COPY
from harness.shape import shaped, whole_lines
from harness.text import our_command

Row = dict[str, Any]
POINT = ("threads", "dtype", "vocabulary", "share", "batch")

PLAUSIBLE = 0.25
"""A copy with less than this share of the bandwidth of a larger copy on as many threads was disturbed. (A
small one may be half as fast because of the call itself.)"""


@dataclass(frozen=True)
class StoredKernels:
    """The lines of a file by their kind."""

    run: Row
    kernels: list[Row]
    probes: list[Row]
    times: list[Row]
    """The rows of times, with the columns that `_concluded` adds."""
    moves: list[Row]
    end: Row | None
    """The last line; None if the run was interrupted."""

    def outcomes(self, kernel: str) -> Counter[str]:
        """Returns the number of the kernel's probes by outcome."""
        return Counter(row["outcome"] for row in self.probes if row["kernel"] == kernel)

    def wrong_when_timed(self, kernel: str) -> int:
        """Returns at how many timed points the kernel's result was wrong, whatever its probes say."""
        return sum(row["kernel"] == kernel and row["outcome"] == "wrong" for row in self.times)


def read(folder: Path) -> StoredKernels:
    """Returns the stored run in the folder. Raises BadInput if there is none."""
    path = folder / FILE
    if not path.is_file():
        raise BadInput(
            f"{path} cannot be read (there is no such file); "
            f"{our_command('measure', 'kernels', '--out', str(folder))} makes it"
        )
    rows: list[Row] = []
    for number, line in whole_lines(path):
        try:
            rows.append(shaped(_KINDS[line["kind"]], line) if line["kind"] in _KINDS else line)
            if rows[-1].get("totals_ns") and not {"bytes", "calls"} <= rows[-1].keys():
                raise ValueError("it has totals_ns and lacks bytes or calls")
        except ValueError as error:
            raise damaged(f"{path}:{number}: no line of a run of kernels ({error})") from error
    if not rows or rows[0]["kind"] != "run" or rows[0].get("format") != FORMAT:
        raise BadInput(f"{path} does not begin with a run of kernels in format {FORMAT}")
    of = {
        kind: [row for row in rows if row["kind"] == kind]
        for kind in ("kernel", "probe", "time", "move", "end")
    }
    end = of["end"][0] if of["end"] else None
    return StoredKernels(
        rows[0], of["kernel"], of["probe"], _concluded(of["time"]), [_rate(row) for row in of["move"]], end
    )


class _Machine(TypedDict):
    cpus_usable: int | str
    cpu_model_name: NotRequired[str]


class _On(TypedDict):
    name: str
    torch: str


class _Backend(TypedDict):
    backend: str
    version: str
    problem: str


class _Run(TypedDict):
    format: int
    started: str
    device: str
    on: _On
    machine: _Machine
    backends: list[_Backend]


class _Kernel(TypedDict):
    kernel: str
    problem: str


class _Probe(TypedDict):
    kernel: str
    probe: str
    dtype: str
    outcome: str
    text: str
    documented: str


class _Point(TypedDict):
    vocabulary: int
    batch: int
    text: str
    bytes: NotRequired[int]
    calls: NotRequired[int]
    totals_ns: NotRequired[list[int]]


class _Time(_Point):
    kernel: str
    dtype: str
    share: float
    threads: int
    outcome: str


class _Move(_Point):
    form: str
    memory: str
    company: str


_KINDS: dict[str, type] = {"run": _Run, "kernel": _Kernel, "probe": _Probe, "time": _Time, "move": _Move}
"""The fields of each kind of line that readers use; any other field is kept as it is."""


def _rate(row: Row) -> Row:
    """Returns the row with median and minimum of one call in nanoseconds, and gigabytes per second at the
    minimum; a row without times as it is."""
    totals = row.get("totals_ns")
    if not totals:
        return row
    if row.get("calls", 0) < 1 or min(totals) < 1:
        return row  # a clock that saw no time pass has measured nothing
    least = min(totals) / row["calls"]
    return row | {
        "median_ns": median(totals) / row["calls"],
        "min_ns": least,
        "gb_per_s": row["bytes"] / least,
    }


def _concluded(times: list[Row]) -> list[Row]:
    """Returns the rows with what `_rate` adds, and with `of_copy`: how long a copy of the bytes that count
    takes, as a share of the minimum.

    Minima on both sides: a copy that was disturbed would make every kernel beside it look good. One that was
    disturbed in every sample shows in being far slower than copies of more bytes are; then there is no share.
    Only copies on as many threads tell: on many processors one thread has a small part of the bandwidth.
    """
    rated = [_rate(row) for row in times]
    copies = [row for row in rated if row["kernel"] == COPY and "gb_per_s" in row]
    sound = {
        tuple(row[name] for name in POINT): row["gb_per_s"]
        for row in copies
        if row["gb_per_s"]
        >= PLAUSIBLE
        * max(
            copy["gb_per_s"]
            for copy in copies
            if copy["threads"] == row["threads"] and copy["bytes"] >= row["bytes"]
        )
    }
    return [
        row | {"of_copy": row["gb_per_s"] / sound[key]}
        if "gb_per_s" in row and (key := tuple(row[name] for name in POINT)) in sound
        else row
        for row in rated
    ]
