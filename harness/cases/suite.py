"""Finds suites by name, folder or file, reads them one case at a time, and refuses bad input with file and
line."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from harness.cases.bare_schema import SHARED, is_schema
from harness.cases.case import GRAMMAR_KEYS, Case
from harness.cases.case_json import cases_from_json, cases_of_line
from harness.cases.folder import files_of_cases, some_files_of_cases, suffix_of
from harness.cases.grammar_files import GRAMMARS, case_of_grammar
from harness.cases.json_reading import parse_json
from harness.cases.names import Names, writable
from harness.cases.requests import is_of_request
from harness.cases.special_files import refuse_special_file
from harness.errors import BadInput, did_you_mean
from harness.oracle.judge.drafts import DRAFTS
from harness.shape import bounded_lines

T = TypeVar("T")

YAML = (".yaml", ".yml")
"""How the names of files end that many have, and that are read only where they hold JSON."""

PACKED = {
    b"\x1f\x8b": "gzip",
    b"(\xb5/\xfd": "zstd",
    b"PK\x03\x04": "zip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
}
"""The first bytes of a file that each program packed."""

MOST_NAMES, MOST_FILES, MOST_LINES, LARGEST_FILE = 10_000, 100, 10, 1 << 20
"""What is looked at in a folder that is called as a suite of ours is: names, files, and of each file its
first lines, or the whole where it is no larger (bytes)."""

DEEPEST = 100_000
DEPTHS = f"about {DEEPEST:,} levels with Python 3.11; later ones stop at 1,500 to 10,000"
"""The levels of nesting that are read: from 3.12 on Python's own reader has a limit that nobody can set."""


class UnknownSuite(BadInput):
    """No suite, file or folder has the name that was given."""


@dataclass(frozen=True)
class Suite:
    """Where cases come from; the cases themselves are read when asked for."""

    name: str
    version: str
    description: str
    files: tuple[Path, ...]
    is_ours: bool = False
    """It comes with the package."""
    by_default: bool = True
    """A run that names no suite walks it; a suite's header says `"default": false` if it should not."""
    unread: str = ""
    """What lies in the user's folder and is not read, in a few words; empty if that is nothing."""
    folder: Path | None = None
    """The user's folder, if it is one."""


@dataclass
class Passed:
    """What is passed over while a suite is read."""

    unheld: dict[str, None] = field(default_factory=dict)
    """The places of requests that hold their answer to nothing that is read, in order."""
    left_out: dict[str, None] = field(default_factory=dict)
    """The tools that are not read of requests whose other tools and formats are repetitions."""
    repeated: int = 0
    """The number of tools and formats that an earlier request of the suite has too."""
    asked_elsewhere: dict[tuple[str, str], str] = field(default_factory=dict)
    """The first request that asks for what an earlier one asks for at another place of a request
    (`Case.asked_at`), by that place and the case's id."""


def suite_names() -> list[str]:
    """Returns the suites that come with the package."""
    return sorted(
        Path(str(path)).stem for path in files("harness.suites").iterdir() if path.name.endswith(".jsonl")
    )


MEASURED = "speed"
"""The suite that `measure` takes when none is named."""

DECODED = "decode"
"""The suite that holds the workloads of the decode loop."""


def walked_by_default() -> list[str]:
    """Returns the suites that a run walks when none is named: those whose header does not say otherwise."""
    return [name for name in suite_names() if find_suite(name).by_default]


def find_suite(wanted: str) -> Suite:
    """Returns a suite by name (`-` and `_` are the same), the folder or file of that path, or the pydantic
    model that `module:Model` names. Raises BadInput."""
    if name := _ours(wanted):
        path = Path(str(files("harness.suites"))) / f"{name}.jsonl"
        return replace(_suite_of_file(path), is_ours=True)
    if not wanted:
        raise UnknownSuite("a SUITE without a name; write . for the folder that you are in")
    path = Path(wanted)
    if _is(path.is_dir, wanted):
        paths, unread = files_of_cases(path)
        if not paths:
            but = f" (but {unread})" if unread else ""
            raise BadInput(f"{wanted}: no .json, .jsonl, {', '.join(GRAMMARS)} file in this folder{but}")
        return Suite(writable(path.resolve().name), "", "", paths, unread=unread, folder=path)
    if _is(path.is_file, wanted):
        return _suite_of_file(path)
    refuse_special_file(path, opened=False)
    from harness.cases.models import model_file  # most sources need no process of their own

    if (model := model_file(wanted)) is not None:
        return _suite_of_file(model)
    raise UnknownSuite(
        f'unknown suite "{wanted}": no suite of that name, no such file or '
        f"folder{did_you_mean(wanted, suite_names())}"
    )


