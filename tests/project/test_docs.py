"""Every command that the documentation shows is one. tests/docs_commands runs them."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pages
import pytest
from pages import each_page, exists, pytest_options, text_of, verbs

from harness.backend.registry import parse_specs
from harness.cli.main import parser
from harness.errors import BadInput
from harness.outcomes.case_state import STATES


def problem(command: pages.Command, written: dict[str, str]) -> str:
    """What is wrong with a command; empty if nothing is.

    `written`: files that the page has written before.
    """
    program, *arguments = command.words
    if program == "grammarbench":
        return wrong_arguments(arguments)
    if program == "pytest":
        if unknown := [
            each
            for each in arguments
            if each.startswith("--") and each.partition("=")[0] not in pytest_options()
        ]:
            return f"unknown options {unknown}"
        return next(
            (
                f"no {each}"
                for each in arguments
                if each.startswith(("tests/", "benchmarks/")) and not exists(each)
            ),
            "",
        )
    if program == "tox":
        return (
            ""
            if arguments == ["run", "-e", arguments[-1]]
            and f"[testenv:{arguments[-1]}]" in text_of("tox.ini")
            else "no such environment"
        )
    if program == "python":
        if arguments[0] == "-m":
            return "" if find_spec(arguments[1]) else f"no module {arguments[1]}"
        return "" if arguments[0] in written or exists(arguments[0]) else f"no {arguments[0]}"
    if extras := re.search(r"(?:\.|grammarbench)\[([\w,]+)\]", command.text):
        known = text_of("pyproject.toml")
        return next((f"no extra {each}" for each in extras[1].split(",") if f"\n{each} = [" not in known), "")
    return ""


def wrong_arguments(arguments: list[str]) -> str:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            options = parser().parse_args(arguments)
        if isinstance(backends := getattr(options, "backends", None), str):
            parse_specs(backends)
    except SystemExit:
        return said.getvalue().strip().splitlines()[-1]
    except BadInput as error:
        return str(error)
    return "" if options.command else "no command"


def commands_of(text: str) -> Iterator[tuple[pages.Command, dict[str, str]]]:
    written: dict[str, str] = {}
    for block in pages.blocks(text):
        written |= pages.heredocs(block.text)[1]
        for command in pages.commands(block):
            if "--script" in command.words:
                written[command.words[command.words.index("--script") + 1]] = ""
            yield command, written


@each_page
def test_every_command_is_one(page: Path) -> None:
    wrong = [
        (command.line, command.text, said)
        for command, files in commands_of(page.read_text("utf-8"))
        if (said := problem(command, files))
    ]
    assert wrong == []


def test_the_commands_are_found() -> None:
    """Else the test above would say nothing."""
    found = [command for page in pages.PAGES for command, _ in commands_of(page.read_text("utf-8"))]
    assert len(found) > 90
    assert {command.words[0] for command in found} == set(pages.PROGRAMS)
    used = {pages.verb_of(command.words[1:]) for command in found if command.words[0] == "grammarbench"}
    assert used == set(verbs()), "commands that no page shows"


def test_the_words_for_the_states_of_a_case_are_those_of_the_code() -> None:
    lines = text_of("docs/words.md").splitlines()
    for words in STATES.values():
        assert f"| {words.glyph} {words.title} | {words.meaning} |" in lines


@pytest.mark.parametrize(
    "line",
    [
        "grammarbench rum my_schemas --backends llguidance",
        "grammarbench run my_schemas --backends xgrammar --no-such-option",
        "grammarbench run my_schemas --backends xgrammer",
        "grammarbench table my_run --format yaml",
        "grammarbench",
        "pytest benchmarks/no_such_file.py",
        "pytest benchmarks/test_speed.py --no-such-option",
        "tox run -e no-such-environment",
        "python no_such_file.py",
        "python -m no_such_module",
        "pip install -e '.[no_such_extra]'",
        "pip install 'grammarbench[no_such_extra]'",
    ],
)
def test_a_planted_wrong_command_is_seen(line: str) -> None:
    text = f"# A page\n\nSome words:\n\n    {line}   # what it does\n"
    ((command, files),) = commands_of(text)
    assert problem(command, files)
