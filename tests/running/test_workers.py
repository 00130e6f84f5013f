"""A further worker is started where it saves time: not where it would load while another one is done."""

from __future__ import annotations

import fcntl
import json
import os
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from isolated import walk_all

from harness.backend.arm import Arm
from harness.errors import BadInput
from harness.rows.store import read_end, read_rows
from harness.running import session, worker_process
from harness.running.work import Work

pytestmark = pytest.mark.usefixtures("importable_miniatures")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The workers that were started."""
    workers: list[Any] = []
    start = worker_process.start_worker

    def noted(*arguments: Any, **named: Any) -> Any:
        workers.append(start(*arguments, **named))
        return workers[-1]

    monkeypatch.setattr(worker_process, "start_worker", noted)
    return workers


def cases(count: int) -> list[dict[str, Any]]:
    return [
        {
            "description": f"case {number}",
            "regex": "a" * (number + 1),
            "tests": [{"text": "b", "valid": False}],
        }
        for number in range(count)
    ]


def test_few_quick_cases_have_one_worker(tmp_path: Path, started: list[Any]) -> None:
    assert len(walk_all(tmp_path, "miniatures:Reference", cases(3), jobs=3)) == 3
    assert len(started) == 1


def test_cases_that_take_longer_than_loading_have_several(tmp_path: Path, started: list[Any]) -> None:
    assert len(walk_all(tmp_path, "miniatures.slow:Slow+compile_ms=40", cases(12), jobs=3)) == 12
    assert len(started) == 3


def test_a_worker_that_cannot_load_beside_another_one_costs_no_case(
    tmp_path: Path, started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINIATURE_LICENCE", str(tmp_path / "licence"))
    rows = walk_all(tmp_path / "run", "miniatures.unruly:LoadsAlone", cases(12), jobs=3)
    assert [row.status for row in rows.values()] == ["ok"] * 12
    assert 1 < len(started) <= 3
    with open(tmp_path / "licence", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        rows = walk_all(tmp_path / "none", "miniatures.unruly:LoadsAlone", cases(2), jobs=3)
    assert {(row.status, row.phase) for row in rows.values()} == {("backend_error", "load")}


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_library_that_is_missing_costs_the_cases_of_its_backend_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    (tmp_path / "mini.json").write_text(json.dumps(cases(3)))
    request = session.Request(
        suites=(str(tmp_path / "mini.json"),),
        backends="miniatures.unruly:LacksALibrary,miniatures:Reference",
        vocabularies=("probe",),
        effort=0,
        jobs=jobs,
        out=tmp_path / "run",
    )
    with pytest.raises(BadInput, match="needs a library that cannot be imported"):
        session.run(request, lambda _: None, lambda _: None)
    assert read_end(tmp_path / "run") is None
    assert [row.backend for row in read_rows(tmp_path / "run")] == ["miniatures:Reference"] * 3
    (tmp_path / "no_such_library.py").touch()
    before = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{before}")
    session.run(replace(request, resume=True), lambda _: None, lambda _: None)
    assert read_end(tmp_path / "run") is not None
    assert [row.status for row in read_rows(tmp_path / "run")] == ["ok"] * 6


@pytest.mark.parametrize(
    ("backend", "hoards"), [("miniatures.unruly:HoardsMemory", True), ("miniatures:Reference", False)]
)
def test_a_run_tells_that_processes_were_renewed_for_their_memory(
    tmp_path: Path, backend: str, hoards: bool
) -> None:
    """A leak of less than half the limit in a case showed in no word: each process is renewed before it
    reaches the limit."""
    boom = [{**case, "regex": f"boom{number}"} for number, case in enumerate(cases(6))]
    (tmp_path / "mini.json").write_text(json.dumps(boom))
    request = session.Request(
        suites=(str(tmp_path / "mini.json"),),
        backends=backend,
        vocabularies=("probe",),
        effort=0,
        memory_gb=0.6,
        out=tmp_path / "run",
    )
    said: list[str] = []
    session.run(request, said.append, lambda _: None)
    told = [line for line in said if "was renewed" in line]
    assert len(told) == hoards
    assert not hoards or told[0].startswith(
        f"{backend} on probe: its process held more than 0.3 GB (half of "
    )
    assert {row.status for row in read_rows(tmp_path / "run")} == {"ok"}


def test_an_adapter_that_takes_no_vocabulary_is_at_fault(tmp_path: Path) -> None:
    rows = walk_all(tmp_path, "miniatures.unruly:TakesNoVocabulary", cases(2))
    assert {(row.status, row.phase) for row in rows.values()} == {("backend_error", "load")}
    assert all("must call super().__init__(vocabulary)" in row.text for row in rows.values())


def test_a_backend_may_change_its_folder_while_it_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = walk_all(Path("run"), "miniatures.unruly:ChangesFolder", cases(2))
    assert [row.status for row in rows.values()] == ["ok"] * 2


@pytest.mark.parametrize(
    ("load", "done", "seconds", "gains"),
    [
        (0.0, 0, 9.0, False),
        (2.0, 0, 0.1, False),
        (2.0, 0, 0.5, True),
        (2.0, 10, 3.0, False),
        (2.0, 10, 5.0, True),
    ],
    ids=["none has loaded", "one has just begun", "the first case is long", "short cases", "longer cases"],
)
def test_another_worker_loads_while_cases_are_left(
    load: float, done: int, seconds: float, gains: bool
) -> None:
    """Five cases are left to one worker."""
    arm = Arm("xgrammar", "", "", "", ("regex",), "bitmask")
    work = Work(arm, "bytes", deque(range(5)), workers=1, load_seconds=load, begun=100.0, done=done)
    assert work.gains_by_another(100.0 + seconds) is gains
    work.is_full = True
    assert not work.gains_by_another(100.0 + seconds)
    assert Work(arm, "bytes", deque(range(5)), is_full=True).gains_by_another(0.0), "the last one was lost"
