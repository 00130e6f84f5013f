"""Finds what a killed run has stored whole, and cuts off the rest, so that the run can go on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from sys import intern

from harness.errors import BadInput
from harness.rows.folder import ROWS, SAMPLES, opened
from harness.rows.store import CASE_IDENTITY, TornLine, lines
from harness.text import counted


@dataclass(frozen=True, slots=True)
class StoredCase:
    """The rows of one case, as they stand together in `rows.jsonl`."""

    identity: tuple[str, ...]
    """The values of the fields of `CASE_IDENTITY`."""
    statuses: list[str]
    begin: int
    end: int
    """The offset behind its last row in `rows.jsonl`; `begin` is that of its first."""
    samples: int
    """The index behind the last of its samples, counted in int64s; 0 if it has none."""


@dataclass(frozen=True)
class Stored:
    """What is stored of a run, in the order of its file."""

    cases: tuple[StoredCase, ...]
    good: int
    """The offset behind the last of them; what follows was only partly written."""
    is_complete: bool


def stored(folder: Path, owed: Mapping[tuple[str, str], int]) -> Stored:
    """Finds every case of which all rows are there.

    `owed`: how many rows each (suite, case id) owes. Raises BadInput.
    """
    good = 0
    is_complete = False
    cases: list[StoredCase] = []
    try:
        for _, offset, value in lines(folder):
            is_complete = value["kind"] == "end"
            if value["kind"] == "row":
                # What thousands of cases share is held once.
                case = (*(intern(value[name]) for name in CASE_IDENTITY[:-1]), value[CASE_IDENTITY[-1]])
                samples = sum(value["samples"]) if value["samples"] else 0
                if cases and cases[-1].identity == case:
                    last = cases.pop()
                    last.statuses.append(intern(value["status"]))
                    samples = max(last.samples, samples)
                    cases.append(StoredCase(case, last.statuses, last.begin, offset, samples))
                else:
                    cases.append(StoredCase(case, [intern(value["status"])], good, offset, samples))
            good = offset
    except TornLine as torn:
        good = torn.offset
    # Rows of one case stand together; only the last case can be there in part.
    if cases and len(cases[-1].statuses) < owed.get((cases[-1].identity[-2], cases[-1].identity[-1]), 0):
        good = cases.pop().begin
    return Stored(tuple(cases), good, is_complete)


class NothingToResume(BadInput):
    """The run is complete."""


def resume(
    folder: Path, owed: Mapping[tuple[str, str], int], say: Callable[[str], None] = lambda _: None
) -> tuple[set[tuple[object, ...]], dict[str, int]]:
    """Makes a killed run whole again by cutting off what was only partly written. Returns which cases (by
    `CASE_IDENTITY`) are done, and the count of rows by status.

    `owed` says how many rows each (suite, case id) owes; `say` is told of rows that are given up because
    their samples are lost. Raises NothingToResume for a complete run, and BadInput for one that is damaged,
    as where the file of samples is missing: nothing is cut off then."""
    there = stored(folder, owed)
    if there.is_complete:
        raise NothingToResume(f"{folder}: this run is complete; there is nothing to resume")
    path = folder / SAMPLES
    cases, good = there.cases, there.good
    # Samples are written before the rows that name them, so they are short only if the machine went down. A
    # last case without samples does not tell of those before it.
    left = path.stat().st_size // 8 if path.exists() else 0
    short = next((number for number, case in enumerate(cases) if case.samples > left), None)
    if short is not None:
        lost = counted(sum(len(case.statuses) for case in cases[short:]), "row")
        if not path.exists():
            raise BadInput(
                f"{folder}: no {SAMPLES} here, which has the times of {lost}; put it back, or give another "
                f"--out with --take-over {folder}, which takes the rows over without times"
            )
        say(f"{path} is shorter than the rows say: {lost} without times are given up, and walked anew")
        cases, good = cases[:short], cases[short].begin
    with opened(folder / ROWS, "r+b") as rows:
        rows.truncate(good)
    if path.exists():
        with opened(path, "r+b") as samples:
            samples.truncate(8 * max((case.samples for case in cases), default=0))
    statuses = Counter(status for case in cases for status in case.statuses)
    return {case.identity for case in cases}, dict(statuses)
