"""A command that is printed does what it should when it is pasted, also where a folder's name has a space."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from measured import arm, concluded, steady, write_measurement

from harness.cli.main import main
from harness.errors import BAD_INPUT, BadInput
from harness.measure import session
from harness.measure.growth.record import read_growth
from harness.measure.kernels import stored
from harness.measure.record import read_measurement
from harness.outcomes.history.measurements import measurements_text, refuse_no_folder
from harness.serve.decode.record import read_decoding
from harness.serve.live.record import read_session


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (read_measurement, ["measure"]),
        (read_growth, ["measure", "growth"]),
        (stored.read, ["measure", "kernels"]),
        (read_decoding, ["decode"]),
        (read_session, ["live", "URL"]),
    ],
)
def test_the_command_that_makes_a_record(
    read: Callable[[Path], object], words: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "it's mine"
    with pytest.raises(BadInput) as refused:
        read(folder)
    assert shlex.split(str(refused.value).split("`")[1]) == ["grammarbench", *words, "--out", str(folder)]


def test_the_command_that_begins_a_history(tmp_path: Path) -> None:
    history = tmp_path / "it's mine"
    with pytest.raises(BadInput) as refused:
        refuse_no_folder(history)
    history.mkdir()
    for said in (str(refused.value), measurements_text(history)):
        assert shlex.split(said.split("`")[1]) == ["grammarbench", "history", str(history), "--add", "RUN"]


def test_the_command_that_compares_the_other_way_round(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, record = tmp_path / "my run", tmp_path / "my record.json"
    record.touch()
    assert main(["compare", str(run), str(record)]) == BAD_INPUT
    _, command = capsys.readouterr().err.split("come first: ")
    assert shlex.split(command) == ["grammarbench", "compare", str(record), str(run)]


def test_the_command_that_shows_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "it's mine"
    write_measurement(
        folder, {arm("toy", "reference"): steady(1), arm("toy (again)", "a/a"): steady(1, seed=2)}
    )
    monkeypatch.setattr(session, "measure", lambda *_: (folder, concluded(folder)))
    main(["measure", "--backends", "unconstrained"])
    _, command = capsys.readouterr().out.split("; next:\n")
    assert shlex.split(command.replace("\\\n", "")) == ["grammarbench", "compare", str(folder)]
