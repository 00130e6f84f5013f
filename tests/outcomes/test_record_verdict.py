"""The word of a verdict against a record, and the case that its command shows."""

from __future__ import annotations

from pathlib import Path

import synthetic

from harness.outcomes.expected.arm_faults import RecordedArm
from harness.outcomes.expected.verdict import Change, Verdict, _command, _gravity


def test_where_nothing_was_compared_nothing_is_proven() -> None:
    assert Verdict((), 0, 0, 0).word == "unproven"


def test_the_command_shows_the_gravest_change(tmp_path: Path) -> None:
    arm = RecordedArm("alpha", "", "1.2.3", "tiny")
    worst = Change(arm, "first/" + "a" * 12, "a", frozenset({"crash", "a_check:x"}), frozenset())
    milder = Change(arm, "first/" + "b" * 12, "b", frozenset({"over_constrained"}), frozenset())
    for changes in ([milder, worst], [worst, milder]):
        assert any("a" * 12 in word for word in _command(changes, tmp_path, synthetic.info()))


def test_a_crash_in_a_check_is_as_grave_as_one_elsewhere() -> None:
    assert _gravity("crash_in_a_check") == _gravity("crash") < _gravity("a_check:why")
