"""A session of `grammarbench live` with a server on loopback that knows vLLM's way to say a grammar."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import fault_server as faults
import pytest

from harness.cli.main import main
from harness.oracle.judge import Judge
from harness.rows.machine import describe_machine
from harness.rows.row import Row
from harness.rows.store import read_rows
from harness.serve.live import session

VALID = {"json": "12", "regex": "abc", "choice": "right", "grammar": "xxy"}
CHATTER = "Sure, here you are"


@contextmanager
def sharing() -> Iterator[None]:
    """One judge and one look at the machine for all sessions within: they take longer than the sessions."""
    machine = describe_machine()
    with Judge() as judge, pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "Judge", lambda seconds: nullcontext(judge))
        patch.setattr(session, "describe_machine", lambda: machine)
        yield


def way(body: faults.Body) -> str | None:
    """How the request says its grammar to a vLLM; None where it has none."""
    said: dict[str, Any] = body.get("structured_outputs", {})
    return next(iter(said), None)


def obeys(body: faults.Body) -> str:
    """Returns a text that fits the grammar of the request; chatter where it has none."""
    said = way(body)
    return CHATTER if said is None else VALID[said]


def write_suite(path: Path, cases: dict[str, dict[str, Any]]) -> Path:
    """Writes the cases by their names."""
    path.write_text("".join(json.dumps({"description": name, **case}) + "\n" for name, case in cases.items()))
    return path


def run(
    behaviour: faults.Behaviour, out: Path, suite: Path, *options: str, facts: dict[str, Any] | None = None
) -> tuple[int, list[Any]]:
    """The exit code, and the bodies that came."""
    with faults.serving(behaviour, facts) as server:
        asked = server.asked
        return main(["live", server.url, str(suite), "--out", str(out), "--requests", "8", *options]), asked


def rows_of(folder: Path) -> list[Row]:
    return list(read_rows(folder))
