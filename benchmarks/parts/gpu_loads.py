"""The cells of the parts `cold` and `share`: runs of the decode loop by turns, in one process, with a model
that is built once."""

from __future__ import annotations

import gc
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gpu_plan import LIMIT, LONG, LONG_LIMIT, PROMPT
from gpu_running import PLANNED
from gpu_store import middle

from harness.backend.grammar import Adapter, Grammar
from harness.backend.vocabulary import Vocabulary
from harness.errors import BadInput
from harness.measure.protocol import order
from harness.serve.decode.workloads import ReferenceText, Workload, find_workload, requests
from harness.serve.requests import latency
from harness.walk.loop.compiling import CompileQueue
from harness.walk.loop.loop import Loop, LoopOptions
from harness.walk.loop.outcome import STEP, Completed, Served
from harness.walk.loop.request import Request
from harness.walk.loop.strategies import make_strategy

if TYPE_CHECKING:
    from harness.walk.loop.forward import Forward

FIELDS = 20
LENGTHS = {"plain strings": None, "bounded strings": 40}
"""The two grammars that come cold: objects of FIELDS strings, without a bound and of at most so many
characters. A bound makes the compile of some backends a thousand times longer."""

MODES = ("warm", "warm again", "foreground", "thread")
"""How the newcomer comes to its grammar: compiled before (twice, which is the A/A arm), compiled by the loop
itself while all wait, compiled in a thread beside the loop."""

SHARES = (0.0, 0.2, 0.5, 0.8, 1.0)
AGAIN = "again"

Keep = Callable[[dict[str, Any]], object]
"""Is given what a cell has measured so far, so that it is there if the cell is killed."""


@dataclass(frozen=True)
class Bench:
    """What all runs of a cell have in common."""

    model: Forward
    vocabulary: Vocabulary
    adapter: Adapter

    def serve(self, made: Sequence[Request], queue: CompileQueue) -> Served:
        """Returns what came of the requests, one token a pass, with masks filled beside the forward pass."""
        strategy = make_strategy("stepwise", self.vocabulary, 0)
        loop = Loop(self.model, self.vocabulary, strategy, queue, LoopOptions())
        gc.collect()
        gc.disable()
        try:
            return loop.serve(made)
        finally:
            gc.enable()


def newcomers() -> dict[str, ReferenceText]:
    """Returns the texts whose grammars come cold, by name."""
    texts = {}
    for name, longest in LENGTHS.items():
        bound = {} if longest is None else {"maxLength": longest}
        fields = {f"field_{number}": {"type": "string", **bound} for number in range(FIELDS)}
        schema = {
            "type": "object",
            "properties": fields,
            "required": list(fields),
            "additionalProperties": False,
        }
        content = json.dumps({field: f"value {number}" for number, field in enumerate(fields)})
        texts[name] = ReferenceText(name, Grammar("json_schema", json.dumps(schema)), content.encode())
    return texts


def compiled(adapter: Adapter, grammars: Mapping[Grammar, None], workers: int) -> CompileQueue:
    """Returns a queue with those grammars in its cache. Raises BadInput for one that cannot be compiled."""
    queue = CompileQueue(adapter, workers=workers)
    tickets = [queue.submit(grammar) for grammar in grammars]
    while any(ticket.state == "pending" for ticket in tickets):
        queue.poll(0.1)
    for ticket in tickets:
        if ticket.state == "failed":
            queue.close()
            raise BadInput(f"a grammar of the warm batch cannot be compiled: {ticket.why}")
    return queue


def cold_cell(bench: Bench, batch: int, repeats: int, keep: Keep = lambda _: None) -> dict[str, Any]:
    """Returns a row for each run: the TPOT and the longest gap of each request that was in the batch before,
    and what the newcomer met. It arrives when a quarter of the batch's time is over, by a run without it.
    What there is is kept after each repeat, so that each run has the others of its repeat beside it."""
    running = requests(
        find_workload(LONG), bench.vocabulary, count=batch - 1, prompt_tokens=PROMPT, limit=LONG_LIMIT
    )
    grammars = dict.fromkeys(request.grammar for request in running if request.grammar is not None)
    with compiled(bench.adapter, grammars, 0) as queue:
        bench.serve(running, queue)
        delay = bench.serve(running, queue).wall_ns // 4
    rows: list[dict[str, Any]] = []
    result = {"batch": batch, "delay_ns": delay, "limit": LONG_LIMIT, "runs": rows}
    for name, text in newcomers().items():
        made = requests(Workload(name, (text,)), bench.vocabulary, count=1, prompt_tokens=PROMPT, limit=LIMIT)
        newcomer = replace(made[0], name="newcomer", arrival_ns=delay)
        with compiled(bench.adapter, {**grammars, text.grammar: None}, 0) as warm:
            for repeat in range(repeats):
                for mode in order(MODES, repeat):
                    if mode in ("foreground", "thread"):
                        with compiled(bench.adapter, grammars, int(mode == "thread")) as queue:
                            served = bench.serve([*running, newcomer], queue)
                    else:
                        served = bench.serve([*running, newcomer], warm)
                    rows.append({"newcomer": name, "mode": mode, "repeat": repeat} | of_cold(served))
                keep(result | {PLANNED: len(LENGTHS) * repeats * len(MODES)})
    return result


