"""Where the system has no file, pipe or memory more to give, a run goes on with the workers that it has, or
says in one line why it cannot begin."""

from __future__ import annotations

import errno
import io
import os
import resource
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NoReturn

import pytest
from isolated import CASES, GIGABYTE, others_are_right, walk_all
from places import SUPPORT

from harness.backend.process.process import GRANTED_BYTES, NARROW_BYTES, PIPE_BYTES, Start, pipe_bytes, start
from harness.backend.process.service import Service
from harness.cli.main import main
from harness.running import coordinator, worker_process
from harness.running.limits import Limits
from harness.running.work import Work

pytestmark = pytest.mark.usefixtures("importable_miniatures")

LIMITS = Limits(20.0, GIGABYTE)
ANSWERING = Start("answering:open_answering", {}, environment={"PYTHONPATH": str(SUPPORT)}, has_page=True)


def open_files() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


def test_the_pipes_of_many_workers_stay_within_what_everybody_is_granted() -> None:
    assert [pipe_bytes(count) for count in (1, 16, 17, 64)] == [PIPE_BYTES, PIPE_BYTES, 1 << 19, 1 << 18]
    for count in range(1, 257):
        assert pipe_bytes(count) >= NARROW_BYTES and 2 * count * pipe_bytes(count) <= GRANTED_BYTES // 2
    assert pipe_bytes(10_000) == NARROW_BYTES


def test_a_start_that_fails_leaves_no_file_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.EMFILE, "Too many open files")

    before = open_files()
    for owner, name in ((subprocess, "Popen"), (os, "memfd_create")):
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, full)
            with pytest.raises(OSError, match="Too many open files"):
                start(ANSWERING)
        assert open_files() == before


def test_a_run_goes_on_with_the_workers_for_which_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[bool] = []
    start_worker = worker_process.start_worker

    def started(*arguments: Any, **options: Any) -> Any:
        tried.append(len(tried) < 2)
        if not tried[-1]:
            raise OSError(errno.EMFILE, "Too many open files")
        return start_worker(*arguments, **options)

    monkeypatch.setattr(worker_process, "start_worker", started)
    monkeypatch.setattr(Work, "gains_by_another", lambda work, now: bool(work.cases))
    rows = walk_all(tmp_path, "miniatures:Reference", CASES, LIMITS, jobs=3)
    assert tried == [True, True, False] and others_are_right(rows) and len(rows) == 6
    tried += [False]
    with pytest.raises(OSError, match="Too many open files"):
        walk_all(tmp_path / "none", "miniatures:Reference", CASES, LIMITS)


@pytest.mark.parametrize(
    ("limits", "jobs", "most"),
    [
        ((64, 4096), 8, 128),
        ((64, 100), 8, 100),
        ((1024, 4096), 8, None),
        ((1024, resource.RLIM_INFINITY), 200, 1664),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), 200, None),
    ],
)
def test_the_limit_of_open_files_is_raised_where_the_workers_need_more(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], jobs: int, most: int | None
) -> None:
    said: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda which, now: said.append(now))
    coordinator._allow_files(jobs)
    assert said == ([(most, limits[1])] if most else [])


def test_a_full_temporary_folder_is_nothing_to_the_page_of_a_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    process = start(ANSWERING)
    process.page[0] = 7
    process.close()


class Full(io.BytesIO):
    """A file on a full disk."""

    def write(self, _: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_where_the_page_lies_in_the_temporary_folder_it_has_its_room_or_none_is_begun(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(os, "memfd_create")
    with Service("answering:open_answering", environment={"PYTHONPATH": str(SUPPORT)}) as service:
        assert service.ask({"asked": 1}, b"", seconds=30)[0] == {"echo": {"asked": 1}}
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: Full())
    before = open_files()
    with pytest.raises(OSError, match="No space left on device") as raised:
        start(ANSWERING)
    assert raised.value.filename == tempfile.gettempdir() and open_files() == before
    asked = [
        "run",
        "regex",
        "--backends",
        "unconstrained",
        "--vocabularies",
        "bytes",
        "--effort",
        "0",
    ]
    assert main([*asked, "--out", str(tmp_path / "run")]) == 2
    (*_, last) = capsys.readouterr().err.splitlines()
    assert f"No space left on device: '{tempfile.gettempdir()}'" in last
