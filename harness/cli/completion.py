"""Shell completion: argcomplete asks the parser itself, so that no list of options is kept twice.

The shell starts `grammarbench` with an environment variable set, once for each press of the tab key. Without
that variable this module is not imported, and the program starts as fast as without completion.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable

import argcomplete
from argcomplete.completers import DirectoriesCompleter, FilesCompleter

from harness.cli.parser import Parser

Names = Callable[[], Iterable[str]]
"""Returns the names that a value can have."""


def complete(top: Parser) -> None:
    """Writes what may stand at the cursor to where the shell reads it, and ends the program.

    A command of two words is completed word by word.
    """
    for name, command in top.commands.items():
        seconds = [other.partition(" ")[2] for other in top.commands if other.startswith(f"{name} ")]
        for action in command._actions:
            _add_completer(action, seconds)
    argcomplete.autocomplete(top, exclude=[name for name in top.commands if " " in name])


def _add_completer(action: argparse.Action, seconds: Iterable[str]) -> None:
    """Tells argcomplete what the action's values can be, where they are not choices of the parser."""
    completers: dict[str, object] = {
        "suites": _Words(lambda: [*seconds, *_suites()], files=True),
        "workloads": _Words(_workloads, files=True),
        "backends": _Words(_backends),
        "backend": _Words(_backends),
        "vocabularies": _Words(_vocabularies),
        "vocabulary": _Words(_vocabularies),
        "strategies": _Words(_strategies),
        "run": DirectoriesCompleter(),
        "runs": DirectoriesCompleter(),
    }
    if action.dest == "format" and action.choices is None:
        completers["format"] = _Words(_forms)
    if action.dest in completers:
        action.completer = completers[action.dest]  # type: ignore[attr-defined]


class _Words:
    """Completes the last of several names with commas between them; with `files` paths as well."""

    def __init__(self, names: Names, files: bool = False) -> None:
        self.names, self.files = names, files

    def __call__(self, prefix: str, **_: object) -> list[str]:
        before, comma, last = prefix.rpartition(",")
        words = [f"{before}{comma}{name}" for name in self.names() if name.startswith(last)]
        return [*words, *FilesCompleter()(prefix)] if self.files else words


def _suites() -> list[str]:
    from harness.cases.suite import suite_names

    return suite_names()


def _workloads() -> list[str]:
    from harness.serve.decode.workloads import WORKLOADS

    return [*_suites(), *WORKLOADS]


def _backends() -> list[str]:
    from harness.backend.registry import names

    return names()


def _vocabularies() -> list[str]:
    from harness.backend.vocabulary import vocabulary_names
    from harness.backend.vocabulary.families import FAMILIES

    return [*vocabulary_names(), *FAMILIES, "hf:", "tiktoken:", "gguf:"]


def _strategies() -> list[str]:
    from harness.walk.loop.strategies import strategies

    return list(strategies())


def _forms() -> list[str]:
    from harness.report.export import FORMS
    from harness.report.paper import FORMS as PAPER

    return ["html", "all", *PAPER, *FORMS]
