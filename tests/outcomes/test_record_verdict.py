"""The word of a verdict against a record, and the case that its command shows."""

from __future__ import annotations

from pathlib import Path

import synthetic

from harness.outcomes.expected.arm_faults import RecordedArm, gravity_of
from harness.outcomes.expected.verdict import Change, Verdict, _command


def test_where_nothing_was_compared_nothing_is_proven() -> None:
    assert Verdict((), 0, 0, 0).word == "unproven"


def test_the_command_shows_the_first_new_failure(tmp_path: Path) -> None:
    """The gravest comes first: tests/outcomes/test_new_checks.py."""
    arm = RecordedArm("alpha", "", "1.2.3", "tiny")
    worst = Change(arm, "first/" + "a" * 12, "a", frozenset({"crash", "a_check:x"}), frozenset())
    milder = Change(arm, "first/" + "b" * 12, "b", frozenset({"over_constrained"}), frozenset())
    mended = Change(arm, "first/" + "c" * 12, "c", frozenset(), frozenset({"crash"}))
    command = _command([mended, worst, milder], tmp_path, synthetic.info())
    assert any("a" * 12 in word for word in command)
    assert _command([mended], tmp_path, synthetic.info()) == ()


def test_a_crash_in_a_check_is_as_grave_as_one_elsewhere() -> None:
    assert gravity_of("crash_in_a_check") == gravity_of("crash") < gravity_of("a_check:why")
