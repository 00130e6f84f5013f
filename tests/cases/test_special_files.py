"""A FIFO, a socket or a device where a file is wanted is refused in one line; nothing hangs, nothing is
started that a run names."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic import ARMS, info, row, write_run

import harness
from harness.backend.environments import build as environments
from harness.backend.environments.build import python_of
from harness.backend.registry import MARKER, BackendSpec
from harness.backend.vocabulary import load_vocabulary
from harness.cli.main import main
from harness.errors import BadInput

RUN = ["run", "--backends", "reference", "--vocabularies", "probe", "--out"]


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str], kind: str = "FIFO") -> None:
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert f"is a {kind}" in said and said.count("\n") == 1


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "cases.jsonl"
    os.mkfifo(path)
    return path


def test_a_suite_that_is_none_of_a_file_or_folder_is_refused(
    fifo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(fifo)
    for each in (fifo, link):
        refused([*RUN, str(tmp_path / "out"), str(each)], capsys)
    refused([*RUN, str(tmp_path / "out"), "/dev/zero"], capsys, "device")
    os.mkfifo(tmp_path / "experiment.toml")
    refused([*RUN, str(tmp_path / "out"), str(tmp_path / "experiment.toml")], capsys)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        refused([*RUN, str(tmp_path / "out"), str(tmp_path / "s")], capsys, "socket")
    read, write = os.pipe()
    try:
        refused([*RUN, str(tmp_path / "out"), f"/dev/fd/{read}"], capsys)
    finally:
        os.close(read)
        os.close(write)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "name", ["rows.jsonl", "cases.jsonl", "samples.i64", "rows.jsonl.xz", "rounds.jsonl", "kernels.jsonl"]
)
def test_a_run_with_a_fifo_for_a_file_is_refused_by_every_reader(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(tmp_path / "run")
    os.mkdir(run)
    os.mkfifo(f"{run}/{name}")
    for words in (
        ["table", run], ["report", run, "--out", str(tmp_path / "page")], ["report", run, "--format", "json", "--out", str(tmp_path / "out")],  # noqa: E501
        ["compare", run], ["compare", str(tmp_path), run], ["history", str(tmp_path / "h"), "--add", run],
        ["merge", str(tmp_path / "whole"), run], ["repro", run, "x", "--backends", "a"], ["adjudicate", run],
        ["compare", run, "--record", str(tmp_path / "record.json")], ["live", "--show", run], ["decode", "--show", run], ["measure", "kernels", "--show", run], ["history", str(tmp_path)],  # noqa: E501
        [*RUN, run, "regex"],
    ):  # fmt: skip
        refused(words, capsys)


def test_what_is_written_may_be_a_device_and_what_a_shell_opened_may_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run", [[(row(), b"")]], info(ARMS[:1]))
    assert main(["compare", str(run), "--record", "/dev/null"]) == 0
    read, write = os.pipe()
    os.write(write, b"not a record")
    os.close(write)
    assert main(["compare", f"/dev/fd/{read}", str(run)]) == 2
    assert "not JSON" in capsys.readouterr().err
    os.close(read)


def test_no_program_is_started_because_a_run_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(environments.CACHE, str(tmp_path / "cache"))
    started = tmp_path / "started"
    evil = tmp_path / "python"
    evil.write_text(f"#!/bin/sh\ntouch {started}\n")
    evil.chmod(0o755)
    arm = replace(ARMS[0], backend="xgrammar", distribution="xgrammar", version="9.9.9", python=str(evil))
    for name in ("xgrammar==./evil", "xgrammar==../evil,reference", "xgrammar,reference", "./evil"):
        with pytest.raises(BadInput, match="there is no backend"):
            python_of(replace(arm, backend=name), print)
    with pytest.raises(BadInput, match="is no version"):
        python_of(replace(arm, version="9.9.9,reference"), print)
    asked: list[BackendSpec] = []

    def resolve(specs: Sequence[BackendSpec], say: object) -> list[tuple[str, str]]:
        asked.extend(specs)
        return [("", "built anew")]

    monkeypatch.setattr(environments, "resolve", resolve)
    assert python_of(arm, print) == "built anew" and asked == [BackendSpec("xgrammar", "9.9.9")]
    for version in (str(tmp_path / "evil.whl"), "./evil", "~/evil", "evil.whl", "git+https://evil.example/x"):
        with pytest.raises(BadInput, match="is no version"):
            python_of(replace(arm, version=version), print)
    environment = tmp_path / "cache" / "xgrammar-9.9.9-0123456789ab"
    python = environment / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    assert python_of(replace(arm, python=str(python)), print) == "built anew"
    (environment / MARKER).write_text(
        json.dumps({"distribution": "xgrammar", "version": "9.9.9", "from": "x"})
    )
    assert python_of(replace(arm, python=str(python)), print) == str(python)
    assert (
        python_of(replace(arm, python=str(environment / "bin" / ".." / "bin" / "python")), print)
        == "built anew"
    )
    assert python_of(replace(arm, python=str(python), version="9.9.8"), print) == "built anew"
    assert not started.exists()


def test_git_runs_no_program_of_the_folder_that_is_fetched_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness.cases import corpora

    source = tmp_path / "source"
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "--quiet", source], check=True)
    subprocess.run(
        ["git", "-C", source, *identity, "commit", "--quiet", "--allow-empty", "-m", "x"], check=True
    )
    commit = subprocess.run(
        ["git", "-C", source, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    monkeypatch.setitem(corpora.CORPORA, "small", corpora.Corpus(str(source), commit, ""))
    subprocess.run(["git", "init", "--quiet", tmp_path / "out" / "small"], check=True)
    hook = tmp_path / "out" / "small" / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    hook.chmod(0o755)
    with pytest.raises(BadInput, match="move it away"):
        corpora.fetch_corpus("small", tmp_path / "out")
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("path", ["a" * 300, "a/" * 3000])
def test_a_path_that_is_too_long_is_one_line(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["table", path], ["report", path, "--out", "x"], ["compare", "a", "--record", path]):
        assert main(words) == 2
        said = capsys.readouterr().err
        assert "a path that is too long for this machine" in said and said.count("\n") == 1
    with pytest.raises(BadInput, match="too long"):
        harness.load(path)
    for kind in ("hf", "tiktoken", "gguf"):
        with pytest.raises(BadInput, match="too long"):
            load_vocabulary(f"{kind}:{path}")


@pytest.mark.parametrize("name", ["gguf:a\0b", "tiktoken:./a\0b", "gguf:./a\ud800b"])
def test_a_vocabulary_that_a_run_names_and_that_is_no_path_is_bad_input(name: str) -> None:
    with pytest.raises(BadInput):
        load_vocabulary(name)
