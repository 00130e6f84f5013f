"""`harness.run` and `harness.advise`: the two commands for a program, which gets tables and answers back."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli.experiment import COMMAND, saved_words, with_experiment
from harness.cli.main import EXPERIMENT, parser
from harness.cli.output import say
from harness.cli.progress import progress_line
from harness.cli.run import walk
from harness.errors import BadInput
from harness.report.frames.load import Run, load

if TYPE_CHECKING:
    from harness.diagnose.advise import Advice

SOURCE = "harness.run"
"""What is named where a value is wrong."""

GATES = ("expect", "record")
"""The options of the command whose answer is an exit code or a file."""


def run(*suites: str | os.PathLike[str], resume: bool = False, **options: Any) -> Run:
    """Does what `harness.run` says."""
    for name in GATES:
        if name in options:
            raise BadInput(
                f"{SOURCE}: {name} belongs to a gate, whose answer is an exit code; use `grammarbench "
                f"{COMMAND} --{name}`, or `grammarbench compare` with the run's folder"
            )
    values = {name: _plain(value) for name, value in options.items() if value is not None}
    if suites:
        values["suites"] = [os.fspath(suite) for suite in suites]
    top = parser()
    saved = saved_words(top.commands[COMMAND], values, SOURCE, Path())
    named = saved.pop("suites", [])
    words = [COMMAND, *named, *(word for part in saved.values() for word in part)]
    words += ["--resume"] if resume else []
    files = [name for name in named if name.endswith(EXPERIMENT)]
    asked = with_experiment(top, words, files) if files else top.parse_args(words)
    made = walk(asked, words)
    return load(made.folder)


def _plain(value: Any) -> Any:
    """Returns the value as a file of an experiment holds it: text for a path, a list for a tuple."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return list(map(_plain, value)) if isinstance(value, (list, tuple)) else value


def advise(
    *sources: str | os.PathLike[str],
    engine: str,
    tokenizer: str | os.PathLike[str],
    backends: str | Sequence[str] | None,
    out: str | os.PathLike[str] | None,
    resume: bool,
    jobs: int | None,
) -> Advice:
    """Does what `harness.advise` says."""
    from harness.diagnose.advise import advise as advise_on

    with progress_line(sys.stderr) as report:
        return advise_on(
            [os.fspath(source) for source in sources],
            say,
            report,
            engine=engine,
            tokenizer=os.fspath(tokenizer),
            backends=backends if backends is None or isinstance(backends, str) else ",".join(backends),
            out=Path(out) if out is not None else None,
            resume=resume,
            jobs=jobs,
        )
