"""A record that is written anew: the one before stays, until the new one is whole."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from synthetic import ARMS, info, row, write_run

from harness.cli.main import main
from harness.outcomes.expected import read_record


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", [[(row(), b"")]], info(ARMS[:1]))


@contextmanager
def small_files(most: int) -> Iterator[None]:
    """No file may grow beyond so many bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_the_record_that_was_there(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "records").mkdir()
    record = tmp_path / "records" / "known.json"
    assert main(["compare", str(run), "--record", str(record)]) == 0
    before = record.read_bytes()
    with small_files(100):
        assert main(["compare", str(run), "--record", str(record)]) == 2
    assert record.read_bytes() == before and os.listdir(record.parent) == ["known.json"]
    said = capsys.readouterr().err
    assert f"{record}: cannot be written: File too large" in said and said.count("\n") == 1


def test_links_and_permissions_stay(run: Path, tmp_path: Path) -> None:
    record, link = tmp_path / "known.json", tmp_path / "link.json"
    record.touch(0o600)
    link.symlink_to(record.name)
    assert main(["compare", str(run), "--record", str(link)]) == 0
    assert link.is_symlink() and record.stat().st_mode & 0o777 == 0o600
    assert read_record(record).arms


def test_a_record_can_go_to_a_stream(run: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "harness", "compare", str(run), "--record", "/dev/stdout"]
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert '"format": 4' in shown
    with open(tmp_path / "told", "w") as file:
        subprocess.run(words, stdout=file, check=True)
        assert os.fstat(file.fileno()).st_nlink == 1
