"""Does what `harness.run`, `harness.advise` and `harness.load` say: a program gets tables and answers
back."""

from __future__ import annotations

import numbers
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli.advise import advised
from harness.cli.experiment import (
    COMMAND,
    NULL,
    SUITES,
    saved_options,
    saved_words,
    type_in_words,
    with_experiment,
)
from harness.cli.main import EXPERIMENT, parser, refuse_two_meanings
from harness.cli.parser import EMPTY, Parser
from harness.cli.run import walk
from harness.errors import BadInput, did_you_mean
from harness.paths import refuse_too_long
from harness.report.frames.load import Run, load

if TYPE_CHECKING:
    from harness.diagnose.advise import Advice

SOURCE, ADVISING, LOADING = "harness.run", "harness.advise", "harness.load"
"""What is named where a value is wrong."""

GATES = ("expect", "record")
"""The options of the command whose answer is an exit code or a file."""


def loaded(path: str | os.PathLike[str]) -> Run:
    """Does what `harness.load` says."""
    return load(_path(path, LOADING))


def run(*suites: str | os.PathLike[str], resume: bool = False, **options: Any) -> Run:
    """Does what `harness.run` says."""
    for name in GATES:
        if name in options:
            raise BadInput(
                f"{SOURCE}: {name} belongs to a gate, whose answer is an exit code; use `grammarbench "
                f"{COMMAND} --{name}`, or `grammarbench compare` with the run's folder"
            )
    top = parser()
    values = _values(top.commands[COMMAND], options, SOURCE)
    if suites:
        values[SUITES] = [_path(suite, SOURCE, SUITES) for suite in suites]
    saved = saved_words(top.commands[COMMAND], values, SOURCE, Path())
    named = saved.pop(SUITES, [])
    words = [COMMAND, *named, *(word for part in saved.values() for word in part)]
    words += ["--resume"] if resume else []
    files = [name for name in named if name.endswith(EXPERIMENT)]
    asked = with_experiment(top, words, files) if files else top.parse_args(words)
    refuse_two_meanings(named, asked)
    with _somewhere_to_say():
        made = walk(asked, words)
    return load(made.folder)


def advise(*sources: str | os.PathLike[str], resume: bool, **options: Any) -> Advice:
    """Does what `harness.advise` says."""
    named = [_path(source, ADVISING, "sources") for source in sources]
    if not named:
        raise BadInput(
            f"{ADVISING}: no source is given; name a folder or a file of schemas (perhaps no file fits a "
            "pattern)"
        )
    named = [f".{os.sep}{name}" if name.startswith("-") else name for name in named]
    top = parser()
    command = top.commands["advise"]
    saved = saved_words(command, _values(command, options, ADVISING), ADVISING, Path(), named)
    words = ["advise", *named, *(word for part in saved.values() for word in part)]
    words += ["--resume"] if resume else []
    with _somewhere_to_say():
        return advised(top.parse_args(words), words)


@contextmanager
def _somewhere_to_say() -> Iterator[None]:
    """Discards progress messages in a program without stderr (pythonw, services), where `print` would write
    them to stdout."""
    if sys.stderr is not None and not getattr(sys.stderr, "closed", False):
        yield
        return
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stderr(nowhere):
        yield


def _values(command: Parser, options: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Returns the values by the names that a file of an experiment has for the options; what is None is left
    out. Raises BadInput for a name that is no option's."""
    known = [SUITES, *(option.replace("-", "_") for option in saved_options(command))]
    for name in options:
        if name.replace("-", "_") not in known:
            raise BadInput(f'{source}: there is no key "{name}"{did_you_mean(name, known)}')
    return {name.replace("_", "-"): _plain(value) for name, value in options.items() if value is not None}


def _plain(value: Any) -> Any:
    """Returns the value as a file of an experiment holds it: text for a path, a list for a tuple, a number of
    Python's own for one of numpy's."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, numbers.Integral) and not isinstance(value, int):
        return int(value)
    return list(map(_plain, value)) if isinstance(value, (list, tuple)) else value


def _path(value: Any, source: str, several: str = "") -> str:
    """Returns a path as text; `several` names the arguments among which it is. Raises BadInput."""
    where = f"{source}: {several}" if several else source
    if several and isinstance(value, (list, tuple)):
        raise BadInput(f"{where}: a list where a text or a path is expected; write *{several} for all of it")
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str):
        raise BadInput(f"{where}: {type_in_words(value)} where a text or a path is expected")
    if "\0" in text:
        raise BadInput(f"{where}: {NULL}")
    if not text:
        raise BadInput(f"{where}: {EMPTY}")
    refuse_too_long(text)
    return text
