"""Makes a run's folder writable, names it, and locks it while one process writes to it."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from harness.errors import BadInput


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
