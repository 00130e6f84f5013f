"""What a command says of wrong words."""

from __future__ import annotations

import pytest

from harness.cli.main import main


def refused_line(words: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Returns the one line that is said of the words, which end with exit code 2."""
    try:
        code: object = main(words.split())
    except SystemExit as ended:
        code = ended.code
    (line,) = capsys.readouterr().err.splitlines()
    assert code == 2
    return line
