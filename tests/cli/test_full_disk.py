"""Disks that are full or cannot be written: one line says so, and whether anything is stored."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from synthetic import ARMS, info, row, write_run

from harness.cli.main import main
from harness.errors import BAD_INPUT, OK
from harness.rows.store import has_begun, read_end
from harness.rows.writer import Writer
from harness.serve.decode.record import DecodeRecorder

STORED = "what was measured is stored"


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def walk(tmp_path: Path) -> Sequence[str]:
    """The words of a command that walks two cases into the folder `run`."""
    cases = tmp_path / "cases.jsonl"
    cases.write_text('{"regex": "a", "tests": [{"text": "a", "valid": true}]}\n' * 2)
    words = ["run", str(cases), "--backends", "unconstrained", "--vocabularies", "bytes", "--effort", "0"]
    return [*words, "--out", str(tmp_path / "run")]


def test_a_command_that_measures_nothing_speaks_of_nothing_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(write_run(tmp_path / "run", [[(row(), b"")]], info(ARMS[:1])))
    monkeypatch.setattr("harness.cli.table.emit", full)
    monkeypatch.setattr("harness.cli.report.emit", full)
    for words in (["table", run, "summary"], ["report", run, "--format", "json", "--out", run]):
        assert main(words) == BAD_INPUT
        said = capsys.readouterr().err
        assert "No space left on device" in said and STORED not in said


def test_what_is_stored_is_told_once_a_run_has_begun(
    walk: Sequence[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("harness.running.session.write_experiment", full)
        assert main(walk) == BAD_INPUT
    assert STORED not in capsys.readouterr().err and not has_begun(tmp_path / "run")
    with monkeypatch.context() as patched:
        patched.setattr(Writer, "append", full)
        assert main(walk) == BAD_INPUT
    assert f"No space left on device; {STORED}" in capsys.readouterr().err and has_begun(tmp_path / "run")
    assert main([*walk, "--resume"]) == OK
    assert read_end(tmp_path / "run") is not None


def test_the_file_that_finds_no_room_is_named(walk: Sequence[str], tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    cases.write_text(cases.read_text() * 50)
    program = [sys.executable, "-m", "harness", *walk]
    limited = ["bash", "-c", 'ulimit -f 4; exec "$@"', "bash", *program]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # which the limit would cut off
    done = subprocess.run(limited, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == BAD_INPUT
    assert f"File too large: '{tmp_path}/run/cases.jsonl'" in done.stderr.splitlines()[-1]


def test_where_it_is_stored_is_told_where_the_run_chose_the_folder(
    walk: Sequence[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    words = walk[: walk.index("--out")]
    with monkeypatch.context() as patched:
        patched.setattr("harness.running.session.write_experiment", full)
        assert main(words) == BAD_INPUT
    (nothing,) = Path("results", "runs").iterdir()
    assert STORED not in capsys.readouterr().err and not has_begun(nothing)
    monkeypatch.setattr(Writer, "append", full)
    assert main(words) == BAD_INPUT
    (folder,) = {*Path("results", "runs").iterdir()} - {nothing}
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.endswith(f"No space left on device; {STORED} in {folder}") and has_begun(folder)


def test_a_run_goes_on_only_where_its_folder_can_be_written(
    walk: Sequence[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def read_only(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    assert main(walk) == OK
    monkeypatch.setattr(Path, "touch", read_only)
    assert main([*walk, "--resume"]) == BAD_INPUT
    said = (
        f"{tmp_path / 'run'}: cannot be written (Read-only file system); make it writable, or go on in a copy"
    )
    assert said in capsys.readouterr().err


def test_a_decoding_tells_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(DecodeRecorder, "child", full)
    words = ["decode", "nothing_forced", "--backends", "unconstrained", "--vocabularies", "bytes"]
    assert main(words) == BAD_INPUT
    (folder,) = Path("results", "runs").iterdir()
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.endswith(f"No space left on device; {STORED} in {folder}")
