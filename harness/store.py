"""A run on disk: `rows.jsonl`, `samples.i64` and `cases.jsonl` in one folder. Appended to, never rewritten.

`rows.jsonl` holds the run, then rows, then the end; a file without end is incomplete. `samples.i64` holds little-endian
64-bit nanoseconds, written before the row that names its slice. `cases.jsonl` holds every case once, so that a run can be
read, resumed and reproduced without the files that it came from.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from sys import intern
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.case import Case, case_from_line
from harness.errors import BadInput
from harness.row import FORMAT, Arm, End, Row, RunInfo, identity, row_from_json, row_to_json

Samples = NDArray[np.int64]

CASE_IDENTITY = ("backend", "backend_version", "options", "vocabulary", "suite", "case_id")
"""The fields that the rows of one case share, and that tell them from those of another case of the run."""


class Writer:
    """Appends to one run; a row is in the file (not in our memory) when `append` returns."""

    def __init__(self, folder: Path, info: RunInfo | None, statuses: dict[str, int] | None = None) -> None:
        """Starts a run with `info`, or goes on with the one that is there (which `resume` has made whole) if it is None."""
        self.statuses = dict(statuses or {})
        mode = "ab" if info is None else "wb"
        self.rows = open(folder / "rows.jsonl", mode)  # noqa: SIM115 - closed by __exit__
        self.samples = open(folder / "samples.i64", mode)  # noqa: SIM115
        if info is not None:
            self._write([{"kind": "run", **asdict(info)}])

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.samples.close()
        self.rows.close()

    def append(self, walks: Sequence[tuple[Row, bytes]]) -> None:
        """All rows of one case, each with its samples (little-endian int64s); they reach the file together."""
        lines = []
        for row, samples in walks:
            line = row_to_json(row)
            if samples:
                line["samples"] = [self.samples.tell() // 8, len(samples) // 8]
                self.samples.write(samples)
            lines.append(line)
            self.statuses[row.status] = self.statuses.get(row.status, 0) + 1
        self.samples.flush()
        self._write(lines)

    def finish(self, finished: str) -> None:
        """The end: the run is complete."""
        end = End(sum(self.statuses.values()), finished, dict(sorted(self.statuses.items())))
        self._write([{"kind": "end", **asdict(end)}])
        os.fsync(self.samples.fileno())
        os.fsync(self.rows.fileno())

    def _write(self, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            if problem := problem_with(json.loads(json.dumps(line))):
                raise ValueError(f"we were about to write a line that our own schema forbids: {problem}")
        self.rows.write(b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines))
        self.rows.flush()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Nobody else may write the run meanwhile. Raises BadInput if somebody does."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(fd)
        raise BadInput(f"{folder} is being written by another process; wait for it, or end it") from error
    try:
        yield
    finally:
        os.close(fd)


def has_begun(folder: Path) -> bool:
    """Is there a run whose header was written whole? Without it nothing was measured. Raises BadInput if that cannot be told."""
    try:
        with open(folder / "rows.jsonl", "rb") as file:
            return file.readline().endswith(b"\n")
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise BadInput(f"{folder}: cannot be read ({error.strerror})") from error


@cache
def _validators() -> dict[str, Any]:
    import jsonschema_rs

    schema = json.loads((files("harness.results") / "row.schema.json").read_text("utf-8"))
    kinds: dict[str, Any] = {
        kind: jsonschema_rs.validator_for({"$ref": f"#/$defs/{kind}", "$defs": schema["$defs"]}) for kind in ("run", "row", "end")
    }
    return kinds


def problem_with(line: object) -> str:
    """What the published schema (results/row.schema.json) has against the line; empty if nothing."""
    kind = line.get("kind") if isinstance(line, dict) else None
    validator = _validators().get(str(kind))
    if validator is None:
        return f"its kind is {kind!r}, not run, row or end"
    error = next(validator.iter_errors(line), None)
    return "" if error is None else f"{'/'.join(map(str, error.instance_path)) or kind}: {error.message}"[:200]


def _lines(folder: Path) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Line number, offset behind the line, and content of each whole line. Raises BadInput."""
    path = folder / "rows.jsonl"
    try:
        file = path.open("rb")
    except FileNotFoundError as error:
        raise BadInput(f"{folder}: no run here (no rows.jsonl); give the folder that `grammarbench run --out` wrote") from error
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error
    with file:
        offset = 0
        for number, line in enumerate(file, 1):
            offset += len(line)
            if not line.endswith(b"\n"):
                raise TornLine(
                    f"{path}:{number}: the last line is cut off; `grammarbench run --resume` completes the run", offset - len(line)
                )
            try:
                value = json.loads(line)
            except ValueError as error:
                raise BadInput(f"{path}:{number}: not JSON; the file was changed or damaged") from error
            if problem := problem_with(value):
                raise BadInput(f"{path}:{number}: not a line of a run: {problem}")
            if (value["kind"] == "run") != (number == 1):
                raise BadInput(f"{path}:{number}: a run has its header in the first line and only there")
            yield number, offset, value


class TornLine(BadInput):
    """The last line of a run that was killed while it wrote; `offset` is where the line begins."""

    def __init__(self, text: str, offset: int) -> None:
        super().__init__(text)
        self.offset = offset


