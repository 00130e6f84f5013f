"""A plain loop that says otherwise than the harness is seen, and one that is lost is no disagreement."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from plain_loops import PLAIN, POINTERS, installed, plain_llguidance
from scripts import script_of

from harness.errors import BAD_INPUT, OK

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
TESTS = [
    {"description": "an integer", "data": {"a": 1}, "valid": True},
    {"description": "a text", "data": {"a": "x"}, "valid": False},
]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return script_of("agreement")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "one.json").write_text(json.dumps({"schema": SCHEMA, "tests": TESTS}))
    return tmp_path / "files"


def changed(change: Callable[[int | None], int | None]) -> Callable[[Any], Any]:
    """Returns llguidance's plain loop, in which `change` makes another answer of each."""

    def made(vocabulary: Any) -> Any:
        compile_schema, walk = plain_llguidance(vocabulary)
        return compile_schema, lambda *arguments: change(walk(*arguments))

    return made


def dies(_: int | None) -> int | None:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def asked(script: ModuleType, folder: Path, backend: str = "llguidance") -> int:
    code: int = script.main(["--folder", str(folder), "--vocabulary", "probe", backend])
    return code


@pytest.mark.parametrize("backend", [name for name in PLAIN if not name.endswith(POINTERS)])
def test_the_plain_loop_says_what_the_harness_says(
    backend: str, script: ModuleType, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if backend not in installed():
        pytest.skip(f"{backend} is not installed")
    assert asked(script, folder, backend) == OK
    assert "of 2 of 2 instances of 1 files on probe; 0 were lost" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (
            lambda place: None if place is not None else place,
            1,
            ["of 1 of 2 instances", "one a text: harness"],
        ),
        (lambda place: place and place + 1, 1, ["of 1 of 2 instances"]),
        (dies, OK, ["of 0 of 0 instances of 1 files on probe; 2 were lost"]),
    ],
)
def test_a_loop_that_says_otherwise_is_seen(
    change: Callable[[int | None], int | None],
    code: int,
    said: list[str],
    script: ModuleType,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(script.PLAIN, "llguidance", changed(change))
    assert asked(script, folder) == code
    out = capsys.readouterr().out
    assert all(part in out for part in said), out


def test_a_folder_without_files_gets_one_line(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked(script, tmp_path) == BAD_INPUT
    assert len(capsys.readouterr().err.splitlines()) == 1
