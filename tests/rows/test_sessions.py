"""A run that went on elsewhere, or took rows over, says so wherever its first line is read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from harness.errors import BadInput
from harness.rows.sessions import FILE, add_session
from harness.rows.store import read_info


def test_what_a_run_says_of_itself_is_of_all_its_sessions(synthetic: ModuleType, tmp_path: Path) -> None:
    began = synthetic.info(jobs=1, machine={"cpu": "one", "python": "3.11"})
    folder = synthetic.write_run(tmp_path / "run", [], began)
    assert read_info(folder) == began
    add_session(folder, replace(began, jobs=4, executor="ray", machine={"cpu": "two", "python": "3.11"}))
    add_session(folder, replace(began, jobs=2))
    (folder / FILE).open("a").write('{"started": "cut sho')
    whole = read_info(folder)
    assert (whole.jobs, whole.executor) == (4, "ray")
    assert whole.machine == {"cpu": "one | two", "python": "3.11"}
    assert replace(whole, jobs=1, executor="", machine=began.machine) == began
    add_session(folder, replace(began, jobs=8, machine={"cpu": "two | three", "python": "3.11"}))
    assert read_info(folder).jobs == 8, "behind a line that was cut short"
    assert read_info(folder).machine["cpu"] == "one | two | three", "what was taken over names machines too"


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        "{}",
        '{"started": "", "jobs": true, "executor": "", "machine": {}}',
        '{"started": "", "jobs": 1, "executor": "x", "machine": {}}',
        '{"started": "", "jobs": 0, "executor": "", "machine": {}}',
        "[" * 100_000,
    ],
)
def test_a_damaged_session_is_one_line(synthetic: ModuleType, tmp_path: Path, line: str) -> None:
    folder = synthetic.write_run(tmp_path / "run", [], synthetic.info())
    (folder / FILE).write_text(f"{line}\n")
    with pytest.raises(BadInput, match=r"sessions.jsonl:1: no session .*; the file was changed or damaged$"):
        read_info(folder)
