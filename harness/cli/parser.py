"""The parser of the command line: it says in one line what is wrong, and what was perhaps meant."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from harness.errors import BAD_INPUT, BadInput, did_you_mean
from harness.text import one_line

EMPTY = "the path is empty; write . for the folder that you are in"
"""These words refuse an empty path, because a script whose variable is empty must not read or write the
folder that it runs in."""


class Parser(argparse.ArgumentParser):
    """argparse's parser, with errors of one line and commands of two words (`measure kernels`)."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.commands: Mapping[str, Parser] = {}
        """The parser of each command by its name; empty in the parser of one command."""
        self.source = ""
        """Where the words come from, if not from the command line; what is wrong with them is BadInput."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Returns the options and the words that no option takes."""
        words = list(sys.argv[1:] if args is None else args)
        if len(words) > 1 and " ".join(words[:2]) in self.commands:
            words[:2] = [" ".join(words[:2])]
        return super().parse_known_args(words, namespace)

    def error(self, message: str) -> NoReturn:
        """Prints one line and ends the program with exit code 2; raises BadInput for words from `source`."""
        if self.source:
            raise BadInput(f"{self.source}: {re.sub('^argument .+?: ', '', message)}")
        self.exit(BAD_INPUT, f"{self.prog}: {one_line(message)} (see {self.prog} --help)\n")

    def refuse_words(self, words: Sequence[str]) -> NoReturn:
        """Ends the program because these words of a command mean nothing; says which option was meant."""
        option = next((word.partition("=")[0] for word in words if word.startswith("-")), None)
        if option is None:
            self.error(f"unrecognized arguments: {' '.join(words)}")
        self.error(f'there is no option "{option}"{did_you_mean(option, list(self.shown_options()))}')

    def shown_options(self) -> dict[str, argparse.Action]:
        """Returns the options that `--help` shows, by name."""
        return {
            option: action
            for option, action in self._option_string_actions.items()
            if option.startswith("--") and action.help != argparse.SUPPRESS
        }

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """Returns what a word stands for, and refuses an empty path; argparse calls it for each word."""
        if action.type is Path and not arg_string:
            raise argparse.ArgumentError(action, EMPTY)
        return super()._get_value(action, arg_string)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuses a value that is none of the action's choices; argparse calls it for each value."""
        if action.choices is None or value in action.choices:
            return
        hint = did_you_mean(str(value), [str(choice) for choice in action.choices])
        if isinstance(action, argparse._SubParsersAction):
            self.error(f'there is no command "{value}"{hint}')
        raise argparse.ArgumentError(action, f'"{value}" is none of its values{hint}')
