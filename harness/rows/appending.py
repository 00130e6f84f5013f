"""Two files that grow together: lines of JSON, and the int64s that they name."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from harness.errors import BadInput, damaged
from harness.rows.folder import opened
from harness.shape import LARGEST, shaped, whole_lines
from harness.text import counted
from harness.whole_files import named_where_full

Integers = NDArray[np.int64]


_ENCODER = json.JSONEncoder(separators=(",", ":"))


def encoded(value: Mapping[str, Any]) -> bytes:
    """Returns an object as a line of JSON, its end included."""
    return _ENCODER.encode(value).encode() + b"\n"


def write_lines(file: IO[bytes], lines: Iterable[bytes]) -> None:
    """Appends lines in one write; afterwards they are in the file, not in our memory."""
    with named_where_full(Path(file.name)):
        file.write(b"".join(lines))
        file.flush()


def close(figures: IO[bytes], lines: IO[bytes]) -> None:
    """Closes both files, also where the disk is full for the first one."""
    try:
        with named_where_full(Path(figures.name)):
            figures.close()
    finally:
        with named_where_full(Path(lines.name)):
            lines.close()


def reopened(path: Path) -> IO[bytes]:
    """Returns a file of lines, opened to append to it; a last line that was cut off is cut away. The file is
    never written anew: a full disk would take what it holds. Raises BadInput for a symbolic link."""
    file = opened(path, "a+b")
    file.seek(0)
    file.truncate(file.read().rfind(b"\n") + 1)
    return file


class Appender:
    """Appends to both files; whatever was handed over is in the files, not in our memory."""

    def __init__(self, lines: Path, figures: Path, kind: str, first: dict[str, Any]) -> None:
        """Begins both files anew, with the first line."""
        self.lines, self.figures = opened(lines, "wb"), opened(figures, "wb")
        self.count = 0
        write_lines(self.lines, [encoded({"kind": kind, **first})])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        close(self.figures, self.lines)
        if kind is not None and issubclass(kind, BadInput) and not self.count:
            # What was asked cannot be done, and a record of nothing would be in the way of the next try.
            os.unlink(self.figures.name)
            os.unlink(self.lines.name)

    def append(self, kind: str, line: dict[str, Any], figures: bytes | None = b"") -> None:
        """Appends one line. Its int64s reach their file before the line that names them does; None means that
        it names none."""
        named: dict[str, Any] = {}
        if figures is not None:
            named = {"figures": (self.figures.tell() // 8, len(figures) // 8)}
            with named_where_full(Path(self.figures.name)):
                self.figures.write(figures)
                self.figures.flush()
        self.count += 1
        write_lines(self.lines, [encoded({"kind": kind, **line, **named})])

    def finish(self, finished: str, **closing: Any) -> None:
        """Writes the last line, which says that the record is complete."""
        write_lines(
            self.lines, [encoded({"kind": "end", "finished": finished, "lines": self.count, **closing})]
        )
        os.fsync(self.figures.fileno())
        os.fsync(self.lines.fileno())


class RecordLines:
    """Reads the lines that an Appender wrote: `first` gives the first one, iterating gives the others.

    It is a context: a ValueError that a line causes in it becomes a BadInput that names the line.
    """

    def __init__(self, path: Path, protocol: int, record: str) -> None:
        """`record` names what the file holds in messages, as `decoding` or `measurement`."""
        self._path, self._protocol, self._record = path, protocol, record
        self._lines = whole_lines(path)
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, ValueError):
            raise damaged(f"{self._path}:{self._number}: not a line of a {self._record} ({error})") from error

    def first(self) -> dict[str, Any]:
        """Returns the first line without its kind. Raises BadInput if there is none, or for another
        protocol."""
        self._number, line = next(self._lines, (0, {}))
        if not line:
            raise BadInput(f"{self._path}: empty; the {self._record} did not start")
        if line.get("protocol", self._protocol) != self._protocol:
            raise BadInput(
                f"{self._path.parent}: a {self._record} by protocol {line['protocol']}, this version reads "
                f"{self._protocol}; measure anew"
            )
        del line["kind"]
        return line

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yields the kind of each further line, and the rest of the line. Raises ValueError for an end that
        counts other lines than are there, and for a line behind it."""
        is_over = False
        for number, line in self._lines:
            self._number = number
            if is_over:
                raise ValueError("it stands behind the end")
            kind = line.pop("kind")
            if kind == "end" and "lines" in line:  # growth counts none, and can be gone on with
                is_over, there = True, number - 2  # neither the first line nor this one is counted
                if (written := shaped(int, line["lines"])) != there:
                    are = "is" if there == 1 else "are"
                    raise ValueError(
                        f"its last line speaks of {counted(written, 'line')}, {there:,} {are} there"
                    )
            yield kind, line


def named_figures(line: dict[str, Any], figures: Integers) -> Integers:
    """Returns the figures that the line names by place and count; the name is taken out of the line.

    Raises ValueError if they are not all there, or are no times.
    """
    return sliced(shaped(tuple[int, int], line.pop("figures", None)), figures)


def sliced(named: tuple[int, int], figures: Integers) -> Integers:
    """Returns the figures from a place on, as many as `named` counts.

    Raises ValueError if they are not all there, or are no times.
    """
    place, count = named
    if min(place, count) < 0 or place + count > len(figures):
        raise ValueError("the file of figures ends before its figures do")
    mine = figures[place : place + count]
    if len(mine) and (int(mine.min()) < 0 or int(mine.max()) > LARGEST):
        raise ValueError("its figures are below 0 or beyond 2^62")
    return mine
