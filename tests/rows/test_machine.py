"""What is noted of the machine of a run."""

from __future__ import annotations

import time

import pytest

from harness.rows.machine import KEYS, describe_machine


def test_a_machine_whose_clock_stands_before_its_start_is_described_without_what_pyperf_tells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """pyperf takes no negative time since the start."""
    assert set(KEYS) & set(describe_machine())
    monkeypatch.setattr(time, "time", lambda: 1.0)
    described = describe_machine()
    assert described["packages"] and described["cpus_usable"] and not set(KEYS) & set(described)
