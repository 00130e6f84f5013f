"""`run experiment.toml`: a file that holds the options of a run; those of the command line override it."""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Mapping, Sequence
from datetime import date, time
from pathlib import Path
from typing import Any

from harness.backend.registry import parse_specs
from harness.backend.vocabulary.fetched import with_all
from harness.backend.vocabulary.load import vocabulary_kind
from harness.cases.json_reading import TOO_LONG
from harness.cases.special_files import refuse_special_file
from harness.cases.suite import find_suite
from harness.cli.parser import Parser
from harness.errors import BadInput, did_you_mean
from harness.running.experiment import moved, moved_backend, moved_suite, moved_vocabulary
from harness.shape import LARGEST

SUITES = "suites"
LISTS = {SUITES, "backends", "vocabularies", "case", "checks"}
"""The keys that may have a list of texts."""

NOT_SAVED = {"--help", "--json", "--resume"}
"""The options of `run` that are no part of an experiment."""

PATHS = {"out", "expect", "record", "take-over"}
"""The keys whose value is a path."""

NULL = "a text with a null character, which no path has; leave it out"
"""These words tell a user that a text with a null character can be no path."""

COMMAND = "run"


def with_experiment(top: Parser, words: Sequence[str], files: Sequence[str]) -> argparse.Namespace:
    """Returns the options of a run that names a file of an experiment among its suites: what the file says,
    and over it what the command line says.

    `words` are those of the command line. Raises BadInput for what is wrong with the file, naming the key.
    """
    if words[0] != COMMAND:
        raise BadInput(f"{files[0]}: an experiment is for `grammarbench {COMMAND}`; name a suite")
    if len(files) > 1:
        raise BadInput(f"{' and '.join(files)}: a run is of one experiment; name one file")
    path = Path(files[0])
    saved = saved_words(top.commands[COMMAND], _read(path), files[0], path.parent)
    suites = saved.pop(SUITES, [])
    merged: argparse.Namespace
    merged, rest = top.parse_known_args(
        [COMMAND, *(word for part in saved.values() for word in part), *words[1:]]
    )
    others = [word for word in [*merged.suites, *rest] if word != files[0]]
    merged.suites = others or suites
    return merged


def saved_words(
    parser: Parser, values: Mapping[str, Any], source: str, folder: Path, needed: Sequence[str] = ()
) -> dict[str, list[str]]:
    """Returns the words that each key of an experiment stands for on the command line.

    Paths among the values are relative to `folder`; `needed` are the words without which the command cannot
    be read. Raises BadInput for what is wrong with a value, naming the source and the key.
    """
    saved: dict[str, list[str]] = {}
    actions = saved_options(parser)
    for key, value in values.items():
        if key != SUITES and key not in actions:
            raise BadInput(f'{source}: there is no key "{key}"{did_you_mean(key, [SUITES, *actions])}')
        where = f"{source}: {key}"
        if key != SUITES and isinstance(actions[key], argparse.BooleanOptionalAction):
            if not isinstance(value, bool):
                raise BadInput(f"{where}: {type_in_words(value)} where true or false is expected")
            saved[key] = [f"--{key}" if value else f"--no-{key}"]
            continue
        texts = _texts(key, value, where)
        try:
            texts = [_from_here(key, text, folder) for text in texts]
            if key == SUITES:
                for text in texts:
                    find_suite(text)
            if key == "backends":
                parse_specs(",".join(texts))
            if key == "vocabularies":
                for text in with_all(",".join(texts).split(",")):
                    vocabulary_kind(text)
        except BadInput as error:
            raise BadInput(f"{where}: {error}") from error
        saved[key] = texts if key == SUITES else [f"--{key}={text}" for text in _joined(key, texts)]
        if key != SUITES:
            parser.source = where
            parser.parse_args([*needed, *saved[key]])
            parser.source = ""
    return saved


def saved_options(parser: Parser) -> dict[str, argparse.Action]:
    """Returns what each key of an experiment stands for: the options of the command by name."""
    return {
        option.removeprefix("--"): action
        for option, action in parser.shown_options().items()
        if option not in NOT_SAVED and not option.startswith("--no-")
    }


def _read(path: Path) -> dict[str, Any]:
    """Returns the file's keys and values. Raises BadInput."""
    refuse_special_file(path)
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8; save the file as UTF-8") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadInput(f"{path}: malformed TOML: {error}") from error
    except ValueError as error:
        raise BadInput(f"{path}: {TOO_LONG}") from error


def _texts(key: str, value: Any, where: str) -> list[str]:
    """Returns the value as texts: one, or those of a list. Raises BadInput."""
    values = value if isinstance(value, list) and key in LISTS else [value]
    wanted = (str,) if key in LISTS | PATHS else (str, int, float)
    for one in values:
        if isinstance(one, bool) or not isinstance(one, wanted):
            others = "" if key in PATHS else " or a list of texts" if key in LISTS else " or a number"
            raise BadInput(f"{where}: {type_in_words(one)} where a text{others} is expected")
        if isinstance(one, str) and "\0" in one:
            raise BadInput(f"{where}: {NULL}")
        if isinstance(one, int) and abs(one) > LARGEST:
            raise BadInput(f"{where}: a number beyond 2^62, which no option takes; give a smaller one")
    return [str(one) for one in values]


def type_in_words(value: object) -> str:
    """Returns what a value is, in words: of a file of TOML or of a program."""
    kinds = {
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "a text",
        list: "a list",
        dict: "a table",
        type(None): "None",
    }
    kind = type(value)
    if isinstance(value, (date, time)):
        return "a date"
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return kinds.get(kind, f"a value of the type {module}{kind.__qualname__}")


def _joined(key: str, texts: list[str]) -> list[str]:
    """Returns the values of the option: several words only for one that may be given several times."""
    return texts if key == "case" else [",".join(texts)]


def _from_here(key: str, text: str, folder: Path) -> str:
    """Returns the value with its path, if it has one, as it is written in the folder that we are in.

    Raises BadInput for a backend that cannot be read.
    """
    here = Path()
    if key == SUITES:
        return moved_suite(text, folder, here)
    if key == "backends":
        return ",".join(moved_backend(part, folder, here) for part in text.split(","))
    if key == "vocabularies":
        return ",".join(moved_vocabulary(part, folder, here) for part in text.split(","))
    return moved(text, folder, here) if text and key in PATHS else text
