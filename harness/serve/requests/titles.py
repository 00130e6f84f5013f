"""Every figure's name, title, unit, better direction and definition in one table, which terminal, report and
docs show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.text import duration

Unit = Literal["ns", "1/s", "share", "ratio", "bytes", "count", "nats"]
Better = Literal["lower", "higher", "neither"]


@dataclass(frozen=True)
class Title:
    """What a figure is. `alias` is its name elsewhere; empty if only we have it."""

    title: str
    unit: Unit
    better: Better
    definition: str
    alias: str = ""


FIGURES: dict[str, Title] = {
    "ttft": Title(
        "TTFT",
        "ns",
        "lower",
        "It is the time from arrival until the first id is on the host, the wait for a row included, in warm "
        "runs, whose grammars were compiled before.",
        "vLLM ttft",
    ),
    "ttft_from_row": Title(
        "TTFT from row",
        "ns",
        "lower",
        "It is the time from getting a row until the first id is on the host. A request gets a row once its "
        "grammar is there, so it is TTFT without the waits for both.",
    ),
    "ttft_cold": Title(
        "TTFT cold",
        "ns",
        "lower",
        "It is the time to the first id in a setting's cold run, which compiles each grammar.",
        "vLLM ttft",
    ),
    "tpot": Title(
        "TPOT",
        "ns",
        "lower",
        "It is (last token - first token) / (n - 1) of a request with n ids; a request with one id has none.",
        "vLLM tpot, GenAI-Perf and AIPerf ITL",
    ),
    "itl": Title(
        "ITL",
        "ns",
        "lower",
        "It is the gap between two messages, over all requests; ids that are known at one time are one "
        "message.",
        "vLLM itl",
    ),
    "itl_token": Title(
        "ITL per token",
        "ns",
        "lower",
        "It is the same gap, shared out over the tokens of the message that ends it.",
        "SGLang itl",
    ),
    "e2e": Title(
        "E2E",
        "ns",
        "lower",
        "It is the time from a request's arrival until it is done.",
        "vLLM e2el",
    ),
    "service": Title(
        "in the batch",
        "ns",
        "lower",
        "It is the time from getting a row until the request is done, which is E2E without the queue.",
    ),
    "output_throughput": Title(
        "tok/s",
        "1/s",
        "higher",
        "It is the number of ids that answered requests emitted, per second from the first arrival to the "
        "last end.",
        "vLLM output_throughput",
    ),
    "total_throughput": Title(
        "total tok/s",
        "1/s",
        "higher",
        "It is the same number per second with the prompts' tokens included.",
        "vLLM total_token_throughput",
    ),
    "request_throughput": Title(
        "requests/s",
        "1/s",
        "higher",
        "It is the number of answered requests per second, over the same time.",
        "vLLM request_throughput",
    ),
    "goodput": Title(
        "goodput",
        "1/s",
        "higher",
        "It is the number of requests per second answered under their own grammar and within the stated "
        "objectives; one with a single token keeps that of TPOT.",
        "vLLM request_goodput",
    ),
    "pass": Title(
        "per pass",
        "ns",
        "lower",
        "It is a whole step of the loop: forward pass, masks, sampling, accepts and the loop's own work.",
    ),
    "forward": Title(
        "forward",
        "ns",
        "lower",
        "It is the forward pass alone, to its end on the device.",
    ),
    "exposed": Title(
        "exposed",
        "ns",
        "lower",
        "It is the time for which masks held the loop up: their hand-over to threads, and the part of the "
        "fills that was not hidden.",
    ),
    "fill": Title(
        "fills",
        "ns",
        "lower",
        "It is the time of all fills of a step, summed over threads, hidden or not.",
    ),
    "own": Title(
        "loop's own",
        "ns",
        "lower",
        "It is what is left of a step without forward, exposed, move, apply, sample, accept and strategy, "
        "where these do not lie beside one another.",
    ),
    "tokens_per_pass": Title(
        "tok/pass",
        "ratio",
        "higher",
        "It is the number of ids that a request emitted divided by that of its forward passes (jump "
        "factor); stepwise has exactly 1.",
        "jump factor",
    ),
    "saved_share": Title(
        "saved",
        "share",
        "higher",
        "It is the share of the emitted ids of answered requests that had no pass of their own: forced ids, "
        "and accepted drafts.",
    ),
    "overhead": Title(
        "x none",
        "ratio",
        "lower",
        "It is TPOT divided by that of the unconstrained run at equal length, paired by request and "
        "round; its interval is over forks.",
    ),
    "overhead_e2e": Title(
        "E2E x none",
        "ratio",
        "lower",
        "It is E2E divided by that of the unconstrained run, paired as TPOT is.",
    ),
    "speed_up": Title(
        "speed-up",
        "ratio",
        "higher",
        "It is the time in the batch with stepwise divided by that with the strategy, summed over a run's "
        "equal texts, by round and fork.",
    ),
    "ceiling": Title(
        "ceiling",
        "ratio",
        "neither",
        "It is stepwise's number of passes divided by the strategy's, over the equal texts alone: the "
        "speed-up if only passes cost time. If all ids are equal, it is 1 / (1 - saved).",
    ),
    "valid": Title(
        "valid",
        "share",
        "higher",
        "It is the share of the judged texts that are valid by the grammar's own judge; fallbacks are "
        "counted apart.",
    ),
    "as_replayed": Title(
        "replayed",
        "share",
        "higher",
        "It is the share of the replayed requests whose text is the reference byte for byte.",
    ),
    "canonical": Title(
        "canonical",
        "share",
        "higher",
        "It is the share of the outputs asked about whose ids are the tokenizer's own of their text.",
    ),
    "canonical_ids": Title(
        "own ids",
        "share",
        "higher",
        "It is the share of the ids with text that the tokenizer itself puts over the same bytes; only "
        "real models have it.",
    ),
    "removed": Title(
        "removed",
        "share",
        "lower",
        "It is the share of the model's probability that the mask removes at a place of a text, 1 - Z; "
        "only real models have it.",
        "1 - feasible mass",
    ),
    "favourite_masked": Title(
        "top id masked",
        "share",
        "lower",
        "It is the share of the places at which the mask forbids the id that the model finds most probable.",
    ),
    "tax": Title(
        "tax",
        "nats",
        "lower",
        "It is the sum of -log Z over a text, which is the log of the constrained distribution over the "
        "model's.",
        "DCCD cumulative projection tax",
    ),
    "tax_per_id": Title(
        "tax/id",
        "nats",
        "lower",
        "It is the tax of all texts divided by the number of their places.",
    ),
    "imposed": Title(
        "imposed",
        "nats",
        "lower",
        "It is the sum of log Z - log P(id) over the ids of a text that were written without logits, "
        "which comes on top of the tax.",
    ),
    "drift": Title(
        "drift",
        "ratio",
        "lower",
        "It is the number of emitted ids divided by that of the text's own spelling, less 1.",
    ),
    "fallback": Title(
        "fallback",
        "share",
        "lower",
        "It is the share of the requests with a grammar that ran without it.",
    ),
    "solved": Title(
        "solved",
        "share",
        "higher",
        "It is the share of all requests that came to their end, are not invalid, and ran under their "
        "grammar.",
    ),
    "cut": Title(
        "cut",
        "share",
        "neither",
        "It is the share of all requests that were cut at their limit; such a text is invalid where no valid "
        "one begins so.",
    ),
    "compile": Title(
        "compile",
        "ns",
        "lower",
        "It is the time of a compile alone, of the requests that caused one; cold runs are included.",
    ),
    "waited": Title(
        "waited",
        "ns",
        "lower",
        "It is the time from arrival until the grammar was ready or given up, in warm runs.",
    ),
    "grammar": Title(
        "grammar/token",
        "ns",
        "lower",
        "It is the time of a request's fills and accepts, hidden or not, divided by the number of its ids.",
    ),
    "peak": Title(
        "peak memory",
        "bytes",
        "lower",
        "It is the highest device memory of a run; on a CPU it is the process's resident memory.",
    ),
}
"""The figures, in the order in which they are shown."""


def say(name: str, value: float | None) -> str:
    """Returns the value of that figure in its unit, with three digits; a share that is only close to all is
    not 100%."""
    if value is None:
        return "-"
    unit = FIGURES[name].unit
    if unit == "ns":
        return duration(value)
    if unit == "share":
        return f"{min(100 * value, 99.9) if value < 1 else 100 * value:.3g}%"
    if unit == "bytes":
        return f"{value / 2**30:.2f} GiB" if value >= 2**30 else f"{value / 2**20:.0f} MiB"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
