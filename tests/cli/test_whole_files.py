"""Files that are written anew, such as a record: the one before stays, until the new one is whole."""

from __future__ import annotations

import errno
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
from harness.errors import BadInput
from harness.outcomes.expected import read_record
from harness.whole_files import drafted, write_files, write_whole


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


def test_files_are_written_into_folders_that_are_made(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"a.txt": "a \udc80 b", "in/b.bin": b"\x80"}
    written = write_files(tmp_path / "new", files, "--out")
    assert written == [tmp_path / "new" / "a.txt", tmp_path / "new" / "in" / "b.bin"]
    assert [path.read_bytes() for path in written] == [b"a ? b", b"\x80"]


def test_a_file_that_cannot_be_written_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "in").touch()
    with pytest.raises(BadInput, match="in/b: cannot be written: File exists; give another --out"):
        write_files(tmp_path, {"a": "a", "in/b": "b"}, "--out")


@pytest.mark.parametrize("into", ["page.html", "site", "shown"])
def test_a_full_disk_leaves_the_pages_that_were_there(
    into: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "pages" / into
    words = ["report", str(run), "--out", str(out)]
    if into == "shown":
        words += ["--format", "summary,csv"]
    assert main(words) == 0
    files = {path: path.read_bytes() for path in (tmp_path / "pages").rglob("*.*")}
    assert files
    with small_files(10):
        assert main(words) == 2
    assert {path: path.read_bytes() for path in (tmp_path / "pages").rglob("*.*")} == files
    said = capsys.readouterr().err
    assert "cannot be written" in said and "File too large" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root writes over files of others")
def test_a_file_of_somebody_else_stays_theirs(run: Path, tmp_path: Path) -> None:
    record = tmp_path / "known.json"
    record.touch()
    os.chown(record, 1234, 1234)
    assert main(["compare", str(run), "--record", str(record)]) == 0
    assert record.stat().st_uid == 1234 and read_record(record).arms


def test_a_file_whose_owner_cannot_be_kept_is_written_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody but root gives a file to somebody else."""

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    file = tmp_path / "a"
    file.write_text("before")
    was = file.stat().st_ino
    monkeypatch.setattr(os, "chown", refuse)
    write_whole(file, "behind")
    assert file.read_text() == "behind" and file.stat().st_ino == was and os.listdir(tmp_path) == ["a"]


def test_all_names_of_a_file_have_what_is_written(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("before")
    os.link(tmp_path / "a", tmp_path / "b")
    write_whole(tmp_path / "a", "behind")
    assert (tmp_path / "b").read_text() == "behind"


def test_an_error_names_the_file_and_not_its_draft(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as told:
        write_whole(tmp_path / "no" / "a", "text")
    assert str(told.value).endswith(f"'{tmp_path}/no/a'")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError) as refused, drafted(tmp_path / "folder") as draft:
        draft.write_text("text")
    assert str(refused.value).endswith(f"'{tmp_path}/folder'")


@pytest.mark.parametrize(
    "reason", [errno.EBUSY, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ENOSPC]
)
@pytest.mark.parametrize("step", ["the draft", "the replacement"])
def test_a_file_that_cannot_be_replaced_is_written_in_place(
    step: str, reason: int, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mount point is such a file, and one in a folder that is not writable. A full disk is no reason."""
    record, write = tmp_path / "records" / "known.json", Path.write_bytes
    record.parent.mkdir()
    before = '{"format": 4}'
    record.write_text(before)
    was = record.stat().st_ino

    def refuse(*_: object) -> None:
        raise OSError(reason, os.strerror(reason))

    def write_known(path: Path, content: bytes) -> None:
        (write if path == record else refuse)(path, content)

    if step == "the draft":
        monkeypatch.setattr(Path, "write_bytes", write_known)
    else:
        monkeypatch.setattr(os, "replace", refuse)
    is_full = reason == errno.ENOSPC
    assert main(["compare", str(run), "--record", str(record)]) == (2 if is_full else 0)
    assert record.stat().st_ino == was and os.listdir(record.parent) == ["known.json"]
    assert record.read_text() == before if is_full else read_record(record).arms


def test_a_record_that_is_not_there_is_not_written_in_place(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    record = tmp_path / "records" / "known.json"
    assert main(["compare", str(run), "--record", str(record)]) == 2
    assert os.listdir(record.parent) == []


def test_a_name_may_be_as_long_as_the_disk_takes_it(run: Path, tmp_path: Path) -> None:
    record = tmp_path / f"{'a' * 250}.json"
    assert main(["compare", str(run), "--record", str(record)]) == 0
    assert read_record(record).arms


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