def of_cold(served: Served) -> dict[str, Any]:
    """Returns the figures of one run, nanoseconds; those of the others are in the order of their requests.
    `beside` is how many of them were still being served when the newcomer arrived."""
    others = [done for done in served.completed if done.name != "newcomer"]
    (newcomer,) = (done for done in served.completed if done.name == "newcomer")
    return {
        "beside": sum(done.done_ns > newcomer.arrived_ns for done in others),
        "others_ends": sorted({done.end for done in others}),
        "others_tpot_ns": [latency.tpot(done) for done in others],
        "others_gap_ns": max((gap for done in others for gap in latency.itl_per_message(done)), default=None),
        "end": newcomer.end,
        "why": (newcomer.why or newcomer.fallback)[:200],
        "how": newcomer.compile_state,
        "compile_ns": newcomer.compile_ns,
        "ttft_ns": latency.ttft(newcomer) if newcomer.ids else None,
        "tpot_ns": latency.tpot(newcomer),
    }


def share_cell(bench: Bench, batch: int, repeats: int, keep: Keep = lambda _: None) -> dict[str, Any]:
    """Returns a row for each run: tokens a second over the whole run, and TPOT of the requests with a grammar
    and of those without. All requests are there at the start and have equally many tokens. What there is is
    kept after each repeat."""
    made = requests(find_workload(LONG), bench.vocabulary, count=batch, prompt_tokens=PROMPT, limit=LIMIT)
    grammars = dict.fromkeys(request.grammar for request in made if request.grammar is not None)
    arms = [*((share, "") for share in SHARES), (1.0, AGAIN)]
    rows: list[dict[str, Any]] = []
    result = {"batch": batch, "limit": LIMIT, "runs": rows}
    with compiled(bench.adapter, grammars, 0) as queue:
        for share, _ in arms[:1] + arms[-1:]:
            bench.serve(with_share(made, share), queue)
        for repeat in range(repeats):
            for share, again in order(arms, repeat):
                served = bench.serve(with_share(made, share), queue)
                rows.append({"share": share, "again": bool(again), "repeat": repeat} | of_share(served))
            keep(result | {PLANNED: len(arms) * repeats})
    return result


def with_share(made: Sequence[Request], share: float) -> list[Request]:
    """Returns the requests, of which that share keeps its grammar, spread evenly over the batch."""
    return [
        request
        if int((number + 1) * share + 1e-9) > int(number * share + 1e-9)
        else replace(request, grammar=None)
        for number, request in enumerate(made)
    ]


def of_share(served: Served) -> dict[str, Any]:
    """Returns the figures of one run."""
    done = latency.answered(served.completed)
    rates = latency.rates(served.completed)
    steps = {
        name: [step[STEP.index(name)] for step in served.steps]
        for name in ("exposed_ns", "fill_ns", "wall_ns")
    }
    return {
        "structured": sum(bool(request.compile_state) for request in served.completed),
        "requests": len(served.completed),
        "answered": len(done),
        "tokens_per_s": rates.output_throughput if rates else None,
        "tpot_ns": middle_tpot(done),
        "tpot_structured_ns": middle_tpot([request for request in done if request.compile_state]),
        "tpot_free_ns": middle_tpot([request for request in done if not request.compile_state]),
        "step_ns": {
            name.removesuffix("_ns"): statistics.median(values) for name, values in steps.items() if values
        },
    }


def middle_tpot(done: Sequence[Completed]) -> float | None:
    """Returns the median TPOT, nanoseconds; None without one."""
    return middle(map(latency.tpot, done))
