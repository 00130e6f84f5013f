"""What this machine lacks is not told as the server's failure."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path
from typing import Any

import fault_server as faults
import pytest
from live.one_request import ask
from live.sessions import obeys, rows_of, run, write_suite

from harness.errors import UNPROVEN
from harness.serve.live.connection_limits import LACKS, lack_of
from harness.serve.live.record import read_session

pytestmark = pytest.mark.usefixtures("quick")

CONNECT = asyncio.BaseEventLoop.create_connection


def failing(number: int, monkeypatch: pytest.MonkeyPatch, first: int = 0, every: int = 1) -> None:
    """Let connections fail with this error: the one that is so many after the first, and every so many after
    it."""
    count = iter(range(1_000_000))

    async def connect(self: asyncio.BaseEventLoop, *arguments: Any, **options: Any) -> Any:
        place = next(count) - first
        if place >= 0 and place % every == 0:
            raise OSError(number, os.strerror(number))
        return await CONNECT(self, *arguments, **options)

    monkeypatch.setattr(asyncio.BaseEventLoop, "create_connection", connect)


@pytest.mark.parametrize("number", LACKS)
def test_a_connection_that_this_machine_cannot_make_is_our_failure(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with faults.serving(faults.says("12")) as server:
        failing(number, monkeypatch)
        heard = ask(server.url)
    assert (heard.end, heard.phase) == ("harness_error", "connect")
    assert "send fewer requests at a time" in heard.why


@pytest.mark.parametrize("number", [errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH])
def test_a_connection_that_the_server_does_not_take_is_not(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with faults.serving(faults.says("12")) as server:
        failing(number, monkeypatch)
        heard = ask(server.url)
    assert (heard.end, heard.phase) == ("failed", "connect")


def test_a_session_without_files_accuses_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = write_suite(tmp_path / "mine.jsonl", {"word": {"regex": "[a-c]{3}"}})
    failing(errno.EMFILE, monkeypatch, first=4, every=3)  # after what is asked about the server
    options = ("--gate", "--pairs", "off", "--grammars", "mixed")
    assert run(faults.says(obeys), tmp_path / "run", suite, *options)[0] == UNPROVEN
    assert {row.status for row in rows_of(tmp_path / "run")} == {"ok", "harness_error"}
    assert {answer.heard.end for answer in read_session(tmp_path / "run").answers} == {
        "finished",
        "harness_error",
    }
    said = " ".join(capsys.readouterr().out.split())
    assert "gate: unproven" in said and "raise `ulimit -n`" in said


# ------------------------------------------------------------------------------------ hosts of many addresses


def chain(*numbers: int) -> Exception:
    """Returns an error as the libraries wrap it: one for each address of the host, below two others."""
    inner = OSError("All connection attempts failed")
    inner.__cause__ = ExceptionGroup("multiple", [OSError(each, os.strerror(each)) for each in numbers])
    outer = RuntimeError("All connection attempts failed")
    outer.__context__ = inner
    inner.__context__ = outer  # a ring, which is walked once
    return outer


@pytest.mark.parametrize(
    ("numbers", "is_lack"),
    [
        ((errno.EMFILE,), True),
        ((errno.EMFILE, errno.EMFILE), True),
        ((errno.EADDRNOTAVAIL, errno.EMFILE), True),
        ((errno.EADDRNOTAVAIL, errno.ECONNREFUSED), False),  # localhost without IPv6, and no server there
        ((errno.ECONNREFUSED,), False),
    ],
)
def test_it_is_our_lack_if_it_is_for_every_address(numbers: tuple[int, ...], is_lack: bool) -> None:
    assert bool(lack_of(chain(*numbers))) is is_lack


def test_an_error_without_a_number_is_no_lack() -> None:
    assert lack_of(OSError("All connection attempts failed")) == lack_of(ValueError()) == ""
