"""What a command says of wrong words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import dropwhile

import pytest

from harness.cli.main import main


def behind_progress(stderr: str) -> list[str]:
    """Returns the lines that are said behind those of the progress, from the first one on that bears the
    command's name or says how it is used."""
    return list(dropwhile(lambda line: not line.startswith(("grammarbench", "usage:")), stderr.splitlines()))


def exit_code(words: Sequence[str]) -> object:
    """Returns the code with which the command ends in this process."""
    try:
        return main([*words])
    except SystemExit as ended:
        return ended.code


def refused_line(words: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Returns the one line that is said of the words, which end with exit code 2."""
    code = exit_code(words.split())
    (line,) = behind_progress(capsys.readouterr().err)
    assert code == 2
    return line
