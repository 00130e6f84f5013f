"""Finds what lies in a folder, and reads it into tables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from harness.errors import BadInput
from harness.measure.record import has_measurement, read_measurement
from harness.outcomes.result import Noticed
from harness.outcomes.summary import ArmSummary, each_taken_in, summarize
from harness.report.frames import rows, scores, times
from harness.rows.sample import sample_of
from harness.rows.store import has_rows, read_end, read_info, read_rows, read_samples
from harness.serve.decode.record import has_decoding, read_decoding

DEEPEST = 3
"""How many folders below the one that is given are looked into for runs."""


@dataclass(frozen=True, eq=False)
class Run:
    """What a folder holds, as tables; docs/python.md says what each column is.

    A table of which the folder holds nothing has its columns and no line.
    """

    path: Path
    names: tuple[str, ...]
    """The folders that were read, as the column `run` has them."""
    sample: str
    """What a reader must know first, in a sentence: which sample of its suites was walked. Empty if they were
    walked whole."""
    is_complete: bool
    """Did everything here come to its end? Nothing may be concluded from what has none."""
    cases: pd.DataFrame
    """One line per case, backend arm and vocabulary: what it came to."""
    instances: pd.DataFrame
    """One line per walk of an instance, or per compile where a case has no instance."""
    findings: pd.DataFrame
    """One line per finding of a check."""
    times: pd.DataFrame
    """One line per backend arm and kind of time, with percentiles in microseconds."""
    scores: pd.DataFrame
    """One line per text of a decoding that a real model was asked about again: what masks take from it."""

    def __repr__(self) -> str:
        """Returns one line; the tables are asked for by name."""
        counted = ", ".join(f"{len(getattr(self, name)):,} {name}" for name in TABLES)
        return f"<Run {str(self.path)!r}: {counted}{f'; {self.sample}' if self.sample else ''}>"


TABLES = ("cases", "instances", "findings", "times", "scores")
"""The tables of a `Run`, each an attribute."""

Lines = dict[str, list[dict[str, Any]]]
"""The lines of each table."""


def load(path: str | os.PathLike[str]) -> Run:
    """Returns what lies in the folder, or in the folders below it: runs, published runs, measurements and
    decodings. Raises BadInput."""
    top = Path(path)
    folders = list(_folders(top, DEEPEST))
    if not folders:
        raise BadInput(
            f"{top}: no run, measurement or decoding here; give the folder that "
            "`grammarbench run --out` wrote"
        )
    lines: Lines = {name: [] for name in TABLES}
    samples, complete = [], True
    names = [folder.name if folder == top else str(folder.relative_to(top)) for folder in folders]
    for folder, name in zip(folders, names, strict=True):
        if has_rows(folder):
            info = read_info(folder)
            complete &= read_end(folder) is not None
            if (sample := sample_of(info)) and sample not in samples:
                samples.append(sample)
            for table, more in _of_rows(folder, name).items():
                lines[table] += more
        if has_measurement(folder):
            complete &= read_measurement(folder).end is not None
            lines["times"] += times.of_measurement(folder, name)
        if has_decoding(folder):
            decoding = read_decoding(folder)
            complete &= decoding.is_complete
            lines["times"] += times.of_decoding(decoding, name)
            lines["scores"] += scores.of_decoding(decoding, name)
    columns = {
        "cases": rows.CASES,
        "instances": rows.INSTANCES,
        "findings": rows.FINDINGS,
        "times": times.TIMES,
        "scores": scores.SCORES,
    }
    frames = {table: _frame(lines[table], columns[table]) for table in TABLES}
    return Run(top, tuple(names), "; ".join(samples), complete, **frames)


def _folders(folder: Path, deeper: int) -> Iterator[Path]:
    """Yields the folder if it holds anything to read, else those below it that do, by name. Raises
    BadInput."""
    if has_rows(folder) or has_measurement(folder) or has_decoding(folder):
        yield folder
        return
    try:
        below = sorted(entry for entry in folder.iterdir() if entry.is_dir() and not entry.is_symlink())
    except OSError as error:
        raise BadInput(f"{folder}: cannot be read ({error.strerror})") from error
    for entry in below if deeper else ():
        yield from _folders(entry, deeper - 1)


def _of_rows(folder: Path, name: str) -> Lines:
    """Returns the lines of a run's rows, each row looked at once."""
    info = read_info(folder)
    noticed, seen = Noticed(folder), rows.Seen(name, info)
    arms: Sequence[ArmSummary] = summarize(
        each_taken_in(read_rows(folder), noticed.add, seen.add), read_samples(folder), info, folder
    )
    return {
        "cases": list(seen.case_lines(arms, noticed)),
        "instances": seen.instances,
        "findings": seen.findings,
        "times": list(times.of_walks(arms, seen)),
    }


def _frame(lines: Sequence[dict[str, Any]], columns: dict[str, str]) -> pd.DataFrame:
    """Returns the lines as a frame with these columns, each of its type."""
    return pd.DataFrame(
        # Not pandas' own type of text: where that is Arrow's, a lone surrogate ends it.
        {name: pd.Series([line.get(name) for line in lines], dtype=kind) for name, kind in columns.items()}
    )
