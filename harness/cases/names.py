"""Names of cases and suites, by which people tell them apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from pathlib import Path

from harness.cases.case import Case


class Names:
    """The names of a suite's cases, as they are read from its files, in order."""

    def __init__(self, files: Sequence[Path], folder: Path | None) -> None:
        self._folder = folder
        self._stems = Counter(path.stem for path in files)
        self._taken: set[str] = set()

    def name_of(self, case: Case, path: Path) -> str:
        """Returns the name of the next case.

        One that is named after its file has its folders before it where several files are called so. What is
        named by a request has its file and line before it where the name is taken.
        """
        below = path.relative_to(self._folder or path.parent)
        name, longer = case.name, ""
        if name == path.stem:
            longer = str(below)
            name = str(below.with_suffix("")) if self._stems[name] > 1 else name
        elif case.request:
            longer = f"{below}{case.request.removeprefix(str(path))}: {name}"
        name = writable(name)
        if longer and name in self._taken:
            name = unused_name(writable(longer), self._taken)
        self._taken.add(name)
        return name


def unused_name(name: str, taken: Container[str]) -> str:
    """Returns the name, with a number behind it if it is taken: two folders of one name are two suites, and
    the second is called `name-2`."""
    number, candidate = 1, name
    while candidate in taken:
        number += 1
        candidate = f"{name}-{number}"
    return candidate


def writable(name: str) -> str:
    """Returns the name with lone surrogates (of bytes in a file name that are no UTF-8, or of an
    escape in JSON) spelled out: a row's schema and a page can hold it."""
    return name.encode("utf-8", "backslashreplace").decode()
