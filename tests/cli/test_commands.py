"""The commands: their names, their examples, and that nothing is taken for another thing."""

from __future__ import annotations

import argparse
import importlib
import re
import shlex

import pages
import pytest

from harness.cli.main import main, parser
from harness.running.limits import MEMORY_GB

NAMES = [
    "advise", "run", "merge", "check", "measure", "measure doctor", "measure kernels", "measure growth",
    "decode", "live", "compare", "history", "bisect", "table", "report", "repro", "adjudicate", "list",
    "fetch",
]  # fmt: skip

MANY = ("--vocabularies", "--rate", "--format", "--case")
"""The options that take several values in one command and one in another."""

LISTS_OF = {"decode": "workloads", "report": "runs", "run": "suites"}


def test_these_are_the_commands() -> None:
    assert list(pages.verbs()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_help_has_examples_that_parse(name: str) -> None:
    examples = re.findall(r"^  grammarbench (.*)$", pages.verbs()[name].epilog or "", re.MULTILINE)
    assert examples
    for example in examples:
        assert parser().parse_args(shlex.split(example)).command.split()[0] == name.split()[0]


@pytest.mark.parametrize(
    "old",
    ["doctor", "kernels", "backends", "suites", "vocabularies", "export", "expect",
     "table x --faults", "repro x y --backend b", "measure kernels --quick --out x",
     "measure --backends a --reference a", "run --backends a --profile decode"],
)  # fmt: skip
def test_old_names_are_gone(old: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        parser().parse_args(old.split())
    assert end.value.code == 2
    assert re.search("there is no|is none of|unrecognized arguments|required", capsys.readouterr().err)


def test_an_option_means_the_same_wherever_it_stands() -> None:
    kinds: dict[str, set[object]] = {}
    for verb in pages.verbs().values():
        for option, action in verb._option_string_actions.items():
            if action.help != argparse.SUPPRESS and option not in MANY:
                kinds.setdefault(option, set()).add((type(action), action.type))
    assert {option: found for option, found in kinds.items() if len(found) > 1} == {}


@pytest.mark.parametrize("words", ["decode --backends a sql", "report --out page one", "run --backends a s"])
def test_a_word_of_a_list_may_stand_behind_an_option(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    taken: list[argparse.Namespace] = []

    def take(options: argparse.Namespace) -> int:
        taken.append(options)
        return 0

    for name in ("decode", "report", "run"):
        monkeypatch.setattr(importlib.import_module(f"harness.cli.{name}"), name, take)
    assert main(words.split()) == 0
    (options,) = taken
    assert [str(word) for word in getattr(options, LISTS_OF[words.split()[0]])] == [words.split()[-1]]


@pytest.mark.parametrize("name", NAMES)
def test_a_part_of_an_option_is_no_option(name: str) -> None:
    assert not pages.verbs()[name].allow_abbrev


@pytest.mark.parametrize("words", [["run", "a"], ["measure", "a"], ["measure", "growth", "--out", "x"]])
def test_the_limit_of_memory_is_the_one_of_python_calls(words: list[str]) -> None:
    """The commands may not import the module that names it."""
    assert parser().parse_args(words).memory == MEMORY_GB


def test_a_suite_may_be_named_as_a_command_is() -> None:
    options = parser().parse_args(["measure", "./kernels", "--backends", "a"])
    assert (options.command, options.suites) == ("measure", ["./kernels"])
    assert parser().parse_args(["measure", "kernels", "--out", "x"]).command == "measure kernels"
