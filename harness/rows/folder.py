"""Makes a run's folder writable, names it, locks it while one process writes to it, and sees whether anything
is stored there."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from harness.errors import BadInput

ROWS, SAMPLES = "rows.jsonl", "samples.i64"
"""The files of a run that hold its rows, and the nanoseconds of its calls."""

RECORDS = (ROWS, "rounds.jsonl", "decode.jsonl", "live.jsonl", "growth.jsonl", "kernels.jsonl")
"""The names of the files whose lines are what was measured."""


def new_run_id() -> str:
    """Returns a new id for a run: the time to the second, and four random digits."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


def make_writable(folder: Path, otherwise: str = "give another --out") -> None:
    """Makes the folder if need be. Raises BadInput, which says what to do otherwise, if nothing can be
    written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".{secrets.token_hex(4)}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise BadInput(f"{folder}: cannot be written ({error.strerror}); {otherwise}") from error


def now() -> str:
    """Returns the time as records hold it: ISO 8601, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def refuse_links(folder: Path, names: Iterable[str]) -> None:
    """Raises BadInput if a file of one of these names in the folder is a symbolic link."""
    for path in (folder / name for name in names):
        if path.is_symlink():
            raise _link(path)


def opened(path: Path, mode: str) -> IO[bytes]:
    """Returns a file of ours, opened to be written; the mode is a binary one of `open`. Raises BadInput if it
    is a symbolic link: the folder may be a stranger's, and what a link leads to is not ours."""
    try:
        return open(path, mode, opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o666))
    except OSError as error:
        if path.is_symlink():
            raise _link(path) from error
        raise


def _link(path: Path) -> BadInput:
    return BadInput(
        f"{path} is a link, and another file would be written through it; put the file itself in its place, "
        "or give another --out"
    )


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Locks the folder, so that no other process writes the run meanwhile. Raises BadInput if another one
    does."""
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


@contextmanager
def named_by_errors(folder: Path, chosen: bool) -> Iterator[None]:
    """Adds a note to an error of the disk and to an interruption that names the folder, if something that was
    measured is stored there, and the folder was chosen for the user."""
    try:
        yield
    except (OSError, KeyboardInterrupt) as error:
        if chosen and holds_measured(folder):
            error.add_note(f"what was measured is stored in {folder}")
        raise


def holds_measured(folder: Path) -> bool:
    """Is the first line of a record of ours in the folder?

    It imports nothing: the error before may be that no more files can be opened.
    """
    with suppress(OSError):
        for path in (folder / name for name in RECORDS if (folder / name).is_file()):
            with open(path, "rb") as file:
                if file.readline().endswith(b"\n"):
                    return True
    return False
