"""Where the pytest plug-in keeps the runs of a session."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from places import SUPPORT

from harness.cli.plugin.walks import fresh_folder
from harness.errors import BadInput
from harness.rows.folder import locked

pytest_plugins = ["pytester"]

CASE = {"regex": "[0-9]{2}", "tests": [{"text": "12", "valid": True}]}


@pytest.fixture
def repository(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A repository with a case, and a folder for temporary files."""
    paths = [str(SUPPORT), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    monkeypatch.setenv("TMPDIR", str(pytester.mkdir("temporary")))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    (pytester.path / "cases.jsonl").write_text(json.dumps(CASE) + "\n")
    return pytester


def run(repository: pytest.Pytester, *options: str) -> pytest.RunResult:
    return repository.runpytest_subprocess(
        *("-p", "no:hypothesispytest", "--grammarbench-backend=miniatures.reference:Reference"),
        *("--grammarbench-suite=cases.jsonl", *options),
        timeout=100,
    )


def made(folder: Path, *names: str) -> list[Path]:
    for name in names:
        (folder / name).mkdir(parents=True)
    return [folder / name for name in names]


def test_the_run_of_a_session_that_still_goes_on_is_left_alone(repository: pytest.Pytester) -> None:
    kept = repository.path / ".pytest_cache" / "d" / "grammarbench"
    going_on, over, *last = made(kept, *(f"2020010{day}T000000-1" for day in range(1, 5)))
    with locked(going_on):
        run(repository).assert_outcomes(passed=1)
    assert sorted(kept.iterdir())[:-1] == [going_on, *last] and not over.exists()


LOOKS = """
import fcntl, os, pathlib

def test_it_is_held():
    (mine,) = pathlib.Path(".pytest_cache/d/grammarbench").iterdir()
    fd = os.open(mine, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    raise AssertionError("another session may remove it")
"""


def test_a_session_holds_its_folder_until_its_end(repository: pytest.Pytester) -> None:
    repository.makepyfile(test_own=LOOKS)
    run(repository).assert_outcomes(passed=2)
    (mine,) = (repository.path / ".pytest_cache" / "d" / "grammarbench").iterdir()
    with locked(mine):
        assert (mine / "1" / "rows.jsonl").is_file()


def test_a_session_that_walks_nothing_leaves_no_folder(repository: pytest.Pytester) -> None:
    assert run(repository, "--collect-only").ret == 0
    assert not list((repository.path / ".pytest_cache" / "d" / "grammarbench").iterdir())


def test_where_the_cache_cannot_be_written_the_run_is_in_a_temporary_folder(
    repository: pytest.Pytester,
) -> None:
    (repository.path / "blocked").touch()
    result = run(repository, "-o", "cache_dir=blocked", "-W", "ignore")
    result.assert_outcomes(passed=1)
    (kept,) = (repository.path / "temporary").glob("grammarbench-pytest-*")
    assert (kept / "1" / "rows.jsonl").is_file()


def test_of_temporary_folders_those_of_the_last_sessions_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is still written, holds something else or is another's is left alone."""
    names = ("going", "checkout", "over", "oldest", "older", "newer", "newest")
    folders = dict(
        zip(names, made(tmp_path, *(f"grammarbench-pytest-{name}" for name in names)), strict=True)
    )
    (folders["checkout"] / "pyproject.toml").touch()
    for time, folder in enumerate(folders.values()):
        (folder / "1").mkdir()
        os.utime(folder, (time, time))
    (tmp_path / "grammarbench-pytest-link").symlink_to(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with locked(folders["going"]), fresh_folder(None) as mine:
        assert mine.parent == tmp_path
        kept = {name for name, folder in folders.items() if folder.exists()}
    assert kept == {"going", "checkout", "newer", "newest"}
    assert (tmp_path / "grammarbench-pytest-link").is_symlink()
    monkeypatch.setattr("os.getuid", lambda: -1)
    for _ in range(4):
        with fresh_folder(None) as mine:
            (mine / "1").mkdir()
    assert folders["newer"].exists()


def test_where_no_folder_can_be_made_it_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with pytest.raises(BadInput, match="no room for the runs"), fresh_folder(None):
        pass


FULL = """
import resource

def pytest_collection_finish():
    resource.setrlimit(resource.RLIMIT_FSIZE, (20000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
"""


def test_a_full_disk_ends_the_session_with_one_line(repository: pytest.Pytester) -> None:
    repository.makeconftest(FULL)
    long = {"regex": "[0-9]*", "tests": [{"text": "1" * 40_000, "valid": True}]}
    (repository.path / "cases.jsonl").write_text("".join(json.dumps(each) + "\n" for each in (CASE, long)))
    result = run(repository, "-p", "no:cacheprovider")
    said = result.stdout.str() + result.stderr.str()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "grammarbench: [Errno 27] File too large" in said
    assert "Traceback" not in said and "was not walked" not in said
