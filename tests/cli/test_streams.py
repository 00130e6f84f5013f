"""What leaves by stdout and stderr: fit for terminals and for logs of CI services; a reader that goes away
changes no exit code."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from places import SUPPORT
from synthetic import ARMS, case, info, row, write_run

from harness.cli.main import main
from harness.cli.streams import CI_SERVICES, GuardedStream
from harness.errors import BAD_INPUT, GATE_FAILED, OK
from harness.rows.store import read_rows


class Terminal(io.StringIO):
    """A stream that says that it is one."""

    def isatty(self) -> bool:
        return True


def written(stream: io.StringIO, *texts: str) -> str:
    guarded = GuardedStream(stream)
    for text in texts:
        guarded.write(text)
    return stream.getvalue()


EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\u202e\u2028\x00"


def test_a_terminal_gets_our_colours_and_nobody_elses_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CI_SERVICES:
        monkeypatch.delenv(name, raising=False)
    assert written(Terminal(), f"\x1b[31m{EVIL}\x1b[0m\n", "\r\x1b[K1/2", "::error::x\n") == (
        r"\x1b]0;owned\x07\x1b[2J\x9b31m\r\u202e\u2028\x00".join(("\x1b[31m", "\x1b[0m\n"))
        + "\r\x1b[K1/2::error::x\n"
    )
    assert "\x1b" not in written(io.StringIO(), f"\x1b[31m{EVIL}\x1b[0m")


@pytest.mark.parametrize("service", CI_SERVICES)
def test_a_log_of_a_service_has_no_line_that_is_a_command(
    service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(service, "true")
    shown = written(
        io.StringIO(),
        "::error::a\n  ::set-output name=b::c",
        "::fine\n",
        "  ",
        "::d",
        "\n",
        "x ##[error]e ##vso[task.x]f",
    )
    assert shown == (
        "\\u003a:error::a\n  \\u003a:set-output name=b::c::fine\n  \\u003a:d\nx "
        "#\\u0023[error]e #\\u0023vso[task.x]f"
    )
    assert json.loads(written(io.StringIO(), json.dumps(["::a", "##[error]b"]))) == ["::a", "##[error]b"]


def regressed(folder: Path) -> Path:
    """A run in which the newer version refuses what the older one accepts, in so many cases that the text
    fills a pipe."""
    arms = [ARMS[0], type(ARMS[0])("alpha", "2.0", "", "alpha", ("json_schema",), "bitmask")]
    cases = [("first", case(number, [("x", b'"a"', True)], f"case {number}")) for number in range(30)]
    groups = [
        [
            (
                row(
                    backend_version=arm.version, case=each.name, case_id=each.id, accepted=arm is arms[0],
                    stopped_at=None if arm is arms[0] else 0,
                ),
                b"",
            )
        ]
        for _, each in cases
        for arm in arms
    ]  # fmt: skip
    return write_run(folder, groups, info(arms), cases)


def program(*words: str) -> list[str]:
    return [sys.executable, "-P", "-m", "harness", *words]


def test_the_gates_code_stands_where_nobody_reads_on(tmp_path: Path) -> None:
    run = regressed(tmp_path / "run")
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        program("compare", str(run), "--gate"), stdout=write, stderr=subprocess.PIPE, text=True
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (GATE_FAILED, "")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_changes_no_exit_code(closed: str, tmp_path: Path) -> None:
    run = str(regressed(tmp_path / "run"))
    for words, code in (
        (["compare", run, "--gate"], GATE_FAILED),
        (["table", run], OK),
        (["table", str(tmp_path / "none")], BAD_INPUT),
    ):
        done = subprocess.run(
            ["bash", "-c", f'exec "$@" {closed}', "bash", *program(*words)], capture_output=True, text=True
        )
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), words


PRINTING = """
import os

from miniatures.reference import Reference

class Printing(Reference):
    def compile(self, grammar):
        os.write(1, b"noise")
        os.write(2, b"noise")
        return super().compile(grammar)
"""


def test_nothing_that_is_printed_gets_into_the_rows_where_streams_are_closed(tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_text('{"regex": "a", "tests": [{"text": "a", "valid": true}]}\n')
    (tmp_path / "printing_backend.py").write_text(PRINTING)
    words = ["run", "cases.jsonl", "--backends", "printing_backend:Printing", "--vocabularies", "bytes"]
    words += ["--effort", "0", "--out", "run"]
    paths = os.pathsep.join([str(SUPPORT), str(tmp_path), os.environ.get("PYTHONPATH", "")])
    subprocess.run(
        ["bash", "-c", 'exec "$@" <&- >&- 2>&-', "bash", *program(*words)],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": paths}, check=True,
    )  # fmt: skip
    assert "noise" not in (tmp_path / "run" / "rows.jsonl").read_text()
    assert [each.status for each in read_rows(tmp_path / "run")] == ["ok"]


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_answer_that_finds_no_room_is_told_in_one_line(unbuffered: str, tmp_path: Path) -> None:
    run = regressed(tmp_path / "run")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            program("table", str(run), "--format", "csv"),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "No space left on device; the answer was not written whole" in done.stderr


def test_nobody_reads_a_terminal_that_was_closed() -> None:
    ours, theirs = pty.openpty()
    os.close(ours)
    with open(theirs, "w") as terminal:
        GuardedStream(terminal).write("x" * 20_000)


def test_a_csv_file_keeps_what_a_terminal_is_not_shown(tmp_path: Path) -> None:
    evil = row(text="a \x1b[2J b", status="backend_error", phase="accept", accepted=None)
    run = write_run(tmp_path / "run", [[(evil, b"")]], info(ARMS[:1]))
    words = program("table", str(run), "--format", "csv")
    with open(tmp_path / "table.csv", "w") as file:
        subprocess.run(words, stdout=file, check=True)
    assert "\x1b[2J" in (tmp_path / "table.csv").read_text()
    assert "\x1b" not in subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_a_real_terminal_is_steered_by_nothing_in_a_run(tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J"
    arm = type(ARMS[0])("alpha", evil, "", "alpha", ("json_schema",), "bitmask")
    broken = row(
        backend_version=evil, case=evil, suite=evil, vocabulary=evil, text=evil, phase=evil, signal=evil,
        instance_name=evil,
        status="backend_error", accepted=None,
    )  # fmt: skip
    run = write_run(tmp_path / "run", [[(broken, b"")]], info([arm]))
    ours, theirs = pty.openpty()
    shown = b""
    for verb, *more in (("table",), ("table", "summary"), ("table", "--format", "markdown"), ("compare",)):
        process = subprocess.Popen(program(verb, str(run), *more), stdout=theirs, stderr=theirs)
        while process.poll() is None:
            os.set_blocking(ours, False)
            try:
                shown += os.read(ours, 1 << 16)
            except BlockingIOError:
                continue
    os.close(theirs)
    assert b"owned" in shown
    assert b"\x1b]" not in shown and b"\x1b[2J" not in shown


def test_what_cannot_be_parsed_is_told_without_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["table", "run", "--wrong\x1b[2J"])
    assert "\x1b" not in capsys.readouterr().err


def test_matplotlib_warns_nobody_of_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    run = write_run(tmp_path / "run", [[(row(), b"")]], info(ARMS[:1]))
    (tmp_path / "home").touch()
    elsewhere = ("MPLCONFIGDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
    given = {name: value for name, value in os.environ.items() if name not in elsewhere}
    words = ["report", str(run), "--format", "svg", "--out", str(tmp_path / "page")]
    done = subprocess.run(
        [sys.executable, "-m", "harness", *words],
        env=given | {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
