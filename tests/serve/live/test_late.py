"""When a session says that its own client was late."""

from __future__ import annotations

import pytest

from harness.serve.live import figures
from harness.serve.live.answer import Answer, Heard
from harness.serve.live.load import Load
from harness.serve.live.show import _late

MS = 1_000_000
LOAD = Load("fixed", "constrained", 10, rate=10.0)


def answer(number: int, late_ms: int, *, is_answered: bool) -> Answer:
    """A request that was due 100 ms after the one before, and with which we began so much later."""
    due = number * 100 * MS
    begun = due + late_ms * MS
    messages = (begun + 50 * MS, begun + 60 * MS) if is_answered else ()
    heard = Heard("finished" if is_answered else "failed", begun, begun + MS, messages, None, begun + 80 * MS)
    return Answer(number, 0, "mine", "word", "constrained", "", due, heard)


@pytest.mark.parametrize("answered_when_late", [True, False])
@pytest.mark.parametrize(("late", "is_late"), [(8, True), (2, False)])
def test_requests_that_failed_were_late_too(late: int, is_late: bool, answered_when_late: bool) -> None:
    answers = [
        answer(number, 5000 if number < late else 0, is_answered=(number < late) == answered_when_late)
        for number in range(10)
    ]
    assert (_late(LOAD, answers) is not None) == is_late
    assert len(figures.values(answers, "lag")) == 10
    assert len(figures.values(answers, "ttft")) == (late if answered_when_late else 10 - late)


@pytest.mark.parametrize(("late_ms", "is_late"), [(30, False), (51, True)])
def test_late_is_more_than_half_of_the_mean_gap(late_ms: int, is_late: bool) -> None:
    """Two requests have one gap, of 100 ms."""
    answers = [answer(number, late_ms, is_answered=True) for number in range(2)]
    assert (_late(LOAD, answers) is not None) == is_late
    assert (_late(LOAD, answers[:1]) is not None) == (late_ms > 10)
