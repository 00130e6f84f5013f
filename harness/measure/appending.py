"""Two files that grow together: lines of JSON, and the int64s that they name."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from harness.errors import BadInput

Integers = NDArray[np.int64]


class Appender:
    """Appends; what was handed over is in the files, not in our memory."""

    def __init__(self, lines: Path, figures: Path, kind: str, first: dict[str, Any]) -> None:
        """Begins both files anew, with the first line."""
        self.lines = open(lines, "wb")  # noqa: SIM115 - closed by __exit__
        self.figures = open(figures, "wb")  # noqa: SIM115
        self.count = 0
        self._write({"kind": kind, **first})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.figures.close()
        self.lines.close()

    def append(self, kind: str, line: dict[str, Any], figures: bytes | None = b"") -> None:
        """One line; its int64s reach the file before the line that names them. None: it has none to name."""
        named: dict[str, Any] = {}
        if figures is not None:
            named = {"figures": (self.figures.tell() // 8, len(figures) // 8)}
            self.figures.write(figures)
            self.figures.flush()
        self.count += 1
        self._write({"kind": kind, **line, **named})

    def finish(self, finished: str, **said: Any) -> None:
        """The end: it is complete."""
        self._write({"kind": "end", "finished": finished, "lines": self.count, **said})
        os.fsync(self.figures.fileno())
        os.fsync(self.lines.fileno())

    def _write(self, line: dict[str, Any]) -> None:
        self.lines.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        self.lines.flush()


def whole_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The whole lines, numbered from 1; a last one that is cut off was being written when its writer was killed. Raises BadInput."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            try:
                yield number, json.loads(line)
            except ValueError as error:
                raise BadInput(f"{path}:{number}: not JSON; the file was changed or damaged") from error


def read_figures(path: Path) -> Integers:
    """The int64s, shape `[n]`, not read before they are asked for; a last one that is cut off is left out."""
    if not path.exists() or path.stat().st_size < 8:
        return np.zeros(0, np.int64)
    return np.memmap(path, "<i8", "r", shape=(path.stat().st_size // 8,))


def named_figures(line: dict[str, Any], figures: Integers) -> Integers:
    """Those that the line names; the name is taken out of it. Raises ValueError if they are not all there."""
    place, count = line.pop("figures")
    mine = figures[place : place + count]
    if len(mine) < count:
        raise ValueError("the file of figures ends before its figures do")
    return mine
