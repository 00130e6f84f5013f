"""What came of a request and of a loop's run: raw values without a mean. The figures are functions of them
(`harness.serve.decode.figures`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

End = Literal["end_of_sequence", "limit", "refused", "cancelled", "fault", "aborted"]
"""How a request ended. `refused`: the mask forbids the reference token, or allows nothing. `fault`: the
backend raised in mid-stream. `aborted`: the grammar could not be had, and such requests are not to run
unconstrained."""

ANSWERED = ("end_of_sequence", "limit")
"""The ends of a request that got its answer. Requests that ended otherwise are counted by kind and have no
latency (vLLM counts successful requests only)."""

STEP_COLUMNS = {
    "rows": "rows of the forward pass whose request still ran",
    "fed": "tokens fed in the forward pass to these rows",
    "forward_ns": "the forward pass, to its end on the device",
    "fill_ns": "all fills, summed over the threads that made them",
    "exposed_ns": "what the fills held the loop up (see above)",
    "move_ns": "moving the masks to the device, where they are unpacked",
    "apply_ns": "applying the masks to the logits",
    "sample_ns": "sampling, until the token ids are on the host",
    "accept_ns": "accepting tokens",
    "strategy_ns": "the strategy (forced text, spelling, rollback, copies, drafts), and grammars' starts",
    "wall_ns": "the whole step, without the time within the compile queue",
    "ahead": "1 if the pass began before the host knew its tokens, else 0",
}
"""The int64 columns of one step of the loop, and what each counts or times, in nanoseconds.

On CUDA forward, the wait for fills, move, apply and sample are by the device's clock: all of them are queued
while the pass runs, so they are what the device spends on them and what it waits for. With overlap,
`exposed_ns` is the hand-over of the fills to threads before the forward pass, and what the fills take longer
than it; without overlap it is the fills themselves. What is left of `wall_ns` without forward, exposed, move,
apply, sample, accept and strategy is the harness's own time. Where the pass began ahead these parts run
beside one another: what they are more than `wall_ns` is then taken off.
"""

STEP = tuple(STEP_COLUMNS)
"""The names of the columns, in their order."""


@dataclass
class Account:
    """Where the output tokens came from, as counts.

    `len(ids) == sampled + forced + retokenized - rolled_back` holds exactly.
    """

    sampled: int = 0
    """Tokens chosen from logits and accepted, end-of-sequence and accepted drafts included."""
    forced: int = 0
    """Tokens of new text that were written without logits."""
    retokenized: int = 0
    """Tokens written without logits in the place of rolled-back ones: they spell text that was there already
    (a token counts here if it ends within that text)."""
    rolled_back: int = 0
    """Output tokens taken back because another spelling took their place."""
    drafted: int = 0
    """Tokens proposed by drafts; the accepted ones also count in `sampled`."""
    accepted_drafts: int = 0
    passes: int = 0
    """Forward passes in which the request had a row and used its logits, the pass over the last chunk of its
    prompt included."""


@dataclass(frozen=True)
class Completed:
    """One finished request.

    Times are nanoseconds after the start of the loop's run; None where the request did not get that far.
    """

    name: str
    end: End
    ids: tuple[int, ...]
    prompt: int
    """Length of the prompt, in tokens."""
    account: Account
    arrived_ns: int
    admitted_ns: int | None
    """When the request got a row."""
    token_ns: tuple[int, ...]
    """For each of `ids`, when it was known on the host."""
    done_ns: int
    why: str = ""
    """The reason where the end is `refused`, `fault` or `aborted`; one line."""
    phase: str = ""
    """The call in which a fault arose: `start`, `fill`, `accept`, `rollback`, `jump_forward` or `copy`."""
    fallback: str = ""
    """Why the request ran without its grammar; empty if it ran with it."""
    stopped_at: int | None = None
    """For replay: the index of the reference token that was refused."""
    compile_state: str = ""
    """How the request came to its grammar, or why it did not: `hit`, `miss`, `shared` (with another request's
    compile), `timeout`, `invalid`, `unsupported` or `fault`; empty if it has no grammar."""
    compile_ns: int | None = None
    """Nanoseconds of the compile alone, if this request caused one."""
    waited_ns: int = 0
    """Nanoseconds from the request's arrival until its grammar was ready or given up."""
    grammar_ns: tuple[int, int] = (0, 0)
    """Nanoseconds that this request spent in fills and in accepts, in all."""
    canonical: bool | None = None
    """Whether the ids are the tokenizer's own for their text; None if this was not asked."""
    moves: tuple[tuple[int, int], ...] = ()
    """For each time that ids were written without logits, in order: how many ids were kept before them, and
    how many were written."""


def places_written(moves: Sequence[tuple[int, int]]) -> set[int]:
    """Returns the places of the output's ids that were written without logits, as `Completed.moves` tells
    them: what a later move takes back, and what was sampled in its place, is not among them."""
    places: set[int] = set()
    for keep, count in moves:
        places = {place for place in places if place < keep} | set(range(keep, keep + count))
    return places


def is_replayed(done: Completed, text: bytes, wanted: bytes) -> bool:
    """Returns whether `text` is the text to replay or, if the request ended at its limit, a beginning of
    it."""
    return (
        wanted.startswith(text) if done.end == "limit" else text == wanted and done.end == "end_of_sequence"
    )


@dataclass
class Served:
    """The result of one run of the loop."""

    completed: list[Completed] = field(default_factory=list)
    steps: list[tuple[int, ...]] = field(default_factory=list)
    """One tuple of the columns of STEP for each forward pass."""
    wall_ns: int = 0
    passes: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    """Counts of what the mechanisms did: `cache_hit`, `cache_miss`, `cache_shared`, `polls`, `fallback`,
    ..."""


def steps(table: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """Returns the columns of STEP by name, each int64 `[passes]`, out of a table `[passes, len(STEP)]`;
    `beside_ns`, the nanoseconds by which the parts of a step whose pass began ahead are more than the step, 0
    in every other; and `own_ns`, those of each step that are left for the loop itself."""
    columns = {name: table[:, place] for place, name in enumerate(STEP)}
    parts = ("forward_ns", "exposed_ns", "move_ns", "apply_ns", "sample_ns", "accept_ns", "strategy_ns")
    left = columns["wall_ns"] - sum(columns[name] for name in parts)
    beside = np.where(columns["ahead"] == 1, np.maximum(-left, 0), 0)
    return columns | {"beside_ns": beside, "own_ns": left + beside}
