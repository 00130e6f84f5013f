"""The files of a history: how they are added to it, and read."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import BadInput
from harness.rows.appending import encoded
from harness.shape import json_line
from harness.whole_files import drafted

MOST_BYTES = 256 << 20
"""Most bytes that one file of a history may have when it is unpacked."""


@dataclass(frozen=True)
class NewFile:
    """A file that a run adds to a history."""

    path: Path
    lines: tuple[dict[str, Any], ...]

    @property
    def content(self) -> bytes:
        """Returns what the file holds when it is unpacked."""
        return b"".join(map(encoded, self.lines))

    def is_there(self) -> bool:
        """Is the file in the history? Raises BadInput if it is there with another content."""
        if not self.path.exists():
            return False
        if _unpacked(self.path) != self.content:
            raise BadInput(f"{self.path} is there already, and differs; a history is only appended to")
        return True


def append(files: Sequence[NewFile]) -> None:
    """Writes the files of one run, each whole or not at all; those that are there are left as they are.

    Raises BadInput if all are there, if one is there with another content, and if one cannot be written.
    """
    missing = [file for file in files if not file.is_there()]
    if not missing:
        raise BadInput(f"{files[0].path} is there already; a history is only appended to")
    file = missing[0]
    try:
        with ExitStack() as drafts:
            for file in missing:
                file.path.parent.mkdir(parents=True, exist_ok=True)
                draft = drafts.enter_context(drafted(file.path))
                draft.write_bytes(gzip.compress(file.content, mtime=0))
    except OSError as error:
        raise BadInput(
            f"{file.path.parent}: cannot be written ({error.strerror}); the same command adds the run when "
            "it can"
        ) from error


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Returns the lines of one file. Raises BadInput."""
    content = _unpacked(path)
    lines = [json_line(line, f"{path}:{number}") for number, line in enumerate(content.splitlines(), 1)]
    if not lines or not all(isinstance(line, dict) for line in lines):
        raise BadInput(f"{path}: no file of a history (its lines are no objects)")
    return lines


def _unpacked(path: Path) -> bytes:
    """Returns what one file holds. Raises BadInput."""
    try:
        with gzip.open(path, "rb") as file:
            # A file that is made to burst a memory is a thousandth of what it becomes; ours hold some
            # megabytes.
            content = file.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(f"{path}: no file of a history ({error})") from error
    if len(content) > MOST_BYTES:
        raise BadInput(f"{path}: no file of a history (it unpacks to more than {MOST_BYTES >> 20} MiB)")
    return content
