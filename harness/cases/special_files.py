"""Refuses paths that only look like files: a FIFO, a socket or a device, from which a command would read
without an end.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

from harness.cases.folder import SUFFIXES
from harness.errors import BadInput
from harness.paths import refuse_too_long, special_kind

WRITTEN = ("record", "script", "html")
"""The options that name a file to be written; `/dev/stdout` is allowed there."""

NESTED = ("history", "trend")
"""The options that name a folder whose subfolders hold the files that are read."""

READ = (*SUFFIXES, ".gz", ".xz", ".i64")
"""The name endings of the files that our commands read in a folder."""

OPEN_ALREADY = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
"""Beginnings of paths that a shell opens for the command, e.g. for `<(...)`."""


def refuse_special_files(options: argparse.Namespace) -> None:
    """Raises BadInput if a path among the options, or a file that would be read in such a folder, is neither
    an ordinary file nor a folder, or if such a path is too long."""
    for name, value in vars(options).items():
        for path in value if isinstance(value, list) else [value]:
            if isinstance(path, Path):
                refuse_too_long(path)
                if name in WRITTEN:
                    continue
                refuse_special_file(path)
                for file in _files_of(path, name in NESTED):
                    refuse_special_file(file)


def refuse_special_file(path: Path, opened: bool = True) -> None:
    """Raises BadInput if something is there that is neither a file nor a folder. What a shell has opened for
    the command may be read, unless `opened` is false: a source of cases is read more than once."""
    kind = special_kind(path)
    if kind and not (opened and str(path).startswith(OPEN_ALREADY)):
        raise BadInput(
            f"{path}: is a {kind}, which may have no end; copy what it gives into a file, and name that"
        )


def _files_of(folder: Path, nested: bool) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        yield from (Path(place, name) for name in names if name.endswith(READ))
        if not nested:
            folders.clear()
