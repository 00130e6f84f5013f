"""Reads a run on disk: `rows.jsonl`, `samples.i64` and `cases.jsonl` in one folder, which are appended to and
never rewritten (`harness.rows.writer`).

`rows.jsonl` holds the run, then rows, then the end; a file without end is incomplete. `samples.i64` holds
little-endian 64-bit nanoseconds, written before the row that names its slice. `cases.jsonl` holds every case
once, so that a run can be read, resumed and reproduced without the files that it came from.

A published run holds `rows.jsonl.xz` instead, mostly without samples and cases. It is read by the same
functions, but nothing is ever written into its folder.
"""

from __future__ import annotations

import io
import json
import lzma
import os
from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from harness.backend.arm import Arm
from harness.cases.case import Case
from harness.cases.case_line import CASES_FILE, cases_in
from harness.errors import BadInput, damaged
from harness.rows.folder import ROWS, SAMPLES
from harness.rows.line import problem_with
from harness.rows.row import FORMAT, End, Row, RunInfo, identity, row_from_json
from harness.rows.sessions import with_sessions
from harness.shape import bounded_lines, json_line
from harness.text import counted, one_line, our_command, some

Samples = NDArray[np.int64]

PACKED = f"{ROWS}.xz"
"""The name of a run's rows as a run is published."""

EXPERIMENT = "experiment.toml"
"""The file of a run that repeats it (`grammarbench run FILE`)."""

DAMAGED = (EOFError, lzma.LZMAError, MemoryError)
"""The exceptions that reading raises if a file is no whole xz file, or asks for more memory than there is."""

TAIL = 1 << 16
"""The last line of a complete run lies within this many bytes before the end."""

UNPACKED_AT_ONCE = 1 << 16
"""Bytes of a packed run that are unpacked at a time."""

MOST_UNPACKED = 4 << 30
"""Most bytes of a packed run once it is unpacked."""

CASE_IDENTITY = ("backend", "backend_version", "options", "vocabulary", "suite", "case_id")
"""The fields that the rows of one case share, and that tell them from those of another case of the run."""


def case_identity(row: Row) -> tuple[str, ...]:
    """Returns the row's values of `CASE_IDENTITY`."""
    values: tuple[str, ...] = _case_identity(row)
    return values


_case_identity = attrgetter(*CASE_IDENTITY)


MOST_NAMED = 4
"""Runs that are named where a folder above them was given."""


def has_rows(folder: Path) -> bool:
    """Does the folder hold the rows of a run, as written or as published?"""
    return (folder / ROWS).exists() or (folder / PACKED).exists()


def _runs_below(folder: Path) -> str:
    """Returns the folders right below this one that hold runs, the first few by name; empty if none does."""
    try:
        runs = sorted(path.name for path in folder.iterdir() if has_rows(path))
    except OSError:
        return ""
    return some(runs, MOST_NAMED)


def is_published(folder: Path) -> bool:
    """Is this a published run, whose folder is only read?"""
    return (folder / PACKED).exists() and not (folder / ROWS).exists()


def published_without(folder: Path, name: str) -> bool:
    """Is this a published run that lacks its file of this name?

    Samples are large, and cases may not be ours to publish.
    """
    return is_published(folder) and not (folder / name).exists()


def refuse_published(folder: Path, what: str, instead: str) -> None:
    """Raises BadInput if the folder is a published run, which `what` would write into; `instead` says what to
    do."""
    if is_published(folder):
        raise BadInput(f"{folder} is a published run, which is only read: it cannot be {what}; {instead}")


def packed(table: bytes) -> bytes:
    """Returns a table of a published run as it is packed there (`ROWS` as `PACKED`), the same whenever it is
    made.

    It is xz: rows repeat one another at distances at which gzip no longer looks, and take half as much.
    """
    return lzma.compress(table, preset=9 | lzma.PRESET_EXTREME)


def _opened(folder: Path) -> IO[bytes]:
    """Returns the run's rows, decompressed where they are packed. Raises OSError."""
    if is_published(folder):
        # Lines of an LZMAFile pass through Python, byte counts and all; those of a buffered reader do not.
        return io.BufferedReader(lzma.open(folder / PACKED, "rb"), UNPACKED_AT_ONCE)
    return (folder / ROWS).open("rb")


def has_begun(folder: Path) -> bool:
    """Is there a run whose header was written whole?

    Without it nothing was measured. Raises BadInput if that cannot be told.
    """
    try:
        with _opened(folder) as file:
            return file.readline().endswith(b"\n")
    except (FileNotFoundError, NotADirectoryError):
        return False
    except DAMAGED:
        return True  # something of a run is there, and must not be overwritten
    except OSError as error:
        raise BadInput(f"{folder}: cannot be read ({error.strerror})") from error


