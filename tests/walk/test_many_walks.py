"""Many quick walks of a case make no backend too slow; slow ones do, and what is told names their sum."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from harness.backend.grammar import Grammar
from harness.backend.vocabulary import byte_vocabulary
from harness.cases.case import Case, Instance
from harness.oracle.reference import Reference
from harness.running import worker
from harness.running.limits import Limits
from harness.walk.replay import Observation

SECOND = 1_000_000_000
TIMEOUT = 10.0
TOKENS = 100


def walked(monkeypatch: pytest.MonkeyPatch, seconds: list[float]) -> list[tuple[str, str]]:
    """Returns status and text of the walks of a case whose calls take so many seconds, one walk each."""
    left = list(seconds)

    def walk(*arguments: Any) -> Observation:
        most_ns, takes = arguments[-1], left.pop(0) * SECOND
        samples = array("q", [round(takes / 2)] * 2).tobytes()
        # Our own work between the calls takes an hour.
        seen = Observation(tokens=TOKENS, accepted=True, wall_ns=3600 * SECOND, samples=samples)
        if takes <= most_ns:
            return seen
        return Observation("timeout", "walk", "its calls had taken too long", tokens=TOKENS, samples=samples)

    monkeypatch.setattr(worker, "walk", walk)
    case = Case(
        "0" * 12, "a case", Grammar("regex", "a+"), (Instance("", b"a" * TOKENS, True),) * len(seconds)
    )
    said: list[tuple[str, str]] = []

    def answer(event: str, *_: Any, **fields: Any) -> None:
        if event == "walked":
            said.append((fields["observation"]["status"], fields["observation"]["text"]))

    progress = memoryview(bytearray(128)).cast("q")
    worker.serve_case(Reference(byte_vocabulary()), case, answer, progress, Limits(TIMEOUT, 10**9))
    return said


def test_quick_walks_are_all_made_and_none_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    # A second for 100 tokens is a hundredth of the deadline for the walk, and less than a thousandth a token.
    assert {status for status, _ in walked(monkeypatch, [1.0] * 500)} == {"ok"}


def test_slow_walks_are_ended_and_the_sum_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    said = walked(monkeypatch, [12.0, 1.0, 12.0, 12.0, 1.0, 1.0])
    assert [status for status, _ in said] == ["ok", "ok", "ok", "timeout", "skipped", "skipped"]
    assert "those of slow walks before it 24 s; 30 s are allowed for a case" in said[3][1]


def test_a_quick_walk_behind_slow_ones_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    said = walked(monkeypatch, [14.9, 15.0, 1.0, 1.0])
    assert [status for status, _ in said] == ["ok"] * 4


def test_a_walk_that_is_too_long_by_itself_names_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    ((status, text),) = walked(monkeypatch, [31.0])
    assert (status, text) == ("timeout", "its calls had taken too long")
