"""What came of a request and of a loop's run: raw, without a mean; the figures are functions of it (`harness.decode.figures`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

End = Literal["end_of_sequence", "limit", "refused", "cancelled", "fault", "aborted"]
"""`refused`: the mask forbids the reference token, or allows nothing. `fault`: the backend raised in mid-stream.
`aborted`: no grammar could be had for it and requests without theirs are not wanted."""

ANSWERED = ("end_of_sequence", "limit")
"""The ends of a request that got its answer; the others are counted by kind and have no latency (vLLM counts successful requests only)."""

STEP = ("rows", "fed", "forward_ns", "fill_ns", "exposed_ns", "move_ns", "apply_ns", "sample_ns", "accept_ns", "strategy_ns", "wall_ns")
"""The int64s of one step of the loop: rows and tokens of its forward pass; then nanoseconds, of the forward pass (to its end), of all fills
(summed over threads), of what the fills held the loop up (their hand-over to the threads before the forward pass, or without threads the
fills themselves, and the wait for them after it), of moving masks to the device, of applying them, of sampling (to the token ids on the
host), of accepts, of the strategy (forced text, its spelling, rollback, copies, drafts) and the starts of grammars, and of all of it but
the time within the compile queue.
What is left of `wall_ns` without forward, exposed, move, apply, sample, accept and strategy is the harness's own."""


@dataclass
class Account:
    """Where the output tokens came from. `len(ids) == sampled + forced + retokenized - rolled_back`, exactly."""

    sampled: int = 0
    """Accepted from logits, end-of-sequence and accepted drafts included."""
    forced: int = 0
    """Written without logits: new text."""
    retokenized: int = 0
    """Written without logits in the place of tokens that were rolled back: text that was there already (each that ends within it)."""
    rolled_back: int = 0
    """Output tokens taken back because another spelling took their place."""
    drafted: int = 0
    """Tokens proposed by a draft; those accepted are in `sampled`."""
    accepted_drafts: int = 0
    passes: int = 0
    """Forward passes in which the request had a row and got logits that it used, the last chunk of its prompt included."""


@dataclass(frozen=True)
class Completed:
    """One request, done. Times are nanoseconds after the start of the loop's run, None where it did not get there."""

    name: str
    end: End
    ids: tuple[int, ...]
    prompt: int
    """Its length, tokens."""
    account: Account
    arrived_ns: int
    admitted_ns: int | None
    """When it got a row."""
    token_ns: tuple[int, ...]
    """For each of `ids`, when it was known on the host."""
    done_ns: int
    why: str = ""
    """What the backend said, where the end is refused, fault or aborted; one line."""
    phase: str = ""
    """In which call a fault arose: `start`, `fill`, `accept`, `rollback`, `jump_forward`, `copy`."""
    fallback: str = ""
    """Why it ran without its grammar; empty if it did not."""
    stopped_at: int | None = None
    """Replay: the index of the reference token that was refused."""
    compile_state: str = ""
    """`hit`, `miss`, `shared` (with another request's compile), `timeout`, `invalid`, `unsupported`, `fault`; empty: no grammar."""
    compile_ns: int | None = None
    """Of the compile alone, where this request caused one."""
    waited_ns: int = 0
    """From its arrival until its grammar was ready or given up."""
    grammar_ns: tuple[int, int] = (0, 0)
    """Fills and accepts of this request, nanoseconds in all."""
    canonical: bool | None = None
    """Are the ids the tokenizer's own of their text? None if not asked."""


def is_replayed(done: Completed, found: bytes, wanted: bytes) -> bool:
    """Is the text that was `found` the one to replay, or where the limit ended it a beginning of that?"""
    return wanted.startswith(found) if done.end == "limit" else found == wanted and done.end == "end_of_sequence"


@dataclass
class Served:
    """All of a loop's run."""

    completed: list[Completed] = field(default_factory=list)
    steps: list[tuple[int, ...]] = field(default_factory=list)
    """One STEP a forward pass."""
    wall_ns: int = 0
    passes: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    """Of mechanisms: `cache_hit`, `cache_miss`, `cache_shared`, `polls`, `fallback`, ..."""


def steps(table: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """Of `[passes, len(STEP)]` the columns of STEP, int64 `[passes]`, and `own_ns`: what is left of a step for the loop itself."""
    columns = {name: table[:, place] for place, name in enumerate(STEP)}
    parts = ("forward_ns", "exposed_ns", "move_ns", "apply_ns", "sample_ns", "accept_ns", "strategy_ns")
    return columns | {"own_ns": columns["wall_ns"] - sum(columns[name] for name in parts)}