def refuse_a_record(folder: Path, has_record: Callable[[Path], bool]) -> None:
    """Raises BadInput if the folder holds a run, or a record of another kind, as `has_record` tells."""
    if has_record(folder) or has_begun(folder):
        raise BadInput(f"{folder} holds a record already; give another --out")


def lines(folder: Path) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Yields the number, the offset behind it, and the content of each whole line. Raises BadInput."""
    path = folder / (PACKED if is_published(folder) else ROWS)
    try:
        file = _opened(folder)
    except FileNotFoundError as error:
        raise BadInput(f"{folder}: no run here (no rows.jsonl); {_instead(folder)}") from error
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error
    with file:
        offset = 0
        for number, line in enumerate(_undamaged(file, path), 1):
            offset += len(line)
            if not line.endswith(b"\n"):
                then = "`grammarbench run --resume` completes the run"
                if number == 1:
                    then = "the run did not start; repeat its command (without --resume)"
                raise TornLine(f"{path}:{number}: the last line is cut off; {then}", offset - len(line))
            value = json_line(line, f"{path}:{number}")
            if problem := problem_with(value):
                raise BadInput(f"{path}:{number}: not a line of a run: {problem}")
            if (value["kind"] == "run") != (number == 1):
                raise BadInput(f"{path}:{number}: a run has its header in the first line and only there")
            yield number, offset, value


SHOWN_BY = {
    "decode.jsonl": ("decode", "--show"),
    "live.jsonl": ("live", "--show"),
    "kernels.jsonl": ("measure", "kernels", "--show"),
    "growth.jsonl": ("measure", "growth", "--show"),
    "rows.jsonl": ("table",),
}
"""The words of the command that prints a record, by the name of the file that holds it. A session of `live`
has rows too."""


def shown_by(folder: Path) -> str:
    """Returns which command prints the record that is in the folder; empty where there is none."""
    words = next((words for name, words in SHOWN_BY.items() if (folder / name).is_file()), None)
    return "" if words is None else f"{our_command(*words, str(folder))} prints what is here"


def _instead(folder: Path) -> str:
    """Returns what to do about a folder without a run: name a run below it, or print the record of another
    kind that it holds."""
    if below := _runs_below(folder):
        return f"but in {below}; name one of them"
    return shown_by(folder) or "give the folder that `run --out` wrote"


def _whole_lines(folder: Path) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Yields the same up to a last line that was cut off, as by a full disk; of a published run, which is
    never written to, it raises TornLine then, as of a run that did not start."""
    try:
        yield from lines(folder)
    except TornLine as torn:
        if not torn.offset or is_published(folder):
            raise


def _undamaged(file: IO[bytes], path: Path) -> Iterator[bytes]:
    """Yields the lines of the file.

    Raises BadInput if the file is packed and cannot be unpacked, or if a line is longer than the limit.
    """
    try:
        yield from bounded_lines(file, path)
    except DAMAGED as error:
        raise BadInput(f"{path}: no whole xz file ({error}); fetch the published run again") from error


def _last_of(file: IO[bytes], path: Path) -> bytes:
    """Returns the last `TAIL` bytes of a packed file. Raises BadInput as `_undamaged`."""
    tail, size = b"", 0
    try:
        while content := file.read(1 << 20):
            tail, size = (tail + content)[-TAIL:], size + len(content)
            if size > MOST_UNPACKED:
                raise BadInput(
                    f"{path}: it unpacks to more than {MOST_UNPACKED >> 30} GiB, which no run does"
                )
    except DAMAGED as error:
        raise BadInput(f"{path}: no whole xz file ({error}); fetch the published run again") from error
    return tail


class TornLine(BadInput):
    """The last line of a run that was killed while it wrote; `offset` is where the line begins."""

    def __init__(self, text: str, offset: int) -> None:
        super().__init__(text)
        self.offset = offset


def read_info(folder: Path) -> RunInfo:
    """Returns the run's first line, with what its further sessions add to it. Raises BadInput."""
    for _, _, value in lines(folder):
        fields = {name: content for name, content in value.items() if name != "kind"}
        if fields["format"] != FORMAT:
            raise BadInput(f"{folder}: written in format {fields['format']}, this version reads {FORMAT}")
        fields |= {name: tuple(fields.get(name, ())) for name in ("argv", "asked", "checks", "readings")}
        fields["arms"] = tuple(Arm.from_json(arm) for arm in fields["arms"])
        return with_sessions(RunInfo(**fields), folder)
    raise BadInput(f"{folder}/rows.jsonl: empty; the run did not start")


