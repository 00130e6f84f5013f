"""Paths as users write them, and what stands there."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from harness.errors import BadInput


def expanded(path: str) -> Path:
    """Returns the path with the home folder for `~` or `~NAME` at its beginning. Raises BadInput where that
    is unknown, and for a path that is too long for this machine."""
    try:
        found = Path(path).expanduser()
        refuse_too_long(found)
        return found
    except RuntimeError as error:
        raise BadInput(f"{path}: nobody's home folder is known by the name of its beginning") from error


def refuse_too_long(path: str | Path) -> None:
    """Raises BadInput for a path that no file of this machine can have, because it or a name in it is too
    long."""
    try:
        os.lstat(path)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise BadInput(f"{str(path)[:60]}…: a path that is too long for this machine") from error
    except ValueError:  # it is no path, which whoever opens it says
        return


def existing_file(path: str, kind: str) -> Path:
    """Returns the file's absolute path. Raises BadInput if there is none, which calls it by its kind and
    path."""
    file = expanded(path).absolute()
    if not file.is_file():
        raise BadInput(f"{kind}:{path}: no such file")
    return file


def special_kind(path: Path) -> str:
    """Returns the kind of a path that is neither a file nor a folder, with links followed; empty otherwise,
    and if nothing is there."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # nothing is there, or the name cannot be a path
        return ""
    for is_one, kind in (
        (stat.S_ISFIFO, "FIFO"),
        (stat.S_ISSOCK, "socket"),
        (stat.S_ISCHR, "device"),
        (stat.S_ISBLK, "device"),
    ):
        if is_one(mode):
            return kind
    return ""
