"""Runs of harmful miniatures through the real coordinator."""

from __future__ import annotations

import json
from collections import deque
from functools import partial
from pathlib import Path

import pytest

from harness.backend.arm import Arm
from harness.backend.process.process import Start
from harness.cases.plan import PROFILES, write_plan
from harness.cases.suite import find_suite
from harness.rows.row import Row, RunInfo
from harness.rows.store import read_rows
from harness.rows.writer import Writer
from harness.running import worker_process
from harness.running.coordinator import run_all
from harness.running.limits import Limits
from harness.running.work import Assignment, Work

GIGABYTE = 10**9


LIMITS = Limits(2.0, GIGABYTE)
SHORT = Limits(1.0, GIGABYTE)
"""Where a hang is waited for, and a second time in a process of its own."""


CASES = [
    {
        "description": "before",
        "regex": "ab+",
        "tests": [{"text": "abb", "valid": True}, {"text": "a", "valid": False}],
    },
    {
        "description": "boom",
        "regex": "boom+",
        "tests": [{"text": "boom", "valid": True}, {"text": "boo", "valid": False}],
    },
    {
        "description": "after",
        "regex": "c+d",
        "tests": [{"text": "ccd", "valid": True}, {"text": "cc", "valid": False}],
    },
]


def walk_all(
    folder: Path,
    backend: str,
    cases: object = CASES,
    limits: Limits = LIMITS,
    fork: bool = True,
    jobs: int = 1,
    python: str = "",
) -> dict[tuple[str, int | None], Row]:
    """Returns a whole run of one backend over the byte vocabulary; its rows by case and instance."""
    folder.mkdir(exist_ok=True)
    (folder / "mini.json").write_text(json.dumps(cases))
    plan = write_plan([find_suite(str(folder / "mini.json"))], PROFILES["default"], 0, folder / "cases.jsonl")
    name, _, options = backend.partition("+")  # a module:Class has a colon of its own
    arm = Arm(name, "", options, "", ("regex", "choice"), "bitmask", python=python)
    info = RunInfo(
        "test",
        "",
        "",
        (),
        0,
        "default",
        limits.timeout_s,
        limits.memory_bytes,
        jobs,
        (arm,),
        {"bytes": {"size": 257, "sha256": "ab" * 32}},
        plan.suites,
        {},
    )
    with Writer(folder, info) as writer:
        works = [Work(arm, "bytes", deque(range(len(plan.offsets))))]
        assignment = Assignment(plan, folder / "cases.jsonl", works, limits, writer, lambda _: None)
        with pytest.MonkeyPatch.context() as patch:
            if not fork:  # as where a backend begins a thread: the process that has loaded serves itself
                patch.setattr(worker_process, "Start", partial(Start, fork=False))
            run_all(assignment, jobs)
        writer.finish("")
    return {(row.case.removeprefix("mini: "), row.instance): row for row in read_rows(folder)}


def others_are_right(rows: dict[tuple[str, int | None], Row]) -> bool:
    """Are there rows of the cases `before` and `after`, and is every row right that is not one of `boom`?"""
    others = {case for case, _ in rows} - {"boom"}
    return others == {"before", "after"} and all(
        row.status == "ok" and row.accepted == row.valid and not row.findings
        for (case, _), row in rows.items()
        if case != "boom"
    )


def lines_in(folder: Path) -> int:
    """Returns how many lines the file of rows of a run has so far; 0 before it is there."""
    path = folder / "rows.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0
