"""What an environment is built from: a version, a wheel or a source archive, or a folder."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

from harness.errors import BadInput
from harness.paths import expanded

BUILT = {"build", "dist", "target", "_skbuild"}
"""Folders at the top of a checkout that building it writes; they are not its source."""
BUILT_ANYWHERE = {"__pycache__"}
"""Folders that building a checkout writes at any depth; they are not its source either."""
BUILT_BY = {"CACHEDIR.TAG", "CMakeCache.txt"}
"""Files by which a folder is known for one that cargo or CMake has written, wherever it is."""


@dataclass(frozen=True)
class Source:
    """What is to be installed."""

    distribution: str
    target: str
    """What the installer is told: `name==version`, or a path."""
    version: str | None
    """The version asked for; None for a path, whose version is its own."""
    digest: str
    """The digest of a path's content; empty for a version, which is always the same on its index."""


def source_of(distribution: str, version: str) -> Source:
    """Returns what the text behind `==` stands for.

    Raises BadInput.
    """
    if not is_path(version):
        try:
            return Source(distribution, f"{distribution}=={Version(version)}", str(Version(version)), "")
        except InvalidVersion:
            raise BadInput(
                f'"{version}" is no version of {distribution}; write one like 1.2.3, or a path '
                "with a slash in it"
            ) from None
    path = expanded(version).resolve()
    if path.is_file():
        return Source(distribution, str(path), None, hashlib.sha256(path.read_bytes()).hexdigest())
    if path.is_dir():
        return Source(distribution, str(path), None, _digest(path))
    raise BadInput(f"{path}: no such file or folder to install {distribution} from")


def is_path(version: str) -> bool:
    """Does the text behind `==` name a file or a folder, and no version?"""
    return "/" in version or version.startswith((".", "~")) or version.endswith((".whl", ".tar.gz", ".zip"))


def _digest(folder: Path) -> str:
    """Returns a digest of the checkout's place and of each file's path, size and time of change. The newest
    time alone would miss a file that is taken away, or that comes with a time of its own."""
    digest = hashlib.sha256(os.fsencode(folder))
    for file in sorted(_source_files(folder)):
        known = file.stat()
        digest.update(b"\0%s\0%d %d" % (os.fsencode(file), known.st_size, known.st_mtime_ns))
    return digest.hexdigest()


def _source_files(path: Path) -> Iterator[Path]:
    """Yields the files of a checkout, and what its links to files lead to, but for those that building it
    writes, and hidden ones."""
    built = BUILT | BUILT_ANYWHERE
    for folder, folders, files in os.walk(path):
        if BUILT_BY.intersection(files):
            folders.clear()
            continue
        folders[:] = [
            name
            for name in folders
            if name not in built and not name.startswith(".") and not name.endswith(".egg-info")
        ]
        built = BUILT_ANYWHERE
        yield from (file for name in files if (file := Path(folder, name)).is_file())
