"""Files that are written whole, or left as they were: on a full disk, or where the process ends amid it, no
half of one stands there."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.errors import BadInput
from harness.paths import special_kind

IN_PLACE = (("/", "dev"), ("/", "proc"))
"""The beginnings of paths that may be streams, as `/dev/stdout` is, and are not replaced."""

IRREPLACEABLE = (errno.EBUSY, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG)
"""The errors of files that may be written and not replaced, such as a mount point or a file in a folder that
is not writable."""

FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
"""The errors of a disk without room, with which the system names no file."""


@contextmanager
def named_where_full(path: Path) -> Iterator[None]:
    """Has an error of a full disk name the file that is written in the block."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL and error.filename is None:
            error.filename = str(path)
        raise


@contextmanager
def drafted(path: Path) -> Iterator[Path]:
    """Gives the path of a file to write in the same folder, and puts it in the place of `path` when the block
    ends; it is deleted where the block raises. Raises OSError, which names `path` and not the draft."""
    draft = path.with_name(f".{secrets.token_hex(4)}.new")
    try:
        with named_where_full(path):
            yield draft
        os.replace(draft, path)
    except OSError as error:
        if error.filename == str(draft):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        with suppress(OSError):
            draft.unlink()


def refuse_unwritable(path: Path, option: str) -> None:
    """Raises BadInput if the file, which the option names, could not be written: it is asked before the work
    whose answer the file is for. Folders that are missing can be made."""
    if path.is_dir():
        raise BadInput(f"{path}: cannot be written: it is a folder; name a file in it")
    there = next(each for each in (path, *path.absolute().parents) if os.path.exists(each))
    if there != path and not there.is_dir():
        raise BadInput(f"{path}: cannot be written: {there} is no folder; give another {option}")
    if not os.access(there, os.W_OK if there == path else os.W_OK | os.X_OK):
        raise BadInput(f"{path}: cannot be written: permission denied; give another {option}")


def write_whole(path: Path, content: str | bytes) -> None:
    """Writes a file, text as UTF-8. Where it cannot be written whole, what was there before stays, unless the
    file cannot be replaced by one of the same owner and with the same links. Raises OSError."""
    if isinstance(content, str):
        content = content.encode()
    if path.parts[:2] in IN_PLACE or special_kind(path):
        with named_where_full(path):
            path.write_bytes(content)
        return
    path = Path(os.path.realpath(path))  # a link stays one
    is_there = path.exists()
    if is_there:
        os.close(os.open(path, os.O_WRONLY))  # a file that must not be changed is not replaced either
    try:
        with drafted(path) as draft:
            draft.write_bytes(content)
            if is_there:
                _take_place(draft, path)
    except OSError as error:
        if not is_there or error.errno not in IRREPLACEABLE:
            raise
        with named_where_full(path):
            path.write_bytes(content)


def write_files(folder: Path, files: Mapping[str, str | bytes], option: str) -> list[Path]:
    """Writes files into a folder, each whole, by its path in it, and returns their paths. A folder that is
    missing is made; a character that UTF-8 has no bytes for becomes a question mark. Raises BadInput, which
    asks for another `option`."""
    written = []
    for name, content in files.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, content if isinstance(content, bytes) else content.encode("utf-8", "replace"))
        except OSError as error:
            raise BadInput(f"{path}: cannot be written: {error.strerror}; give another {option}") from error
        written.append(path)
    return written


def _take_place(draft: Path, path: Path) -> None:
    """Gives the draft the owner and the mode of the file. Raises OSError where that cannot be done, as by
    anybody but root with a file of somebody else, and where the file has another name, which would keep what
    was there before."""
    old = path.stat()
    if old.st_nlink > 1:
        raise OSError(errno.EPERM, "the file has several names", str(path))
    os.chown(draft, old.st_uid, old.st_gid)
    shutil.copymode(path, draft)
