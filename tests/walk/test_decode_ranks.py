"""Two processes over gloo on this machine: both take the same decision about every grammar in the
same poll.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from miniatures.compiling import Gated
from places import ROOT, SUPPORT
from rank_program import TEXTS, drawn

from harness.backend.grammar import Grammar
from harness.walk.loop.compile_job import Failure
from harness.walk.loop.compiling import CompileQueue
from harness.walk.loop.ranks import Ranks

TESTS = SUPPORT
Seen = dict[str, Any]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> list[Seen]:
    """What each rank wrote."""
    torch = pytest.importorskip("torch")
    if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
        pytest.skip("this torch has no gloo")
    environment = os.environ | {
        "PYTHONPATH": f"{TESTS}{os.pathsep}{ROOT}",
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
    }
    folder = tmp_path_factory.mktemp("ranks")
    program = [sys.executable, str(TESTS / "rank_program.py"), str(folder)]
    done = subprocess.run(program, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in (0, 1)]


def check_both_decide_alike(seen: list[Seen], how: str) -> None:
    """Every ticket has the same state on both ranks after every poll, and says the same in the end."""
    zero, one = (each[how] for each in seen)
    assert zero["history"] == one["history"]
    assert zero["final"] == one["final"]


def test_ready_is_the_intersection_and_failed_the_union(seen: list[Seen]) -> None:
    assert [each["size"] for each in seen] == [2, 2]
    for number in range(50):
        (ready_0, failed_0), (ready_1, failed_1) = drawn(0, number), drawn(1, number)
        ready, failed = seen[0]["agreements"][number]
        assert set(ready) == (ready_0 & ready_1) - failed_0.keys() - failed_1.keys()
        assert {int(each): why for each, why in failed.items()} == {
            each: why.why for each, why in (failed_1 | failed_0).items()
        }
    assert seen[0]["agreements"] == seen[1]["agreements"]


def test_both_ranks_decide_alike_in_every_poll(seen: list[Seen]) -> None:
    check_both_decide_alike(seen, "together")


def test_ranks_that_do_not_ask_each_other_are_seen(seen: list[Seen]) -> None:
    with pytest.raises(AssertionError):
        check_both_decide_alike(seen, "apart")


def test_one_rank_decides_for_both(seen: list[Seen]) -> None:
    timeout, cancelled = (
        ["failed", "timeout", "the compile ran for more than 2 s", False],
        ["failed", "miss", "cancelled", False],
    )
    assert seen[0]["together"]["final"] == {
        "same": ["ready", "", "", True],
        "one:hang slow": ["ready", "", "", True],
        "one:raise": ["failed", "fault", "RuntimeError: the compiler gave up", False],
        "zero:unsupported": ["failed", "unsupported", "UnsupportedGrammar: no lookahead", False],
        "one:hang for ever": timeout,
        "invalid": ["failed", "invalid", "InvalidGrammar: unbalanced parenthesis at 3", False],
        "hang cancelled": cancelled,
        "zero:invalid": ["failed", "invalid", "InvalidGrammar: unbalanced parenthesis at 3", False],
    }


def test_nobody_is_ready_before_the_slowest_rank(seen: list[Seen]) -> None:
    slow = TEXTS.index("one:hang slow")
    waits = {
        how: [sum(states[slow] == "pending" for states in each[how]["history"]) for each in seen]
        for how in ("together", "apart")
    }
    assert waits["together"][0] == waits["together"][1] >= 5, "rank 1 has it after its fifth poll"
    assert waits["apart"][0] == 0, "rank 0 alone does not wait"


def test_a_hit_on_one_rank_waits_for_the_other(seen: list[Seen]) -> None:
    assert seen[0]["together"]["again"] == ["pending", "hit", "ready"]
    assert seen[1]["together"]["again"] == ["pending", "miss", "ready"]
    assert seen[0]["apart"]["again"] == ["ready", "hit", "ready"]


class One(Ranks):
    """A group of one."""

    def __init__(self) -> None:
        self.size = 1

    def agree(self, *_: object) -> tuple[set[int], dict[int, Failure]]:
        raise AssertionError("one rank has nobody to ask")


def test_a_single_rank_asks_nobody() -> None:
    with CompileQueue(Gated(), workers=0, ranks=One()) as queue:
        ticket = queue.submit(Grammar("regex", "a"))
        queue.poll()
    assert ticket.state == "ready"
