"""The decode loop on a device that works while the host goes on: a pass begins before the host knows its
tokens, and no output changes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from decode_batches import OPTIONS, WithKernel, batches
from decode_tools import (
    WORDS,
    Around,
    AroundAdapter,
    FakeModel,
    alone,
    as_if_the_cpu_worked_beside,
    regex,
    request,
    serve,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.oracle.reference import Reference
from harness.walk.loop import active, batch, intake, loop, step
from harness.walk.loop.accounting import of_run
from harness.walk.loop.compiling import CompileQueue
from harness.walk.loop.loop import Loop, LoopOptions, _Run
from harness.walk.loop.outcome import steps
from harness.walk.loop.request import Request
from harness.walk.loop.sampling import Chosen
from harness.walk.loop.strategies.base import Strategy
from harness.walk.loop.strategies.jump_forward import JumpForward

EXACT = Reference(WORDS)


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    as_if_the_cpu_worked_beside(monkeypatch)


class Unseen(FakeModel):
    """Counts the passes whose tokens the host did not know."""

    unseen = 0

    def extend_unseen(self, rows: Sequence[int], tokens: torch.Tensor) -> torch.Tensor:
        self.unseen += 1
        return super().extend_unseen(rows, tokens)


@pytest.mark.usefixtures("beside")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches(), OPTIONS, st.integers(1, 4))
def test_a_pass_that_begins_ahead_changes_no_output(
    requests: list[Request], options: dict[str, Any], rows: int
) -> None:
    model = Unseen(rows=rows)
    completed = serve(requests, WithKernel(WORDS), model=model, **options)
    for each, wanted in zip(completed, requests, strict=True):
        assert each.ids == alone(wanted, EXACT), wanted
        assert each.account.passes == each.account.sampled == len(each.ids)
    assert bool(model.unseen) <= options["overlap"]
    model.assert_is_empty()


@pytest.mark.usefixtures("beside")
@pytest.mark.parametrize(
    ("changed", "unseen"),
    [({}, 7), ({"ahead": False}, 0), ({"overlap": False}, 0), ({"strategy": JumpForward}, 0)],
)
def test_a_pass_begins_ahead_where_its_tokens_need_no_host(changed: dict[str, Any], unseen: int) -> None:
    model = Unseen()
    wanted = [request("r", regex("[a-d]{90}"), limit=8), request("free", limit=6, seed=4)]
    found = serve(wanted, model=model, **changed)
    assert [each.ids for each in found] == [alone(each) for each in wanted]
    assert model.unseen == unseen


@pytest.mark.usefixtures("beside")
@pytest.mark.parametrize("ahead", [True, False])
def test_what_the_host_does_before_a_pass_begins_is_none_of_the_pass(ahead: bool) -> None:
    """A device's model says when its pass began: here 3 ms after it was asked for."""

    class Late(Unseen):
        began = 0

        def extend(self, *arguments: Any, **options: Any) -> torch.Tensor:
            time.sleep(0.003)
            self.began = time.perf_counter_ns()
            return super().extend(*arguments, **options)

    model = Late()
    with CompileQueue(AroundAdapter(Around), workers=0) as queue:
        options = LoopOptions(ahead=ahead)
        wanted = [request("r", regex("[a-d]{90}"), limit=6)]
        run = _Run(Loop(model, WORDS, Strategy(WORDS), queue, options), wanted)
        assert not run.is_told, "on a CPU the pass begins when it is asked for"
        run.is_told = True
        served = run.serve()
        run.close()
    columns = steps(np.array(served.steps))
    assert model.unseen == (5 if ahead else 0)
    assert np.median(columns["forward_ns"]) < 3_000_000, columns["forward_ns"]
    assert served.wall_ns > 6 * 3_000_000


@pytest.mark.usefixtures("beside")
def test_a_step_that_began_ahead_says_what_ran_beside_it() -> None:
    """The device ends a pass 20 ms after it was begun; accepts take 5 ms of that. The host's clock is one of
    ours, on which nothing else takes more than a look at it."""
    clock, now = [0], [0]

    def look() -> int:
        now[0] += 1_000
        return now[0]

    class Slow(Unseen):
        def extend(self, *arguments: Any, **options: Any) -> torch.Tensor:
            clock[0] = max(clock[0], look()) + 20_000_000
            return super().extend(*arguments, **options)

    class Accepts(Around):
        def accept_token(self, token: int) -> bool:
            now[0] += 5_000_000
            return super().accept_token(token)

    model = Slow()
    with CompileQueue(AroundAdapter(Accepts), workers=0) as queue, pytest.MonkeyPatch.context() as patch:
        for module in (active, batch, intake, loop, step):
            patch.setattr(module, "perf_counter_ns", look)
        run = _Run(Loop(model, WORDS, Strategy(WORDS), queue), [request("r", regex("[a-d]{90}"), limit=6)])
        run.clock = lambda: max(clock[0], look())
        known = Chosen.known

        def waits(self: Chosen) -> list[int]:
            now[0] = max(now[0], waited[0])
            return known(self)

        waited = [0]
        choose = run.sampler.choose

        def chooses(logits: torch.Tensor) -> Chosen:
            waited[0] = clock[0]
            return choose(logits)

        run.sampler.choose = chooses  # type: ignore[method-assign]
        patch.setattr(Chosen, "known", waits)
        served = run.serve()
        run.close()
    table = np.array(served.steps)
    columns = steps(table)
    assert model.unseen == 5 and served.passes == 6
    assert not of_run(served.completed, table, 6, served.wall_ns)
    assert columns["beside_ns"][0] == 0 and min(columns["own_ns"]) >= 0
    assert all(each > 4_000_000 for each in columns["beside_ns"][1:]), columns["beside_ns"]
    assert all(each < 24_000_000 for each in columns["wall_ns"][1:-1]), "accepts run beside the pass"
