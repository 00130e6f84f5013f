"""Faults among healthy neighbours: each is told of the case that did it, and the neighbours' rows are those
of an undisturbed run."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from isolated import GIGABYTE, walk_all
from miniatures.injected import LATER

from harness.rows.row import Row, untimed
from harness.running.limits import Limits

pytestmark = pytest.mark.usefixtures("importable_miniatures")

BACKEND = "miniatures.injected:Injected"


ANSWERS = ("none", "nan", "text", "stop", "unprintable", "base", "exit", "generator")
GUILTY = {
    **dict.fromkeys(("segfault", "abort", "exit", "killparent", "closeall"), "crash"),
    "hang": "timeout",
    **dict.fromkeys(("raise", "nogrammar", *(f"accept_token-{each}" for each in ANSWERS)), "backend_error"),
    **dict.fromkeys((f"is_accepting-{each}" for each in ANSWERS), "backend_error"),
    **dict.fromkeys(
        ("start-none", "start-text", "start-stop", "filler-none", "fill_bitmask-stop"), "backend_error"
    ),
}
"""The status of the case of each fault."""
ARMED = ("arm-segfault", "arm-hang", "arm-raise", "arm-exit")
"""What befalls the case behind them in the same process."""
TESTS = [{"text": "abb", "valid": True}, {"text": "a", "valid": False}]


def cases(faults: list[str], healthy: int, seed: int) -> list[dict[str, object]]:
    """The faults in a seeded order, each behind and before healthy cases."""
    names = [f"{fault.replace('_', '')}_{number}" for number, fault in enumerate(faults)]
    patterns = {
        name: f"{fault}~{number}" for number, (name, fault) in enumerate(zip(names, faults, strict=True))
    }
    spread = [f"healthy_{number}" for number in range(healthy)]
    generator = random.Random(seed)
    generator.shuffle(names)
    for name in names:
        spread.insert(generator.randrange(1, len(spread)), name)
    spread.append("healthy_last")
    return [
        {"description": name, "regex": f"{patterns.get(name, name)}|ab+", "tests": TESTS} for name in spread
    ]


def spilled(
    folder: Path, faults: list[str], healthy: int, limits: Limits
) -> dict[tuple[str, int | None], Row]:
    """The rows of a run with these faults, in which every neighbour's are those of a run of the neighbours
    alone."""
    mixed = cases(faults, healthy, 7)
    neighbours = [each for each in mixed if str(each["description"]).startswith("healthy")]
    quiet = walk_all(folder / "quiet", BACKEND, neighbours, limits)
    rows = walk_all(folder / "mixed", BACKEND, mixed, limits)
    assert len(rows) == 2 * len(mixed)  # none lost, and `read_rows` refuses one that stands there twice
    # In order; but a case that a worker was lost with comes again at the end.
    in_order = [case for case in dict.fromkeys(case for case, _ in rows) if not case.startswith("killparent")]
    assert in_order == [
        each["description"] for each in mixed if not str(each["description"]).startswith("killparent")
    ]
    for key, row in quiet.items():
        assert replace(untimed(rows[key]), delayed="", behind=()) == untimed(row), (key, rows[key])
    assert not [row for row in rows.values() if row.status == "harness_error"]
    return rows


@pytest.mark.long
def test_faults_stay_with_the_cases_that_did_them(tmp_path: Path) -> None:
    faults = [*GUILTY, *LATER, *ARMED]
    rows = spilled(tmp_path, faults, 100, Limits(3.0, GIGABYTE))
    seen = {case.rpartition("_")[0]: row for (case, instance), row in rows.items() if instance == 0}
    assert {fault: seen[fault.replace("_", "")].status for fault in GUILTY} == GUILTY
    told = [row for row in rows.values() if row.delayed]
    for fault in ARMED:
        assert any(each.behind[-1].case.removeprefix("mini: ").startswith(fault) for each in told), fault
    assert len(told) <= len(ARMED) + 3  # by a busy machine's deadline or so


@pytest.mark.long
def test_thousands_of_faults_stay_with_the_cases_that_did_them(tmp_path: Path) -> None:
    quick = [fault for fault in (*GUILTY, *LATER, *ARMED) if "hang" not in fault and fault != "killparent"]
    spilled(tmp_path, quick * 10, 2000, Limits(5.0, GIGABYTE))
