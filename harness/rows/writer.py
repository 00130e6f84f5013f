"""Writes a run: rows are appended to `rows.jsonl`, and their samples to `samples.i64`."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from harness.errors import BadInput
from harness.rows.appending import close, encoded, write_lines
from harness.rows.folder import ROWS, SAMPLES, opened
from harness.rows.line import problem_with
from harness.rows.row import End, Row, RunInfo, row_to_json
from harness.shape import LONGEST_LINE
from harness.whole_files import named_where_full


class Writer:
    """Appends to one run; a row is in the file (not in our memory) when `append` returns."""

    def __init__(self, folder: Path, info: RunInfo | None, statuses: dict[str, int] | None = None) -> None:
        """Starts a run with `info`, or goes on with the one that is there (which `resume` has made whole) if
        it is None."""
        self.statuses = dict(statuses or {})
        first = {"kind": "run", **asdict(info)} if info is not None else {}
        if (size := len(encoded(first))) > LONGEST_LINE:
            raise BadInput(
                f"the run's first line would have {size >> 20} MiB, and at most {LONGEST_LINE >> 20} MiB are "
                "read; walk fewer cases at once"
            )
        mode = "ab" if info is None else "wb"
        self.rows, self.samples = opened(folder / ROWS, mode), opened(folder / SAMPLES, mode)
        if info is not None:
            self._write([first])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        close(self.samples, self.rows)

    def append(self, walks: Sequence[tuple[Row, bytes]]) -> None:
        """Appends all rows of one case, each with its samples (little-endian int64s); they reach the file
        together.
        """
        lines = []
        with named_where_full(Path(self.samples.name)):
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
        """Writes the last line, which says that the run is complete."""
        end = End(sum(self.statuses.values()), finished, dict(sorted(self.statuses.items())))
        self._write([{"kind": "end", **asdict(end)}])
        os.fsync(self.samples.fileno())
        os.fsync(self.rows.fileno())

    def _write(self, lines: list[dict[str, Any]]) -> None:
        texts = [encoded(line) for line in lines]
        for text in texts:
            if problem := problem_with(json.loads(text.decode())):
                raise ValueError(f"we were about to write a line that our own schema forbids: {problem}")
        write_lines(self.rows, texts)