def read_info(folder: Path) -> RunInfo:
    """The run's first line. Raises BadInput."""
    for _, _, value in _lines(folder):
        fields = {name: each for name, each in value.items() if name != "kind"}
        if fields["format"] != FORMAT:
            raise BadInput(f"{folder}: written in format {fields['format']}, this version reads {FORMAT}")
        fields["argv"] = tuple(fields["argv"])
        fields["arms"] = tuple(Arm.from_json(each) for each in fields["arms"])
        return RunInfo(**fields)
    raise BadInput(f"{folder}/rows.jsonl: empty; the run did not start")


def read_rows(folder: Path) -> Iterator[Row]:
    """The rows, one at a time. Raises BadInput."""
    seen: set[tuple[object, ...]] = set()
    for number, _, value in _lines(folder):
        if value["kind"] == "row":
            row = row_from_json(value)
            key = identity(row)
            if key in seen:
                raise BadInput(f"{folder}/rows.jsonl:{number}: the same walk stands here twice")
            seen.add(key)
            yield row


def read_end(folder: Path) -> End | None:
    """The run's last line; None if the run is incomplete. Raises BadInput."""
    try:
        with open(folder / "rows.jsonl", "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - (1 << 16)))
            last = file.read().splitlines(keepends=True)[-1:]
    except OSError as error:
        raise BadInput(f"{folder}: no run here ({error.strerror})") from error
    try:
        line = json.loads(b"".join(last))
    except ValueError:
        return None  # cut off, or a row too long for this look at the end of the file: in any case no end
    if not (last[0].endswith(b"\n") and isinstance(line, dict) and line.get("kind") == "end") or problem_with(line):
        return None
    return End(line["rows"], line["finished"], line["statuses"])


def read_samples(folder: Path) -> Samples:
    """All samples of the run, in nanoseconds, mapped from the file; `row.samples` says which are whose."""
    path = folder / "samples.i64"
    if not path.exists() or path.stat().st_size < 8:
        return np.zeros(0, dtype=np.int64)
    return np.memmap(path, dtype="<i8", mode="r", shape=(path.stat().st_size // 8,))


def read_cases(folder: Path) -> Iterator[tuple[str, str, Case]]:
    """Suite, suite version and case of every case of the run."""
    try:
        with open(folder / "cases.jsonl", "rb") as file:
            for line in file:
                yield case_from_line(line)
    except FileNotFoundError as error:
        raise BadInput(f"{folder}: no run here (no cases.jsonl)") from error


@dataclass(frozen=True, slots=True)
class Stretch:
    """The rows of one case, as they stand together in `rows.jsonl`."""

    case: tuple[str, ...]
    """By `CASE_IDENTITY`."""
    statuses: tuple[str, ...]
    begin: int
    end: int
    """Offsets in `rows.jsonl`."""
    samples: int
    """Behind the last of their samples, in values; 0 if they have none."""


@dataclass(frozen=True)
class Stored:
    """What is there of a run, in the order of its file."""

    stretches: tuple[Stretch, ...]
    good: int
    """Behind the last of them; what follows was written in part."""
    is_complete: bool


def stored(folder: Path, owed: Mapping[tuple[str, str], int]) -> Stored:
    """Every case of which all rows and samples are there. `owed`: how many rows each (suite, case id) owes. Raises BadInput."""
    good = 0
    is_complete = False
    found: list[Stretch] = []
    try:
        for _, offset, value in _lines(folder):
            is_complete = value["kind"] == "end"
            if value["kind"] == "row":
                # What thousands of cases share is held once.
                case = (*(intern(value[name]) for name in CASE_IDENTITY[:-1]), value[CASE_IDENTITY[-1]])
                samples = sum(value["samples"]) if value["samples"] else 0
                if found and found[-1].case == case:
                    last = found.pop()
                    statuses = (*last.statuses, intern(value["status"]))
                    found.append(Stretch(case, statuses, last.begin, offset, max(last.samples, samples)))
                else:
                    found.append(Stretch(case, (intern(value["status"]),), good, offset, samples))
            good = offset
    except TornLine as torn:
        good = torn.offset
    # Rows of one case stand together; only the last case can be there in part.
    if found and len(found[-1].statuses) < owed.get((found[-1].case[-2], found[-1].case[-1]), 0):
        good = found.pop().begin
    # Samples are written before the rows that name them, so they are short only if the machine went down.
    path = folder / "samples.i64"
    there = path.stat().st_size // 8 if path.exists() else 0
    while found and found[-1].samples > there:
        good = found.pop().begin
    return Stored(tuple(found), good, is_complete)


def resume(folder: Path, owed: Mapping[tuple[str, str], int]) -> tuple[set[tuple[object, ...]], dict[str, int]]:
    """Make a killed run whole again: cut what was written in part; return which cases (by `CASE_IDENTITY`) are done.

    `owed` says how many rows each (suite, case id) owes. Also returns the count of rows by status. Raises BadInput.
    """
    there = stored(folder, owed)
    if there.is_complete:
        raise BadInput(f"{folder}: this run is complete; there is nothing to resume")
    os.truncate(folder / "rows.jsonl", there.good)
    path = folder / "samples.i64"
    if path.exists():
        os.truncate(path, 8 * max((each.samples for each in there.stretches), default=0))
    statuses = Counter(status for each in there.stretches for status in each.statuses)
    return {each.case for each in there.stretches}, dict(statuses)
