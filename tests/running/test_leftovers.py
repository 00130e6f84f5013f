"""Nothing that a user made is written over by what a command writes into its folder; what a command of ours
left behind before it measured anything is."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from synthetic import ARMS, info, row, write_run

from harness.cli.main import main
from harness.errors import BAD_INPUT, OK, BadInput
from harness.rows.appending import Appender
from harness.rows.folder import make_writable, opened
from harness.rows.sessions import add_session
from harness.rows.store import read_end, read_info
from harness.rows.writer import Writer
from harness.running.experiment import HEAD
from harness.running.leftovers import CASE_BEGINNING, OF_A_RUN

SUITE = '{"suite": "mine", "version": "7"}\n{"regex": "a", "tests": [{"text": "a", "valid": true}]}\n'
OPTIONS = ("--backends", "unconstrained", "--vocabularies", "bytes")


def walk(suite: Path, out: Path) -> Sequence[str]:
    return ["run", str(suite), *OPTIONS, "--effort", "0", "--out", str(out)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of the user's, beside a suite."""
    (tmp_path / "suite.jsonl").write_text(SUITE)
    (tmp_path / "mine").mkdir()
    return tmp_path / "mine"


def refused(words: Sequence[str], path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command names the file in one line, and leaves everything beside it as it was."""
    before = {file: file.read_bytes() for file in path.parent.iterdir()}
    assert main(words) == BAD_INPUT
    said = capsys.readouterr().err.splitlines()
    assert said[-1].startswith(f"grammarbench: {path} is there, is no part of a run"), said
    assert {file: file.read_bytes() for file in path.parent.iterdir()} == before


def test_a_suite_is_not_written_over_by_its_own_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "cases.jsonl"
    path.write_text(SUITE)
    refused(walk(folder, folder), path, capsys)
    refused(walk(path, folder), path, capsys)


@pytest.mark.parametrize("name", OF_A_RUN)
def test_files_of_others_are_not_written_over(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / name
    path.write_text("mine")
    runs = [str(write_run(folder.with_name(one), [[(row(), b"")]], info(ARMS[:1]))) for one in "ab"]
    refused(walk(folder.with_name("suite.jsonl"), folder), path, capsys)
    refused(["merge", str(folder), *runs], path, capsys)
    refused(["live", "http://127.0.0.1:9", "regex", "--out", str(folder)], path, capsys)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("live", "http://127.0.0.1:9", "regex"), "live.i64"),
        (("decode", "nothing_forced", *OPTIONS), "decode.i64"),
        (("measure", "regex", *OPTIONS), "rounds.i64"),
    ],
)
def test_figures_of_others_are_not_written_over(
    folder: Path, words: Sequence[str], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / name).write_text("mine")
    refused([*words, "--out", str(folder)], folder / name, capsys)


def test_a_copy_of_an_experiment_is_a_users(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "experiment.toml"
    path.write_text(HEAD + 'suites = ["../suite.jsonl"]\n# what I changed, and why\n')
    refused(["run", str(path), *OPTIONS, "--out", str(folder)], path, capsys)


@pytest.mark.parametrize("cut", [0, 5, 40], ids=["empty", "within what is looked at", "behind it"])
def test_a_run_that_was_ended_before_its_first_line_is_started_again(
    folder: Path, cut: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = walk(folder.with_name("suite.jsonl"), folder)

    def full(self: Writer, lines: Sequence[object]) -> None:
        self.rows.write(json.dumps({"kind": "run", "run": "x" * 99}, separators=(",", ":")).encode()[:cut])
        self.rows.flush()
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Writer, "_write", full)
        assert main(words) == BAD_INPUT
    assert {path.name for path in folder.iterdir()} == {*OF_A_RUN} - {"sessions.jsonl"}
    assert (folder / "rows.jsonl").stat().st_size == cut
    assert main(words) == OK and read_end(folder) is not None


@pytest.mark.parametrize("name", ["rows.jsonl", "samples.i64", "sessions.jsonl"])
def test_a_run_does_not_go_on_through_a_link(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder is a stranger's; what the link leads to is the user's."""
    words = walk(folder.with_name("suite.jsonl"), folder)
    assert main(words) == OK
    (folder / "rows.jsonl").write_bytes((folder / "rows.jsonl").read_bytes().splitlines(keepends=True)[0])
    mine, path = folder.with_name("mine.txt"), folder / name
    content = path.read_bytes() if path.exists() else b"mine"
    path.unlink(missing_ok=True)
    mine.write_bytes(content)
    path.symlink_to(mine)
    capsys.readouterr()
    assert main([*words, "--resume"]) == BAD_INPUT
    assert capsys.readouterr().err.startswith(f"grammarbench: {path} is a link, and another file")
    assert mine.read_bytes() == content
    path.unlink()
    if name == "rows.jsonl":
        path.write_bytes(content)
    assert main([*words, "--resume"]) == OK and read_end(folder) is not None


def test_nothing_is_opened_through_a_link(folder: Path) -> None:
    mine = folder.with_name("mine.txt")
    mine.write_text("mine")
    for name in ("rows.jsonl", "samples.i64", "sessions.jsonl", "gone"):
        (folder / name).symlink_to(mine if name != "gone" else folder.with_name("nowhere"))
    opens: list[Callable[[], object]] = [
        lambda: Writer(folder, info(ARMS[:1])),
        lambda: Writer(folder, None),
        lambda: add_session(folder, info(ARMS[:1])),
        lambda: Appender(folder / "gone", folder / "figures", "growth", {}),
    ]
    for each in opens:
        with pytest.raises(BadInput, match="is a link"):
            each()
    assert mine.read_text() == "mine" and not folder.with_name("nowhere").exists()
    with opened(folder / "new", "wb") as file:
        file.write(b"ours")
    assert (folder / "new").stat().st_mode & 0o700 == 0o600


@pytest.mark.parametrize("name", ["samples.i64", "experiment.toml", "rows.jsonl"])
def test_a_run_does_not_begin_through_a_link(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = folder.with_name("empty")
    mine.touch()
    (folder / name).symlink_to(mine)
    (folder / "cases.jsonl").touch()
    refused(walk(folder.with_name("suite.jsonl"), folder), folder / name, capsys)


def test_a_run_that_another_process_wrote_meanwhile_is_left_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The later command looked for a run before the earlier one wrote its own."""
    words = walk(folder.with_name("suite.jsonl"), folder)

    def meanwhile(*arguments: object) -> None:
        make_writable(folder)
        if not (folder / "rows.jsonl").exists():
            write_run(folder, [[(row(), b"")]], info(ARMS[:1]))

    runs = [str(write_run(folder.with_name(one), [], info(ARMS[:1]))) for one in "ab"]
    for room, command in (("session", words), ("merge", ["merge", str(folder), *runs])):
        with monkeypatch.context() as patched:
            patched.setattr(f"harness.running.{room}.make_writable", meanwhile)
            patched.setattr(f"harness.running.{room}.Writer", lambda *_: pytest.fail("it went on"))
            patched.setattr("harness.running.merge._same_cases", lambda *_: None)
            patched.setattr("harness.running.merge.rows_owed", lambda *_: {})
            assert main(command) == BAD_INPUT
        assert "holds a run already" in capsys.readouterr().err
        assert read_info(folder).arms == ARMS[:1]
        (folder / "rows.jsonl").unlink()


def test_plans_of_killed_runs_are_deleted_and_nothing_else(folder: Path) -> None:
    ours = [folder / "cases.0123abcd.new", folder / "cases.4567ef89.new"]
    ours[0].write_bytes(CASE_BEGINNING + b'"mine","version":"7"')
    ours[1].write_bytes(b"")
    others = [folder / name for name in ("cases.0123abcd.new.txt", "cases.old.new", "cases.99999999.new")]
    for path in others:
        path.write_text("of somebody")
    target = folder.parent / "target"
    target.write_bytes(CASE_BEGINNING)
    (link := folder / "cases.aaaaaaaa.new").symlink_to(target)
    for more in ([], ["--resume"]):
        if more:
            rows = folder / "rows.jsonl"
            rows.write_bytes(b"".join(rows.read_bytes().splitlines(keepends=True)[:-1]))
            ours[0].write_bytes(CASE_BEGINNING)
        assert main([*walk(folder.parent / "suite.jsonl", folder), *more]) == OK
        assert not any(path.exists() for path in ours) and read_end(folder) is not None
    assert all(path.read_text() == "of somebody" for path in others) and link.is_symlink() and target.exists()
    assert (folder / "cases.jsonl").read_bytes().startswith(CASE_BEGINNING)
