"""The commands: their names, their examples, and that nothing is taken for another thing."""

from __future__ import annotations

import re
import shlex

import pages
import pytest

from harness.cli.main import parser

NAMES = [
    "run", "merge", "check", "measure", "measure doctor", "measure kernels", "decode", "live", "compare",
    "history", "bisect", "table", "report", "repro", "adjudicate", "list", "fetch",
]  # fmt: skip


def test_there_are_fourteen_commands_and_fetch() -> None:
    assert set(pages.verbs()) == set(NAMES)


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
     "measure --backends a --reference a"],
)  # fmt: skip
def test_old_names_are_gone(old: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        parser().parse_args(old.split())
    assert end.value.code == 2
    assert re.search("invalid choice|unrecognized arguments|required", capsys.readouterr().err)


@pytest.mark.parametrize("name", NAMES)
def test_a_part_of_an_option_is_no_option(name: str) -> None:
    assert not pages.verbs()[name].allow_abbrev


def test_a_suite_may_be_named_as_a_command_is() -> None:
    options = parser().parse_args(["measure", "./kernels", "--backends", "a"])
    assert (options.command, options.suites) == ("measure", ["./kernels"])
    assert parser().parse_args(["measure", "kernels", "--out", "x"]).command == "measure kernels"
