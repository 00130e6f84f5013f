"""What a command says of wrong words."""

from __future__ import annotations

from itertools import dropwhile

import pytest

from harness.cli.main import main


def behind_progress(stderr: str) -> list[str]:
    """Returns the lines that are said behind those of the progress, from the first one on that bears the
    command's name or says how it is used."""
    return list(dropwhile(lambda line: not line.startswith(("grammarbench", "usage:")), stderr.splitlines()))


def refused_line(words: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Returns the one line that is said of the words, which end with exit code 2."""
    try:
        code: object = main(words.split())
    except SystemExit as ended:
        code = ended.code
    (line,) = behind_progress(capsys.readouterr().err)
    assert code == 2
    return line
