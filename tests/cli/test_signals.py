"""Signals that end a command, and what an interrupted command says."""

from __future__ import annotations

import io
import json
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import pytest
from synthetic import ARMS, info, row, write_run

from harness.__main__ import main as run_program
from harness.cli import main as cli
from harness.cli.main import main
from harness.errors import INCOMPLETE, OK
from harness.rows.writer import Writer

WALK = ("run", "--backends", "unconstrained", "--vocabularies", "bytes", "--effort", "0")
GOES_ON = "; what was measured is stored, and the same command goes on with --resume"


def interrupted(*_: object, **__: object) -> NoReturn:
    raise KeyboardInterrupt


@pytest.fixture
def suite(tmp_path: Path) -> str:
    path = tmp_path / "suite.jsonl"
    path.write_text('{"regex": "a", "tests": [{"text": "a", "valid": true}]}\n')
    return str(path)


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[[Sequence[str]], str]:
    """Returns what an interrupted command says last."""

    def run(words: Sequence[str]) -> str:
        assert main(words) == INCOMPLETE
        return capsys.readouterr().err.splitlines()[-1]

    return run


def test_a_command_that_is_interrupted_before_it_measured_says_no_more(
    suite: str, tmp_path: Path, said: Callable[[Sequence[str]], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [*WALK, suite, "--out", str(tmp_path)]  # where the suite, which is no record, lies too
    run = str(write_run(tmp_path / "stored", [[(row(), b"")]], info(ARMS[:1])))
    monkeypatch.setattr("harness.running.session.look_at", interrupted)
    monkeypatch.setattr("harness.cli.table.emit", interrupted)
    for each in (words, ["table", run, "summary"]):
        assert said(each) == "grammarbench: interrupted"


class Impatient(io.StringIO):
    """Where what is said comes with another Ctrl-C."""

    def write(self, text: str) -> int:
        signal.raise_signal(signal.SIGINT)
        return super().write(text)


@pytest.mark.parametrize("where", ["harness.cli.main.refuse_special_files", "harness.cli.main._run"])
def test_ctrl_c_that_is_pressed_again_takes_nothing_from_what_is_said(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, interrupted)
    monkeypatch.setattr("sys.argv", ["grammarbench", "list", "suites"])
    monkeypatch.setattr("sys.stderr", impatient := Impatient())
    before = signal.getsignal(signal.SIGINT)
    try:
        assert run_program() == INCOMPLETE
        signal.raise_signal(signal.SIGINT)  # while the interpreter ends
    finally:
        signal.signal(signal.SIGINT, before)
    assert impatient.getvalue() == "grammarbench: interrupted\n"


def test_an_interruption_that_python_makes_another_error_of_is_one(
    said: Callable[[Sequence[str]], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python 3.11 does so while a class is made, as amid an import; later versions add a note to it."""

    class Interrupts:
        __set_name__ = interrupted

    def wrapped(*_: object) -> NoReturn:
        try:
            type("Made", (), {"name": Interrupts()})
        except RuntimeError as error:
            assert isinstance(error.__cause__, KeyboardInterrupt)
            error.__cause__.add_note("Error calling __set_name__ on 'Interrupts' instance 'name' in 'Made'")
            raise
        raise AssertionError("it was not interrupted")

    def broken(*_: object) -> NoReturn:
        raise RuntimeError("no interruption")

    monkeypatch.setattr("harness.cli.main.refuse_special_files", wrapped)
    assert said(["list", "suites"]) == "grammarbench: interrupted"
    monkeypatch.setattr("harness.cli.main.refuse_special_files", broken)
    with pytest.raises(RuntimeError, match="no interruption"):
        main(["list", "suites"])


def test_a_run_that_is_interrupted_says_where_it_is_stored(
    suite: str, tmp_path: Path, said: Callable[[Sequence[str]], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Writer, "append", interrupted)
    assert said([*WALK, suite, "--out", "run"]) == f"grammarbench: interrupted{GOES_ON}"
    told = said([*WALK, suite])
    (folder,) = Path("results", "runs").iterdir()
    where = GOES_ON.replace("stored", f"stored in {folder}")
    assert told == f"grammarbench: interrupted{where} and the run's folder as --out"


def test_a_run_that_is_interrupted_behind_its_last_row_goes_on_with_its_answer(
    suite: str, tmp_path: Path, said: Callable[[Sequence[str]], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, record = tmp_path / "run", tmp_path / "record.json"
    words = [*WALK, suite, "--out", str(run), "--record", str(record), "--profile", "gate"]
    with monkeypatch.context() as patched:
        patched.setattr("harness.cli.run._summary", interrupted)
        assert said(words) == f"grammarbench: interrupted{GOES_ON}"
    rows = (run / "rows.jsonl").read_bytes()
    assert main([*words, "--resume"]) == OK
    assert json.loads(record.read_text())
    assert main([*WALK, suite, "--out", str(run), "--expect", str(record), "--resume"]) == OK
    assert (run / "rows.jsonl").read_bytes() == rows and not (run / "sessions.jsonl").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_left_to_who_takes_interruptions(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asyncio does, while it runs; raising an exception amid one of its tasks goes round it."""
    taken: list[int] = []

    def run(_: object) -> int:
        before = signal.signal(signal.SIGINT, lambda number, _: taken.append(number))
        try:
            signal.raise_signal(number)
        except KeyboardInterrupt:
            taken.append(0)
        finally:
            signal.signal(signal.SIGINT, before)
        return 0

    monkeypatch.setattr(cli, "_run", run)
    was = signal.getsignal(number), signal.getsignal(signal.SIGINT)
    signal.signal(number, lambda *_: None)  # whatever it does where it is not taken, it ends no test
    try:
        main([])
        assert taken == [signal.SIGINT]
        signal.signal(number, signal.SIG_IGN)
        main([])
        assert taken == [signal.SIGINT]
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(number, signal.SIG_DFL)
        monkeypatch.setattr(cli, "_run", lambda _: signal.raise_signal(number))
        with pytest.raises(KeyboardInterrupt):
            main([])
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, was[0])
        signal.signal(signal.SIGINT, was[1])


@pytest.mark.parametrize(
    ("words", "where", "going_on"),
    [
        (
            ["measure", "--backends", "unconstrained", "--vocabularies", "bytes"],
            "harness.measure.session._measure_in",
            "",
        ),
        (
            ["advise", "--backends", "reference", "--tokenizer", "bytes"],
            "harness.diagnose.advise.advice.rewritten",
            ", and the same command goes on with --resume and the run's folder as --out",
        ),
    ],
    ids=["measure", "advise"],
)
def test_what_comes_behind_a_walk_says_where_that_is_stored(
    words: list[str],
    where: str,
    going_on: str,
    suite: str,
    tmp_path: Path,
    said: Callable[[Sequence[str]], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(where, interrupted)
    told = said([words[0], suite, *words[1:]])
    (folder,) = Path("results", "runs").iterdir()
    assert told == f"grammarbench: interrupted; what was measured is stored in {folder}{going_on}"


def test_an_error_without_text_is_told_by_its_name() -> None:
    assert cli._told(OSError()) == "OSError"