def read_rows(folder: Path, *, whole: bool = True) -> Iterator[Row]:
    """Yields the rows; those of a run that was published without its samples name none. Rows behind which a
    line is cut off are those of a run without end.

    Raises BadInput; behind the last row also where the run's end speaks of another number of rows, but for
    one that was published, which may leave some out. Without `whole` that is left to the caller.
    """
    end: End | None = None
    keys: set[tuple[object, ...]] = set()
    arms: set[tuple[str, str, str]] = set()
    vocabularies: set[str] = set()
    without_samples = published_without(folder, SAMPLES)
    for number, _, value in _whole_lines(folder):
        if value["kind"] == "run":
            arms = {(one["backend"], one["version"], one["options"]) for one in value["arms"]}
            vocabularies = set(value["vocabularies"])
        elif value["kind"] == "row":
            row = row_from_json(value | {"samples": None} if without_samples else value)
            if row.version_key not in arms:
                who = one_line(" ".join(filter(None, row.version_key)), 200, spelled=True)
                raise damaged(f"{folder}/rows.jsonl:{number}: a row of {who}, no arm of this run")
            if row.vocabulary not in vocabularies:
                where = one_line(row.vocabulary, 200, spelled=True)
                raise damaged(f"{folder}/rows.jsonl:{number}: a row on {where}, no vocabulary of this run")
            key = identity(row)
            if key in keys:
                raise BadInput(f"{folder}/rows.jsonl:{number}: the same walk stands here twice")
            keys.add(key)
            yield row
        else:
            end = _end_of(value)
    if whole and end is not None and (why := why_not_whole(folder, end, len(keys))):
        raise damaged(f"{folder}/rows.jsonl: {why}")


NO_END = "no end"
"""Why a run is not whole that was not walked to its end."""


def why_not_whole(folder: Path, end: End | None, there: int) -> str:
    """Says why the run, of which so many rows are there, is not whole: it has no end, or its last line speaks
    of another number of rows. Returns nothing for a whole run, and for a published one that leaves rows out.
    """
    if end is None:
        return NO_END
    if there == end.rows or (there < end.rows and is_published(folder)):
        return ""
    are = "is" if there == 1 else "are"
    return f"its last line speaks of {counted(end.rows, 'row')}, {there:,} {are} there"


def _end_of(line: dict[str, Any]) -> End:
    return End(line["rows"], line["finished"], line["statuses"])


def read_end(folder: Path) -> End | None:
    """Returns the run's last line; None if the run is incomplete. Raises BadInput."""
    try:
        with _opened(folder) as file:
            if is_published(folder):
                tail = _last_of(file, folder / PACKED)
            else:
                file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
                tail = file.read()
    except OSError as error:
        raise BadInput(f"{folder}: no run here ({error.strerror})") from error
    last = tail.splitlines(keepends=True)[-1:]
    try:
        line = json.loads(b"".join(last))
    except (ValueError, RecursionError):
        return None  # cut off, or a row too long for this look at the end of the file: in any case no end
    if not (last[0].endswith(b"\n") and isinstance(line, dict) and line.get("kind") == "end") or problem_with(
        line
    ):
        return None
    return _end_of(line)


def read_samples(folder: Path) -> Samples:
    """Returns all samples of the run, in nanoseconds, mapped from the file; `row.samples` says which are
    whose."""
    return read_integers(folder / SAMPLES)


def read_integers(path: Path) -> Samples:
    """Returns the int64s of a file, mapped from it, shape `[n]`. A last one that is cut off is left out; a
    file that is not there has none.

    Raises BadInput.
    """
    try:
        if not path.exists() or path.stat().st_size < 8:
            return np.zeros(0, dtype=np.int64)
        if not path.is_file():
            raise BadInput(f"{path}: cannot be read: it is no file")
        return np.memmap(path, dtype="<i8", mode="r", shape=(path.stat().st_size // 8,))
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be read: {error}") from error


def read_cases(folder: Path) -> Iterator[tuple[str, str, Case]]:
    """Yields the suite, the suite's version and the case for every case of the run. Raises BadInput."""
    for _, suite, version, case in read_cases_at(folder):
        yield suite, version, case


def read_cases_at(folder: Path) -> Iterator[tuple[int, str, str, Case]]:
    """Yields the same, first the offset at which the case begins in the run's `cases.jsonl`. Raises
    BadInput."""
    keys: set[tuple[str, str]] = set()
    try:
        for offset, suite, version, case in cases_in(folder / CASES_FILE):
            if (suite, case.id) in keys:
                raise damaged(f"cases.jsonl: the case {case.id} stands here twice")
            keys.add((suite, case.id))
            yield offset, suite, version, case
    except FileNotFoundError as error:
        refuse_published(
            folder,
            "walked again",
            "it holds no cases.jsonl; run its command again where the suites are, and use that run",
        )
        raise BadInput(f"{folder}: no run here (no cases.jsonl)") from error
    except OSError as error:
        raise BadInput(f"{folder}/cases.jsonl: cannot be read: {error.strerror}") from error
    except BadInput as error:
        raise BadInput(f"{folder}/{error}") from error
