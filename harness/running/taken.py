"""Rows that a new run takes over from an earlier one of some of the same cases, so that a sample which
somebody published becomes the whole without a case being walked twice."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from harness.errors import BadInput
from harness.rows.row import Row, RunInfo
from harness.rows.store import CASE_IDENTITY, Writer, read_info, read_rows
from harness.running.same_run import first_difference
from harness.running.work import Work

OF_SUITES = ("suites", "shard")
"""The fields of the first line in which the earlier run may differ too: it had fewer cases."""


def refuse_others(earlier: Path, info: RunInfo) -> None:
    """Raises BadInput unless the earlier run has the harness, the backends and the options of the new one."""
    if different := first_difference(read_info(earlier), info, OF_SUITES):
        was, is_now = different
        raise BadInput(
            f"{earlier} was made with other options ({was}; now {is_now}), so that its rows cannot be taken "
            "over; repeat its command with more cases, or leave --from out"
        )


def take_over(
    earlier: Path, info: RunInfo, owed: Mapping[tuple[str, str], int], works: Sequence[Work], writer: Writer
) -> int:
    """Writes the rows of every case that the earlier run walked whole, and leaves these cases out of the
    works; returns how many there are, each backend and vocabulary counted apart.

    `owed` says how many rows each (suite, case id) owes, in the plan's order. A case is known by its id and
    by the version of its suite. Samples of times are not taken along. Raises BadInput for a damaged run.
    """
    numbers = {key: number for number, key in enumerate(owed)}
    taken: dict[tuple[str, ...], set[int]] = {_who(work): set() for work in works}
    for identity, group in groupby(read_rows(earlier), _identity):
        rows, who, key = list(group), identity[:4], (identity[4], identity[5])
        suite = info.suites.get(key[0])
        if suite is None or any(row.suite_version != suite["version"] for row in rows):
            continue
        if who in taken and len(rows) == owed.get(key) and numbers[key] not in taken[who]:
            writer.append([(replace(row, samples=None), b"") for row in rows])
            taken[who].add(numbers[key])
    for work in works:
        work.cases = deque(number for number in work.cases if number not in taken[_who(work)])
    return sum(map(len, taken.values()))


def _who(work: Work) -> tuple[str, ...]:
    return (work.arm.backend, work.arm.version, work.arm.options, work.vocabulary)


def _identity(row: Row) -> tuple[str, ...]:
    return tuple(getattr(row, name) for name in CASE_IDENTITY)
