"""A word that names a suite of ours and a folder of the user's: no command takes one for the other."""

from __future__ import annotations

from pathlib import Path

import pytest

import harness
from harness.cases.suite import find_suite, refuse_two_meanings
from harness.cli.main import main
from harness.errors import BadInput

COMMANDS = (
    ["run", "json-schema", "--backends", "reference"],
    ["run", "--backends", "reference", "regex", "json-schema"],
    ["measure", "json-schema", "--backends", "reference"],
    ["decode", "json-schema", "--backends", "reference"],
    ["live", "http://127.0.0.1:9", "json-schema"],
    ["bisect", "xgrammar", "0.2.8..0.2.9", "json-schema", "--case", "x"],
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a folder that is called as a suite of ours is, below the folder that we are in; it is empty."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "json-schema").mkdir()
    return tmp_path / "json-schema"


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[:2]))
def test_every_command_refuses_it_and_says_what_to_write(
    folder: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "mine.json").write_text('{"type": "object"}')
    assert main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "json-schema is a suite of ours, and a folder of cases here; write ./json-schema for" in line


def test_a_program_is_told_the_same(folder: Path) -> None:
    (folder / "mine.json").write_text('{"type": "object"}')
    with pytest.raises(BadInput, match="is a suite of ours, and a folder of cases here"):
        harness.run("json-schema", backends="reference")


def test_what_has_one_meaning_is_taken(folder: Path) -> None:
    refuse_two_meanings(["json-schema"])  # a folder without cases, such as one of programs
    (folder / "main.py").write_text("pass")
    refuse_two_meanings(["json-schema"])
    (folder / "mine.json").write_text('{"type": "object"}')
    refuse_two_meanings(["./json-schema", "regex", str(folder)])
    assert not find_suite("./json-schema").is_ours
    assert find_suite("json-schema").is_ours, "what nobody wrote, as the suites of a record, stays ours"
