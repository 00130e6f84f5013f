"""What a history counts as lost, as judged and as the same work, and which steps raise an alert. Each test
was seen to fail on a small change of the code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import synthetic

from harness.outcomes.history import conformance
from harness.outcomes.history.alert_rule import events
from harness.outcomes.history.conformance import SuiteHistory, judged, lost
from harness.rows.row import CHECKS_MODE, OUT_OF_TIME

REFUSED: dict[str, Any] = {"status": "unsupported", "phase": "compile", "accepted": None}


@pytest.mark.parametrize(
    ("before", "after", "count"),
    [
        ({"works": 5, "hurried": 2}, {"works": 3}, 0),
        ({"works": 5, "hurried": 2}, {"works": 2}, 1),
        ({"works": 5}, {"works": 3, "too_slow": 2}, 0),
        ({"works": 5}, {"works": 3, "not_measured": 2}, 0),
        ({"works": 5}, {"works": 3, "not_judged": 2}, 0),
    ],
)
def test_lost_are_only_those_that_certainly_are(
    before: dict[str, int], after: dict[str, int], count: int
) -> None:
    assert lost(before, after) == count


def test_refused_cases_that_nothing_could_judge_are_not_judged() -> None:
    assert judged({"works": 2, "refused": 3, "beside": 1, "not_judged": 7}) == 4


def work_of(folder: Path, history: Path, **fields: Any) -> object:
    run = synthetic.write_run(folder, [[(synthetic.row(), b"")]], synthetic.info(**fields))
    return conformance.outcomes_file(history, run).lines[1]["work"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"effort": 1}, {"effort": 2}),
        ({"decode": False}, {"decode": True}),
        ({"checks": ()}, {"checks": ("the_mask_is_exact",)}),
        ({}, {"vocabularies": {"tiny": {"size": 300, "sha256": "cc" * 32}}}),
        ({"seed": 0}, {"seed": 1}),
        ({}, {"suites": {"first": {"version": "1", "sha256": "ee" * 32, "cases": 3, "instances": 6}}}),
    ],
    ids=["effort", "decode", "checks", "vocabulary", "seed", "suite"],
)
def test_runs_of_other_work_are_not_compared(
    tmp_path: Path, one: dict[str, Any], other: dict[str, Any]
) -> None:
    history = tmp_path / "history"
    assert work_of(tmp_path / "a", history, **one) != work_of(tmp_path / "b", history, **other)
    assert work_of(tmp_path / "c", history, **one) == work_of(tmp_path / "d", history, **one)


def test_a_refusal_is_beside_where_nothing_could_be_judged() -> None:
    (features,) = conformance._fold([synthetic.row(**REFUSED)]).values()
    assert features == {"": {"refused": 1}}
    (features,) = conformance._fold([synthetic.row(**REFUSED, instance=None, valid=None)]).values()
    assert features == {"": {"refused": 1, "beside": 1}}


def test_only_cases_that_work_are_hurried() -> None:
    nothing = {"instance": None, "valid": None, "accepted": None}
    checks = synthetic.row(mode=CHECKS_MODE, checks={"c": OUT_OF_TIME}, **nothing)
    (features,) = conformance._fold([synthetic.row(), checks]).values()
    assert features == {"": {"works": 1, "hurried": 1}}
    (features,) = conformance._fold([synthetic.row(accepted=False), checks]).values()
    assert features == {"": {"valid_refused": 1}}


@pytest.mark.parametrize(("before", "after", "steps"), [(2, 5, (0, 3)), (5, 2, (3, 0))])
def test_a_step_says_what_was_lost_and_won(before: int, after: int, steps: tuple[int, int]) -> None:
    def release(works: int, version: str) -> SuiteHistory:
        counts = {"": {"works": works, "valid_refused": 5 - works}}
        return SuiteHistory(f"t{version}", version, "a", version, "", "v", "s", "w", counts)

    (step,) = conformance.steps([release(before, "1"), release(after, "2")])
    assert (step.lost, step.won) == steps


@pytest.mark.parametrize(
    ("ratios", "kinds"),
    [
        ([1.0] * 8 + [0.97] * 3, []),
        ([1.0] * 8 + [0.94] * 3, ["better"]),
        ([1.0] * 4 + [0.5] + [1.0] * 3 + [0.9] * 3, ["better"]),
    ],
    ids=["too small", "a step", "behind an outlier"],
)
def test_a_step_that_stays_is_an_event(ratios: list[float], kinds: list[str]) -> None:
    assert [each.kind for each in events(ratios)] == kinds


def test_a_slow_drift_is_one_too() -> None:
    assert "alert" in [each.kind for each in events([1.01**number for number in range(25)])]
    assert "better" in [each.kind for each in events([0.99**number for number in range(25)])]
