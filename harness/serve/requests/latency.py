"""The latencies and rates of one batch, as vLLM names them, each with its definition. Input is in
nanoseconds; results are nanoseconds and numbers.

`n` is the number of a request's emitted ids, end-of-sequence included: what the cache was extended by, never
a re-tokenised text. A time runs from the request's arrival, so that it includes waiting for a row and for a
grammar.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from harness.errors import BadInput
from harness.measure.statistics import shown_quantiles
from harness.walk.loop.outcome import ANSWERED, Completed

LEVELS = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
"""The levels of percentiles. The median is shown for any number of values, another level only if ten values
lie beyond it (p90: 100, p99: 1,000 values)."""


@dataclass(frozen=True)
class Objectives:
    """The service-level objectives in milliseconds that a good request keeps; None means that there is no
    such objective."""

    ttft_ms: float | None = None
    tpot_ms: float | None = None
    e2e_ms: float | None = None

    def __str__(self) -> str:
        asked = (("TTFT", self.ttft_ms), ("TPOT", self.tpot_ms), ("E2E", self.e2e_ms))
        return ", ".join(f"{name} <= {limit:g} ms" for name, limit in asked if limit is not None)

    def are_kept(self, ttft_ns: float, tpot_ns: float | None, e2e_ns: float) -> bool:
        """Returns whether a request of these times keeps every objective. A time per output token of None
        counts as kept, as in vLLM."""
        limits = ((ttft_ns, self.ttft_ms), (tpot_ns, self.tpot_ms), (e2e_ns, self.e2e_ms))
        return all(limit is None or time is None or time <= limit * 1e6 for time, limit in limits)


OBJECTIVES = Objectives(ttft_ms=500, tpot_ms=50)
"""The objectives of goodput, unless others are given: what a reader at a screen takes for fluent. They are
always printed."""


def objectives_of(text: str) -> Objectives:
    """Returns the objectives in a text like `ttft:500 tpot:50 e2e:2000`, in milliseconds, as vLLM's
    `--goodput` reads it; OBJECTIVES if it names none. Raises BadInput."""
    limits: dict[str, float] = {}
    for part in text.split():
        name, _, limit = part.partition(":")
        try:
            if name not in ("ttft", "tpot", "e2e") or not float(limit) > 0:
                raise ValueError
            limits[f"{name}_ms"] = float(limit)
        except ValueError:
            raise BadInput(
                f'"{part}" is no objective; write for example ttft:500 tpot:50 e2e:2000 (milliseconds)'
            ) from None
    return Objectives(**limits) if limits else OBJECTIVES


@dataclass(frozen=True)
class Rates:
    """Rates of a batch, over the time from the first arrival to the last request's end."""

    seconds: float
    requests: int
    """Number of answered requests; tokens are counted over these too."""
    output_tokens: int
    prompt_tokens: int

    @property
    def output_throughput(self) -> float:
        """Output tokens a second (vLLM: output_throughput)."""
        return self.output_tokens / self.seconds

    @property
    def total_throughput(self) -> float:
        """Prompt and output tokens a second (vLLM: total_token_throughput)."""
        return (self.prompt_tokens + self.output_tokens) / self.seconds

    @property
    def request_throughput(self) -> float:
        """Requests a second (vLLM: request_throughput)."""
        return self.requests / self.seconds


def answered(completed: Iterable[Completed]) -> list[Completed]:
    """Returns the requests whose output came to its end or its limit, without those that ran without their
    grammar: their times and tokens are not the backend's."""
    return [request for request in completed if is_answered(request)]


def is_answered(request: Completed) -> bool:
    """Returns whether the request was answered under its own grammar, with a token at least. One that asked
    for no grammar has none of its own to miss."""
    return request.end in ANSWERED and not request.fallback and bool(request.ids)


def ttft(request: Completed) -> float:
    """Time to first token: from arrival until the first id is on the host. It includes queue, compile,
    prefill and first mask."""
    return float(request.token_ns[0] - request.arrived_ns)


def ttft_from_row(request: Completed) -> float:
    """Time to first token without the queue: from getting a row until the first id is on the host. In a
    closed load with more requests than rows, TTFT has the time of the requests before in it. A request gets
    a row once its grammar is there, so the wait for that is not in this time either."""
    begun_ns = request.arrived_ns if request.admitted_ns is None else request.admitted_ns
    return float(request.token_ns[0] - begun_ns)


def tpot(request: Completed) -> float | None:
    """Time per output token: (last token - first token) / (n - 1). None if n is 1, because there is no second
    token to wait for."""
    if len(request.token_ns) < 2:
        return None
    return (request.token_ns[-1] - request.token_ns[0]) / (len(request.token_ns) - 1)


def e2e(request: Completed) -> float:
    """End to end: from arrival until the request is done."""
    return float(request.done_ns - request.arrived_ns)


def itl_per_message(request: Completed) -> list[float]:
    """Inter-token latency as vLLM reads it: one gap for each message. Tokens that became known at one time
    are one message."""
    times = sorted(set(request.token_ns))
    return [float(after - before) for before, after in pairwise(times)]


def itl_per_token(request: Completed) -> list[float]:
    """Inter-token latency as SGLang reads it: the gap before a message of k tokens counts as k gaps of a
    k-th; the first message has none."""
    times, counts = np.unique(np.array(request.token_ns, np.int64), return_counts=True)
    return [
        float(gap) / int(count)
        for gap, count in zip(np.diff(times).tolist(), counts[1:].tolist(), strict=True)
        for _ in range(int(count))
    ]


def rates(completed: Sequence[Completed]) -> Rates | None:
    """Returns the rates of a batch, all 0 if nothing was answered; None if nothing was asked, or all in no
    time."""
    if not completed:
        return None
    good = answered(completed)
    span = max(request.done_ns for request in completed) - min(request.arrived_ns for request in completed)
    if span <= 0:
        return None
    return Rates(
        span / 1e9,
        len(good),
        sum(len(request.ids) for request in good),
        sum(request.prompt for request in good),
    )


def is_good(request: Completed, objectives: Objectives) -> bool:
    """Returns whether the request was answered under its own grammar and within every objective.

    With a single token TPOT does not apply and counts as kept, as in vLLM (AIPerf counts such a request as
    not good).
    """
    return is_answered(request) and objectives.are_kept(ttft(request), tpot(request), e2e(request))


def goodput(completed: Sequence[Completed], objectives: Objectives) -> float | None:
    """Good requests a second, over the same time as the throughput: 0 if nothing was answered, None if
    nothing was asked."""
    throughput = rates(completed)
    return (
        None
        if throughput is None
        else sum(is_good(request, objectives) for request in completed) / throughput.seconds
    )


def tokens_per_pass(completed: Sequence[Completed]) -> float | None:
    """Output tokens over the forward passes that the requests used (jump factor); exactly 1 if each pass
    gives one token."""
    good = answered(completed)
    passes = sum(request.account.passes for request in good)
    return sum(len(request.ids) for request in good) / passes if passes else None


def percentiles(values: Sequence[float]) -> dict[str, float | None]:
    """Returns mean, count and LEVELS, as observed values; a level is None if too few values lie beyond it."""
    mean = float(np.mean(values)) if len(values) else None
    return {"n": float(len(values)), "mean": mean, **shown_quantiles(values, LEVELS)}
