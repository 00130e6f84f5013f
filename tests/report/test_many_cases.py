"""What is made of many cases looks at each of them once: nothing is sought in a list of all others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn
from xml.etree import ElementTree as xml

import pytest
import synthetic

from harness.outcomes.differences import CaseDifferences, add_outcome, case_key
from harness.outcomes.result import Failing, result_of
from harness.outcomes.result.parts import Change
from harness.report.export import junit
from harness.report.page import verdict


class NeverSought(dict[Any, Any]):
    """Places among which none may be sought one by one."""

    def __iter__(self) -> NoReturn:
        raise AssertionError("all places were looked at for one")

    values = __iter__


def test_the_places_of_many_instances_are_found_without_a_search() -> None:
    rows = [synthetic.row(instance=number, instance_name="same", valid=None) for number in range(50)]
    places = NeverSought()
    by_key = {case_key(rows[0]): CaseDifferences("a case", "json_schema", places=places)}
    for row in (*rows, *rows):
        add_outcome(by_key, row)
    (case,) = by_key.values()
    assert (
        dict.items(places) == {("instance (same)", at): f"instance {at} (same)" for at in range(50)}.items()
    )
    assert len(case.unjudged) == 50


@pytest.fixture
def never_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets nobody ask whether two failing cases are one."""

    def refused(*_: object) -> NoReturn:
        raise AssertionError("a failing case was compared with another one")

    monkeypatch.setattr(Failing, "__eq__", refused)


@pytest.mark.usefixtures("never_equal")
def test_junit_tells_failing_cases_apart_by_their_outcome(tmp_path: Path) -> None:
    wrong = {"accepted": False, "stopped_at": 1}
    walks = [
        [(synthetic.row(suite=suite, case_id=f"{number:012x}", **wrong), b"")]
        for suite in ("first", "second")
        for number in range(3)
    ]
    synthetic.write_run(tmp_path / "run", walks)
    root = xml.fromstring(junit.files(result_of(tmp_path / "run"))["junit.xml"])
    suites = {suite.get("name"): suite for suite in root.iter("testsuite")}
    failed = {name: len(suite.findall("testcase/failure")) for name, suite in suites.items()}
    assert sorted(failed.values()) == [0, 3, 3] and len(suites) == 3


def test_changes_that_several_runs_share_are_shown_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0
    equal = Change.__eq__

    def counted(mine: Change, other: object) -> bool:
        nonlocal compared
        compared += 1
        return equal(mine, other)

    changes = [
        Change("worse" if number % 2 else "better", "an arm", f"case {number}") for number in range(90)
    ]
    gate: Any = SimpleNamespace(against="a run", verdict="failed", reasons=())
    monkeypatch.setattr(
        verdict, "_held", lambda *_: [(gate, changes[:60]), (gate, [replace(one) for one in changes[30:]])]
    )
    for name in ("samples", "control", "facts", "_word"):
        monkeypatch.setattr(verdict, name, lambda *_: "")
    monkeypatch.setattr(Change, "__eq__", counted)
    told = verdict.verdict(SimpleNamespace(incomplete={}, held=None))  # type: ignore[arg-type]
    assert told.more + len(told.changes) == 90 and compared < 90
    assert {glyph for glyph, _ in told.changes} == {"↘"}