def refuse_two_meanings(wanted: Iterable[str]) -> None:
    """Raises BadInput for a word of the user's that names a suite of ours, and a folder of cases here too, in
    either spelling (`-` or `_`): whichever were taken, some would take its outcomes for those of the other.

    It is asked of what a user writes on a command line or in a program. What nobody named, or a record, an
    `experiment.toml` or the command of a run that is resumed names, is ours without a question.
    """
    for name in wanted:
        ours = _ours(name)
        for folder in dict.fromkeys((name, ours, ours.replace("_", "-"))) if ours else ():
            if _is(Path(folder).is_dir, folder) and _has_cases(Path(folder)):
                called = f"and {folder} is" if folder != name else "and"
                raise BadInput(
                    f"{name} is a suite of ours, {called} a folder of cases here; write ./{folder} for the "
                    "folder, or give the command in another folder for the suite"
                )


def _ours(wanted: str) -> str:
    """Returns the name of our suite that is called so (`-` and `_` are the same); empty if none is."""
    plain = wanted.replace("_", "-")
    return next((name for name in suite_names() if name.replace("_", "-") == plain), "")


def _has_cases(folder: Path) -> bool:
    """Does a file of the folder begin with a case that a person means as one?

    The first files are opened, those of one large JSON value left out: a folder that is huge is not read for
    a question. One of programs has JSON too (`package.json`), which is no case.
    """
    for path in islice(some_files_of_cases(folder, MOST_NAMES), MOST_FILES):
        try:
            if suffix_of(path) == ".jsonl" or path.stat().st_size <= LARGEST_FILE:
                cases = _cases_of_file(path, path.name, None, {}, MOST_LINES)
                if (case := next(cases, None)) and _is_meant(case):
                    return True
        except (BadInput, OSError):
            continue  # a case that cannot be read is told where the folder is named
    return False


def _is_meant(case: Case) -> bool:
    """Is this a case, and not settings that read as a schema which asks nothing? Those of many tools name a
    `$schema`, and a lock of packages has `dependencies`."""
    if case.grammar.dialect != "json_schema" or case.instances or case.request:
        return True
    schema = deep(lambda: parse_json(case.grammar.text, case.name), case.name)
    told = {"$schema", *SHARED}
    return isinstance(schema, dict) and is_schema({key: schema[key] for key in schema.keys() - told})


def unread_lines(suites: Iterable[Suite]) -> list[str]:
    """Returns a line for each suite that is a folder in which not everything is read."""
    return [f"{suite.name}: not read: {suite.unread}" for suite in suites if suite.unread]


def _is(question: Callable[[], bool], wanted: str) -> bool:
    """Returns the answer; False where the name cannot even be a path. Raises BadInput where it may not be
    asked."""
    try:
        return question()
    except PermissionError as error:
        raise BadInput(f"{wanted}: cannot be read: {error.strerror}") from error
    except OSError:
        return False


def _suite_of_file(path: Path) -> Suite:
    header: dict[str, Any] = {}
    if suffix_of(path) == ".jsonl":
        with open_text(path) as lines:
            first = lines.readline()
        if first.strip() and _is_header(
            value := deep(lambda: parse_json(first, str(path)), str(path)), f"{path}:1"
        ):
            header = value
    name, version, description = (
        str(header.get(key, other))
        for key, other in (("suite", path.stem), ("version", ""), ("description", ""))
    )
    return Suite(
        writable(name), version, description, (path,), by_default=header.get("default", True) is not False
    )


def _is_header(value: object, where: str) -> bool:
    """Is the first line of a suite file its header, and not yet a case or a request? Raises BadInput."""
    if not isinstance(value, dict) or "suite" not in value:
        return False
    return not (GRAMMAR_KEYS.keys() & value.keys() or is_of_request(value, where))


def read_cases(suite: Suite, passed: Passed | None = None) -> Iterator[Case]:
    """Yields every case of the suite, in order; ids are unique within it (a second case with the same grammar
    gets `-2`). What requests hold comes once, however often it is asked for; `passed` counts what is passed
    over. Raises BadInput, also where all there is are requests that hold nothing."""
    counts: dict[str, int] = {}
    names = Names(suite.files, suite.folder)
    passed = passed or Passed()
    held: set[tuple[str, str]] = set()
    places: set[tuple[str, str]] = set()
    for path in suite.files:
        # Where the package lies says nothing about its suites.
        draft = None if suite.is_ours else _draft_of_folder(path)
        shown = str(path.relative_to(suite.folder or path.parent))
        for case in _cases_of_file(path, shown, draft, passed.unheld):
            if case.request:
                key, place = ("" if case.is_unnamed else case.name, case.id), (case.asked_at, case.id)
                if key in held:
                    passed.repeated += 1
                    passed.left_out |= dict.fromkeys(case.left_out)
                    if place not in places:
                        request = f"{shown}{case.request.removeprefix(str(path))}"
                        passed.asked_elsewhere.setdefault(place, request)
                    continue
                held.add(key)
                places.add(place)
            counts[case.id] = counts.get(case.id, 0) + 1
            if counts[case.id] > 1:
                case = replace(case, id=f"{case.id}-{counts[case.id]}")
            name = names.name_of(case, path)
            yield case if name == case.name else replace(case, name=name)
    if passed.unheld and not counts:
        first, *others = passed.unheld
        more = f" (and {len(others):,} more like it)" if others else ""
        raise BadInput(f"{first} is a request without tools or a format that is read{more}")


