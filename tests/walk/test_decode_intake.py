"""The way of a request to its row, where compiles hold up the loop: each waits for those before it too."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from decode_tools import WORDS

from harness.backend.grammar import Adapter, Grammar, InvalidGrammar
from harness.oracle.reference import Reference, ReferenceGrammar
from harness.walk.loop import compiling, intake
from harness.walk.loop.compile_job import CompileOutcome, compile_one
from harness.walk.loop.compiling import CompileQueue
from harness.walk.loop.intake import Intake
from harness.walk.loop.request import Request

MS = 1_000_000
COMPILE_NS = 50 * MS


class Refuses(Reference):
    def compile(self, grammar: Grammar) -> ReferenceGrammar:
        raise InvalidGrammar("no")


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time passes in compiles alone, 50 ms in each."""
    now_ns = 0

    def compiles(adapter: Adapter, grammar: Grammar) -> CompileOutcome:
        nonlocal now_ns
        now_ns += COMPILE_NS
        return compile_one(adapter, grammar)

    monkeypatch.setattr(compiling, "compile_one", compiles)
    monkeypatch.setattr(intake, "perf_counter_ns", lambda: now_ns)


def arriving(times_ns: Sequence[int], cancel_ns: int | None = None) -> list[Request]:
    return [
        Request(str(number), (1,), 5, Grammar("regex", f"a{number}"), arrival_ns=time_ns, cancel_ns=cancel_ns)
        for number, time_ns in enumerate(times_ns)
    ]


def waits(taken: Intake) -> list[int]:
    found = []
    while (waiting := taken.next_ready()) is not None:
        found.append(waiting.waited_ns // MS)
    return found


def test_a_request_waits_for_the_compiles_before_its_own() -> None:
    taken = Intake(arriving([0] * 4), CompileQueue(Reference(WORDS), workers=0), "unconstrained")
    taken.advance(0)
    assert waits(taken) == [50, 100, 150, 200] and taken.queue_ns == 200 * MS


def test_the_next_round_begins_where_the_clock_is() -> None:
    """What was spent in the queue before is in the clock already."""
    taken = Intake(arriving([0, 60 * MS]), CompileQueue(Reference(WORDS), workers=0), "unconstrained")
    taken.advance(0)
    taken.advance(70 * MS)
    assert waits(taken) == [50, 60]


def test_aborted_requests_end_when_their_own_compile_has_failed() -> None:
    taken = Intake(arriving([0] * 4), CompileQueue(Refuses(WORDS), workers=0), "abort")
    taken.advance(0)
    assert [taken.ended[number].done_ns // MS for number in range(4)] == [50, 100, 150, 200]
    assert [taken.ended[number].waited_ns // MS for number in range(4)] == [50, 100, 150, 200]


def test_a_client_that_leaves_during_a_compile_is_not_served() -> None:
    taken = Intake(arriving([0, 0], 30 * MS), CompileQueue(Reference(WORDS), workers=0), "unconstrained")
    taken.advance(0)
    assert waits(taken) == [] and taken.queue_ns == 50 * MS, "nothing is compiled for the second"
    assert {number: (done.end, done.done_ns // MS) for number, done in taken.ended.items()} == {
        0: ("cancelled", 50),
        1: ("cancelled", 50),
    }
