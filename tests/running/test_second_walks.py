"""What is wrong behind other cases alone says so, and stays a fault of the backend; what is wrong alone too
is hardly ever walked twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import synthetic
from isolated import GIGABYTE, walk_all

from harness.backend.process import memory
from harness.rows.row import CHECKS_MODE, Before, Finding, row_from_json, row_to_json, verdict
from harness.running.case_rows import with_first_failure
from harness.running.limits import Limits
from harness.running.slot import Slot
from harness.running.work import CASES_FOR_A_SECOND_WALK, Suspicion, Task

pytestmark = pytest.mark.usefixtures("importable_miniatures")

LIMITS = Limits(20.0, GIGABYTE)
CASES = [
    {"description": "first", "regex": "[ab]{2,5}c?", "tests": [{"text": "ab", "valid": True}]},
    {
        "description": "second",
        "regex": "[ab]{3}d",
        "tests": [
            {"text": "aabd", "valid": True},
            {"text": "aab", "valid": False},
            {"text": "x", "valid": False},
        ],
    },
    {"description": "third", "regex": "x|y", "tests": [{"text": "x", "valid": True}]},
]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The cases that were walked a second time."""
    names: list[str] = []
    ask = Slot._ask_again

    def noted(slot: Slot, task: Task, first: Suspicion) -> None:
        names.append(task.case.name)
        ask(slot, task, first)

    monkeypatch.setattr(Slot, "_ask_again", noted)
    return names


def test_a_fault_that_comes_behind_other_cases_only_says_so_and_stays(
    tmp_path: Path, asked: list[str]
) -> None:
    rows = walk_all(tmp_path, "miniatures.of_other_cases:RemembersByTooShortAKey", CASES, LIMITS)
    judged = {key: verdict(row.status, row.valid, row.accepted) for key, row in rows.items()}
    wrong = {("second", 0): "over_constrained", ("second", 1): "under_constrained"}
    assert {key: each for key, each in judged.items() if each != "pass"} == wrong
    behind = {key: [each.case for each in row.behind] for key, row in rows.items() if row.behind}
    assert behind == {key: ["mini: first"] for key in wrong} and asked == ["mini: second"]
    assert not any(row.delayed for row in rows.values()), "it counts against the backend"
    assert all(row_from_json(row_to_json(row)) == row for row in rows.values())


def test_where_a_new_process_would_load_the_backend_it_is_not_asked(tmp_path: Path, asked: list[str]) -> None:
    backend = "miniatures.of_other_cases:RemembersByTooShortAKey"
    rows = walk_all(tmp_path, backend, CASES, LIMITS, fork=False)
    assert not asked and not any(row.behind for row in rows.values())
    assert verdict(rows["second", 1].status, False, rows["second", 1].accepted) == "under_constrained"


def test_what_is_wrong_alone_too_is_walked_twice_once_in_so_many_cases(
    tmp_path: Path, asked: list[str]
) -> None:
    count = CASES_FOR_A_SECOND_WALK + 20
    cases = [
        {
            "description": f"case {number}",
            "regex": f"a{number}b",
            "tests": [{"text": f"a{number}b", "valid": True}],
        }
        for number in range(count)
    ]
    rows = walk_all(tmp_path, "miniatures.of_other_cases:RefusesB", cases, LIMITS)
    assert len(rows) == count and {row.accepted for row in rows.values()} == {False}
    assert not any(row.behind for row in rows.values())
    assert 1 <= len(asked) <= 2


@pytest.mark.parametrize(
    ("alone", "status", "text", "judged"),
    [
        ("crash", "crash", "killed by SIGABRT", None),
        ("hang", "timeout", "killed after 2 s", None),
        ("kill", "crash", ", 3 times; behind other cases: over_constrained", None),
        ("other", "ok", "", ["over_constrained", "under_constrained", "under_constrained"]),
    ],
)
def test_what_is_worse_alone_counts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    asked: list[str],
    alone: str,
    status: str,
    text: str,
    judged: list[str] | None,
) -> None:
    """The second walk was dropped with all that it had shown, as if the case were right alone."""
    monkeypatch.setenv("MINIATURE_ALONE", alone)
    monkeypatch.setattr(memory, "kills_for_memory", lambda: 7)
    backend, limits = "miniatures.of_other_cases:WorseAlone", Limits(2.0, GIGABYTE)
    rows = walk_all(tmp_path, backend, [CASES[2], CASES[1]], limits)
    walked = [rows["second", number] for number in range(3)]
    assert asked == ["mini: second"] and {row.status for row in walked} == {status}
    assert text in walked[0].text and not any(row.behind or row.delayed for row in walked)
    assert ("behind other cases: over_constrained" in walked[0].text) is (status != "ok")
    if judged:
        assert [verdict(row.status, row.valid, row.accepted) for row in walked] == judged
    assert rows["third", 0].status == "ok" and rows["third", 0].accepted


def test_a_second_walk_that_finds_no_memory_stands_in_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kills = iter(range(10**6))
    monkeypatch.setattr(memory, "kills_for_memory", lambda: next(kills))
    monkeypatch.setenv("MINIATURE_ALONE", "kill")
    rows = walk_all(tmp_path, "miniatures.of_other_cases:WorseAlone", [CASES[2], CASES[1]], LIMITS)
    first = rows["second", 0]
    assert verdict(first.status, first.valid, first.accepted) == "over_constrained" and not first.behind
    assert first.text.startswith("walked once more: harness_error in compile: ")


def test_findings_of_both_walks_are_kept_once() -> None:
    one, two, both = (Finding(name, None, "", "cause") for name in ("one", "two", "both"))
    first = synthetic.row(mode=CHECKS_MODE, checks={"one": "failed", "two": "passed"}, findings=(one, both))
    second = replace(first, checks={"one": "passed", "two": "failed"}, findings=(both, two))
    suspicion = Suspicion("", "", (Before("mini", "1", "earlier"),), ((first, b"1"),))
    ((row, samples),) = with_first_failure([(second, b"2")], suspicion)
    assert row.findings == (one, both, two) and samples == b"1" and not row.behind
    assert row.checks == {"one": "failed", "two": "failed"}
    ((row, _),) = with_first_failure([(replace(second, findings=()), b"")], suspicion)
    assert row.findings == (one, both) and row.behind == suspicion.behind
