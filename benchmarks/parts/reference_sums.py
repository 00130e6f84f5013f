"""SHA256SUMS of a published folder: the checksum of every file, as `sha256sum --check` reads them too."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from harness.errors import BadInput

SUMS = "SHA256SUMS"
LINE = re.compile(r"([0-9a-f]{64})  (.+)")


def files_in(folder: Path) -> list[str]:
    """Returns the names of the folder's files but SUMS, in order."""
    files = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(name for name in files if name != SUMS)


def write_sums(folder: Path) -> None:
    """Writes the checksums of what is there."""
    lines = [f"{sum_of(folder / name)}  {name}\n" for name in files_in(folder)]
    (folder / SUMS).write_text("".join(lines), "utf-8", newline="\n")


def read_sums(folder: Path) -> dict[str, str]:
    """Returns the checksums by the name of the file. Raises BadInput where there are none, or a damaged
    one."""
    path = folder / SUMS
    if not path.is_file():
        raise BadInput(
            f"{path} is not there. A folder of before there were checksums is held to its rows by the commit "
            "of its day alone; in another one the file was lost"
        )
    sums = {}
    for place, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), start=1):
        if not (found := LINE.fullmatch(line)):
            raise BadInput(f"{path}: line {place} is no checksum with the name of a file")
        sums[found[2]] = found[1]
    return sums


def damage(folder: Path, sums: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yields the name of each file that is not as it was published, with what is wrong with it."""
    there = set(files_in(folder))
    for name, known in sums.items():
        if name not in there:
            yield name, "is missing"
        elif sum_of(folder / name) != known:
            yield name, f"is not as it was published: its checksum in {SUMS} is another one"
    for name in sorted(there - sums.keys()):
        yield name, f"is not in {SUMS}"


def sum_of(path: Path) -> str:
    """Returns the SHA-256 of the file, in hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
