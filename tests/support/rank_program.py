"""Both ranks of test_decode_ranks.py: one process forks the other, and each writes what it saw into the
folder that argv names."""

from __future__ import annotations

import json
import os
import random
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from miniatures.compiling import Gated

from harness.backend.grammar import CompiledGrammar, Grammar
from harness.walk.loop.compile_job import Failure
from harness.walk.loop.compiling import CompileQueue, Ticket
from harness.walk.loop.ranks import Ranks

TEXTS = (
    "same",
    "one:hang slow",
    "one:raise",
    "zero:unsupported",
    "one:hang for ever",
    "invalid",
    "hang cancelled",
    "zero:invalid",
)


class OfRank(Gated):
    """`one:WHAT` and `zero:WHAT` do WHAT on that rank, and compile on the other."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.rank = rank

    def _compile(self, text: str) -> CompiledGrammar:
        where, _, what = text.rpartition(":")
        return super()._compile(what if where in ("", ("zero", "one")[self.rank]) else "fine")


def drawn(rank: int, number: int) -> tuple[set[int], dict[int, Failure]]:
    """Returns the ready and failed numbers of one rank in one agreement."""
    draw = random.Random(10 * number + rank)
    failed = set(draw.sample(range(20), draw.randrange(4)))
    return set(draw.sample(range(20), 12)) - failed, {
        failed_number: Failure("fault", f"of rank {rank}") for failed_number in failed
    }


def agreements(rank: int, ranks: Ranks, count: int) -> list[Any]:
    agreed = [ranks.agree(*drawn(rank, number)) for number in range(count)]
    return [
        [sorted(ready), {failed_number: failed[failed_number].why for failed_number in sorted(failed)}]
        for ready, failed in agreed
    ]


def outcome_of(ticket: Ticket) -> list[object]:
    return [
        ticket.state,
        ticket.how if ticket.state == "failed" else "",
        ticket.why,
        ticket.compiled is not None,
    ]


def served(rank: int, ranks: Ranks | None, timeout_s: float) -> dict[str, Any]:
    """Returns what every ticket said after every poll, and in the end; polls begin when each rank has
    compiled what it can."""
    adapter = OfRank(rank)
    with CompileQueue(adapter, workers=4, timeout_s=timeout_s, ranks=ranks) as queue:
        tickets = [queue.submit(Grammar("regex", text)) for text in TEXTS]
        history: list[list[str]] = []
        end = time.monotonic() + 30
        while len(adapter.made) < (4, 3)[rank] and time.monotonic() < end:
            time.sleep(0.001)
        while any(ticket.state == "pending" for ticket in tickets) and time.monotonic() < end:
            if len(history) == 3:
                queue.cancel(tickets[TEXTS.index("hang cancelled")])
            if len(history) == 5:
                adapter.release("hang slow")
            queue.poll(0.01)
            history.append([ticket.state for ticket in tickets])
        final = {text: outcome_of(ticket) for text, ticket in zip(TEXTS, tickets, strict=True)}
        if rank == 1:  # as after a result that was late here only
            queue._cache.pop(Grammar("regex", "same"))
        again = queue.submit(Grammar("regex", "same"))
        at_once = again.state
        while again.state == "pending":
            queue.poll(0.01)
        adapter.release("hang cancelled")
        adapter.release("hang for ever")
        return {"history": history, "final": final, "again": [at_once, again.how, again.state]}


def main() -> None:
    import torch.distributed

    folder = Path(sys.argv[1])
    child = os.fork()  # after the import, which costs more than all the rest
    rank = 1 if child == 0 else 0
    torch.distributed.init_process_group(
        "gloo", f"file://{folder}/rendezvous", timedelta(seconds=60), world_size=2, rank=rank
    )
    ranks = Ranks()
    observed = {
        "size": ranks.size,
        "agreements": agreements(rank, ranks, 50),
        "together": served(rank, ranks, 2),
        "apart": served(rank, None, 0.1),
    }
    torch.distributed.destroy_process_group()
    (folder / f"{rank}.json").write_text(json.dumps(observed))
    if rank == 0 and os.waitpid(child, 0)[1]:
        sys.exit("rank 1 failed")


if __name__ == "__main__":
    main()
