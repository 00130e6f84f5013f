"""How far a command is, as it says on stderr."""

from __future__ import annotations

import io
import time

import pytest

from harness.cli import progress
from harness.running.progress import RunProgress


@pytest.mark.parametrize(
    ("seconds", "done", "left"),
    [
        (60.0, 30, "0.5/s, about 40 s left"),
        (600.0, 30, "0.1/s, about 7 min left"),
        (30_000.0, 30, "0.0/s, about 5.6 h left"),
        (600.0, 0, "0.0/s, time left unknown"),
    ],
)
def test_the_time_left_of_a_run_is_told_as_people_say_it(
    seconds: float, done: int, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cases that a run has when it goes on took no time now."""
    now, stream = [1000.0], io.StringIO()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with progress.progress_line(stream) as show:
        show(RunProgress(50, 100, 0))
        now[0] += seconds
        show(RunProgress(50 + done, 100, 1))
    assert stream.getvalue() == f"{50 + done}/100 cases ({50 + done} %), {left}, 1 broken walk\n"
