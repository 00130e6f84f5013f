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
        "From arrival until the first id is on the host; warm: the grammars were compiled before.",
        "vLLM ttft",
    ),
    "ttft_cold": Title(
        "TTFT cold",
        "ns",
        "lower",
        "The same in a setting's cold run, which compiles each grammar.",
        "vLLM ttft",
    ),
    "tpot": Title(
        "TPOT",
        "ns",
        "lower",
        "(Last token - first token) / (n - 1) of a request; none where n is 1.",
        "vLLM tpot, GenAI-Perf and AIPerf ITL",
    ),
    "itl": Title(
        "ITL",
        "ns",
        "lower",
        "Gaps between messages, all requests pooled; ids known at one time are one message.",
        "vLLM itl",
    ),
    "itl_token": Title(
        "ITL per token",
        "ns",
        "lower",
        "The same gaps shared out over the tokens of the message that ends them.",
        "SGLang itl",
    ),
    "e2e": Title("E2E", "ns", "lower", "From a request's arrival until it is done.", "vLLM e2el"),
    "service": Title("in the batch", "ns", "lower", "From getting a row until done: E2E without the queue."),
    "output_throughput": Title(
        "tok/s",
        "1/s",
        "higher",
        "Emitted ids of answered requests over first arrival to last end.",
        "vLLM output_throughput",
    ),
    "total_throughput": Title(
        "total tok/s", "1/s", "higher", "The same, prompt tokens included.", "vLLM total_token_throughput"
    ),
    "request_throughput": Title(
        "requests/s", "1/s", "higher", "Answered requests over the same time.", "vLLM request_throughput"
    ),
    "goodput": Title(
        "goodput",
        "1/s",
        "higher",
        "Answered under the own grammar and within the stated objectives; a single token keeps TPOT.",
        "vLLM request_goodput",
    ),
    "pass": Title(
        "per pass",
        "ns",
        "lower",
        "A whole step of the loop: forward pass, masks, sampling, accepts and the loop's own work.",
    ),
    "forward": Title("forward", "ns", "lower", "The forward pass alone, to its end on the device."),
    "exposed": Title(
        "exposed",
        "ns",
        "lower",
        "What masks held the loop up: their hand-over to threads, and what of the fills was not hidden.",
    ),
    "fill": Title("fills", "ns", "lower", "All fills of a step, summed over threads, hidden or not."),
    "own": Title(
        "loop's own",
        "ns",
        "lower",
        "What is left of a step without forward, exposed, move, apply, sample, accept and strategy, where "
        "these do not lie beside one another.",
    ),
    "tokens_per_pass": Title(
        "tok/pass",
        "ratio",
        "higher",
        "Emitted ids over forward passes of a request (jump factor); stepwise is exactly 1.",
        "jump factor",
    ),
    "saved_share": Title(
        "saved",
        "share",
        "higher",
        "Of the emitted ids, those without a pass of their own: forced, and accepted drafts.",
    ),
    "overhead": Title(
        "x none",
        "ratio",
        "lower",
        "TPOT over the unconstrained run's of equal length, paired by request "
        "and round; interval over forks.",
    ),
    "overhead_e2e": Title("E2E x none", "ratio", "lower", "The same of E2E."),
    "speed_up": Title(
        "speed-up",
        "ratio",
        "higher",
        "Stepwise over strategy of the time in the batch, summed over a run's equal texts, by round and fork.",  # noqa: E501
    ),
    "ceiling": Title(
        "ceiling",
        "ratio",
        "neither",
        "Passes of stepwise over the strategy's, 1 / (1 - saved share): the speed-up if only passes cost.",
    ),
    "valid": Title(
        "valid",
        "share",
        "higher",
        "Of the judged texts, those valid by the grammar's own judge; fallbacks are counted apart.",
    ),
    "as_replayed": Title(
        "replayed",
        "share",
        "higher",
        "Of the replayed requests, those whose text is the reference byte for byte.",
    ),
    "canonical": Title(
        "canonical",
        "share",
        "higher",
        "Of the outputs asked, those whose ids are the tokenizer's own of their text.",
    ),
    "canonical_ids": Title(
        "own ids",
        "share",
        "higher",
        "Of the ids with text, those that the tokenizer itself puts over the same bytes; real models.",
    ),
    "removed": Title(
        "removed",
        "share",
        "lower",
        "Of the model's probability at a place of a text, what the mask removes, 1 - Z; real models.",
        "1 - feasible mass",
    ),
    "favourite_masked": Title(
        "top id masked",
        "share",
        "lower",
        "Of the places, those where the mask forbids the id that the model finds most probable.",
    ),
    "tax": Title(
        "tax",
        "nats",
        "lower",
        "Sum of -log Z over a text: log of the constrained distribution over the model's.",
        "DCCD cumulative projection tax",
    ),
    "tax_per_id": Title("tax/id", "nats", "lower", "The tax of all texts over their places."),
    "imposed": Title(
        "imposed",
        "nats",
        "lower",
        "Sum over a text's ids written without logits: log Z - log P(id), beyond the tax.",
    ),
    "drift": Title("drift", "ratio", "lower", "Ids emitted over ids of the text's own spelling, less 1."),
    "fallback": Title(
        "fallback", "share", "lower", "Of the requests with a grammar, those that ran without it."
    ),
    "solved": Title(
        "solved", "share", "higher", "Of all requests, those answered, not invalid, and under their grammar."
    ),
    "compile": Title(
        "compile", "ns", "lower", "A compile alone, of requests that caused one, cold runs included."
    ),
    "waited": Title("waited", "ns", "lower", "From arrival until the grammar was ready or given up, warm."),
    "grammar": Title(
        "grammar/token", "ns", "lower", "Fills and accepts of a request over its ids, hidden or not."
    ),
    "peak": Title(
        "peak memory",
        "bytes",
        "lower",
        "The highest device memory of a run; on a CPU the process's resident memory.",
    ),
}
"""The figures, in the order in which they are shown."""


def say(name: str, value: float | None) -> str:
    """Returns the value of that figure in its unit, with three digits."""
    if value is None:
        return "-"
    unit = FIGURES[name].unit
    if unit == "ns":
        return duration(value)
    if unit == "share":
        return f"{100 * value:.3g}%"
    if unit == "bytes":
        return f"{value / 2**30:.2f} GiB" if value >= 2**30 else f"{value / 2**20:.0f} MiB"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