def refuse_unreadable(suites: Iterable[Suite]) -> None:
    """Raises BadInput for the first case of the user's own suites that cannot be read.

    All of them are read for it once more, which takes four seconds for ten thousand schemas: whoever has a
    mistake in a file is told before backends are imported, which takes as long for a single schema.
    """
    for suite in suites:
        if not suite.is_ours:
            deque(read_cases(suite), maxlen=0)


def _draft_of_folder(path: Path) -> str | None:
    """Returns the draft after which a folder around the file is named, as in the JSON-Schema-Test-Suite."""
    return next((part for part in path.resolve().parts[::-1] if part in DRAFTS), None)


def _cases_of_file(
    path: Path, shown: str, draft: str | None, unheld: dict[str, None], most: int | None = None
) -> Iterator[Case]:
    """Yields the cases of a file, which is called `shown` in the names of what has no name. Of a file of
    lines `most` are read."""
    if suffix_of(path) == ".jsonl":
        with open_text(path) as lines:
            for number, line in enumerate(islice(lines, most), 1):
                where = f"{path}:{number}"

                def read(line: str = line, number: int = number, where: str = where) -> list[Case]:
                    value = parse_json(line, str(path), number)
                    if not _is_header(value, where):
                        return list(cases_of_line(value, f"{shown}:{number}", where, draft, unheld))
                    if number > 1:
                        raise BadInput(f"{where}: a suite's header, which must be the first line")
                    return []

                if line.strip():
                    yield from deep(read, where)
        return
    with open_text(path) as file:
        text = file.read()
    if suffix_of(path) in GRAMMARS:
        yield case_of_grammar(path, text)
        return
    if suffix_of(path) in YAML and text.lstrip()[:1] not in ("{", "["):
        raise BadInput(f"{path}: YAML is not read; convert it to JSON")
    yield from deep(
        lambda: list(cases_from_json(parse_json(text, str(path)), path.stem, str(path), draft, unheld)),
        str(path),
    )


def open_text(path: Path) -> Any:
    """Returns the file, opened as UTF-8. Raises BadInput if it cannot be read."""
    try:
        return _Utf8(path)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error


class _Utf8:
    """A text file whose decoding errors name the file and the line."""

    def __init__(self, path: Path) -> None:
        self.path, self.line = path, 0
        self.file = path.open("rb")
        self.lines = bounded_lines(self.file, path)

    def __enter__(self) -> _Utf8:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def __iter__(self) -> Iterator[str]:
        while line := self.readline():
            yield line

    def readline(self) -> str:
        self.line += 1
        return self._decode(next(self.lines, b""), self.line)

    def read(self) -> str:
        content = self.file.read()
        return self._decode(content, 1)

    def _decode(self, content: bytes, line: int) -> str:
        try:
            return content.decode("utf-8-sig" if line == 1 else "utf-8")
        except UnicodeDecodeError as error:
            if packed := next((name for start, name in PACKED.items() if content.startswith(start)), ""):
                raise BadInput(f"{self.path}: {packed} is not read; unpack it") from error
            line += content[: error.start].count(b"\n")
            raise BadInput(
                f"{self.path}:{line}: not UTF-8 (byte 0x{content[error.start]:02x}); save the file as UTF-8"
            ) from error


def deep(read: Callable[[], T], where: str) -> T:
    """Returns the result of `read`, in a thread with a deep stack if the ordinary one is too shallow for the
    nesting it meets."""
    try:
        return read()
    except RecursionError:
        pass
    outcome: list[T | BaseException] = []

    def run() -> None:
        try:
            outcome.append(read())
        except BaseException as error:
            outcome.append(error)

    limit, stack = sys.getrecursionlimit(), threading.stack_size(1 << 29)
    sys.setrecursionlimit(DEEPEST)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(stack)
    (result,) = outcome
    if isinstance(result, RecursionError):
        raise BadInput(f"{where}: nested deeper than we read ({DEPTHS})")
    if isinstance(result, BaseException):
        raise result
    return result
