"""Finds the files of cases in a user's folder, and says what is not read there."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from harness.cases.case_line import CASES_FILE
from harness.cases.grammar_files import GRAMMARS, is_of_another_form
from harness.errors import BadInput
from harness.text import counted

SUFFIXES = (".json", ".jsonl", *GRAMMARS)
"""How the names of the files end that are read in a folder, in either case."""

SHORT = 1000
"""Bytes of a file that are looked at for whether it has any case."""

PACKAGES = "node_modules"
"""A folder of other people's files."""

HIDDEN = re.compile(r"\.(?!\.)")
"""The beginning of a file's name that a system or an editor leaves beside another; `..a.json` is a user's."""

RUN = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]+")
"""The name of a folder in `results/runs/`."""


def suffix_of(path: Path) -> str:
    """Returns how the file's name ends, in lower case."""
    return path.suffix.lower()


def files_of_cases(folder: Path) -> tuple[tuple[Path, ...], str]:
    """Returns the files of cases below the folder, in order, and what is not read there in a few words
    (empty: nothing).

    Hidden files and folders, `node_modules` and the folders of our own results are left out. Raises BadInput
    where something cannot be read, and for a folder that is itself one of results.
    """
    found: list[Path] = []
    others, linked, dangling, empty, foreign = 0, [], [], [], []
    for place, folders, names in os.walk(folder, onerror=_refuse):
        if _holds_results(Path(place), names):
            if Path(place) == folder:
                raise BadInput(f"{folder}: holds the results of a command; name a folder of cases only")
            folders.clear()
            continue
        folders[:] = filter(_is_entered, folders)
        linked += [path for name in folders if os.path.islink(path := Path(place, name))]
        for path in (Path(place, name) for name in names):
            is_wanted = suffix_of(path) in SUFFIXES
            if HIDDEN.match(path.name):
                others += is_wanted
            elif not is_wanted:
                others += 1
            elif (mode := _mode(path)) is None:
                dangling.append(path)
            elif stat.S_ISREG(mode) and is_of_another_form(path):
                foreign.append(path)
            elif stat.S_ISREG(mode):
                found.append(path)
                empty += [path] if _has_no_case(path) else []
            else:
                others += 1
    told = [counted(others, "other file")] if others else []
    told += (
        [f'{counted(len(foreign), "file")} of EBNF without "root ::=" ({min(foreign)})'] if foreign else []
    )
    told += [f"{counted(len(linked), 'linked folder')} ({min(linked)})"] if linked else []
    told += [f"{counted(len(dangling), 'link')} to nothing ({min(dangling)})"] if dangling else []
    told += [f"{counted(len(empty), 'file')} without a case ({min(empty)})"] if empty else []
    return tuple(sorted(found)), ", ".join(told)


def some_files_of_cases(folder: Path, most: int) -> Iterator[Path]:
    """Yields files that `files_of_cases` would find in the folder, until `most` names have been looked at:
    a huge folder is not walked. What may not be read is passed over."""
    seen = 0
    for place, folders, names in os.walk(folder):
        if _holds_results(Path(place), names):
            folders.clear()
            continue
        folders[:] = filter(_is_entered, sorted(folders))
        for path in (Path(place, name) for name in sorted(names)):
            seen += 1
            if seen > most:
                return
            if suffix_of(path) in SUFFIXES and not HIDDEN.match(path.name) and os.path.isfile(path):
                yield path


def _is_entered(name: str) -> bool:
    """Is a folder of this name looked into for cases?"""
    return not (name.startswith(".") or name == PACKAGES)


def _has_no_case(path: Path) -> bool:
    """Is the file an empty list, or one of lines without any? Whatever else has no case is told when it is
    read."""
    nothing = (b"",) if suffix_of(path) == ".jsonl" else (b"[]",)
    try:
        with path.open("rb") as file:
            return b"".join(file.read(SHORT).split()) in nothing and not file.read(1)
    except OSError:
        return False  # who reads its cases says why it cannot be read


def _refuse(error: OSError) -> NoReturn:
    raise BadInput(f"{error.filename}: cannot be read: {error.strerror}") from error


def _mode(path: Path) -> int | None:
    """Returns the mode of what the path leads to; None if that is nothing. Raises BadInput."""
    try:
        return path.stat().st_mode
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP):
            return None
        _refuse(error)


def _holds_results(folder: Path, names: list[str]) -> bool:
    """Does one of our commands keep its results in this folder?"""
    return (
        {"rows.jsonl", CASES_FILE} <= set(names)
        or "rows.jsonl.xz" in names
        or any(name.endswith(".i64") for name in names)
        or RUN.fullmatch(folder.name) is not None
    )
